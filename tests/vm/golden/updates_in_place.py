def main(d):
 xs_1 = []
 d_2 = {}
 if xs_1.__class__ is list and getrefcount(xs_1) == SOLE: xs_1.append(1)
 else:
  xs_1 = (
add(xs_1, [1]))
 if xs_1.__class__ is list and getrefcount(xs_1) == SOLE: xs_1.append(2)
 else:
  xs_1 = (
m_push_1_[type(xs_1)](vm, xs_1, 2))
 if xs_1.__class__ is list and getrefcount(xs_1) == SOLE and 0 <= 0 < len(xs_1):
  xs_1[0] = 3
 elif xs_1.__class__ is dict and getrefcount(xs_1) == SOLE: xs_1[display(0)] = 3
 else: xs_1 = (
set_index(xs_1, 0, 3))
 if (d_2.__class__ is dict or d_2.__class__ is Struct) and getrefcount(d_2) == SOLE: d_2['a'] = 1
 else: d_2 = (
set_prop(d_2, 'a', 1))
 if d_2.__class__ is dict and getrefcount(d_2) == SOLE: d_2['b'] = 2
 else: d_2 = (
set_index(d_2, 'b', 2))
 t1 = {'c': 3}
 if d_2.__class__ is dict and getrefcount(d_2) == SOLE: d_2.update(t1)
 else:
  d_2 = (
add(d_2, t1))
 return None
