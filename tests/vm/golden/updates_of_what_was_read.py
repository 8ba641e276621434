def make1():
 def f1(d, a_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  xs_3 = [a_2]
  t1 = xs_3
  if a_2:
   xs_3 = []
   t2 = [1]
  else:
   t2 = [2]
  if xs_3 is t1:
   t1 = None
   if xs_3.__class__ is int and t2.__class__ is int:
    xs_3 = xs_3 + t2
    if xs_3 > 1073741823 or xs_3 < -1073741823: xs_3 = wrap(xs_3)
   elif xs_3.__class__ is dict and t2.__class__ is dict and getrefcount(xs_3) == SOLE: xs_3.update(t2)
   elif xs_3.__class__ is list and t2.__class__ is list and getrefcount(xs_3) == SOLE: xs_3 += t2
   elif xs_3.__class__ is str and t2.__class__ is str: xs_3 = xs_3 + t2
   else:
    xs_3 = (
add(xs_3, t2))
  else: xs_3 = (
add(t1, t2))
  t3 = xs_3
  try:
   try:
    t4 = a_2['b']
   except (KeyError, TypeError):
    t4 = (
get_prop(a_2, 'b'))
  except FAILURES as t5:
   t6 = caught(t5)
   e_4 = t6
   t4 = e_4
  if xs_3 is t3:
   t3 = None
   if xs_3.__class__ is list and getrefcount(xs_3) == SOLE: xs_3.append(t4)
   else:
    xs_3 = (
m_push_1_[type(xs_3)](vm, xs_3, t4))
  else: xs_3 = (
m_push_1_[type(t3)](vm, t3, t4))
  return xs_3
 return f1
def main(d):
 f_1 = named('f', ('a',), make1())
 return None
