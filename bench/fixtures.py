"""The VM fixtures: a Harn program, the same by hand in Python, and the budgets.

Each Harn text ends in `return bench`: a function to call. ``must`` and ``stretch`` are times the Python twin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Fixture(NamedTuple):
    name: str
    harn: str
    python: Callable[[], Any]
    must: float
    stretch: float


def arith() -> int:
    s = 0
    i = 0
    while i < 20000:
        s = s + i * 2 - 1
        i = i + 1
    return s


ARITH = """
fn bench() { var s = 0
  var i = 0
  while i < 20000 { s = s + i * 2 - 1
    i = i + 1 }
  return s }
return bench
"""


def compare() -> int:
    c = 0
    i = 0
    while i < 20000:
        if i > 500 and i < 15000:
            c = c + 1
        i = i + 1
    return c


COMPARE = """
fn bench() { var c = 0
  var i = 0
  while i < 20000 { if i > 500 && i < 15000 { c = c + 1 }
    i = i + 1 }
  return c }
return bench
"""


def nested_dict() -> int:
    cfg = {"a": {"b": {"c": 3}}}
    s = 0
    for _ in range(20000):
        s = s + cfg["a"]["b"]["c"]
    return s


NESTED_DICT = """
fn bench() { let cfg = {a: {b: {c: 3}}}
  var s = 0
  for i in 0 to 20000 exclusive { s = s + cfg.a.b.c }
  return s }
return bench
"""


def _add(a: int, b: int) -> int:
    return a + b


def call_loop() -> int:
    s = 0
    i = 0
    while i < 20000:
        s = _add(s, i)
        i = i + 1
    return s


CALL_LOOP = """
fn add(a, b) { return a + b }
fn bench() { var s = 0
  var i = 0
  while i < 20000 { s = add(s, i)
    i = i + 1 }
  return s }
return bench
"""


def ranges() -> int:
    s = 0
    for i in range(20000):
        s = s + i
    return s


RANGES = """
fn bench() { var s = 0
  for i in 0 to 20000 exclusive { s = s + i }
  return s }
return bench
"""

ITEMS = list(range(2000))


def comprehension() -> int:
    return len([y for y in [x * 2 for x in ITEMS] if y > 100])


def lambdas() -> int:
    return len(list(filter(lambda y: y > 100, list(map(lambda x: x * 2, ITEMS)))))  # noqa: C417


MAP_FILTER = """
let items = range(2000).to_list()
fn bench() { return len(items.map({ x -> x * 2 }).filter({ y -> y > 100 })) }
return bench
"""


def locals8() -> int:
    t = 0
    for _ in range(2000):
        a, b, c, d, e, f, g, h = 1, 2, 3, 4, 5, 6, 7, 8
        t = a + b + c + d + e + f + g + h
    return t


LOCALS8 = """
fn bench() { var t = 0
  for i in 0 to 2000 exclusive {
    let a = 1
    let b = 2
    let c = 3
    let d = 4
    let e = 5
    let f = 6
    let g = 7
    let h = 8
    t = a + b + c + d + e + f + g + h }
  return t }
return bench
"""


def _sum8(a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int) -> int:
    return a + b + c + d + e + f + g + h


def params8() -> int:
    t = 0
    for _ in range(2000):
        t = _sum8(1, 2, 3, 4, 5, 6, 7, 8)
    return t


PARAMS8 = """
fn sum8(a, b, c, d, e, f, g, h) { return a + b + c + d + e + f + g + h }
fn bench() { var t = 0
  for i in 0 to 2000 exclusive { t = sum8(1, 2, 3, 4, 5, 6, 7, 8) }
  return t }
return bench
"""
INT_PARAMS8 = PARAMS8.replace(
    "a, b, c, d, e, f, g, h)", "a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int)", 1
)


def contains() -> int:
    items = [1, 2, 3, 4, 5, 6, 7, 8]
    c = 0
    for i in range(5000):
        if i % 16 in items:
            c = c + 1
    return c


CONTAINS = """
fn bench() { let items = [1, 2, 3, 4, 5, 6, 7, 8]
  var c = 0
  for i in 0 to 5000 exclusive { if items.contains(i % 16) { c = c + 1 } }
  return c }
return bench
"""


def _down(n: int) -> int:
    if n <= 0:
        return 0
    return 1 + _down(n - 1)


def countdown() -> int:
    t = 0
    for _ in range(100):
        t = t + _down(60)
    return t


COUNTDOWN = """
fn down(n) { if n <= 0 { return 0 }
  return 1 + down(n - 1) }
