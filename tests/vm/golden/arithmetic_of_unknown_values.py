def make1():
 def f1(d, a_2=None, b_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if a_2.__class__ is int and b_3.__class__ is int:
   t1 = (a_2 + (b_3 * 2)) - 1
   if t1 > 1073741823 or t1 < -1073741823: t1 = wrap(t1)
  else:
   t1 = (
sub((
add(a_2, (
mul(b_3, 2)))), 1))
  return t1
 return f1
def main(d):
 f_1 = named('f', ('a', 'b'), make1())
 return None
