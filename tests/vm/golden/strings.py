def make1():
 def f1(d, name_2=None, n_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if n_3.__class__ is not int and n_3.__class__ is not float: check_parameter('n', n_3, ('scalar', 'int'))
  s_4 = 'a'
  if s_4.__class__ is str and name_2.__class__ is str: s_4 = s_4 + (name_2 + '!')
  else:
   s_4 = (
add((
add(s_4, name_2)), '!'))
  t1 = (len(name_2) if name_2.__class__ is list or name_2.__class__ is str else (
b_len_(vm, name_2)))
  t2 = f"{name_2 if name_2.__class__ is str or name_2.__class__ is int else display(name_2)}: {n_3 if n_3.__class__ is str or n_3.__class__ is int else display(n_3)} of {t1}"
  if s_4.__class__ is str: s_4 = s_4 + t2
  else:
   s_4 = (
add(s_4, t2))
  return s_4
 return f1
def main(d):
 f_1 = named('f', ('name', 'n'), make1())
 return None
