def make1(make_7):
 def f1(d, x_6=None):
  if d > 512: overflow()
  if signal.pending: poll()
  e = d + 1
  t1 = m['seen']
  t3 = (
(t2 := make_7.call)(e, x_6))
  if m['seen'] is t1:
   t1 = None
   if m['seen'].__class__ is list and getrefcount(m['seen']) == SOLE: m['seen'].append(t3)
   else:
    m['seen'] = (
add(m['seen'], [t3]))
  else: m['seen'] = (
add(t1, [t3]))
 return f1
def make2():
 def f2(d, x_8=None):
  if d > 512: overflow()
  if signal.pending: poll()
  return x_8
 return f2
def make3(limit_9):
 def f3(d):
  if d > 512: overflow()
  if signal.pending: poll()
  return (
slice_(m['seen'], None, limit_9))
 return f3
def main(d):
 make_3 = shell('make', ('x',), False)
 m['seen'] = []
 limit_1 = 3
 note_2 = named('note', ('x',), make1(make_3))
 fill(make_3, make2(), False)
 all_4 = named('all', (), make3(limit_1))
 publish({'note': note_2, 'make': make_3, 'all': all_4})
 return None
