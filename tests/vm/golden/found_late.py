def make2(odd_7):
 def f2(d, n_6=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  if (n_6 == 0 if n_6.__class__ is int else eq(n_6, 0)):
   t2 = True
  else:
   if n_6.__class__ is int:
    t1 = n_6 - 1
    if t1 < -1073741823: t1 = wrap(t1)
   else:
    t1 = (
sub(n_6, 1))
   t2 = (
call_late(odd_7[0], 'odd', e, (t1,), ()))
  return t2
 return f2
def make3(even_9):
 def f3(d, n_8=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  if (n_8 == 0 if n_8.__class__ is int else eq(n_8, 0)):
   t3 = False
  else:
   if n_8.__class__ is int:
    t1 = n_8 - 1
    if t1 < -1073741823: t1 = wrap(t1)
   else:
    t1 = (
sub(n_8, 1))
   t3 = (
(t2 := even_9.call)(e, t1) if even_9.__class__ is Fn and even_9.arity == 1 else call_named(even_9, 'even', e, (t1,), ()))
  return t3
 return f3
def make1():
 def f1(d):
  if d > 512: overflow()
  if signal.pending: poll()
  box5 = [UNSET]
  even_4 = Fn(None, ('n',), make2(box5))
  odd_5 = Fn(None, ('n',), make3(even_4))
  box5[0] = odd_5
  e = d + 1
  return (
tail_named(even_4, 'even', e, (4,), ()))
 return f1
def make4(b_10):
 def f4(d):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  return (
(t1 := b_10.call)(e))
 return f4
def make5():
 def f5(d):
  if d > 512: overflow()
  if signal.pending: poll()
  return 1
 return f5
def main(d):
 b_3 = shell('b', (), False)
 f_1 = bouncing('f', (), make1(), False)
 a_2 = named('a', (), make4(b_3))
 fill(b_3, make5(), False)
 return None
