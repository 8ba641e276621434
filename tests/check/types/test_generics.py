"""Interfaces, type parameters and variance. Spec: 03 §7."""

from __future__ import annotations

import pytest

from harnpy.check.types import fitting
from harnpy.check.types.declared import substituted
from harnpy.check.types.type_nodes import Type, shown
from harnpy.syntax.parser import parse

from .written import types, written

INTERFACES = """
interface Empty { }
interface Sized { fn size(self) -> int }
interface Both {
  fn size(self) -> int
  fn name(self, long: bool) -> string
}
interface Source {
  type Item
  fn next(self) -> Item
  fn put(self, item: Item) -> nil
}
interface Numbers {
  type Item = int | float
  fn next(self) -> Item
}
interface Store<T> {
  fn get(self) -> T
  fn map<U>(self, f: fn(T) -> U) -> U
}
struct Bare { x: int }
struct Point { x: int }
impl Point {
  fn size(self) -> int { return 2 }
  fn next(self) -> int { return 2 }
  fn put(self, item: int) -> nil { }
}
struct Cell<T> { value: T }
impl Cell {
  fn get(self) -> T { return self.value }
  fn map<V>(self, f: fn(T) -> V) -> V { return f(self.value) }
  fn size(self, unit) { return 1 }
  fn next(self) -> string { return "" }
  fn put(self, item: int) -> nil { }
}
enum Colour { Red }
impl Colour {
  fn size(self) -> string { return "" }
  fn name(self, long: int) -> string { return "" }
}
struct Loose { x: int }
impl Loose {
  fn size(self) { return 1 }
  fn name(self, long) { return "" }
}
interface Again { fn again(self) -> Again }
impl Bare { fn again(self) -> Bare { return self } }
type Spot = Point
"""


@pytest.mark.parametrize(
    ("type", "interface", "reason"),
    [
        ("Point", "Sized", None),
        ("Spot", "Sized", None),
        ("Loose", "Both", None),
        ("Point", "Empty", None),
        ("int", "Empty", None),
        ("Both", "Sized", None),
        ("Bare", "Again", None),
        ("Point", "Missing", "interface 'Missing' not found"),
        ("{x: int}", "Sized", "only named types can satisfy interfaces"),
        ("Foo", "Both", "missing method(s): size, name"),
        ("Point", "Both", "missing method 'name'"),
        ("Cell<int>", "Sized", "method 'size' has 1 parameter(s), expected 0"),
        ("Colour", "Sized", "method 'size' returns 'string', expected 'int'"),
        ("Point", "Source", None),
        ("Cell<int>", "Source", "type parameter 'Item' was inferred as both string and int"),
        ("Point", "Numbers", None),
        ("Cell<int>", "Numbers", "associated type 'Item' resolves to 'string', expected 'int | float'"),
    ],
)
def test_why_an_interface_is_not_satisfied(type: str, interface: str, reason: str | None) -> None:
    assert types(INTERFACES).unsatisfied(written(type), interface) == reason


def test_a_parameter_of_the_wrong_type() -> None:
    algebra = types(
        "interface Named { fn name(self, long: bool) -> string }\n"
        'impl Colour { fn name(self, long: int) -> string { return "" } }'
    )
    reason = "method 'name' parameter 1 has type 'int', expected 'bool'"
    assert algebra.unsatisfied(written("Colour"), "Named") == reason


def test_an_applied_interface() -> None:
    algebra = types(INTERFACES)
    assert algebra.fits(written("Cell<int>"), written("Store<int>"))
    assert algebra.fits(written("Cell"), written("Store<int>"))
    assert algebra.fits(written("Cell<int>"), written("Store"))
    reason = "method 'get' returns 'int', expected 'string'"
    assert algebra.unsatisfied(written("Cell<int>"), "Store", [written("string")]) == reason


