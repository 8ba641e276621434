def make2(b_6):
 def f2(d):
  if d > 512: overflow()
  if signal.pending: poll()
  return b_6
 return f2
def make1(g_5):
 def f1(d, a_3=None, b_4=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  t3 = (True if (a_3 and b_4) else False)
  t4 = (a_3 if a_3 is not None else b_4)
  t5 = (b_4 if (not a_3) else 1)
  try:
   t1 = a_3['x']
  except (KeyError, TypeError):
   t1 = (
get_prop(a_3, 'x'))
  return [t3, t4, t5, (t1 if t1 is not None else (
(t2 := g_5.call)(e, b_4))), (True if (a_3 or Fn(None, (), make2(b_4))) else False)]
 return f1
def make3():
 def f3(d, x_7=None):
  if d > 512: overflow()
  if signal.pending: poll()
  return x_7
 return f3
def main(d):
 g_2 = shell('g', ('x',), False)
 f_1 = named('f', ('a', 'b'), make1(g_2))
 fill(g_2, make3(), False)
 return None
