def make1():
 def f1(d, v_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  t1 = v_2
  t2 = False
  if t1 is None:
   t2 = True
   return 0
  if not t2:
   if True:
    t3 = eq(t1, 1)
   if not t3:
    t3 = eq(t1, 2)
   if t3:
    t2 = True
    return 'few'
  if not t2:
   t4 = t1.__class__ is dict
   if t4:
    t4 = t1.get('kind') == 'a'
   if t4:
    k_3 = t1.get('n')
   if t4:
    if (k_3 > 1 if k_3.__class__ is int else gt(k_3, 1)):
     t2 = True
     return k_3
  if not t2:
   t5 = t1.__class__ is list and len(t1) >= 2
   if t5:
    x_4 = t1[0]
   if t5:
    t5 = eq(t1[1], 2)
   if t5:
    t2 = True
    return x_4
  if not t2:
   t6 = t1.__class__ is EnumValue and t1.variant == 'Circle' and t1.enum == 'Shape'
   if t6:
    r_5 = field(t1, 0)
   if t6:
    t2 = True
    return r_5
  if not t2:
   if t1.__class__ is EnumValue and t1.variant == 'Square' and t1.enum == 'Shape':
    t2 = True
    return 4
  if not t2:
   other_6 = t1
   t2 = True
   return other_6
  if not t2: raise Thrown('No match arm matched the value')
  t1 = None
 return f1
def main(d):
 f_1 = named('f', ('v',), make1())
 return None
