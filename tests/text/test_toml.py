"""TOML: what `tomllib` reads, and nothing that takes it long."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats.nesting import list_items
from harnpy.formats.toml import parse_toml, to_toml
from tests.counts import COUNT
from tests.support import ends

HOSTILE = {
    "keys": ".".join("a" * 50_000) + " = 1",
    "spaced keys": " . ".join("a" * 25_000) + " = 1",
    "quoted keys": ".".join(['"."'] * 25_000) + " = 1",
    "keys with escapes": ".".join([r'"\""'] * 20_000) + " = 1",
    "literal keys": ".".join(["'.'"] * 25_000) + " = 1",
    "a header": "[" + ".".join("a" * 50_000) + "]",
    "a header of tables": "[[" + ".".join("a" * 50_000) + "]]",
    "a key of an inline table": "x = {" + ".".join("a" * 50_000) + " = 1}",
    "lists": "a = " + "[" * 50_000 + "]" * 50_000,
    "tables": "a = " + "{a = " * 20_000 + "1" + "}" * 20_000,
}
ODD = {
    "almost deep keys": (".".join("a" * 127) + "\n") * 400,
    "quotes": '"' * 100_000,
    "escapes": '\\"' * 50_000,
    "words": "a" * 100_000,
    "spaces": "a" + " " * 100_000,
    "dots": "." * 100_000,
    "digits": "a = " + "1" * 100_000,
    "a list that doesn't end": "a = [" + "1, " * 33_000,
    "lines": "\n" * 100_000 + "x",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_is_nested_too_deeply_is_refused_at_once(text: str) -> None:
    with ends(5), pytest.raises(ValueError, match=r"^recursion limit exceeded$"):
        parse_toml(text)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_any_other_text_is_refused_at_once(text: str) -> None:
    with ends(5), pytest.raises(ValueError):  # noqa: PT011 (in tomllib's words)
        parse_toml(text)


def test_nesting_is_limited_as_in_json() -> None:
    assert parse_toml("a = " + "[" * 127 + "]" * 127)
    assert parse_toml(".".join("a" * 128) + " = 1")
    for text in ("a = " + "[" * 128 + "]" * 128, ".".join("a" * 129) + " = 1"):
        with pytest.raises(ValueError, match="recursion"):
            parse_toml(text)


@given(st.text("ab.\"'\\=[]{}, \n#1", max_size=60))
def test_everything_else_is_read_as_tomllib_does(text: str) -> None:
    assert outcome(parse_toml, text) == outcome(tomllib.loads, text)


KEYS = st.text(max_size=4) | st.sampled_from(["a", "a.b", '"', "a b"])
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=15,
)


@settings(max_examples=COUNT.examples(80), deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_what_is_written_reads_back(table: dict[str, Any]) -> None:
    text = to_toml(table, list_items)
    assert tomllib.loads(text) == table
    assert repr(_sorted(tomllib.loads(text))) == repr(_sorted(table))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def outcome(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except ValueError as error:
        return str(error)
