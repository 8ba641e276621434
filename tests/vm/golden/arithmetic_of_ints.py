def main(d):
 sum_1 = 0
 for i_2 in range(0, 9 + 1):
  if signal.pending: poll()
  sum_1 = (sum_1 + (i_2 * 2)) - 1
 if sum_1 > 1073741823 or sum_1 < -1073741823: sum_1 = wrap(sum_1)
 t2 = ((sum_1 // 3 if sum_1 >= 0 else (
div(sum_1, 3))) + (sum_1 % 3 if sum_1 >= 0 else (
mod(sum_1, 3))))
 (
b_println_(vm, (t2 if t2.__class__ is str else display(t2))))
 return None
