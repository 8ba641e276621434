def make1():
 def f1(d, g_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  x_3 = 1
  e = d + 1
  if (
(t2 := g_2.call)(e) if g_2.__class__ is Fn and g_2.arity == 0 else call_named(g_2, 'g', e, (), ())):
   try:
    t1 = 2
   finally:
    if alive():
     (
b_println_(vm, (x_3 if x_3.__class__ is str else display(x_3))))
  else:
   t1 = 3
  x_3 = t1
  t3 = x_3
  t4 = False
  if eq(t3, 1):
   t4 = True
   x_3 = 4
  if not t4:
   t4 = True
  if not t4: raise Thrown('No match arm matched the value')
  t3 = None
  return x_3
 return f1
def main(d):
 f_1 = named('f', ('g',), make1())
 return None
