"""What isn't JSON can't be appended, and nothing of its batch is (10 §C3.4)."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.session import Event, EventDraft, EventRejected, Session, SessionRegistry
from harnpy.session.arguments import DEEPEST, checked

BAD: list[tuple[Any, str]] = [
    (math.nan, "NaN"),
    (math.inf, "Infinity"),
    (-math.inf, "Infinity"),
    (b"x", "bytes"),
    (2**63, "integer out of range"),
    (-(2**63) - 1, "integer out of range"),
    ({1: 2}, "key of type int"),
    ({None: 2}, "key of type NoneType"),
    ((1,), "tuple"),
    ({1}, "set"),
    (object(), "object"),
    (type("Sub", (str,), {})("x"), "Sub"),
    (True.__class__, "type"),
]

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture
def session() -> Session:
    registry = SessionRegistry()
    session = registry.session(registry.open("s"))
    assert session
    return session


@given(JSON)
def test_json_is_taken_as_it_is(value: Any) -> None:
    assert checked(value) is value


@given(st.sampled_from(BAD), st.lists(st.integers(0, 3) | st.text(max_size=3), max_size=40))
def test_what_is_wrong_is_named_with_its_pointer(bad: tuple[Any, str], path: list[int | str]) -> None:
    value, what = bad
    for step in reversed(path):
        value = [*range(step), value] if isinstance(step, int) else {"before": [], step: value, "after~": 1}
    pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
    place = f" at {pointer}" if pointer else ""
    with pytest.raises(EventRejected) as caught:
        checked(value)
    assert str(caught.value) == f"session append: data is not JSON: {what}{place}"
    assert (caught.value.what, caught.value.pointer) == (what, pointer)
    assert isinstance(caught.value, ValueError)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_depth_has_a_limit() -> None:
    deepest = nested(DEEPEST)
    assert checked(deepest) is deepest
    with pytest.raises(EventRejected, match=r"nesting deeper than 512 at (/0){512}$"):
        checked(nested(DEEPEST + 1))
    with pytest.raises(EventRejected, match="nesting deeper than 512"):
        checked(nested(10 * sys.getrecursionlimit()))


def test_a_cycle_is_called_one() -> None:
    cycle: dict[str, Any] = {"a": []}
    cycle["a"].append(cycle)
    with pytest.raises(EventRejected, match=r"data is not JSON: a cycle at (/a/0)+"):
        checked(cycle)
    shared = nested(DEEPEST - 1)
    assert checked([shared, shared])


def test_lone_surrogates_are_replaced_in_a_copy() -> None:
    given = {"a\ud800": ["x\udfffy", "ä", {"k": "\U0001f600"}], "b": 1}
    assert checked(given) == {"a\ufffd": ["x\ufffdy", "ä", {"k": "\U0001f600"}], "b": 1}
    assert "a\ud800" in given
    assert checked({"role": "user", "content": "\ud800"}) == {"role": "user", "content": "\ufffd"}
    with pytest.raises(EventRejected) as caught:
        checked({"\ud800": math.nan})
    caught.value.message.encode()


@pytest.mark.parametrize(("bad", "what"), BAD, ids=[what for _, what in BAD])
def test_a_batch_with_one_bad_event_writes_none(session: Session, bad: Any, what: str) -> None:
    good = EventDraft("message_added", {"role": "user", "content": "a"})
    seen: list[Event] = []
    with pytest.raises(EventRejected, match=f"{what} at /x/0"):
        seen += session.append(good, EventDraft("custom", {"x": [bad]}), good)
    assert (session.version, session.length, seen) == (1, 0, [])


def test_metadata_is_checked_too(session: Session) -> None:
    with pytest.raises(EventRejected, match="session append: metadata is not JSON: bytes at /k"):
        session.append(EventDraft("custom", {}, metadata={"k": b""}))
    assert session.version == 1
