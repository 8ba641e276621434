def make1():
 def f1(d, g_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  defers = []
  try:
   n_3 = 0
   def deferred1():
    nonlocal n_3
    n_3 = n_3 + 1
    if n_3 > 1073741823: n_3 = wrap(n_3)
    (
b_println_(vm, (n_3 if n_3.__class__ is str else display(n_3))))
    return None
   defers.append(deferred1)
   return (
(t2 := g_2.call)(e, n_3) if g_2.__class__ is Fn and g_2.arity == 1 else call_named(g_2, 'g', e, (n_3,), ()))
  finally:
   if alive(): run_defers(defers)
 return f1
def main(d):
 f_1 = named('f', ('g',), make1())
 return None
