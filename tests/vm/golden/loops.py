def make1():
 def f1(d, xs_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  i_3 = 0
  while True:
   if not ((i_3 < 10) and xs_2): break
   if signal.pending: poll()
   i_3 = i_3 + 1
   if (i_3 == 5):
    continue
   for x_4 in (
iterate_for(xs_2)):
    if signal.pending: poll()
    if (x_4 == i_3 if x_4.__class__ is int else eq(x_4, i_3)):
     break
  for t1 in range(1, i_3 + 1):
   if signal.pending: poll()
   (
b_println_(vm, (i_3 if i_3.__class__ is str else display(i_3))))
 return f1
def main(d):
 f_1 = named('f', ('xs',), make1())
 return None
