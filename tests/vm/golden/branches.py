def make1(g_5):
 def f1(d, a_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  if (a_3 < 0 if a_3.__class__ is int else lt(a_3, 0)):
   kind_4 = 'negative'
  elif (a_3 == 0 if a_3.__class__ is int else eq(a_3, 0)):
   kind_4 = 'zero'
  else:
   try:
    t1 = a_3
   except FAILURES as t2:
    t3 = caught(t2)
    e_6 = t3
    t1 = 0
   if (
(t4 := g_5.call)(e, t1)):
    kind_4 = 'odd'
   else:
    kind_4 = 'even'
  if not a_3:
   return None
  if not (a_3 > 1 if a_3.__class__ is int else gt(a_3, 1)):
   raise Thrown('too small')
  return kind_4
 return f1
def make2():
 def f2(d, x_7=None):
  if d > 512: overflow()
  if signal.pending: poll()
  return (x_7 % 2 if x_7.__class__ is int and x_7 >= 0 else (
mod(x_7, 2)))
 return f2
def main(d):
 g_2 = shell('g', ('x',), False)
 f_1 = named('f', ('a',), make1(g_2))
 fill(g_2, make2(), False)
 return None
