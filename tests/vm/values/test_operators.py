"""Operators, subscripts, properties and assignments. Spec: 02 §2–4, §8, §13, §14, §16."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harnpy.vm.errors import PlainFault, RuntimeFault, TypeFault, VmError
from harnpy.vm.values import Duration, EnumValue, Generator, Iter, Pair, Range, Set, Struct, operators
from harnpy.vm.values.equality import equal

MIN, MAX = -(2**63), 2**63 - 1
INTS = st.integers(MIN, MAX) | st.integers(-5, 5) | st.sampled_from([MIN, MAX])


def signed(x: int) -> int:
    """The 64-bit model: the low word, read as two's complement."""
    return int.from_bytes((x % 2**64).to_bytes(8, "little"), "little", signed=True)


def fails(error: type[VmError], message: str, f: Callable[..., Any], *args: Any) -> None:
    with pytest.raises(error) as caught:
        f(*args)
    assert caught.value.message == message


# Integers


@given(INTS, INTS)
@example(MAX, 1)
@example(MIN, -1)
def test_int_arithmetic_is_that_of_64_bit_words(a: int, b: int) -> None:
    assert operators.add(a, b) == signed(a + b)
    assert operators.sub(a, b) == signed(a - b)
    assert operators.mul(a, b) == signed(a * b)
    assert operators.neg(a) == signed(-a)


