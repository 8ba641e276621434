"""Display, type names, equality, order and structural keys. Spec: 02 §1, §3, §5."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.vm.values import (
    Atomic,
    Builtin,
    Duration,
    EnumValue,
    Fn,
    Generator,
    Iter,
    Pair,
    Range,
    Rng,
    Set,
    Stream,
    Struct,
    TaskHandle,
    display,
    type_name,
)
from harnpy.vm.values.equality import compare, contains_value, equal, structural_key

INTS = st.integers(-(2**63), 2**63 - 1)
# Beyond 2**53 two ints may equal the same float, as converting the int first wants it (02 §3.1).
SMALL_INTS = st.integers(-(2**53), 2**53)
TEXTS = st.text(max_size=5)
SCALARS = st.none() | st.booleans() | SMALL_INTS | st.floats(allow_nan=False) | TEXTS | st.binary(max_size=3)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=3)
    return (
        lists
        | st.dictionaries(TEXTS, inner, max_size=3)
        | lists.map(_set)
        | st.builds(Pair, inner, inner)
        | st.builds(EnumValue, st.sampled_from("EF"), st.sampled_from("AB"), lists.map(tuple))
        | st.builds(Struct, st.sampled_from("PQ"), st.dictionaries(st.sampled_from("xy"), inner))
        | st.builds(Range, st.integers(0, 3), st.integers(0, 3), st.booleans())
        | st.builds(Duration, st.integers(0, 3))
    )


def _set(items: list[Any]) -> Set:
    return Set(list({structural_key(item): item for item in items}.values()))


#: Values without NaN and handles, and few enough of each kind that equal ones turn up.
VALUES = st.recursive(st.sampled_from([0, 1, 1.0, True, "1", "a", None]) | SCALARS, _containers, max_leaves=6)


def fn(*params: str) -> Fn:
    return Fn(None, params, lambda *_: None)


def drained(handle: Iter) -> Iter:
    list(handle)
    return handle


def _handle(index: int) -> TaskHandle:
    handle = TaskHandle()
    handle.index = index
    return handle


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-7, "-7"),
        (3.0, "3.0"),
        (-0.0, "-0.0"),
        (100000.0, "100000.0"),
        (0.1, "0.1"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e-7, "0.0000001"),
        (-1.25e-7, "-0.000000125"),
        (999999999999999.0, "999999999999999.0"),
        (1e15, "1000000000000000"),
        (1e20, "100000000000000000000"),
        (1e21, "1" + "0" * 21),
        (2.0**63, "9223372036854776000"),
        (-1.5e22, "-15" + "0" * 21),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "NaN"),
        ("a b", "a b"),
        (b"hi", 'b"6869"'),
        (b"", 'b""'),
        (b"\0" * 40, 'b"' + "00" * 32 + '...+8"'),
        (True, "true"),
        (False, "false"),
        (None, "nil"),
        ([1, "two", None], "[1, two, nil]"),
        ([], "[]"),
        ({"b": ["x"], "a": 1}, "{a: 1, b: [x]}"),
        ({}, "{}"),
        ([" a", {"k": "v, w"}], "[ a, {k: v, w}]"),
        (Set([2, 1]), "set(2, 1)"),
        (Set([]), "set()"),
        (Pair("a", 1), "(a, 1)"),
        (Range(1, 5), "1 to 5"),
        (Range(0, 4, exclusive=True), "0 to 4 exclusive"),
        (fn("a", "b"), "<fn(a, b)>"),
        (fn(), "<fn()>"),
        (Builtin("len", len, 1), "<builtin len>"),
        (Duration(7_200_000), "2h"),
        (Duration(90_000), "90s"),
        (Duration(60_000), "1m"),
        (Duration(1500), "1500ms"),
        (Duration(86_400_000), "24h"),
        (Duration(-5000), "-5s"),
        (Duration(0), "0ms"),
        (EnumValue("Color", "Red"), "Color.Red"),
        (EnumValue("Shape", "Rect", (2.0, 3)), "Shape.Rect(2.0, 3)"),
        (Struct("Point", {"y": 2, "x": 1}), "Point {x: 1, y: 2}"),
        (Struct("Empty"), "Empty {}"),
        (_handle(1), "<task:vm_task_1>"),
        (Atomic(3), "<atomic:3>"),
        (Rng(None), "<rng>"),
        (Iter([1]), "<iter>"),
        (drained(Iter([1])), "<iter (exhausted)>"),
        (Generator([]), "<generator>"),
        (drained(Generator([])), "<generator (done)>"),
        (Stream([]), "<stream>"),
        (drained(Stream([])), "<stream (done)>"),
    ],
)
def test_display(value: Any, text: str) -> None:
    assert display(value) == text


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "int"),
        (1.0, "float"),
        ("", "string"),
        (b"", "bytes"),
        (True, "bool"),
        (None, "nil"),
        ([], "list"),
        ({}, "dict"),
        (Set([]), "set"),
        (fn(), "closure"),
        (Builtin("len", len, 1), "builtin"),
        (Duration(1), "duration"),
        (EnumValue("E", "A"), "enum"),
        (Struct("P"), "struct"),
        (Range(1, 2), "range"),
        (Pair(1, 2), "pair"),
        (Iter([]), "iter"),
        (Generator([]), "generator"),
        (Stream([]), "stream"),
        (_handle(1), "task_handle"),
        (Atomic(0), "atomic"),
        (Rng(None), "rng"),
    ],
)
def test_type_name(value: Any, name: str) -> None:
    assert type_name(value) == name


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_displays_the_shortest_digits_without_exponent(x: float) -> None:
    text = display(x)
    assert re.fullmatch(r"-?\d+(\.\d+)?", text)
    assert float(text) == x
    assert ("." in text) == (abs(x) < 1e15 or x != int(x))
    digits = text.replace(".", "").strip("-0")
    assert len(digits) <= max(len(repr(x).partition("e")[0].replace(".", "").strip("-0")), 1)


WORDS = st.from_regex(r"[a-z]{1,6}", fullmatch=True).filter(lambda w: w not in ("true", "false", "nil"))
JSON_LIKE = st.recursive(
    st.none() | st.booleans() | INTS | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)


@given(JSON_LIKE)
def test_display_of_json_like_values_reads_back(value: Any) -> None:
    names = {"nil": "null", "true": "true", "false": "false"}
    text = re.sub(r"[a-z]+", lambda word: names.get(word[0], f'"{word[0]}"'), display(value))
    assert equal(json.loads(text), value)


@given(VALUES)
def test_equality_is_reflexive(a: Any) -> None:
    assert equal(a, a)


@given(VALUES, VALUES, VALUES)
def test_equality_is_symmetric_and_transitive(a: Any, b: Any, c: Any) -> None:
    assert equal(a, b) == equal(b, a)
    if equal(a, b) and equal(b, c):
        assert equal(a, c)


@given(VALUES)
def test_equality_and_key_do_not_depend_on_construction_order(a: Any) -> None:
    twin = _reversed(a)
    assert equal(a, twin)
    assert structural_key(a) == structural_key(twin)
    assert hash(structural_key(a)) == hash(structural_key(twin))


def _reversed(value: Any) -> Any:
    """The same value with dict entries and set members put in from last to first."""
    match value:
        case Struct():
            return Struct(value.type, [(k, _reversed(v)) for k, v in reversed(value.items())])
        case dict():
            return {k: _reversed(v) for k, v in reversed(value.items())}
        case list():
            return [_reversed(v) for v in value]
        case Set():
            return Set([_reversed(v) for v in reversed(value.items)])
        case Pair():
            return Pair(_reversed(value.first), _reversed(value.second))
        case EnumValue():
            return EnumValue(value.enum, value.variant, tuple(_reversed(v) for v in value.fields))
    return value


@given(VALUES, VALUES)
def test_values_with_the_same_key_are_equal(a: Any, b: Any) -> None:
    if structural_key(a) == structural_key(b):
        assert equal(a, b)
        assert type_name(a) == type_name(b)


@given(VALUES, VALUES)
def test_equal_values_differ_in_key_only_by_the_kind_of_a_number(a: Any, b: Any) -> None:
    if equal(a, b) and structural_key(a) != structural_key(b):
        assert structural_key(_as_floats(a)) == structural_key(_as_floats(b))


def _as_floats(value: Any) -> Any:
    match value:
        case bool() | Range() | Duration():
            return value
        case int():
            return float(value)
        case Struct():
            return Struct(value.type, {k: _as_floats(v) for k, v in value.items()})
        case dict():
            return {k: _as_floats(v) for k, v in value.items()}
        case list():
            return [_as_floats(v) for v in value]
        case Set():
            # Which of 1 and 1.0 a set holds twice isn't part of `==`, which looks for each member.
            return _set([_as_floats(v) for v in value.items])
        case Pair():
            return Pair(_as_floats(value.first), _as_floats(value.second))
        case EnumValue():
            return EnumValue(value.enum, value.variant, tuple(_as_floats(v) for v in value.fields))
    return value


@given(st.lists(VALUES, max_size=6), VALUES)
def test_membership_is_equality_with_an_item(items: list[Any], x: Any) -> None:
    assert contains_value(items, x) == any(equal(item, x) for item in items)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (3, 3.0),
        (2**53 + 1, float(2**53)),
        ([1, {"x": 2.0}], [1.0, {"x": 2}]),
        (Set([1, "a"]), Set(["a", 1.0])),
        (Struct("P", {"x": 1, "y": 2}), Struct("P", {"y": 2, "x": 1})),
        (Builtin("len", len, 1), Builtin("len", sum, 1)),
        (_handle(1), _handle(1)),
        (Atomic(4), Atomic(4)),
        (Duration(60_000), Duration(60_000)),
        (Range(1, 3), Range(1, 3)),
        (0.0, -0.0),
    ],
)
def test_equal(a: Any, b: Any) -> None:
    assert equal(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, "1"),
        (True, 1),
        (False, 0),
        (True, 1.0),
        (None, False),
        ([True], [1]),
        ({"x": True}, {"x": 1}),
        ({"x": 1}, Struct("P", {"x": 1})),
        ({"x": None}, {}),
        (Struct("P", {"x": 1}), Struct("Q", {"x": 1})),
        (EnumValue("E", "A"), EnumValue("F", "A")),
        (EnumValue("E", "A", (1,)), EnumValue("E", "A", (2,))),
        (Range(1, 3), Range(1, 4, exclusive=True)),
        ([1, 2], [1, 2, 3]),
        (Set([1]), [1]),
        (math.nan, math.nan),
        (Set([1, 1.0]), Set([1, 2])),
        (Iter([]), Iter([])),
    ],
)
def test_not_equal(a: Any, b: Any) -> None:
    assert not equal(a, b)


@pytest.mark.parametrize("value", [fn(), Rng(None), Generator([]), Stream([]), math.nan])
def test_never_equal_not_even_to_itself(value: Any) -> None:
    assert not equal(value, value)
    assert not equal([value], [value])


def test_an_iterator_equals_itself() -> None:
    handle = Iter([1])
    assert equal(handle, handle)


@pytest.mark.parametrize(
    ("a", "b", "order"),
    [
        (1, 2, -1),
        (2, 1.5, 1),
        (1, 1.0, 0),
        ("a", "b", -1),
        ("z", "é", -1),
        ("\uffff", "\U00010000", -1),
        (Pair(1, "b"), Pair(1, "a"), 1),
        (Pair(1, 2), Pair(2, 1), -1),
        (Duration(1), Duration(2), -1),
        (None, 3, 0),
        ([2], [1], 0),
        (True, False, 0),
        (1, "a", 0),
        (math.nan, 1.0, 0),
        ({}, Struct("P"), 0),
    ],
)
def test_compare(a: Any, b: Any, order: int) -> None:
    assert compare(a, b) == order
    assert compare(b, a) == -order


def test_keys_keep_types_apart() -> None:
    values = [1, 1.0, True, "1", None, [], {}, Set([]), [1], [1.0], ["x,y", "x", "y"], ["x", "y,x", "y"]]
    values += [[[1], 2], [[1, 2]], {"a": 1}, Struct("a", {"a": 1}), Pair("a", 1), ["a", 1], b"a", "a", 0]
    assert len({structural_key(value) for value in values}) == len(values)


def test_a_key_of_a_handle_is_the_handle() -> None:
    one, other = fn(), fn()
    assert structural_key([one]) == structural_key([one])
    assert structural_key([one]) != structural_key([other])


@pytest.mark.parametrize(
    ("wrap", "depth"),
    [
        (lambda inner: [inner], 20_000),
        (lambda inner: {"x": inner}, 20_000),
        (lambda inner: Struct("P", {"x": inner}), 10_000),
        (lambda inner: Pair(1, inner), 20_000),
        (lambda inner: EnumValue("E", "A", (inner,)), 20_000),
        (lambda inner: Set([1, inner]), 1_000),
    ],
    ids=["list", "dict", "struct", "pair", "enum", "set"],
)
def test_deep_nesting_costs_no_c_stack(wrap: Callable[[Any], Any], depth: int) -> None:
    a: Any = 1
    b: Any = 1
    for _ in range(depth):
        inner = a
        a, b = wrap(a), wrap(b)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200_000)
    try:
        assert display(a) == display(b)
        assert equal(a, b)
        assert not equal(a, inner)
        assert structural_key(a) == structural_key(b) != structural_key(inner)
        assert hash(structural_key(a)) == hash(structural_key(b))
        assert contains_value([b], a)
        assert compare(a, b) == 0
    finally:
        sys.setrecursionlimit(limit)