fn bench() { var t = 0
  for i in 0 to 100 exclusive { t = t + down(60) }
  return t }
return bench
"""


def _tail(n: int) -> int:
    if n <= 0:
        return 0
    return _tail(n - 1)


def tail_self() -> int:
    t = 0
    for _ in range(100):
        t = t + _tail(60)
    return t


TAIL_SELF = """
fn down(n) { if n <= 0 { return 0 }
  return down(n - 1) }
fn bench() { var t = 0
  for i in 0 to 100 exclusive { t = t + down(60) }
  return t }
return bench
"""


def _ping(n: int) -> int:
    if n <= 0:
        return 0
    return _pong(n - 1)


def _pong(n: int) -> int:
    if n <= 0:
        return 0
    return _ping(n - 1)


def tail_mutual() -> int:
    t = 0
    for _ in range(100):
        t = t + _ping(60)
    return t


TAIL_MUTUAL = """
fn ping(n) { if n <= 0 { return 0 }
  return pong(n - 1) }
fn pong(n) { if n <= 0 { return 0 }
  return ping(n - 1) }
fn bench() { var t = 0
  for i in 0 to 100 exclusive { t = t + ping(60) }
  return t }
return bench
"""


def interpolation() -> int:
    n = 0
    for i in range(5000):
        n = n + len(f"item {i} of {n}")
    return n


INTERPOLATION = """
fn bench() { var n = 0
  for i in 0 to 5000 exclusive { n = n + len("item ${i} of ${n}") }
  return n }
return bench
"""


class _Point:
    __slots__ = ("x", "y")

    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y


def struct_fields() -> int:
    p = _Point(1, 2)
    s = 0
    for _ in range(10000):
        s = s + p.x + p.y
    return s


STRUCT_FIELDS = """
struct Point { x: int
  y: int }
fn bench() { let p = Point {x: 1, y: 2}
  var s = 0
  for i in 0 to 10000 exclusive { s = s + p.x + p.y }
  return s }
return bench
"""


class _Counter:
    __slots__ = ("n", "step")

    def __init__(self, n: int, step: int) -> None:
        self.n = n
        self.step = step

    def after(self, turns: int) -> int:
        return self.n + self.step * turns


def methods() -> int:
    c = _Counter(7, 3)
    s = 0
    for i in range(10000):
        s = s + c.after(i)
    return s


METHODS = """
struct Counter { n: int
  step: int }
impl Counter { fn after(self, turns) { return self.n + self.step * turns } }
fn bench() { let c = Counter {n: 7, step: 3}
  var s = 0
  for i in 0 to 10000 exclusive { s = s + c.after(i) }
  return s }
return bench
"""


def _records() -> list[_Counter]:
    return [_Counter(i, i % 7) for i in range(2000)]


_RECORDS = _records()


def fields_of_list() -> int:
    s = 0
    for c in _RECORDS:
        s = s + c.n - c.step
    return s


FIELDS_OF_LIST = """
struct Counter { n: int
  step: int }
let counters = range(2000).map({ i -> Counter {n: i, step: i % 7} }).to_list()
fn bench() { var s = 0
  for c in counters { s = s + c.n - c.step }
  return s }
return bench
"""


def iterate_list() -> int:
    s = 0
    for x in ITEMS:
        s = s + x
    return s


ITERATE_LIST = """
let items = range(2000).to_list()
fn bench() { var s = 0
  for x in items { s = s + x }
  return s }
return bench
"""

_COSTS = {f"k{i}": i for i in range(16)}
_NAMES = [f"k{i % 16}" for i in range(2000)]


def read_dict() -> int:
    s = 0
    for name in _NAMES:
        s = s + _COSTS[name]
    return s


READ_DICT = """
let costs = range(16).map({ i -> pair("k${i}", i) }).to_dict()
let names = range(2000).map({ i -> "k${i % 16}" }).to_list()
fn bench() { var s = 0
  for name in names { s = s + costs[name] }
  return s }
return bench
"""


def _fib(n: int) -> int:
    if n < 2:
        return n
    return _fib(n - 1) + _fib(n - 2)


def fib() -> int:
    return _fib(15)


FIB = """
fn fib(n) { if n < 2 { return n }
  return fib(n - 1) + fib(n - 2) }
