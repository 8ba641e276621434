def make1():
 def f1(d, g_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  try:
   r_3 = (
(t2 := g_2.call)(e) if g_2.__class__ is Fn and g_2.arity == 0 else call_named(g_2, 'g', e, (), ()))
   r_3 = as_result(r_3)
  except FAILURES as t1:
   r_3 = err(caught(t1))
  try:
   try:
    x_4 = (
(t3 := g_2.call)(e) if g_2.__class__ is Fn and g_2.arity == 0 else call_named(g_2, 'g', e, (), ()))
   except FAILURES as t4:
    t5 = caught(t4)
    if t5.__class__ is not EnumValue or t5.enum != 'Fault': raise
    e_5 = t5
    x_4 = e_5
  finally:
   if alive():
    (
b_println_(vm, 'done'))
  try:
   raise Thrown(x_4)
  except FAILURES as t6:
   t7 = caught(t6)
   e_6 = t7
   if r_3.__class__ is not EnumValue or r_3.enum != 'Result': bad_propagation(r_3)
   if r_3.variant != 'Ok':
    return r_3
   t8 = payload(r_3)
   return [e_6, t8]
 return f1
def main(d):
 f_1 = named('f', ('g',), make1())
 return None
