"""Did you mean. Spec: 02 §9.3, 03 §9."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.suggestions import distance, nearest, nearest_at_run_time


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("ab", "ba", 2), ("é", "e", 1)],
)
def test_distance(left: str, right: str, expected: int) -> None:
    assert distance(left, right) == expected


@given(st.text(max_size=6), st.text(max_size=6), st.text(max_size=6))
def test_distance_is_a_metric(a: str, b: str, c: str) -> None:
    assert distance(a, b) == distance(b, a)
    assert (distance(a, b) == 0) == (a == b)
    assert distance(a, c) <= distance(a, b) + distance(b, c)


@pytest.mark.parametrize(
    ("name", "candidates", "limit", "expected"),
    [
        ("pritn", ["print", "println"], 2, "print"),
        ("lenn", ["len", "lent"], 2, "len"),
        ("lenn", ["lent", "len"], 2, "lent"),
        ("len", ["len"], 2, None),
        ("abcdef", ["abc"], 2, None),
        ("x", [], 2, None),
    ],
)
def test_nearest(name: str, candidates: list[str], limit: int, expected: str | None) -> None:
    assert nearest(name, candidates, limit=limit) == expected


@pytest.mark.parametrize(
    ("name", "candidates", "expected"),
    [
        ("ab", ["a", "xyz"], "a"),
        ("ab", ["cd"], None),
        ("é", ["a"], None),
        ("éa", ["a"], "a"),
        ("x", ["e", "xs"], "xs"),
        ("nane", ["range", "max"], None),
        ("otken", ["token"], "token"),
        ("unknown", ["known"], "known"),
        ("count", ["cnt"], "cnt"),
        ("total", ["tota1x", "tatal"], "tatal"),
        ("variable", ["varia"], "varia"),
        ("foo", ["fooo", "fob", "fo"], "fob"),
        ("foo", ["foz", "fob"], "fob"),
        ("foo", ["__foo"], None),
    ],
)
def test_run_time_suggestions(name: str, candidates: list[str], expected: str | None) -> None:
    assert nearest_at_run_time(name, candidates) == expected