@pytest.mark.parametrize(
    ("expected", "actual", "bound"),
    [
        ("T", "int", "T=int"),
        ("T", "_", ""),
        ("list<T>", "list<int>", "T=int"),
        ("list<T>", "list", ""),
        ("list<T>", "dict", ""),
        ("dict<T, U>", "dict<string, int>", "T=string U=int"),
        ("Result<T, U>", "Result<int, _>", "T=int"),
        ("Iter<T>", "iter<int>", "T=int"),
        ("{a: T, b?: U}", "{b: int, c: nil}", "U=int"),
        ("fn(T) -> U", "fn(int) -> string", "T=int U=string"),
        ("fn(T) -> U", "fn(int, int) -> string", ""),
        ("T | nil", "int | nil", ""),
        ("Box<T>", "{value: int}", "T=int"),
        ("Box<T>", "Box<int>", "T=int"),
        ("list<T>", "Names", "T=string"),
    ],
)
def test_bind(expected: str, actual: str, bound: str) -> None:
    algebra = types("type Box<T> = {value: T}\ntype Names = list<string>")
    found: dict[str, Type] = {}
    assert fitting.bind(algebra, {"T", "U"}, written(expected), written(actual), found) is None
    assert " ".join(f"{name}={shown(type)}" for name, type in found.items()) == bound


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        ("int", "int", False),
        ("int", "string", True),
        ("int", "float", True),
        ("any", "int", False),
        ("int", "any", False),
        ("list", "list<int>", False),
        ("dict", "{a: int}", False),
        ("Id", "int", False),
        ('"a"', "string", False),
        ("int", "int | nil", True),
        ("Result<int, _>", "Result<_, string>", False),
    ],
)
def test_a_second_binding(first: str, second: str, conflict: bool) -> None:
    algebra = types("type Id = int")
    bound: dict[str, Type] = {}
    assert fitting.bind(algebra, {"T"}, written("T"), written(first), bound) is None
    found = fitting.bind(algebra, {"T"}, written("T"), written(second), bound)
    assert found == (("T", written(first), written(second)) if conflict else None)
    assert bound == {"T": written(first)}


def test_the_result_of_a_call() -> None:
    result = fitting.settled(written("Result<T, U>"), ["T", "U"], {"T": written("int")})
    assert result is not None
    assert shown(result) == "Result<int, _>"
    assert fitting.settled(written("T"), ["T"], {}) is None
    assert substituted(written("list<T>"), {"T": written("int")}) == written("list<int>")


def test_the_type_of_a_construction() -> None:
    params = types("struct Cell<T, U> { value: T }").declared.structs["Cell"].type_params
    given = [(written("T"), written("int")), (written("string"), written("int"))]
    assert shown(fitting.applied(types(), "Cell", params, given)) == "Cell<int, _>"


VARIANCES = """
type Producer<out T> = fn() -> T                          ||
type Consumer<in T> = fn(T) -> nil                        ||
type Bad<in T> = fn() -> T                                || in contravariant covariant type alias Bad
type Bad<out T> = fn(T) -> nil                            || out covariant contravariant type alias Bad
type Twice<out T> = fn(fn(T) -> nil) -> nil               ||
type Listed<out T> = list<T>                              || out covariant invariant type alias Listed
type Lazy<out T> = iter<T> | Stream<T> | {a: T} | nil     ||
type Known<out T> = Result<T, string>                     ||
type Unknown<out T> = Other<T>                            || out covariant invariant type alias Unknown
type Mixed<T> = fn(list<T>) -> T                          ||
enum Option<out T> { Some(value: T) }                     ||
enum Sink<in T> { Some(value: T) }                        || in contravariant covariant enum Sink
struct Cell<out T> { value: T }                           || out covariant invariant struct Cell
interface Reads<out T> { fn read(self) -> T }             ||
interface Reads<out T> { fn put(self, item: T) }          || out covariant contravariant interface Reads
fn make<in T>(x: T) -> nil { }                            ||
fn make<in T>(x: int) -> list<T> { }                      || in contravariant invariant function make
let x = 1                                                 ||
"""


@pytest.mark.parametrize("row", VARIANCES.strip().splitlines())
def test_variance(row: str) -> None:
    source, _, fault = row.partition("||")
    program = parse(source)
    faults = [text for _, text in fitting.variance_faults(types(source), program.items[0])]
    texts = []
    if fault.strip():
        declared, meaning, found, kind = fault.strip().split(" ", 3)
        name = kind.rpartition(" ")
        place = f"{name[0]} '{name[2]}'"
        where = f"appears in a {found} position in {place}"
        texts = [f"type parameter 'T' is declared '{declared}' ({meaning}) but {where}"]
    assert faults == texts


def test_a_fault_of_variance_stands_where_the_parameter_appears() -> None:
    source = "struct Cell<out T> {\n  first: int\n  value: T\n}"
    ((node, _),) = fitting.variance_faults(types(source), parse(source).items[0])
    assert source[node.start : node.end] == "T"
    assert node.start == source.rindex("T")
