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
  if t1.__class__ is list and sole_holder(x_5, (('prop', 'items'), ), t1): t1.append(i_3)
  else:
   t1 = (
add(t1, [i_3]))
   if (x_5.__class__ is dict or x_5.__class__ is Struct) and getrefcount(x_5) == SOLE: x_5['items'] = t1
   else: x_5 = (
set_prop(x_5, 'items', t1))
  t1 = None
  try:
   t2 = x_5['rows']
  except (KeyError, TypeError):
   t2 = (
get_prop(x_5, 'rows'))
  if t2.__class__ is list and i_3.__class__ is int:
   try: t3 = t2[i_3]
   except IndexError: t3 = None
  elif t2.__class__ is dict and i_3.__class__ is str: t3 = t2.get(i_3)
  else: t3 = (
index(t2, i_3))
  try:
   t4 = x_5['rows']
  except (KeyError, TypeError):
   t4 = (
get_prop(x_5, 'rows'))
  t5 = (t4.get('count') if t4.__class__ is dict else (
get_prop(t4, 'count')))
  t2 = t4 = None
  if t3.__class__ is list and sole_holder(x_5, (('prop', 'rows'), ('index', i_3), ), t3): t3.append(t5)
  else:
   t3 = (
m_push_1_[type(t3)](vm, t3, t5))
   x_5 = (
store_path(x_5, (('prop', 'rows'), ('index', i_3), ), t3))
  t3 = None
  t6 = (
read_path(x_5, (('prop', 'text'), )))
  if t6.__class__ is str and (t7 := sole_holder(x_5, (('prop', 'text'), ), t6)):
   t7['text'] = None
   t6 = t6 + 'ab'
   t7['text'] = t6
   t7 = None
  else:
   t6 = (
add(t6, 'ab'))
   if (x_5.__class__ is dict or x_5.__class__ is Struct) and getrefcount(x_5) == SOLE: x_5['text'] = t6
   else: x_5 = (
set_prop(x_5, 'text', t6))
  t6 = None
  try:
   t8 = x_5['sum']
  except (KeyError, TypeError):
   t8 = (
get_prop(x_5, 'sum'))
  if t8.__class__ is int and y_4.__class__ is int:
   t8 = t8 + y_4
   if t8 > 1073741823 or t8 < -1073741823: t8 = wrap(t8)
   if (x_5.__class__ is dict or x_5.__class__ is Struct) and getrefcount(x_5) == SOLE: x_5['sum'] = t8
   else: x_5 = (
set_prop(x_5, 'sum', t8))
  elif t8.__class__ is dict and y_4.__class__ is dict and sole_holder(x_5, (('prop', 'sum'), ), t8): t8.update(y_4)
  elif t8.__class__ is list and y_4.__class__ is list and sole_holder(x_5, (('prop', 'sum'), ), t8): t8 += y_4
  elif t8.__class__ is str and y_4.__class__ is str and (t9 := sole_holder(x_5, (('prop', 'sum'), ), t8)):
   t9['sum'] = None
   t8 = t8 + y_4
   t9['sum'] = t8
   t9 = None
  else:
   t8 = (
add(t8, y_4))
   if (x_5.__class__ is dict or x_5.__class__ is Struct) and getrefcount(x_5) == SOLE: x_5['sum'] = t8
   else: x_5 = (
set_prop(x_5, 'sum', t8))
  t8 = None
  sole10 = False
  for n_6 in (
iterate_for([1, 2])):
   if signal.pending: poll()
   try:
    t11 = x_5['items']
   except (KeyError, TypeError):
    t11 = (
get_prop(x_5, 'items'))
   if ((len(t11) if t11.__class__ is list or t11.__class__ is str else (
b_len_(vm, t11))) > 3):
    try:
     t12 = x_5['items']
    except (KeyError, TypeError):
     t12 = (
get_prop(x_5, 'items'))
    t11 = None
    if t12.__class__ is list and sole_holder(x_5, (('prop', 'items'), ), t12): del t12[:1]
    else:
     t12 = (
slice_(t12, 1, None))
     if sole10:
      x_5['items'] = t12
     else:
      if (x_5.__class__ is dict or x_5.__class__ is Struct) and getrefcount(x_5) == SOLE: x_5['items'] = t12
      else: x_5 = (
set_prop(x_5, 'items', t12))
      sole10 = (x_5.__class__ is dict or x_5.__class__ is Struct) and getrefcount(x_5) == SOLE
    t12 = None
   try:
    t13 = x_5['seen']
   except (KeyError, TypeError):
    t13 = (
get_prop(x_5, 'seen'))
   if t13.__class__ is not dict: (
spread_dict(t13))
   t14 = {display(n_6): True}
   t11 = None
   if t13.__class__ is dict and sole_holder(x_5, (('prop', 'seen'), ), t13): t13.update(t14)
   else:
    t13 = {**t13, **t14}
    if sole10:
     x_5['seen'] = t13
    else:
     if (x_5.__class__ is dict or x_5.__class__ is Struct) and getrefcount(x_5) == SOLE: x_5['seen'] = t13
     else: x_5 = (
set_prop(x_5, 'seen', t13))
     sole10 = (x_5.__class__ is dict or x_5.__class__ is Struct) and getrefcount(x_5) == SOLE
   t13 = None
  return x_5
 return f1
def main(d):
 f_1 = named('f', ('a', 'i', 'y'), make1())
 return None
