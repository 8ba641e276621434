def make2(k_7):
 def f2(d, x_6=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if x_6.__class__ is int and k_7.__class__ is int:
   t1 = x_6 + k_7
   if t1 > 1073741823 or t1 < -1073741823: t1 = wrap(t1)
  else:
   t1 = (
add(x_6, k_7))
  return t1
 return f2
def make3(k_8_given):
 def f3(d):
  if d > 512: overflow()
  if signal.pending: poll()
  k_8 = k_8_given
  if k_8.__class__ is int:
   k_8 = k_8 + 1
   if k_8 > 1073741823: k_8 = wrap(k_8)
  else:
   k_8 = (
add(k_8, 1))
  return None
 return f3
def make1():
 def f1(d, n_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  k_3 = n_2
  g_4 = Fn(None, ('x',), make2(k_3))
  h_5 = Fn(None, (), make3(k_3))
  k_3 = 2
  return [g_4, h_5]
 return f1
def main(d):
 f_1 = named('f', ('n',), make1())
 return None
