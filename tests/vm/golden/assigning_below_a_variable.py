def make1():
 def f1(d, a_2=None, i_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  x_4 = a_2
  x_4 = (
store_path(x_4, (('prop', 'list'), ('index', i_3), ('prop', 'name'), ), 'n'))
  t1 = (
read_path(x_4, (('prop', 'count'), )))
  t2 = (
add(t1, 1))
  if (x_4.__class__ is dict or x_4.__class__ is Struct) and getrefcount(x_4) == SOLE: x_4['count'] = t2
  else: x_4 = (
set_prop(x_4, 'count', t2))
  return x_4
 return f1
def main(d):
 f_1 = named('f', ('a', 'i'), make1())
 return None
