"""TOML: what `tomllib` reads, nothing that takes it long, and what is wrong in our own words."""

from __future__ import annotations

import re
import tomllib
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
    with ends(5):
        assert OUR_WORDS.fullmatch(refusal(text))


OUR_WORDS = re.compile(
    r"recursion limit exceeded|integer out of range(: -?[0-9]+)?"
    r"|('.{1,41}' (is not valid here|conflicts with what is above it)|unexpected end of (line|text))"
    r" at line [0-9]+ column [0-9]+"
)


def refusal(text: str) -> str:
    with pytest.raises(ValueError, match=r"\A.") as error:
        parse_toml(text)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1\n b", "'b' is not valid here at line 2 column 3"),
        ("a = 1\r\nb =\r\n", "'b =' is not valid here at line 2 column 4"),
        ("a = \x07", "'a =' is not valid here at line 1 column 5"),
        ("[a\n", "'[a' is not valid here at line 1 column 3"),
        ("a = [\n", "unexpected end of text at line 2 column 1"),
        ("a = 1\n[b]\na = 1\na = 2\n", "'a = 2' conflicts with what is above it at line 4 column 6"),
        ("a = " + "x" * 99, f"'a = {'x' * 36}…' is not valid here at line 1 column 5"),
        ("a = " + "1" * 99_999, "integer out of range"),
        ("a = 0x" + "f" * 99_999, "integer out of range"),
        ("a = 0x" + "f" * 16, "integer out of range: 18446744073709551615"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(text: str, problem: str) -> None:
    assert refusal(text) == problem


def test_nesting_is_limited_as_in_json() -> None:
    assert parse_toml("a = " + "[" * 127 + "]" * 127)
    assert parse_toml(".".join("a" * 128) + " = 1")
    for text in ("a = " + "[" * 128 + "]" * 128, ".".join("a" * 129) + " = 1"):
        with pytest.raises(ValueError, match="recursion"):
            parse_toml(text)


WORDS = "a b . \" ' \\ = [ ] { } , # 1 [a.b] [[a]] a.b true 2026-02-29 12:30:00 é \x07"
PIECES = st.sampled_from([*WORDS.split(" "), " ", "\n", "\r\n", "a = 1\n", "\n[a]\n", "b.a = {}\n"])


@given(st.lists(PIECES, max_size=30).map("".join))
def test_the_same_is_read_as_by_tomllib(text: str) -> None:
    try:
        expected = tomllib.loads(text)
    except ValueError:
        assert OUR_WORDS.fullmatch(refusal(text))
    else:
        assert repr(parse_toml(text)) == repr(expected)


KEYS = st.text(max_size=4) | st.sampled_from(["a", "a.b", '"', "a b"])
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=15,
)


@settings(max_examples=COUNT.examples(12), deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_what_is_written_reads_back(table: dict[str, Any]) -> None:
    text = to_toml(table, list_items)
    assert tomllib.loads(text) == table
    assert repr(_sorted(tomllib.loads(text))) == repr(_sorted(table))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
