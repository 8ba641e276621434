def make1():
 def f1(d, a_2=MISSING, b_3=MISSING, c_4=MISSING, rest_5=MISSING):
  if d > 512: overflow()
  if signal.pending: poll()
  if a_2 is MISSING: a_2 = None
  if a_2.__class__ is not int and a_2.__class__ is not float: check_parameter('a', a_2, ('scalar', 'int'))
  if b_3 is MISSING:
   b_3 = 'x'
  if b_3.__class__ is not str: check_parameter('b', b_3, ('scalar', 'string'))
  if c_4 is MISSING:
   c_4 = None
  check_parameter('c', c_4, ('union', (('list', ('scalar', 'string')), ('scalar', 'nil'))))
  if rest_5 is MISSING: rest_5 = []
  return [a_2, b_3, c_4, rest_5]
 return f1
def main(d):
 f_1 = named('f', ('a', 'b', 'c', 'rest'), make1(), True)
 return None
