"""YAML: what a person writes is read, what takes a machine's time is refused, what is written reads back."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats import yaml as reader
from harnpy.formats.nesting import list_items
from harnpy.formats.yaml import parse_yaml
from harnpy.formats.yaml_writer import to_yaml
from tests.counts import COUNT
from tests.support import assert_linear, ends, processor_time

LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))

EXAMPLES = COUNT.examples(12)

#: What YAML 1.1 and 1.2 take for other things, and what makes a text hard to write.
WORDS = "yes No on y ~ null 1 -1 1.5 .5 1e3 0x1F 0o7 017 1_0 12:30 2026-01-02 = << - ? : # ... --- .inf .NaN"
TEXTS = (
    st.sampled_from(["", *WORDS.split()])
    | st.text(st.sampled_from("ab é日:#-?,[]{}&*!|>'\"%@`\\\n\t \r\x85\u2028\ufeff"), max_size=12)
    | st.text(max_size=8)
)
FLOATS = st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(VALUES)
def test_what_is_written_reads_back(value: Any) -> None:
    text = to_yaml(value, list_items)
    assert text.endswith("\n")
    back = parse_yaml(text)
    assert back == value
    assert repr(back) == repr(_sorted(value))
    assert yaml.safe_load(text) == value  # YAML 1.1


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


WORDS_ONLY = st.text("ab é:#-{' \n", max_size=9)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.dictionaries(WORDS_ONLY, st.lists(FLOATS | WORDS_ONLY), max_size=4))
def test_what_pyyaml_writes_is_read(value: Any) -> None:
    for flow in (True, False):
        assert parse_yaml(yaml.safe_dump(value, default_flow_style=flow)) == value


#: With libyaml, where it is there, and without.
LOADERS = list(dict.fromkeys([yaml.SafeLoader, reader._LOADER]))


@settings(max_examples=EXAMPLES, deadline=None)
@given(value=VALUES)
def test_without_libyaml_the_same_is_read(value: Any) -> None:
    text = to_yaml(value, list_items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_LOADER", yaml.SafeLoader)
        assert parse_yaml(text) == value


def test_values() -> None:
    text = "short: a\nlist: [1, two]\nnested:\n  key: ~\n"
    assert parse_yaml(text) == {"short": "a", "list": [1, "two"], "nested": {"key": None}}
    assert parse_yaml("") is None
    assert math.isnan(parse_yaml(".nan"))


def test_an_alias_shares_the_value() -> None:
    found = parse_yaml(LAUGHS)["a59"]
    assert found[0] is found[1]


def refusal(text: str, **given: Any) -> str:
    with pytest.raises(ValueError, match=r"\A.") as error:
        parse_yaml(text, **given)
    return str(error.value)


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LAUGHS, "aliases are not supported at line 2 column 10"),
        ("a: &a [*a]", "aliases are not supported at line 1 column 8"),
        ("[" * 20_000, "recursion limit exceeded at line 1 column 129"),
        ("[" * 500 + "@", "recursion limit exceeded at line 1 column 129"),
        ("{a: " * 5_000, "recursion limit exceeded at line 1 column 513"),
        ("- " * 10_000, "recursion limit exceeded at line 1 column 257"),
        (
            "a: !!python/object:os.system x",
            "unsupported tag '!!python/object:os.system' at line 1 column 4",
        ),
        ("a: [", "the list is never closed at line 1 column 4"),
        ("a: &b [1, {x: y}\n", "the list is never closed at line 1 column 7"),
        ("[a: b", "the list is never closed at line 1 column 1"),
        ("\ufeff- {\n", "the dict is never closed at line 1 column 3"),
        ("é: ü\r\nb: '[", "the string is never closed at line 2 column 4"),
        ("a: *", "unexpected end of text at line 1 column 5"),
        ("a: &\nb", "unexpected end of line at line 1 column 5"),
        ("a:\n\t- b", "unexpected tab at line 2 column 1"),
        ("a:\u2028  b: c: d", "unexpected input near ': d' at line 2 column 7"),
        ("[a]]", "unexpected input near ']' at line 1 column 4"),
        ("@" + "x" * 99, f"unexpected input near '@{'x' * 39}' at line 1 column 1"),
        ("a: \ud800", "the character U+D800 is not allowed at line 1 column 4"),
        ("a: [\n\x07", "the character U+0007 is not allowed at line 2 column 1"),
    ],
)
def test_what_is_refused(text: str, problem: str, loader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_LOADER", loader)
    with ends(5):
        assert refusal(text, aliases=False) == problem


OUR_WORDS = re.compile(
    r"(unexpected (input near '.+'|tab|end of (line|text))|the (list|dict|string) is never closed"
    r"|the character U\+[0-9A-F]{4,6} is not allowed|recursion limit exceeded|more than one document"
    r"|a key must be a string, not .+|the key '.*' is there twice|unknown alias '.+'|unsupported tag '.+'"
    r"|'.*' is no value of the tag '.+'|integer out of range: .+)"
    r" at line [0-9]+ column [0-9]+",
    re.DOTALL,
)


@pytest.mark.parametrize("loader", LOADERS)
@given(text=st.text(st.sampled_from("ab: \n#-?,[]{}&*!|>'\"%@`\\\t09é\x07"), max_size=20))
def test_every_refusal_is_in_our_own_words(text: str, loader: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_LOADER", loader)
        try:
            parse_yaml(text)
        except ValueError as error:
            words = str(error)
        else:
            return
    assert OUR_WORDS.fullmatch(words)


@pytest.mark.parametrize("text", ["&a " * 300_000, "{" * 300_000, "? " * 300_000, "'" * 300_001])
def test_long_texts_are_refused_in_time(text: str) -> None:
    with ends(5):
        assert " at line 1 column " in refusal(text)


def test_long_scalars_are_read_in_time() -> None:
    with ends(5):
        assert parse_yaml("9" * 1_000_000) == math.inf
        assert parse_yaml("a" * 1_000_000) == "a" * 1_000_000


@pytest.mark.parametrize("line", ["k{}: v\n", "- {}\n", '- "{}"\n', "- [a, {}]\n", "- {{a: {}}}\n", "# {}\n"])
def test_time_is_linear(line: str) -> None:
    def time_of(size: int) -> float:
        text = "".join(line.format(i) for i in range(size))
        return processor_time(lambda: parse_yaml(text))

    assert_linear(time_of, 200)
