"""jq's expressions: the laws of pipe and comma, work that can be stopped, nesting that has an end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats.jq import JqError, parse
from tests.counts import COUNT

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=10,
)
EXPRESSIONS = st.recursive(
    st.sampled_from([".", ".a", ".b", ".[]", "..", ".[0]", ".[1:]", "1", "nil", "length", "keys", "values"]),
    lambda inner: (
        st.builds("({})".format, inner)
        | st.builds("map({})".format, inner)
        | st.builds("select({})".format, inner)
        | st.builds("({}) == ({})".format, inner, inner)
        | st.builds("not ({})".format, inner)
    ),
    max_leaves=4,
)


class _Run:
    seen = 0

    def equal(self, a: Any, b: Any) -> bool:
        return type(a) is type(b) and bool(a == b)

    def items(self, value: Any) -> list[Any] | None:
        return value if isinstance(value, list) else None

    def made(self, results: int) -> None:
        self.seen += 1
        if self.seen > 5000 or results > 1000:
            raise TimeoutError


def jq(value: Any, expression: str) -> list[Any]:
    return parse(expression)(value, _Run())


@settings(max_examples=COUNT.examples(20), deadline=None)
@given(VALUES, EXPRESSIONS, EXPRESSIONS)
def test_the_laws(value: Any, a: str, b: str) -> None:
    of_a, of_b = jq(value, a), jq(value, b)
    assert jq(value, f"{a} | {b}") == [result for each in of_a for result in jq(each, b)]
    assert jq(value, f"{a}, {b}") == of_a + of_b
    assert jq(value, f"{a}, {b} | {a}") == jq(value, f"({a}, {b}) | {a}")
    assert jq([value, value], f"map({a})") == [of_a * 2]
    assert jq(value, f"({a}) and ({b})") == [any(of_a) and any(of_b)]
    assert jq(value, f"({a}) or ({b})") == [any(of_a) or any(of_b)]
    assert jq(value, f"not ({a})") == [not any(of_a)]
    assert jq(value, f"select({a})") == ([value] if any(of_a) else [])
    assert jq(value, f"{{x: {a}}}") == [{"x": (of_a or [None])[0]}]
    assert jq(value, f".. | {a}") == [found for each in jq(value, "..") for found in jq(each, a)]


@pytest.mark.parametrize("expression", [".. | .. | ..", ".[] | map(select(false))", "(..) == (..) | nil"])
def test_work_without_end_can_be_stopped(expression: str) -> None:
    with pytest.raises(TimeoutError):
        jq([list(range(100))] * 60, expression)


def test_a_deep_value_takes_no_stack() -> None:
    value: Any = []
    for _ in range(900):
        value = [value]
    assert len(jq(value, "..")) == 901


def test_nesting_has_an_end() -> None:
    assert jq(1, "map(" * 60 + "1" + ")" * 60) == [[]]
    with pytest.raises(JqError, match="recursion limit exceeded"):
        parse("{a: " * 64 + "1" + "}" * 64)
