def make1():
 def f1(d, g_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  t1 = deadline_begin(Duration(5000))
  try:
   return (
(t3 := g_2.call)(e) if g_2.__class__ is Fn and g_2.arity == 0 else call_named(g_2, 'g', e, (), ()))
  except Interrupted as t2:
   raise t2.outside(t1) from None
  finally:
   deadline_end(t1)
 return f1
def main(d):
 f_1 = named('f', ('g',), make1())
 return None
