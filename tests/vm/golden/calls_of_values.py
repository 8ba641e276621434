def make1():
 def f1(d, g_2=None, xs_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  t3 = (
(t1 := g_2.call)(e, 1) if g_2.__class__ is Fn and g_2.arity == 1 else call_named(g_2, 'g', e, (1,), ()))
  t2 = [*(
spread_list(xs_3))]
  t5 = (
call_named(g_2, 'g', e, t2, ()))
  t6 = (len(xs_3) if xs_3.__class__ is list or xs_3.__class__ is str else (
b_len_(vm, xs_3)))
  t7 = (
b_len_(vm, 1))
  t8 = (
pipe(xs_3, g_2, e))
  __4 = 1
  return [t3, t5, t6, t7, t8, (
(t4 := g_2.call)(e, __4, 2) if g_2.__class__ is Fn and g_2.arity == 2 else call_named(g_2, 'g', e, (__4, 2), ())), (
b_max_(vm, 3, 4))]
 return f1
def main(d):
 f_1 = named('f', ('g', 'xs'), make1())
 return None
