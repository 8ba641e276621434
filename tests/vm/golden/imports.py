def make1(area_15):
 def f1(d, x_14=None):
  if d > 512: overflow()
  if signal.pending: poll()
  TAIL.args = (x_14,)
  TAIL.body = area_15.body
  return TAIL
 return f1
def main(d):
 t1 = bring('library/shapes', ('area',), {'area': (('n',), False)})
 area_2 = t1[0]
 t2 = bring('std/text', None, {'int_to_string': (('value',), False), 'float_to_string': (('value',), False), 'parse_int_or': (('value', 'fallback'), False), 'parse_float_or': (('value', 'fallback'), False), 'extract_paths': (('text',), False), 'parse_cells': (('response',), False), 'filter_test_cells': (('cells', 'target_file'), False), 'truncate_head_tail': (('text', 'n'), False), 'detect_compile_error': (('output',), False), 'has_got_want': (('output',), False), 'format_test_errors': (('output',), False)})
 int_to_string_3 = t2[0]
 float_to_string_4 = t2[1]
 parse_int_or_5 = t2[2]
 parse_float_or_6 = t2[3]
 extract_paths_7 = t2[4]
 parse_cells_8 = t2[5]
 filter_test_cells_9 = t2[6]
 truncate_head_tail_10 = t2[7]
 detect_compile_error_11 = t2[8]
 has_got_want_12 = t2[9]
 format_test_errors_13 = t2[10]
 f_1 = bouncing('f', ('x',), make1(area_2), False)
 return None
