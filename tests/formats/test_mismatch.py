"""What msgspec refuses is said in our own words, whatever msgspec says."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.json import refuse_depth
from harnpy.formats.mismatch import decoded, mismatch, unread


class Color(enum.Enum):
    RED = "red"


@dataclass
class Place:
    name: str
    floor: int | None = 0


class Order(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    place: Place
    tags: list[str] = []
    unit_price: Annotated[float, msgspec.Meta(description="In euros.")] = 0.0
    color: Color = Color.RED
    mode: Literal["fast", "good"] = "fast"
    counts: dict[str, int] = {}
    either: int | str | None = None
    done: bool = False


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (3, "`order` must be a dict, not an int"),
        ({}, "`order.place` is missing"),
        ({"place": {}}, "`order.place.name` is missing"),
        ({"place": {"name": None}}, "`order.place.name` must be a string, not nil"),
        ({"place": {"name": "a", "floor": 1.5}}, "`order.place.floor` must be an int, not a float"),
        ({"tags": ["a", 1]}, "`order.tags[1]` must be a string, not an int"),
        ({"tags": {}}, "`order.tags` must be a list, not a dict"),
        ({"unitPrice": "1"}, "`order.unitPrice` must be a number, not a string"),
        ({"unitPrice": True}, "`order.unitPrice` must be a number, not a bool"),
        ({"color": "blue"}, "`order.color` must be 'red'"),
        ({"mode": "slow"}, "`order.mode` must be 'fast' or 'good'"),
        ({"counts": {"a": "b"}}, "`order.counts.a` must be an int, not a string"),
        ({"counts": []}, "`order.counts` must be a dict, not a list"),
        ({"either": []}, "`order.either` must be an int or a string or nil, not a list"),
        ({"done": 0}, "`order.done` must be a bool, not an int"),
        ({"unit_price": 1}, "unknown key `order.unit_price`"),
    ],
)
def test_what_does_not_fit(value: Any, problem: str) -> None:
    if value and isinstance(value, dict):
        value = {"place": {"name": "attic"}} | value
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, Order)
    assert mismatch(value, Order, "order") == problem


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["red", "a"]) | st.just(1.5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "a"]), inner),
    max_leaves=4,
)


@given(
    st.fixed_dictionaries({}, optional={field.encode_name: JSON for field in msgspec.structs.fields(Order)})
)
def test_whatever_is_refused_has_a_place(value: dict[str, Any]) -> None:
    try:
        msgspec.convert(value, Order)
    except msgspec.ValidationError:
        assert "`" in mismatch(value, Order)
    else:
        assert mismatch(value, Order) == "the value doesn't fit its type"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "EOF while parsing an object at line 1 column 1"),
        (b'{"name": "\xff"}', "stream did not contain valid UTF-8"),
        (b'{"name": 1}', "`name` must be a string, not an int"),
        ("[]", "the value must be a dict, not a list"),
    ],
)
def test_json_that_can_not_be_read(content: bytes | str, problem: str) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        msgspec.json.decode(content, type=Place)
    assert unread(content, Place) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 128 + "]" * 128, "recursion limit exceeded"),
        ("[" * 60_000, "recursion limit exceeded"),
        ('{"a": ' * 60_000, "recursion limit exceeded"),
        ("[1", "EOF while parsing"),
        (b'"\xff"', "UTF-8"),
    ],
    ids=("one too many", "lists", "objects", "cut", "bytes"),
)
def test_nesting_is_bounded_before_it_is_decoded(text: bytes | str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decoded(text, Any)


def test_brackets_in_strings_nest_nothing() -> None:
    for text in ("[" * 127 + "]" * 127, '["' + "[" * 1000 + '\\"["]', "[" + "[]," * 1000 + "[]]"):
        assert decoded(text, list[Any])
    # A string without an end is looked through once: from each quote again, this would take hours.
    refuse_depth("[" * 800 + '"' + '\\"' * 1_000_000 + "[" * 200)
