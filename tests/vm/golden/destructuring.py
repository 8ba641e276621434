def make1():
 def f1(d, a_2=None):
  if d > 512: overflow()
  if signal.pending: poll()
  destructure_dict(a_2)
  name_3 = a_2.get('name')
  t1 = a_2.get('size')
  if t1 is None:
   t1 = 1
  n_4 = t1
  rest_5 = {k: v for k, v in a_2.items() if k not in ('name', 'size')}
  try:
   t2 = a_2['items']
  except (KeyError, TypeError):
   t2 = (
get_prop(a_2, 'items'))
  destructure_list(t2)
  first_6 = (t2[0] if len(t2) > 0 else None)
  t3 = (t2[1] if len(t2) > 1 else None)
  t4 = (t2[2] if len(t2) > 2 else None)
  if t4 is None:
   t4 = n_4
  third_7 = t4
  try:
   t5 = a_2['pairs']
  except (KeyError, TypeError):
   t5 = (
get_prop(a_2, 'pairs'))
  for t6 in (
iterate_for(t5)):
   if signal.pending: poll()
   k_8 = get_prop(t6, 'first')
   v_9 = get_prop(t6, 'second')
   if k_8.__class__ is int and v_9.__class__ is int:
    t7 = k_8 + v_9
    if t7 > 1073741823 or t7 < -1073741823: t7 = wrap(t7)
   else:
    t7 = (
add(k_8, v_9))
   (
b_println_(vm, (t7 if t7.__class__ is str else display(t7))))
  return [name_3, n_4, rest_5, first_6, third_7]
 return f1
def main(d):
 f_1 = named('f', ('a',), make1())
 return None
