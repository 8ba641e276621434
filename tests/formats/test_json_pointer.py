"""JSON pointers: their text and the place it names are the same thing; what differs is copied."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats.json_pointer import found_at, with_value, without_value
from tests.counts import COUNT

KEYS = st.text(st.sampled_from("ab/~01é"), max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    found = [(path, value)]
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found += places(value[key], (*path, key))
    return found


def pointer_to(path: tuple[Any, ...]) -> str:
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


@settings(max_examples=COUNT.examples(20), deadline=None)
@given(VALUES, st.data())
def test_every_place_is_found_changed_and_left_out_by_its_pointer(value: Any, data: st.DataObject) -> None:
    before = deepcopy(value)
    for path, there in places(value):
        assert found_at(value, pointer_to(path)) == there
    path, _ = data.draw(st.sampled_from(places(value)))
    new = object()
    assert _assigned(value, path, new) == with_value(value, pointer_to(path), new)
    assert _deleted(value, path) == without_value(value, pointer_to(path))
    assert value == before


def _assigned(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, dict):
        return {key: _assigned(value[key], path[1:], new) if key == path[0] else value[key] for key in value}
    return [_assigned(item, path[1:], new) if i == path[0] else item for i, item in enumerate(value)]


def _deleted(value: Any, path: tuple[Any, ...]) -> Any:
    if not path:
        return None
    key, *rest = path
    if not rest:
        if isinstance(value, dict):
            return {name: value[name] for name in value if name != key}
        return value[:key] + value[key + 1 :]
    return _assigned(value, (key,), _deleted(value[key], tuple(rest)))


def test_a_deep_value_takes_no_stack() -> None:
    value: Any = 1
    for _ in range(20_000):
        value = [value]
    pointer = "/0" * 20_000
    assert found_at(value, pointer) == 1
    assert found_at(with_value(value, pointer, 2), pointer) == 2
    assert found_at(without_value(value, pointer), "/0" * 19_999) == []
