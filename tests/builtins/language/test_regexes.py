"""Regular expressions: results, and the dialect where usual engines differ. Spec: 04 §13."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.regex import PatternError, compiled


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a*", "aab", ["aa", ""]),
        ("", "ab", ["", "", ""]),
        ("|b", "b", ["", ""]),
        ("x", "abc", None),
        ("$", "a\n", [""]),
        ("a$", "a\n", None),
        (r"a\z", "a\n", None),
        ("(?m)^.$", "a\nb\r\nc", ["a", "c"]),
        ("a++", "aaa", ["aaa"]),
        ("a+?+", "aaa", ["aaa"]),
        ("a{2}{2}", "aaaaa", ["aaaa"]),
        ("[[:alpha:]]+", "héllo", ["h", "llo"]),
        ("[[:^digit:]]", "1a", ["a"]),
        (r"\p{L}+", "héllo1", ["héllo"]),
        (r"\pL\PL", "a1", ["a1"]),
        (r"\p{Greek}+", "abγδ", ["γδ"]),
        ("[a-z&&[^aeiou]]+", "hello", ["h", "ll"]),
        (r"[\w--\d]+", "a1b", ["a", "b"]),
        ("[a-c~~b-d]", "abcd", ["a", "d"]),
        ("[a||b]+", "a|b", ["a|b"]),
        ("[]a]+", "]a", ["]a"]),
        ("[a-]+", "a-b", ["a-"]),
        (r"[\b]", "\b", ["\b"]),
        ("(?i)ß", "ss ẞ", ["ẞ"]),
        ("a(?i)b", "aB AB", ["aB"]),
        ("(?i:a)b", "Ab AB", ["Ab"]),
        ("a(?i)b|c", "C", ["C"]),
        ("(?s-m:a.b)", "a\nb", ["a\nb"]),
        (".", "\n", None),
        ("(?x) a b # c", "ab", ["ab"]),
        ("(?x)[a b]+", "a b", ["a", "b"]),
        ("a|ab", "ab", ["a"]),
        (r"\"\-\/\#", '"-/#', ['"-/#']),
        (r"\x{1F600}\u0041\x42", "😀AB", ["😀AB"]),
        (r"\w+", "naïve٣", ["naïve٣"]),
        (r"\bé", "aé é", ["é"]),
        ("a{,2}", "aaa", ["aa", "a"]),
        ("}]", "}]", ["}]"]),
    ],
)
def test_dialect(vm: Any, pattern: str, text: str, matches: list[str] | None) -> None:
    assert vm.run("regex_match", pattern, text) == matches


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?#c)", "(?|a)", "(?P=n)", "(?i", "(?y)a"),
        *(r"(a)\1", r"(?P<n>a)\k<n>", "(?P<n>a)(?P<n>b)", "(?P<1>a)", "(a", "a)", "(" * 101 + ")" * 101),
        *("[a", "[]", "[z-a]", "[[:nope:]]", "*a", "a|*", "{", "a{", "a{x}", "a{e<=1}", "a{2,1}"),
        *(r"\Q", r"\Z", r"\X", "\\", r"\x{110000}", r"\x4", r"\p{Nope}", r"\p{"),
    ],
)
def test_refused_patterns(vm: Any, pattern: str) -> None:
    text = vm.failure("regex_match", pattern, "a")
    assert text.startswith("Invalid regex: ")
    assert "\n" not in text


@given(st.text("ab(|)[]{}*+?^$\\.dwpL:=!<>-&im,1", max_size=12), st.text("ab1-\n", max_size=6))
def test_any_pattern_compiles_or_is_refused(pattern: str, text: str) -> None:
    with suppress(PatternError):
        compiled(pattern).search(text)


def test_flags(vm: Any) -> None:
    assert vm.run("regex_match", "A", "a", "i") == ["a"]
    assert vm.run("regex_match", "^b", "a\nb", "m") == ["b"]
    assert vm.run("regex_match", "a.b", "a\nb", "s") == ["a\nb"]
    assert vm.run("regex_match", "a b", "ab", "ix") == ["ab"]
    assert vm.run("regex_match", "a", "a", None) == ["a"]
    text = "Invalid regex: unsupported regex flag 'g', expected one of i/m/s/x"
    assert vm.failure("regex_match", "(", "a", "ig") == text


def test_captures(vm: Any) -> None:
    assert vm.run("regex_captures", r"(?P<k>\w)=(\d)?", "a=1 b=") == [
        {"match": "a=1", "groups": ["a", "1"], "k": "a"},
        {"match": "b=", "groups": ["b", None], "k": "b"},
    ]
    assert vm.run("regex_captures", "(?<n>a)|b", "b") == [{"match": "b", "groups": [None]}]
    assert vm.run("regex_captures", "x", "a") == []
    assert vm.run("regex_captures", "x") == []


@pytest.mark.parametrize(
    ("replacement", "result"),
    [
        ("-", "- -"),
        ("$0$0", "k1k1 k2k2"),
        ("$2$1", "1k 2k"),
        ("${2}a", "1a 2a"),
        ("$2a", " "),
        ("$n!", "k! k!"),
        ("${n}s", "ks ks"),
        ("$$1", "$1 $1"),
        ("$9$no", " "),
        ("a$", "a$ a$"),
        ("$-", "$- $-"),
        ("${n", "${n ${n"),
        ("${}", "${} ${}"),
        ("\\1", "\\1 \\1"),
    ],
)
def test_replacement(vm: Any, replacement: str, result: str) -> None:
    for name in ("regex_replace", "regex_replace_all"):
        assert vm.run(name, r"(?P<n>\w)(\d)", replacement, "k1 k2") == result


def test_replacement_of_empty_matches(vm: Any) -> None:
    assert vm.run("regex_replace", "a*", "-", "baac") == "-b-c-"


def test_split(vm: Any) -> None:
    assert vm.run("regex_split", "a1b22c", r"\d") == ["a", "b", "", "c"]
    assert vm.run("regex_split", "a1b", r"(\d)") == ["a", "b"]
    assert vm.run("regex_split", "aXb", "x", "i") == ["a", "b"]
    assert vm.run("regex_split", "ab", "") == ["", "a", "b", ""]
    assert vm.run("regex_split", "", "x") == [""]


def test_missing_arguments(vm: Any) -> None:
    assert vm.run("regex_match", "a") is None
    assert vm.run("regex_match") is None
    assert vm.run("regex_replace", "a", "b") is None
    assert vm.run("regex_split", "a") is None


def test_many_patterns_are_not_all_kept(vm: Any) -> None:
    from harnpy.builtins.language.regexes import Patterns

    for i in range(600):
        vm.run("regex_match", f"a{i}", "a")
    assert len(vm.state(Patterns).known) <= 256
