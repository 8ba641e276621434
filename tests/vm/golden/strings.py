def make1():
 def f1(d, name_2=None, n_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if type(n_3) is not int and type(n_3) is not float: check_parameter('n', n_3, ('scalar', 'int'))
  s_4 = 'a'
  if type(s_4) is str and type(name_2) is str: s_4 = s_4 + (name_2 + '!')
  else:
   s_4 = (
add((
add(s_4, name_2)), '!'))
  t1 = (len(name_2) if type(name_2) is list or type(name_2) is str else (
b_len_(vm, name_2)))
  t2 = f"{name_2 if type(name_2) is str or type(name_2) is int else display(name_2)}: {n_3 if type(n_3) is str or type(n_3) is int else display(n_3)} of {t1}"
  if type(s_4) is str: s_4 = s_4 + t2
  else:
   s_4 = (
add(s_4, t2))
  return s_4
 return f1
def main(d):
 f_1 = named('f', ('name', 'n'), make1())
 return None