@given(INTS, INTS.filter(bool))
@example(MIN, -1)
@example(-7, 2)
@example(7, -3)
def test_int_division_truncates_and_the_remainder_has_the_dividends_sign(a: int, b: int) -> None:
    quotient, remainder = operators.div(a, b), operators.mod(a, b)
    assert quotient == signed(int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b)))
    assert remainder == a - b * (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    assert operators.add(operators.mul(quotient, b), remainder) == a
    assert remainder == 0 or (remainder < 0) == (a < 0)


@given(INTS, st.integers(0, 80))
@example(2, 63)
@example(2, 64)
def test_int_power_wraps(a: int, b: int) -> None:
    assert operators.power(a, b) == signed(a**b)


@given(st.integers(-(2**70), 2**70))
def test_wrap(x: int) -> None:
    assert operators.wrap(x) == signed(x)


def test_a_huge_exponent_is_cheap_while_it_fits_a_word() -> None:
    assert operators.power(3, 4294967295) == signed(pow(3, 4294967295, 2**64))
    assert operators.power(3, 4294967296) == math.inf


# Floats


@pytest.mark.parametrize(
    ("op", "a", "b", "result"),
    [
        (operators.add, 1, 2.5, 3.5),
        (operators.mul, 1e308, 10, math.inf),
        (operators.div, 1.0, 0, math.inf),
        (operators.div, -1, 0.0, -math.inf),
        (operators.div, 1.0, -0.0, -math.inf),
        (operators.div, 0.0, 0, math.nan),
        (operators.div, math.nan, 0, math.nan),
        (operators.div, 7, 2.0, 3.5),
        (operators.mod, -7.5, 2, -1.5),
        (operators.mod, math.inf, 2, math.nan),
        (operators.mod, 5, math.inf, 5.0),
        (operators.power, 4, -1, 0.25),
        (operators.power, 0, -1, math.inf),
        (operators.power, -0.0, -3, -math.inf),
        (operators.power, -0.0, -2, math.inf),
        (operators.power, 2.0, 3, 8.0),
        (operators.power, -8.0, 1 / 3, math.nan),
        (operators.power, 10.0, 400, math.inf),
        (operators.power, -10.0, 401, -math.inf),
        (operators.power, -10.0, 400, math.inf),
        (operators.power, 0.0, -math.inf, math.inf),
        (operators.power, 1, 2.0, 1.0),
        (operators.neg, 0.0, None, -0.0),
    ],
)
def test_float_arithmetic_never_raises(op: Callable[..., Any], a: Any, b: Any, result: float) -> None:
    found = op(a) if b is None else op(a, b)
    assert type(found) is float
    assert str(found) == str(result)


@given(st.floats(), st.floats())
def test_float_arithmetic_always_gives_a_float(a: float, b: float) -> None:
    for op in (operators.add, operators.sub, operators.mul, operators.div, operators.power):
        assert type(op(a, b)) is float
    if b:
        assert type(operators.mod(a, b)) is float


# What else the operators take, and what they refuse


def test_plus_joins() -> None:
    assert operators.add("a", "b") == "ab"
    assert operators.add([1], [2]) == [1, 2]
    assert operators.add({"a": 1, "b": 1}, {"b": 2}) == {"a": 1, "b": 2}


def test_times_repeats() -> None:
    assert operators.mul("ab", 3) == operators.mul(3, "ab") == "ababab"
    assert operators.mul("ab", -1) == ""


@pytest.mark.parametrize(
    ("error", "message", "op", "args"),
    [
        (TypeFault, "Cannot add string and int", operators.add, ("n=", 5)),
        (TypeFault, "Cannot add bool and int", operators.add, (True, 1)),
        (TypeFault, "Cannot add set and set", operators.add, (Set([]), Set([]))),
        (TypeFault, "Cannot add struct and dict", operators.add, (Struct("P"), {})),
        (TypeFault, "Cannot add duration and duration", operators.add, (Duration(1), Duration(1))),
        (TypeFault, "Cannot subtract int from nil", operators.sub, (None, 1)),
        (TypeFault, "Cannot multiply list and int", operators.mul, ([1], 2)),
        (TypeFault, "Cannot multiply string and float", operators.mul, ("a", 2.0)),
        (TypeFault, "Cannot multiply string and bool", operators.mul, ("a", True)),
        (RuntimeFault, "Cannot divide string by int", operators.div, ("a", 2)),
        (RuntimeFault, "Cannot modulo int by bool", operators.mod, (1, True)),
        (TypeFault, "Cannot exponentiate dict by float", operators.power, ({}, 1.0)),
        (RuntimeFault, "Cannot negate value of type bool", operators.neg, (True,)),
        (PlainFault, "Division by zero", operators.div, (1, 0)),
        (PlainFault, "Division by zero", operators.mod, (1, 0)),
        (PlainFault, "Division by zero", operators.mod, (1.5, 0)),
        (PlainFault, "Division by zero", operators.mod, (1, 0.0)),
        (TypeFault, "cannot index into nil with string", operators.index, (None, "a")),
        (TypeFault, "cannot index into list with bool", operators.index, ([1], True)),
        (TypeFault, "cannot index into struct with string", operators.index, (Struct("P", {"x": 1}), "x")),
        (TypeFault, "cannot index into set with int", operators.index, (Set([1]), 0)),
        (
            RuntimeFault,
            "range index out of range: index 9 for range of length 4",
            operators.index,
            (Range(1, 4), 9),
        ),
        (
            RuntimeFault,
            "range index out of range: index -5 for range of length 4",
            operators.index,
            (Range(1, 4), -5),
        ),
        (TypeFault, "cannot slice dict", operators.slice_, ({}, 0, 1)),
        (TypeFault, "slice start must be an integer, got float", operators.slice_, ([], 1.0, "x")),
        (TypeFault, "slice end must be an integer, got bool", operators.slice_, ("", None, True)),
        (TypeFault, "cannot access property `x` on nil", operators.get_prop, (None, "x")),
        (TypeFault, "cannot access property `count` on range", operators.get_prop, (Range(1, 2), "count")),
        (
            TypeFault,
            "cannot access property `third` on pair (expected `first` or `second`)",
            operators.get_prop,
            (Pair(1, 2), "third"),
        ),
        (TypeFault, "cannot access property `c` on nil", operators.get_path, ({"a": {}}, ("a", "b", "c"))),
        (TypeFault, "cannot set property `x` on int", operators.set_prop, (5, "x", 1)),
        (RuntimeFault, "Index 7 out of bounds for list of length 2", operators.set_index, ([1, 2], 7, 0)),
        (RuntimeFault, "Index -3 out of bounds for list of length 2", operators.set_index, ([1, 2], -3, 0)),
        (
            TypeFault,
            "cannot destructure struct with {...} pattern — expected dict",
            operators.destructure_dict,
            (Struct("P"),),
        ),
        (
            TypeFault,
            "cannot destructure int with [...] pattern — expected list",
            operators.spread_list,
            (5,),
        ),
    ],
)
def test_refusals(error: type[VmError], message: str, op: Callable[..., Any], args: tuple[Any, ...]) -> None:
    fails(error, message, op, *args)


def test_order() -> None:
    assert operators.lt(1, 1.5)
    assert operators.gt("b", "a")
    assert not operators.lt(2, 2)
    assert operators.le(2, 2)
    assert operators.ge(2, 2)


@pytest.mark.parametrize(("a", "b"), [(None, 3), ([2], [1]), (1, "1"), (True, False), ({}, {})])
def test_what_has_no_order_compares_as_equal(a: Any, b: Any) -> None:
    below, above = operators.lt(a, b), operators.gt(a, b)
    assert (below, above, operators.le(a, b), operators.ge(a, b)) == (False, False, True, True)


@pytest.mark.parametrize(
    ("x", "container", "found"),
    [
        (1.0, [1], True),
        (True, [1], False),
        (1, [True, 1], True),
        (1, [True], False),
        ("b", Set(["a", "b"]), True),
        (1, {"1": None}, True),
        ("x", {}, False),
        (5, "a5", True),
        ("", "a", True),
        (3, Range(1, 3), True),
        (3, Range(1, 3, exclusive=True), False),
        (1.0, Range(1, 3), False),
        ("x", None, False),
        ("x", Struct("P", {"x": 1}), False),
        (1, 1, False),
    ],
)
def test_in(x: Any, container: Any, found: bool) -> None:
    assert operators.in_(x, container) is found


# Reading


@given(st.lists(INTS) | st.text(), st.integers(-8, 8))
def test_index_counts_from_both_ends_and_gives_nil_outside(o: Any, i: int) -> None:
    assert operators.index(o, i) == (o[i] if -len(o) <= i < len(o) else None)


@given(st.lists(INTS) | st.text(), st.none() | st.integers(-8, 8), st.none() | st.integers(-8, 8))
def test_slice_clamps(o: Any, a: int | None, b: int | None) -> None:
    def place(bound: int) -> int:
        return max(bound + len(o), 0) if bound < 0 else min(bound, len(o))

    first = 0 if a is None else place(a)
    end = len(o) if b is None else place(b)
    assert operators.slice_(o, a, b) == (o[first:end] if first < end else o[:0])


def test_index_of_other_kinds() -> None:
    assert operators.index({"1": "one"}, 1) == "one"
    assert operators.index({}, None) is None
    assert operators.index(Range(5, 9), -1) == 9
    assert operators.index(Range(5, 9, exclusive=True), -1) == 8
    assert operators.index("héllo", 1) == "é"


@pytest.mark.parametrize(
    ("o", "name", "value"),
    [
        ({"count": 7}, "count", 7),
        ({}, "count", None),
        (Struct("P", {"x": 1}), "x", 1),
        (Struct("P"), "x", None),
        ([4, 5], "count", 2),
        ([4, 5], "empty", False),
        ([4, 5], "first", 4),
        ([4, 5], "last", 5),
        ([], "first", None),
        ([], "empty", True),
        ([4], "other", None),
        ("ab", "count", 2),
        ("", "empty", True),
        ("ab", "first", None),
        (EnumValue("E", "B", (1, 2)), "variant", "B"),
        (EnumValue("E", "B", (1, 2)), "fields", [1, 2]),
        (EnumValue("E", "A"), "fields", []),
        (EnumValue("E", "A"), "other", None),
        (Pair(1, 2), "first", 1),
        (Pair(1, 2), "second", 2),
    ],
)
def test_property(o: Any, name: str, value: Any) -> None:
    assert equal(operators.get_prop(o, name), value)
    assert equal(operators.get_prop_optional(o, name), value)


def test_optional_property_gives_nil_where_there_are_no_properties() -> None:
    assert operators.get_prop_optional(7, "x") is None
    assert operators.get_prop_optional(None, "x") is None
    assert operators.get_prop_optional(Pair(1, 2), "x") is None


# Writing


def test_writing_copies() -> None:
    xs, d, p = [1, 2], {"a": 1}, Struct("P", {"x": 1})
    assert operators.set_index(xs, -1, 9) == [1, 9]
    assert operators.set_index(d, 1, 9) == {"a": 1, "1": 9}
    assert operators.set_prop(d, "b", 2) == {"a": 1, "b": 2}
    changed = operators.set_prop(p, "y", 2)
    assert type(changed) is Struct
    assert (changed.type, dict(changed)) == ("P", {"x": 1, "y": 2})
    assert (xs, d, dict(p)) == ([1, 2], {"a": 1}, {"x": 1})


@pytest.mark.parametrize(("o", "i"), [("abc", 0), (Struct("P"), "x"), (Set([1]), 0), ([1], "0"), (None, 0)])
def test_meaningless_subscript_writes_change_nothing(o: Any, i: Any) -> None:
    assert operators.set_index(o, i, 5) is o


# Ranges and iteration


def test_range_bounds_that_are_no_ints_count_as_zero() -> None:
    r = operators.range_to("a", 2.5, True)
    assert (r.first, r.last, r.exclusive) == (0, 0, True)
    assert operators.range_to(True, 3, False).first == 0


def test_range_size() -> None:
    assert Range(1, 5).size == 5
    assert Range(5, 1).size == 0
    assert Range(5, 5, exclusive=True).size == 0
    assert Range(MIN, MAX).size == MAX


@pytest.mark.parametrize(
    ("v", "items"),
    [
        ([1, 2], [1, 2]),
        (Set([3]), [3]),
        ({"b": 1, "a": 2}, [{"key": "a", "value": 2}, {"key": "b", "value": 1}]),
        (Range(1, 3), [1, 2, 3]),
        (Range(3, 1), []),
        (Iter([7]), [7]),
        (Generator([8]), [8]),
        ("abc", []),
        (None, []),
        (5, []),
        (b"ab", []),
        (Struct("P", {"x": 1}), []),
        (Pair(1, 2), []),
    ],
)
def test_for_runs_over(v: Any, items: list[Any]) -> None:
    assert list(operators.iterate_for(v)) == items
