def make1(odd_5):
 def f1(d, n_4=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if (n_4 == 0 if n_4.__class__ is int else eq(n_4, 0)):
   return True
  if n_4.__class__ is int:
   t1 = n_4 - 1
   if t1 < -1073741823: t1 = wrap(t1)
  else:
   t1 = (
sub(n_4, 1))
  TAIL.args = (t1,)
  TAIL.body = odd_5.body
  return TAIL
 return f1
def make2(even_7):
 def f2(d, n_6=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if (n_6 == 0 if n_6.__class__ is int else eq(n_6, 0)):
   return False
  if n_6.__class__ is int:
   t1 = n_6 - 1
   if t1 < -1073741823: t1 = wrap(t1)
  else:
   t1 = (
sub(n_6, 1))
  TAIL.args = (t1,)
  TAIL.body = even_7.body
  return TAIL
 return f2
def make3():
 def f3(d, f_8=None, x_9=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  return (
tail_named(f_8, 'f', e, (x_9,), ()))
 return f3
def main(d):
 odd_2 = shell('odd', ('n',), False)
 even_1 = bouncing('even', ('n',), make1(odd_2), False)
 fill(odd_2, make2(even_1), True)
 apply_3 = bouncing('apply', ('f', 'x'), make3(), False)
 return None
