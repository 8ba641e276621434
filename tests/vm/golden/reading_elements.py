def make1():
 def f1(d, xs_2=None, i_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if xs_2.__class__ is list and i_3.__class__ is int:
   try: t1 = xs_2[i_3]
   except IndexError: t1 = None
  elif xs_2.__class__ is dict and i_3.__class__ is str: t1 = xs_2.get(i_3)
  else: t1 = (
index(xs_2, i_3))
  if xs_2.__class__ is list:
   try: t2 = xs_2[0]
   except IndexError: t2 = None
  else: t2 = (
index(xs_2, 0))
  return [t1, t2, (xs_2.get('k') if xs_2.__class__ is dict else (
index(xs_2, 'k'))), (None if xs_2 is None else (
index(xs_2, 1))), (
slice_(xs_2, 1, None)), (
slice_(xs_2, None, i_3))]
 return f1
def main(d):
 f_1 = named('f', ('xs', 'i'), make1())
 return None
