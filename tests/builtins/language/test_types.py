"""Types, conversions and Results. Spec: 04 §2, 02 §2.4, §19.5."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy import Vm
from harnpy.builtins.language.types import hash_value, to_float, to_int
from harnpy.vm.values import Duration, EnumValue, Fn, Pair, Range, Set, Struct
from harnpy.vm.values.equality import structural_key

BIG = 2**63
EMPTY_FN = Fn("f", ("a",), lambda depth, a: a)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, 7),
        (7.8, 7),
        (-1.2, -1),
        (1e300, BIG - 1),
        (-1e300, -BIG),
        (math.inf, BIG - 1),
        (-math.inf, -BIG),
        (math.nan, 0),
        ("42", 42),
        ("+42", 42),
        ("-0042", -42),
        ("0" * 40 + "5", 5),
        (str(BIG - 1), BIG - 1),
        (str(-BIG), -BIG),
        (str(BIG), None),
        ("9" * 10_000, None),
        ("", None),
        ("-", None),
        (" 1", None),
        ("1_0", None),
        ("1.0", None),
        ("٣", None),
        ("²", None),
        (True, None),
        (None, None),
        ([1], None),
    ],
)
def test_to_int(vm: Any, value: Any, expected: int | None) -> None:
    result = vm.run("to_int", value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2, 2.0),
        (2.5, 2.5),
        ("1", 1.0),
        ("-2.5e3", -2500.0),
        (".5", 0.5),
        ("inf", math.inf),
        ("-inf", -math.inf),
        (" 1", None),
        ("1 ", None),
        ("1_0", None),
        ("٣", None),
        ("", None),
        ("e5", None),
        (True, None),
        (None, None),
    ],
)
def test_to_float(vm: Any, value: Any, expected: float | None) -> None:
    assert vm.run("to_float", value) == expected


def test_to_float_of_nan(vm: Any) -> None:
    assert math.isnan(vm.run("to_float", "NaN"))


@given(st.integers(-BIG, BIG - 1))
def test_ints_survive_their_text(n: int) -> None:
    assert to_int(None, str(n)) == n  # type: ignore[arg-type]


@given(st.text())
def test_conversions_never_fail(text: str) -> None:
    assert to_int(None, text) is None or text.strip("+-").isdigit()  # type: ignore[arg-type]
    assert type(to_float(None, text)) in (float, type(None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ("héllo👍", 6),
        ("e\u0301", 2),
        (b"abc", 3),
        ([1, 2], 2),
        ({"a": 1}, 1),
        (Set([1, 2, 3]), 3),
        (Range(0, 8_000_000, exclusive=True), 8_000_000),
        (Range(1, 5), 5),
        (Range(5, 1), 0),
        (Range(-BIG, BIG - 1), BIG - 1),
        (None, 0),
        (5, 0),
        (True, 0),
        (Struct("P", {"x": 1}), 0),
        (Pair(1, 2), 0),
    ],
)
def test_len(vm: Any, value: Any, length: int) -> None:
    assert vm.run("len", value) == length


def test_len_without_argument(vm: Any) -> None:
    assert vm.run("len") == 0
    assert vm.run("to_string") == "nil"
    assert vm.run("type_of") == "nil"


def test_to_list(vm: Any) -> None:
    assert vm.run("to_list", Set([2, 1])) == [2, 1]
    assert vm.run("to_list", [1]) == [1]
    assert vm.run("to_list", "ab") == ["ab"]
    assert vm.run("to_list") == [None]


def test_identity(vm: Any) -> None:
    items = [1]
    assert vm.run("is_same", items, items)
    assert not vm.run("is_same", items, [1])
    assert not vm.run("is_same", Pair(1, 2), Pair(1, 2))
    assert vm.run("is_same", EMPTY_FN, EMPTY_FN)
    assert vm.run("is_same", "a", "a")
    assert vm.run("is_same", 1, 1.0)
    assert not vm.run("is_same", 1, True)
    assert vm.run("is_same", Struct("P", {"x": 1}), Struct("P", {"x": 1}))


def test_addresses(vm: Any) -> None:
    items = [1]
    assert vm.run("addr_of", items) == vm.run("addr_of", items)
    assert vm.run("addr_of", items) != vm.run("addr_of", [1])
    assert vm.run("addr_of", items).startswith("list@")
    assert vm.run("addr_of", EMPTY_FN).startswith("closure@")
    assert vm.run("addr_of", "a").startswith("string@")
    assert vm.run("addr_of", 42) == "int@42"
    assert vm.run("addr_of", Duration(5000)) == "duration@5s"
    from harnpy.builtins import catalog

    length = catalog.find("len")
    assert length is not None
    assert vm.run("addr_of", length.bind()) == "builtin@len"


def test_hash_is_stable_between_runs(vm: Any) -> None:
    assert vm.run("hash_value", 42) != vm.run("hash_value", "42")
    assert vm.run("hash_value", {"b": 1, "a": [True]}) == vm.run("hash_value", {"a": [True], "b": 1})
    assert vm.run("hash_value", 1) != vm.run("hash_value", 1.0)
    assert vm.run("hash_value", "a") == _fnv("'a'")
    assert vm.run("hash_value", [1, "1"]) == _fnv("list 2 1 '1'")


def _fnv(text: str) -> int:
    code = 14695981039346656037
    for byte in text.encode():
        code = (code ^ byte) * 1099511628211 % 2**64
    return code - 2**64 if code >= BIG else code


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-BIG, BIG - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


VM = Vm()


@given(VALUES, VALUES)
def test_hash_agrees_with_the_structural_key(a: Any, b: Any) -> None:
    same = structural_key(a) == structural_key(b) and type(a) is type(b)
    assert (hash_value(VM, a) == hash_value(VM, b)) == same
    assert -BIG <= hash_value(VM, a) < BIG


def test_unreachable(vm: Any) -> None:
    assert vm.failure("unreachable") == "Runtime error: unreachable code was reached"
    assert vm.failure("unreachable", None) == "Runtime error: unreachable code was reached: nil"
    assert vm.failure("unreachable", [1]) == "Runtime error: unreachable code was reached: [1]"


def test_results(vm: Any) -> None:
    ok, err = vm.run("Ok", 1), vm.run("Err", "bad")
    assert (ok.enum, ok.variant, ok.fields) == ("Result", "Ok", (1,))
    assert vm.run("Ok").fields == (None,)
    assert vm.run("is_ok", ok)
    assert vm.run("is_err", err)
    assert not vm.run("is_ok", err)
    assert not vm.run("is_err", EnumValue("Other", "Err", (1,)))
    assert not vm.run("is_ok", 5)
    assert vm.run("unwrap", ok) == 1
    assert vm.run("unwrap", 5) == 5
    assert vm.failure("unwrap", err) == "Runtime error: unwrap called on Err: bad"
    assert vm.run("unwrap_or", ok, 2) == 1
    assert vm.run("unwrap_or", err, 2) == 2
    assert vm.run("unwrap_or", err) is None
    assert vm.run("unwrap_or", 5, 2) == 5
    assert vm.run("unwrap_err", err) == "bad"
    assert vm.failure("unwrap_err", ok) == "Runtime error: unwrap_err called on non-Err"
    assert vm.failure("unwrap_err", 5) == "Runtime error: unwrap_err called on non-Err"
