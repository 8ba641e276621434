def make1():
 def f1(d, self_3=None):
  if d > 512: overflow()
  if signal.pending: poll()
  try:
   t1 = self_3['x']
  except (KeyError, TypeError):
   t1 = (
get_prop(self_3, 'x'))
  if t1.__class__ is int:
   t2 = t1 * 2
   if t2 > 1073741823 or t2 < -1073741823: t2 = wrap(t2)
  else:
   t2 = (
mul(t1, 2))
  return t2
 return f1
def make3():
 def f3(d, x_6=None):
  if d > 512: overflow()
  if signal.pending: poll()
  if x_6.__class__ is int:
   t1 = x_6 + 1
   if t1 > 1073741823: t1 = wrap(t1)
  else:
   t1 = (
add(x_6, 1))
  return t1
 return f3
def make2(P_7):
 def f2(d, p_4=None, xs_5=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  if p_4.__class__ is Struct:
   try: t1 = impls[p_4.type]['twice']
   except KeyError: t1 = None
   t3 = (
(t2 := t1.call)(e, p_4) if t1 is not None and t1.arity == 1 else m_twice_0_.own(vm, e, p_4))
  else: t3 = (
m_twice_0_[type(p_4)](vm, p_4))
  t4 = Fn(None, ('x',), make3())
  if xs_5.__class__ is list and not signal.pending:
   t5 = []
   for x_6 in xs_5:
    if x_6.__class__ is int and not signal.pending:
     t6 = x_6 + 1
     if t6 > 1073741823: t6 = wrap(t6)
     t5.append(t6)
    else: t5 += (
m_map_1_[list](vm, [x_6], t4))
  else:
   t5 = (
(m_map_1_.own(vm, e, xs_5, t4) if xs_5.__class__ is Struct else m_map_1_[type(xs_5)](vm, xs_5, t4)))
  return [t3, (t5.get('first') if t5.__class__ is dict else (
get_prop(t5, 'first'))), (None if xs_5 is None else (
(m_join_1_.own(vm, e, xs_5, ',') if xs_5.__class__ is Struct else m_join_1_[type(xs_5)](vm, xs_5, ',')))), (
call_method(e, xs_5, 'push', [*(
spread_list(xs_5))])), (
construct('P', ('x',), {'x': 1})), Struct('P', {'x': 2})]
 return f2
def main(d):
 P_2 = constructor('P', ('x',))
 implement('P', 'twice', named('twice', ('self',), make1()))
 f_1 = named('f', ('p', 'xs'), make2(P_2))
 return None
