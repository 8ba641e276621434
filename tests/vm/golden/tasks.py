def make2(xs_5):
 def f2(d):
  if d > 512: overflow()
  if signal.pending: poll()
  return (xs_5.get('count') if xs_5.__class__ is dict else (
get_prop(xs_5, 'count')))
 return f2
def make3():
 def f3(d, x_6=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if x_6.__class__ is int:
   t1 = x_6 + 1
   if t1 > 1073741823: t1 = wrap(t1)
  else:
   t1 = (
add(x_6, 1))
  return t1
 return f3
def make1():
 def f1(d, xs_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  t_3 = (
spawn(make2(xs_2)))
  all_4 = (
parallel('each', xs_2, make3(), True, 2))
  return [(
await_task(t_3)), all_4]
 return f1
def main(d):
 f_1 = named('f', ('xs',), make1())
 return None
