def main(d):
 xs_1 = []
 d_2 = {}
 if type(xs_1) is list and getrefcount(xs_1) == SOLE: xs_1.append(1)
 else:
  xs_1 = (
add(xs_1, [1]))
 if type(xs_1) is list and getrefcount(xs_1) == SOLE: xs_1.append(2)
 else:
  xs_1 = (
m_push_1_[type(xs_1)](vm, xs_1, 2))
 if type(xs_1) is list and getrefcount(xs_1) == SOLE and 0 <= 0 < len(xs_1):
  xs_1[0] = 3
 elif type(xs_1) is dict and getrefcount(xs_1) == SOLE: xs_1[display(0)] = 3
 else: xs_1 = (
set_index(xs_1, 0, 3))
 if (type(d_2) is dict or type(d_2) is Struct) and getrefcount(d_2) == SOLE: d_2['a'] = 1
 else: d_2 = (
set_prop(d_2, 'a', 1))
 if type(d_2) is dict and getrefcount(d_2) == SOLE: d_2['b'] = 2
 else: d_2 = (
set_index(d_2, 'b', 2))
 t1 = {'c': 3}
 if type(d_2) is dict and getrefcount(d_2) == SOLE: d_2.update(t1)
 else:
  d_2 = (
add(d_2, t1))
 return None
