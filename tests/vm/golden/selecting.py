def make2(a_6):
 def f2(d):
  if d > 512: overflow()
  if signal.pending: poll()
  t1, t2 = select([a_6], None)
  if t1 == 0:
   x_7 = t2
   t2 = None
   return x_7
  else:
   return None
 return f2
def make1():
 def f1(d, a_2=None, b_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  t1, t2 = select([a_2, b_3], select_limit(Duration(10)))
  if t1 == 0:
   x_4 = t2
   t2 = None
   return x_4
  elif t1 == 1:
   y_5 = t2
   t2 = None
   (
b_println_(vm, (y_5 if y_5.__class__ is str else display(y_5))))
  else:
   return None
  return Fn(None, (), make2(a_2))
 return f1
def main(d):
 f_1 = named('f', ('a', 'b'), make1())
 return None
