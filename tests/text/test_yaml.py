"""YAML: what a person writes is read, and what takes a machine's time is refused."""

from __future__ import annotations

import pytest

from harnpy.text.yaml import parse_yaml
from tests.support import assert_linear, ends, processor_time

LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 60))


def test_values() -> None:
    text = "short: a\nlist: [1, two]\nnested:\n  key: ~\n"
    assert parse_yaml(text) == {"short": "a", "list": [1, "two"], "nested": {"key": None}}
    assert parse_yaml("") is None
    assert parse_yaml("<<: {a: 1}\nb: 2") == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LAUGHS, "aliases are not supported"),
        (MERGES, "aliases are not supported"),
        ("a: &a [*a]", "aliases are not supported"),
        ("[" * 60_000, "recursion limit exceeded"),
        ("{a: " * 15_000, "recursion limit exceeded"),
        ("- " * 30_000, "recursion limit exceeded"),
        ("a: " + "9" * 60_000, "4300 digits"),
        ("a: 2026-99-99", "month must be in"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a: [", "while parsing"),
        ("x" * 70_000, "longer than 65536 characters"),
    ],
)
def test_what_is_refused(text: str, problem: str) -> None:
    with ends(5), pytest.raises(ValueError, match=problem):
        parse_yaml(text)


@pytest.mark.parametrize("line", ["k{}: v\n", "- {}\n", '- "{}"\n', "- [a, {}]\n", "- {{a: {}}}\n", "# {}\n"])
def test_time_is_linear(line: str) -> None:
    def time_of(size: int) -> float:
        text = "".join(line.format(i) for i in range(size))
        return processor_time(lambda: parse_yaml(text))

    assert_linear(time_of, 200)
