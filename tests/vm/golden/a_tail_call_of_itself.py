def make1(count_5):
 def f1(d, n_2=MISSING, step_3=MISSING, more_4=MISSING):
  if d > 512: overflow()
  while True:
   if signal.pending: poll()
   if n_2 is MISSING: n_2 = None
   if step_3 is MISSING:
    step_3 = 1
   if more_4 is MISSING: more_4 = []
   if (n_2 <= 0 if n_2.__class__ is int else le(n_2, 0)):
    return more_4
   if n_2.__class__ is int and step_3.__class__ is int:
    t1 = n_2 - step_3
    if t1 > 1073741823 or t1 < -1073741823: t1 = wrap(t1)
   else:
    t1 = (
sub(n_2, step_3))
   n_2, step_3, more_4 = t1, step_3, [n_2]
   continue
   return None
 return f1
def main(d):
 count_1 = shell('count', ('n', 'step', 'more'), True)
 fill(count_1, make1(count_1), False)
 return None