fn bench() { return fib(15) }
return bench
"""


def _is_prime(n: int) -> bool:
    if n < 2:
        return False
    i = 2
    while i * i <= n:
        if n % i == 0:
            return False
        i = i + 1
    return True


def mixed() -> list[int]:
    found = []
    total = 0
    for i in range(400):
        if _is_prime(i):
            found.append(i)
            total = total + i
        elif i % 10 == 0:
            for j in range(5):
                total = total + j * i
    return [len(found), total]


MIXED = """
fn is_prime(n) { if n < 2 { return false }
  var i = 2
  while i * i <= n {
    if n % i == 0 { return false }
    i = i + 1 }
  return true }
fn bench() { var found = []
  var total = 0
  for i in 0 to 400 exclusive {
    if is_prime(i) { found = found.push(i)
      total = total + i
    } else if i % 10 == 0 {
      for j in 0 to 5 exclusive { total = total + j * i } } }
  return [len(found), total] }
return bench
"""


def append() -> int:
    xs = []
    for i in range(10000):
        xs.append(i)
    return len(xs)


APPEND = """
fn bench() { var xs = []
  for i in 0 to 10000 exclusive { xs = xs + [i] }
  return len(xs) }
return bench
"""


SET_INDEX = """
let zeros = range(10000).map({ x -> 0 }).to_list()
fn bench() { var xs = zeros[0:]
  for i in 0 to 10000 exclusive { xs[i] = i }
  return xs[9999] }
return bench
"""


def set_index() -> int:
    xs = list(_ZEROS)
    for i in range(10000):
        xs[i] = i
    return xs[9999]


_ZEROS = [0] * 10000


def set_key() -> int:
    d: dict[str, int] = {}
    for i in range(10000):
        d[f"k{i % 1000}"] = i
    return len(d)


SET_KEY = """
fn bench() { var d = {}
  for i in 0 to 10000 exclusive { d["k${i % 1000}"] = i }
  return len(d) }
return bench
"""


def string_add() -> int:
    s = ""
    for _ in range(20000):
        s = s + "xy"
    return len(s)


STRING_ADD = """
fn bench() { var s = ""
  for i in 0 to 20000 exclusive { s = s + "xy" }
  return len(s) }
return bench
"""

FIXTURES = [
    Fixture("arith loop", ARITH, arith, 3.1, 1.7),
    Fixture("comparison loop", COMPARE, compare, 2.6, 1.3),
    Fixture("nested dict read", NESTED_DICT, nested_dict, 3.1, 2.2),
    Fixture("function call loop", CALL_LOOP, call_loop, 4.8, 2.7),
    Fixture("range iteration", RANGES, ranges, 2.7, 1.5),
    Fixture("map + filter vs comprehension", MAP_FILTER, comprehension, 5.0, 3.6),
    Fixture("map + filter vs lambdas", MAP_FILTER, lambdas, 2.5, 1.8),
    Fixture("8-local sum, locals", LOCALS8, locals8, 3.1, 1.4),
    Fixture("8-local sum, untyped params", PARAMS8, params8, 6.3, 3.7),
    Fixture("8-local sum, int params", INT_PARAMS8, params8, 3.1, 1.4),
    Fixture("items.contains(i % 16)", CONTAINS, contains, 3.4, 2.6),
    Fixture("countdown(60), 1 + f(n-1)", COUNTDOWN, countdown, 6.7, 3.8),
    Fixture("countdown(60), self tail call", TAIL_SELF, tail_self, 3.1, 2.6),
    Fixture("countdown(60), via trampoline", TAIL_MUTUAL, tail_mutual, 5.0, 4.3),
    Fixture("string interpolation", INTERPOLATION, interpolation, 2.4, 1.7),
    Fixture("struct field read", STRUCT_FIELDS, struct_fields, 4.7, 3.4),
    Fixture("struct fields of a list's items", FIELDS_OF_LIST, fields_of_list, 5.0, 2.5),
    Fixture("method dispatch", METHODS, methods, 6.0, 2.5),
    Fixture("list iteration", ITERATE_LIST, iterate_list, 3.0, 1.5),
    Fixture("dict read by key", READ_DICT, read_dict, 4.0, 2.0),
    Fixture("fib(15)", FIB, fib, 6.6, 3.5),
    Fixture("mixed program", MIXED, mixed, 6.0, 2.8),
    Fixture("xs = xs + [v], 10k", APPEND, append, 8, 5),
    Fixture("xs[i] = v, 10k", SET_INDEX, set_index, 10, 6),
    Fixture("d[k] = v, 1k keys", SET_KEY, set_key, 4.5, 3),
    Fixture('s = s + "xy", 20k', STRING_ADD, string_add, 2.9, 2),
]
