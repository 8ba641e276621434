"""Values as the REPL shows them. Spec: 09 §5."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.cli.repl import is_unfinished
from harnpy.cli.value_views import shown
from harnpy.vm.values import EnumValue, Pair, Set, Struct
from tests.support import Command

SCALARS = st.none() | st.booleans() | st.integers(-99, 99) | st.text('ab"\\\n$ {', max_size=6)
KEYS = st.sampled_from("abc")
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=12)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("a b", "a b"),
        (["1", 1, None, 1.0], '["1", 1, nil, 1.0]'),
        ({"b": "x", "a": [True]}, '{a: [true], b: "x"}'),
        (Struct("Point", {"x": "1"}), 'Point {x: "1"}'),
        (Set(["a"]), 'set("a")'),
        (Pair("a", 2), '("a", 2)'),
        (EnumValue("Result", "Ok", ("a\n${",)), 'Result.Ok("a\\n\\${")'),
        (EnumValue("Side", "Left"), "Side.Left"),
    ],
)
def test_one_line(value: Any, line: str) -> None:
    assert shown(value) == [line]


def test_what_does_not_fit_has_an_entry_a_line() -> None:
    value = {"name": "Ada", "tags": ["mathematician", "writer"], "deep": {"a": 1}}
    assert shown(value, 30) == [
        "{",
        "  deep: {a: 1},",
        '  name: "Ada",',
        "  tags: [",
        '    "mathematician",',
        '    "writer"',
        "  ]",
        "}",
    ]


def test_alike_dicts_are_a_table() -> None:
    rows = [{"name": f"n{n}", "count": n} for n in (1, 10)]
    assert shown(rows, 30) == ["count  name", "    1  n1", "   10  n10"]
    assert shown([*rows, {"name": 1}], 30)[0] == "["
    assert shown([{"a": [1]}, {"a": [2]}], 8)[0] == "["


def test_wide_letters_take_two_columns() -> None:
    wide = [{"a": "日本", "b": 1}, {"a": "x", "b": 20}]
    assert shown(wide, 20) == ["a      b", "日本   1", "x     20"]
    assert shown(["日本語"], 10) == ['["日本語"]']
    assert shown(["日本語"], 9) == ["[", '  "日本語"', "]"]


@given(VALUES, st.integers(20, 80))
def test_folding_moves_blanks_alone(value: Any, width: int) -> None:
    (flat,) = shown([value, {}])
    lines = shown([value, {}], width)
    assert "".join("".join(lines).split()) == "".join(flat.split())


def test_deep_values() -> None:
    value: list[Any] = []
    for _ in range(300):
        value = [value]
    assert shown(value, 80)[:2] == ["[", "  ["]


@pytest.mark.parametrize(
    "text", ["1 +", "a &&", "let x =", "f(", "for x in", "xs.", "[1,", "1 to", "x + // y"]
)
def test_inputs_that_go_on(text: str) -> None:
    assert is_unfinished(text)


@pytest.mark.parametrize("text", ["1 + 2", "x?", '"a +"', ":doc +", "x // +", "f() ?? 1", "into", "a)"])
def test_inputs_that_are_whole(text: str) -> None:
    assert not is_unfinished(text)


def test_a_pipe(harnpy: Command) -> None:
    done = harnpy("repl", stdin='["1", 1]\n1 +\n2\nnope\n:raw _1\n')
    assert (done.stdout, done.returncode) == ('["1", 1]\n3\n[1, 1]\n', 1)
    assert harnpy("repl", stdin="1\n").returncode == 0
