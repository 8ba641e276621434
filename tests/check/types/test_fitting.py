"""Which types flow into which. Spec: 03 §4."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.check.types.type_nodes import ANY, DICT, HOLE, LIST, NEVER, UNKNOWN, Type, list_of, shown, union
from harnpy.check.walk.blocks import lacking
from harnpy.syntax import ast
from tests.counts import COUNT

from .expansion import expanded
from .written import expression, types, written

DECLARATIONS = """
type Id = int
type Names = list<string>
type Kind = "a" | "b"
type Box<T> = {value: T}
type Tree = {value: int, children: list<Tree>}
type Bush = {value: int, children: list<Bush>}
type Wrapped<T> = {of: T, next: Wrapped<list<T>> | nil}
type Wound<T> = {of: T, next: Wound<list<T>> | nil}
type Loop = Loop
type One = Other
type Other = One
struct Point { x: int
y: int }
struct Cell<out T> { value: T }
struct Sink<in T> { value: T }
struct Slot<T> { value: T }
enum Colour { Red
Green }
interface Sized { fn size(self) -> int }
interface Any { }
impl Point { fn size(self) -> int { return 2 } }
impl Colour { fn size(self) -> string { return "" } }
"""

#: Each rule's accepted and refused pairs.
FITS = """
int < int                                   || int < Foo
_ < int                                     || string < int
list<_> < list<int>                         || list<string> < list<int>
Point < Sized                               || Colour < Sized
Point | nil < Sized | nil                   || {size: int} < Sized
Colour < Any                                || list<int> < Sized
never < int                                 || int < never
never < Sized                               || nil < never
any < int                                   ||
any < Sized                                 ||
int < any                                   ||
string < unknown                            || unknown < string
unknown < any                               || unknown < int | string
int < float                                 || float < int
Result < Result<int, string>                || Result < Colour
Result<int, string> < Result                || Option < Result
set<int> < set                              || set<int> < list
Result<int, string> < Result<float, string> || Result<float, string> < Result<int, string>
Cell<int> < Cell<float>                     || Cell<float> < Cell<int>
Sink<float> < Sink<int>                     || Sink<int> < Sink<float>
Slot<int> < Slot<int>                       || Slot<int> < Slot<float>
Foo<int> < Foo<int>                         || Foo<int> < Foo<float>
Cell<int> < Cell<int>                       || Cell<int> < Cell<int, int>
int | string < string | int | nil           || int | nil < int
int < string | int                          || bool < string | int
int | float < float                         || int | string < float
{a: int} < dict                             || {a: int} < list
dict < {a: int}                             || list < {a: int}
{a: int, b: string} < {a: int}              || {b: string} < {a: int}
{a: int} < {a: float}                       || {a: float} < {a: int}
{a: int} < {a: int, b?: string}             || {a?: string} < {a: int}
{b: int} < {b?: string}                     || {b?: int} < {b: string}
{a: int, b: int} < dict<string, int>        || {a: int, b: nil} < dict<string, int>
{a: int} < dict<string, float>              || {a: int} < dict<int, int>
dict<int, string> < {a: int}                ||
list < list<int>                            || list<int> < list<float>
list<int> < list                            || list<float> < list<int>
list<dict> < list<{a: int}>                 || list<int> < list<int | nil>
list<any> < list<int>                       || list<int> < iter<int>
iter<int> < iter<float>                     || iter<float> < iter<int>
iter<int> < Iter                            || iter < list<int>
generator < Generator<int>                  || Generator<int> < Stream<int>
Stream<int> < stream                        || Stream<int> < iter<int>
Generator<int> < Generator<float>           || Generator<string> < Generator<int>
dict<string, int> < dict                    || dict<string, int> < dict<string, float>
dict < dict<string, int>                    || dict<int, int> < dict<string, int>
fn(float) -> int < fn(int) -> float         || fn(int) -> int < fn(float) -> int
fn(int) -> int < closure                    || fn(int) -> float < fn(int) -> int
closure < fn(int) -> int                    || fn(int) -> int < fn() -> int
fn(_) -> _ < fn(int) -> string              || fn(int) -> int < dict
"a" < "a"                                   || "a" < "b"
"a" < string                                || "a" < int
1 < float                                   || "a" < 1
string < "a" | "b"                          || int < "a"
int < 1                                     || float < 1
3 < 1 | int                                 || 3 < 1 | 2
int < Id                                    || string < Id
Id < float                                  || Id < string
list<string> < Names                        || list<int> < Names
string < Kind                               || "c" < Kind
{value: int} < Box<int>                     || {value: string} < Box<int>
Box<int | string> < Box<int> | Box<string>  || Box<int | string> < Box<int>
Box<Kind> < {value: "a"} | {value: "b"}     || Box<Kind> < {value: "a"}
{value: int, children: list<{value: int, children: list}>} < Tree || {value: int, children: list<int>} < Tree
Tree < Bush                                 || Tree < list
Wrapped<int> < Wound<int>                   || Wrapped<int> < Wound<string>
{value: int | string} < Box<int | string>   || {value: int | nil} < Box<int | string>
Loop < Loop                                 || Loop < int
One < One                                   || One < int
Point < {x: int, y: float}                  || Point < {x: string}
Point < dict                                || Point < list
Point < dict<string, int>                   || Point < dict<string, string>
Schema<int> < dict                          || Schema<int> < list
{type: string} < Schema<int>                || Schema<int> < Schema<string>
pair < Pair<int, string>                    || Pair<int, int> < Pair<int, string>
"""


def pairs(column: int) -> list[str]:
    rows = [row.split("||") for row in FITS.strip().splitlines()]
    return [cell for row in rows if (cell := row[column].strip())]


def sides(pair: str) -> tuple[Type, Type]:
    actual, _, expected = pair.partition(" < ")
    return written(actual), written(expected)


@pytest.mark.parametrize("pair", pairs(0))
def test_fits(pair: str) -> None:
    assert types(DECLARATIONS).fits(*sides(pair))


@pytest.mark.parametrize("pair", pairs(1))
def test_does_not_fit(pair: str) -> None:
    assert not types(DECLARATIONS).fits(*sides(pair))


def test_a_type_parameter_in_scope_fits_everything() -> None:
    assert not types().fits(written("T"), written("int"))
    assert types().fits(written("list<T>"), written("list<int>"), {"T"})
    assert types("type T = string").fits(written("int"), written("T"), {"T"})


@pytest.mark.parametrize(
    ("literal", "actual", "expected", "accepted"),
    [
        ("[1]", "list<int>", "list<int | nil>", True),
        ("[Point {x: 1, y: 2}]", "list<Point>", "list<Sized>", True),
        ("[{x: 1}]", "list<{x: int}>", "list<{x: float}>", True),
        ("{a: [1]}", "{a: list<int>}", "{a: list<int | nil>}", True),
        ("Slot {value: 1}", "Slot<int>", "Slot<int | nil>", True),
        ("true ? ([1]) : [2]", "list<int>", "list<int | nil>", True),
        ("[1]", "list<int>", "list<float>", False),
        ("[[1]]", "list<list<int>>", "list<list<float>>", False),
        ("[1]", "list<int>", "list<string | nil>", False),
        ("xs", "list<int>", "list<int | nil>", False),
        ("true ? ([1]) : xs", "list<int>", "list<int | nil>", False),
    ],
)
def test_what_a_literal_holds_is_compared_item_by_item(
    literal: str, actual: str, expected: str, accepted: bool
) -> None:
    algebra = types(DECLARATIONS)
    assert algebra.accepts(written(expected), expression(literal), written(actual)) == accepted


# Laws.

EXAMPLES = settings(max_examples=COUNT.examples(12), deadline=None)

_LEAVES = ["int", "float", "string", "bool", "nil", "list", "dict", "closure", "Foo", '"a"', '"b"', "1", "2"]
_DECLARED = ["Id", "Names", "Kind", "Tree", "Point", "Colour", "Result<int, string>", "Box<int | nil>"]
LEAVES = st.sampled_from([*_LEAVES, *_DECLARED]).map(written)


def _types_of(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    name = st.sampled_from(["list", "iter", "set", "Cell", "Sink", "Slot"])
    field = st.builds(ast.ShapeField, st.just(0), st.just(0), st.sampled_from("ab"), st.booleans(), inner)
    fields = st.lists(field, max_size=2, unique_by=lambda field: field.name).map(tuple)
    members = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(lambda name, item: ast.TypeName(0, 0, name, (item,)), name, inner),
        st.builds(lambda fields: ast.TypeShape(0, 0, fields), fields),
        st.builds(lambda members: ast.TypeUnion(0, 0, members), members),
        st.builds(lambda param, returns: ast.TypeFn(0, 0, (param,), returns), inner, inner),
    )


TYPES = st.recursive(LEAVES, _types_of, max_leaves=4)


@EXAMPLES
@given(TYPES)
def test_every_type_fits_itself_and_what_is_above(type: Type) -> None:
    algebra = types(DECLARATIONS)
    for other in (type, ANY, HOLE, UNKNOWN):
        assert algebra.fits(type, other)
    for other in (ANY, HOLE, NEVER):
        assert algebra.fits(other, type)
    assert not algebra.fits(type, NEVER)
    assert not algebra.fits(UNKNOWN, type)


@EXAMPLES
@given(TYPES, TYPES)
def test_a_union_takes_its_members_and_gives_what_all_of_them_are(one: Type, other: Type) -> None:
    algebra = types(DECLARATIONS)
    both = union([one, other])
    assert algebra.fits(one, both)
    assert algebra.fits(other, both)
    assert algebra.fits(both, one) == algebra.fits(other, one)
    assert both == union([both, one])


@EXAMPLES
@given(TYPES, TYPES)
def test_lists_are_invariant(one: Type, other: Type) -> None:
    algebra = types(DECLARATIONS)
    both = algebra.fits(one, other) and algebra.fits(other, one)
    assert algebra.fits(list_of(one), list_of(other)) == both
    assert algebra.fits(LIST, list_of(one))
    assert algebra.fits(list_of(one), LIST)


#: Without `list`, `dict`, `closure`, applied names beside bare ones and literals: they are gradual, and what
#: is gradual isn't transitive.
STRICT = st.recursive(
    st.sampled_from(["int", "float", "bool", "nil", "Id", "Point", "Foo"]).map(written),
    lambda inner: st.one_of(
        st.builds(list_of, inner),
        st.builds(lambda members: ast.TypeUnion(0, 0, members), st.tuples(inner, inner)),
        st.builds(
            lambda type, optional: ast.TypeShape(0, 0, (ast.ShapeField(0, 0, "a", False, type),)),
            inner,
            st.booleans(),
        ),
    ),
    max_leaves=3,
)


@EXAMPLES
@given(STRICT, STRICT, STRICT)
def test_fitting_is_transitive_where_nothing_is_gradual(a: Type, b: Type, c: Type) -> None:
    algebra = types(DECLARATIONS)
    wide = union([a, b, c])
    assert algebra.fits(a, wide)
    if algebra.fits(a, b) and algebra.fits(b, c):
        assert algebra.fits(a, c)


@EXAMPLES
@given(TYPES, TYPES)
def test_aliases_are_transparent(one: Type, other: Type) -> None:
    algebra = types(DECLARATIONS)
    assert algebra.fits(expanded(algebra, one), other) == algebra.fits(one, other)
    assert algebra.fits(one, expanded(algebra, other)) == algebra.fits(one, other)


@EXAMPLES
@given(TYPES)
def test_a_printed_type_reads_back(type: Type) -> None:
    # A union inside a union, or after the result of a function, is one text with the flat one.
    assert shown(written(shown(type))) == shown(type)


def test_a_shape_without_a_field_says_which() -> None:
    detail = lacking(written("{age: int}"), written("{name: string, age: float, size?: int}"))
    assert detail == " (missing field 'name' (string); field 'age' has type int, expected float)"
    assert lacking(written("{a: int}"), DICT) == ""
    assert lacking(written("{a: int}"), written("{a: int}")) == ""


def test_deep_types_are_compared_in_linear_time() -> None:
    deep = "list<{a: " * 40
    assert types().fits(written(f"{deep}dict{'}>' * 40}"), written(f"{deep}{{b: int}}{'}>' * 40}"))
