def make1():
 def f1(d, a_2=None, b_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  n_4 = 3
  return [(a_2 < b_3 if a_2.__class__ is int and b_3.__class__ is int else lt(a_2, b_3)), (n_4 < a_2 if a_2.__class__ is int else lt(n_4, a_2)), (n_4 < 4), (a_2 == 'x'), (a_2 is not None), (n_4 == a_2 if a_2.__class__ is int else eq(n_4, a_2)), (
in_('k', b_3))]
 return f1
def main(d):
 f_1 = named('f', ('a', 'b'), make1())
 return None
