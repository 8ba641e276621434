def make1():
 def f1(d, g_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  for i_3 in range(0, 3 + 1):
   if signal.pending: poll()
   t1 = retry_count(3)
   for t4 in range(1, t1 + 1):
    if signal.pending: poll()
    t3 = 0
    try:
     r_4 = (
(t5 := g_2.call)(e, i_3) if g_2.__class__ is Fn and g_2.arity == 1 else call_named(g_2, 'g', e, (i_3,), ()))
     if (r_4 is None):
      t3 = 1
      break
     if (r_4 == 0 if r_4.__class__ is int else eq(r_4, 0)):
      t3 = 2
      break
     return r_4
     break
    except FAILURES as t2:
     if t4 == t1: raise again(t2)
   if t3 == 1: break
   if t3 == 2: continue
 return f1
def main(d):
 f_1 = named('f', ('g',), make1())
 return None
