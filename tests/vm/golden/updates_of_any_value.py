def make1():
 def f1(d, a_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  x_3 = a_2
  if x_3.__class__ is int and a_2.__class__ is int:
   x_3 = x_3 + a_2
   if x_3 > 1073741823 or x_3 < -1073741823: x_3 = wrap(x_3)
  elif x_3.__class__ is dict and a_2.__class__ is dict and getrefcount(x_3) == SOLE: x_3.update(a_2)
  elif x_3.__class__ is list and a_2.__class__ is list and getrefcount(x_3) == SOLE: x_3 += a_2
  elif x_3.__class__ is str and a_2.__class__ is str: x_3 = x_3 + a_2
  else:
   x_3 = (
add(x_3, a_2))
  if x_3.__class__ is int:
   x_3 = x_3 + 1
   if x_3 > 1073741823: x_3 = wrap(x_3)
  else:
   x_3 = (
add(x_3, 1))
  if x_3.__class__ is list and getrefcount(x_3) == SOLE and 0 <= 0 < len(x_3):
   x_3[0] = a_2
  elif x_3.__class__ is dict and getrefcount(x_3) == SOLE: x_3[display(0)] = a_2
  else: x_3 = (
set_index(x_3, 0, a_2))
  return x_3
 return f1
def main(d):
 f_1 = named('f', ('a',), make1())
 return None
