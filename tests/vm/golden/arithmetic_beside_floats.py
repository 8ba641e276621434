def make1():
 def f1(d, x_2=None, n_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if x_2.__class__ is not int and x_2.__class__ is not float: check_parameter('x', x_2, ('scalar', 'float'))
  if n_3.__class__ is not int and n_3.__class__ is not float: check_parameter('n', n_3, ('scalar', 'int'))
  t1 = x_2 * 4
  if t1 > 1073741823 or t1 < -1073741823: t1 = wrap(t1)
  t2 = t1 * n_3
  if t2 > 1073741823 or t2 < -1073741823: t2 = wrap(t2)
  t3 = t2 + 0.5
  if t3 > 1073741823 or t3 < -1073741823: t3 = wrap(t3)
  return t3
 return f1
def main(d):
 f_1 = named('f', ('x', 'n'), make1())
 return None
