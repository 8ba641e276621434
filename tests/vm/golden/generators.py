def make1():
 def f1_items(e, xs_3):
  if 0: yield
  for x_4 in (
iterate_for(xs_3)):
   if signal.pending: poll()
   yield x_4
 def f1(d, xs_3=None):
  if d > 512: overflow()
  e = d + 1
  return generator(Generator, f1_items(e, xs_3))
 return f1
def make2():
 def f2_items(e, n_5):
  if 0: yield
  t1 = deadline_begin(Duration(1000))
  try:
   t3 = pause_deadlines(t1)
   yield n_5
   resume_deadlines(t3)
  except Interrupted as t2:
   raise t2.outside(t1) from None
  finally:
   deadline_end(t1)
 def f2(d, n_5=None):
  if d > 512: overflow()
  e = d + 1
  if n_5.__class__ is not int and n_5.__class__ is not float: check_parameter('n', n_5, ('scalar', 'int'))
  return generator(Stream, f2_items(e, n_5))
 return f2
def main(d):
 items_1 = named('items', ('xs',), make1())
 stream_2 = named('stream', ('n',), make2())
 return None
