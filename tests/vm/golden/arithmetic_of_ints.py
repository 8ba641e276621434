def main(d):
 sum_1 = 0
 for i_2 in range(0, 9 + 1):
  if signal.pending: poll()
  sum_1 = (sum_1 + (i_2 * 2)) - 1
  if sum_1 > 1073741823 or sum_1 < -1073741823: sum_1 = wrap(sum_1)
 t1 = (sum_1 // 3 if sum_1 >= 0 else (
div(sum_1, 3)))
 t2 = (sum_1 % 3 if sum_1 >= 0 else (
mod(sum_1, 3)))
 if type(t1) is int and type(t2) is int:
  t3 = t1 + t2
  if t3 > 1073741823 or t3 < -1073741823: t3 = wrap(t3)
 else: t3 = (
add(t1, t2))
 (
b_println_(vm, (t3 if type(t3) is str else display(t3))))
 return None
