def make1():
 def f1(d, a_2=None, i_3=None, y_4=None):
  if d > 512: overflow()
  if signal.pending: poll()
  x_5 = a_2
  try:
   t1 = x_5['items']
  except (KeyError, TypeError):
   t1 = (
get_prop(x_5, 'items'))
  t2 = [i_3]
  if type(t1) is list and sole_holder(x_5, (('prop', 'items'), ), t1): t1 += t2
  else:
   t1 = (
add(t1, t2))
   if type(x_5) is dict and getrefcount(x_5) == SOLE: x_5['items'] = t1
   else: x_5 = (
set_prop(x_5, 'items', t1))
  t1 = None
  try:
   t3 = x_5['rows']
  except (KeyError, TypeError):
   t3 = (
get_prop(x_5, 'rows'))
  if type(t3) is list and type(i_3) is int:
   try: t4 = t3[i_3]
   except IndexError: t4 = None
  else: t4 = (
index(t3, i_3))
  try:
   t5 = x_5['rows']
  except (KeyError, TypeError):
   t5 = (
get_prop(x_5, 'rows'))
  t6 = (t5.get('count') if type(t5) is dict else (
get_prop(t5, 'count')))
  t3 = t5 = None
  if type(t4) is list and sole_holder(x_5, (('prop', 'rows'), ('index', i_3), ), t4): t4.append(t6)
  else:
   t4 = (
m_push_1_[type(t4)](vm, t4, t6))
   x_5 = (
store_path(x_5, (('prop', 'rows'), ('index', i_3), ), t4))
  t4 = None
  t7 = (
read_path(x_5, (('prop', 'text'), )))
  if type(t7) is str and (t8 := sole_holder(x_5, (('prop', 'text'), ), t7)):
   t8['text'] = None
   t7 = t7 + 'ab'
   t8['text'] = t7
   t8 = None
  else:
   t7 = (
add(t7, 'ab'))
   if type(x_5) is dict and getrefcount(x_5) == SOLE: x_5['text'] = t7
   else: x_5 = (
set_prop(x_5, 'text', t7))
  t7 = None
  try:
   t9 = x_5['sum']
  except (KeyError, TypeError):
   t9 = (
get_prop(x_5, 'sum'))
  if type(t9) is int and type(y_4) is int:
   t9 = t9 + y_4
   if t9 > 1073741823 or t9 < -1073741823: t9 = wrap(t9)
   if type(x_5) is dict and getrefcount(x_5) == SOLE: x_5['sum'] = t9
   else: x_5 = (
set_prop(x_5, 'sum', t9))
  elif type(t9) is dict and type(y_4) is dict and sole_holder(x_5, (('prop', 'sum'), ), t9): t9.update(y_4)
  elif type(t9) is list and type(y_4) is list and sole_holder(x_5, (('prop', 'sum'), ), t9): t9 += y_4
  elif type(t9) is str and type(y_4) is str and (t10 := sole_holder(x_5, (('prop', 'sum'), ), t9)):
   t10['sum'] = None
   t9 = t9 + y_4
   t10['sum'] = t9
   t10 = None
  else:
   t9 = (
add(t9, y_4))
   if type(x_5) is dict and getrefcount(x_5) == SOLE: x_5['sum'] = t9
   else: x_5 = (
set_prop(x_5, 'sum', t9))
  t9 = None
  for n_6 in (
iterate_for([1, 2])):
   if signal.pending: poll()
   try:
    t11 = x_5['items']
   except (KeyError, TypeError):
    t11 = (
get_prop(x_5, 'items'))
   if ((len(t11) if type(t11) is list or type(t11) is str else (
b_len_(vm, t11))) > 3):
    try:
     t12 = x_5['items']
    except (KeyError, TypeError):
     t12 = (
get_prop(x_5, 'items'))
    t11 = None
    if type(t12) is list and sole_holder(x_5, (('prop', 'items'), ), t12): del t12[:1]
    else:
     t12 = (
slice_(t12, 1, None))
     if type(x_5) is dict and getrefcount(x_5) == SOLE: x_5['items'] = t12
     else: x_5 = (
set_prop(x_5, 'items', t12))
    t12 = None
   try:
    t13 = x_5['seen']
   except (KeyError, TypeError):
    t13 = (
get_prop(x_5, 'seen'))
   if type(t13) is not dict: (
spread_dict(t13))
   t14 = {display(n_6): True}
   t11 = None
   if type(t13) is dict and sole_holder(x_5, (('prop', 'seen'), ), t13): t13.update(t14)
   else:
    t13 = {**t13, **t14}
    if type(x_5) is dict and getrefcount(x_5) == SOLE: x_5['seen'] = t13
    else: x_5 = (
set_prop(x_5, 'seen', t13))
   t13 = None
  return x_5
 return f1
def main(d):
 f_1 = named('f', ('a', 'i', 'y'), make1())
 return None
