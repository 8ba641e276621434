def make1(down_7):
 def f1(d, n_6=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if (n_6 <= 0 if n_6.__class__ is int else le(n_6, 0)):
   return 0
  e = d + 1
  if n_6.__class__ is int:
   t1 = n_6 - 1
   if t1 < -1073741823: t1 = wrap(t1)
  else:
   t1 = (
sub(n_6, 1))
  t3 = 1 + (
(t2 := down_7.call)(e, t1))
  if t3 > 1073741823: t3 = wrap(t3)
  return t3
 return f1
def make2(odd_9):
 def f2(d, n_8=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if n_8.__class__ is not int and n_8.__class__ is not float: check_parameter('n', n_8, ('scalar', 'int'))
  if (n_8 == 0 if n_8.__class__ is int else eq(n_8, 0)):
   return True
  t1 = n_8 - 1
  if t1 < -1073741823: t1 = wrap(t1)
  TAIL.args = (t1,)
  TAIL.body = odd_9.body
  return TAIL
 return f2
def make3(even_11):
 def f3(d, n_10=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if n_10.__class__ is not int and n_10.__class__ is not float: check_parameter('n', n_10, ('scalar', 'int'))
  if (n_10 == 0 if n_10.__class__ is int else eq(n_10, 0)):
   return False
  t1 = n_10 - 1
  if t1 < -1073741823: t1 = wrap(t1)
  TAIL.args = (t1,)
  TAIL.body = even_11.body
  return TAIL
 return f3
def make4():
 def f4(d, p_12=None):
  if d > 512: overflow()
  if signal.pending: poll()
  try:
   t1 = p_12['x']
  except (KeyError, TypeError):
   t1 = (
get_prop(p_12, 'x'))
  try:
   t2 = p_12['x']
  except (KeyError, TypeError):
   t2 = (
get_prop(p_12, 'x'))
  if t1.__class__ is int and t2.__class__ is int:
   t3 = t1 * t2
   if t3 > 1073741823 or t3 < -1073741823: t3 = wrap(t3)
  else:
   t3 = (
mul(t1, t2))
  try:
   t4 = p_12['y']
  except (KeyError, TypeError):
   t4 = (
get_prop(p_12, 'y'))
  try:
   t5 = p_12['y']
  except (KeyError, TypeError):
   t5 = (
get_prop(p_12, 'y'))
  if t3.__class__ is int and t4.__class__ is int and t5.__class__ is int:
   t6 = t3 + (t4 * t5)
   if t6 > 1073741823 or t6 < -1073741823: t6 = wrap(t6)
  else:
   t6 = (
add(t3, (
mul(t4, t5))))
  return t6
 return f4
def make5():
 def f5(d, p_12=None):
  if d > 512: overflow()
  if signal.pending: poll()
  t1 = (p_12['x'] * p_12['x']) + (p_12['y'] * p_12['y'])
  if t1 > 1073741823 or t1 < -1073741823: t1 = wrap(t1)
  return t1
 return f5
def main(d):
 e = d + 1
 down_1 = shell('down', ('n',), False)
 odd_3 = shell('odd', ('n',), False)
 Point_5 = constructor('Point', ('x', 'y'))
 fill(down_1, make1(down_1), False)
 even_2 = bouncing('even', ('n',), make2(odd_3), False)
 fill(odd_3, make3(even_2), True)
 length_4 = named('length', ('p',), make4())
 hasten(length_4, make5(), False)
 t2 = (
(t1 := down_1.call)(e, 3))
 (
b_println_(vm, (t2 if t2.__class__ is str else display(t2))))
 t4 = (
(t3 := even_2.call)(e, 4))
 (
b_println_(vm, (t4 if t4.__class__ is str else display(t4))))
 t5 = Struct('Point', {'x': 1, 'y': 2})
 if (length_4.inlinable and e < 513) and not signal.pending:
  t6 = (t5['x'] * t5['x']) + (t5['y'] * t5['y'])
  if t6 > 1073741823 or t6 < -1073741823: t6 = wrap(t6)
 else:
  t6 = (
(t7 := length_4.fast)(e, t5))
 (
b_println_(vm, (t6 if t6.__class__ is str else display(t6))))
 t9 = (
(t8 := down_1.call)(e, 'no number'))
 (
b_println_(vm, (t9 if t9.__class__ is str else display(t9))))
 return None
