def make1():
 def f1(d, cfg_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  try:
   t1 = cfg_2['a']
  except (KeyError, TypeError):
   t1 = (
get_prop(cfg_2, 'a'))
  try:
   t2 = cfg_2['a']['b']['c']
  except (KeyError, TypeError):
   t2 = (
get_path(cfg_2, ('a', 'b', 'c')))
  t3 = (cfg_2.get('a') if cfg_2.__class__ is dict else get_prop_optional(cfg_2, 'a'))
  t5 = (t3.get('b') if t3.__class__ is dict else get_prop_optional(t3, 'b'))
  try:
   t4 = cfg_2['items']
  except (KeyError, TypeError):
   t4 = (
get_prop(cfg_2, 'items'))
  return [t1, t2, t5, (t4.get('count') if t4.__class__ is dict else (
get_prop(t4, 'count')))]
 return f1
def main(d):
 f_1 = named('f', ('cfg',), make1())
 return None
