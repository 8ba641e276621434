def make1():
 def f1(d, a_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  src_3 = a_2
  t1 = src_3
  destructure_dict(t1)
  t2 = t1.get('x')
  if t2 is None:
   if a_2:
    src_3 = {}
    t2 = 1
   else:
    t2 = 2
  x_4 = t2
  y_5 = t1.get('y')
  return [x_4, y_5]
 return f1
def main(d):
 f_1 = named('f', ('a',), make1())
 return None
