def make1():
 def f1(d, a_2=None, b_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  t2 = [1, a_2, *(
spread_list(b_3))]
  t3 = display(a_2)
  t4 = b_3
  t5 = (
spread_dict(a_2))
  if a_2:
   t1 = 1
  else:
   t1 = 2
  return {'list': t2, t3: t4, **t5, 'last': t1}
 return f1
def main(d):
 f_1 = named('f', ('a', 'b'), make1())
 return None
