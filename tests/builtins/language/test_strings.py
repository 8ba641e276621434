"""Strings, case conversions, Unicode and path pieces. Spec: 04 §4.2, §18."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy import Vm
from harnpy.builtins.language import regexes, strings
from harnpy.builtins.language import strings as case


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("trim", ("\u2003 a \n",), "a"),
        ("trim", ("\x1ca",), "\x1ca"),
        ("trim", (), ""),
        ("trim", (None,), "nil"),
        ("lowercase", ("ÀB",), "àb"),
        ("uppercase", ("ß",), "SS"),
        ("split", ("a b",), ["a", "b"]),
        ("split", (" a  b",), ["", "a", "", "b"]),
        ("split", ("a,b", ","), ["a", "b"]),
        ("split", ("ab", ""), ["", "a", "b", ""]),
        ("split", ("", ""), ["", ""]),
        ("split", ("", ","), [""]),
        ("split", (123, 2), ["1", "3"]),
        ("join", ([1, "a", None],), "1anil"),
        ("join", ([1, [2]], ", "), "1, [2]"),
        ("join", ([],), ""),
        ("join", ("ab", "-"), ""),
        ("join", (), ""),
        ("replace", ("aXbX", "X", "-"), "a-b-"),
        ("replace", ("ab", "", "."), ".a.b."),
        ("replace", ("ab", "a"), "b"),
        ("contains", ("héllo", "él"), True),
        ("contains", ("a5", 5), True),
        ("contains", ("a", ""), True),
        ("contains", ([1, [2]], [2.0]), True),
        ("contains", ([1], True), False),
        ("contains", ({"a": 1}, "a"), False),
        ("contains", (None, None), False),
        ("starts_with", ("abc", "ab"), True),
        ("starts_with", ("abc", ""), True),
        ("ends_with", ("abc", "bc"), True),
        ("ends_with", ("abc", "x"), False),
        ("substring", ("héllo", 1, 3), "éll"),
        ("substring", ("abc", 1), "bc"),
        ("substring", ("abc",), "abc"),
        ("substring", ("abc", -5, 2), "ab"),
        ("substring", ("abc", 1, -1), ""),
        ("substring", ("abc", 9, 2), ""),
        ("substring", ("abc", 1, 2**62), "bc"),
        ("substring", ("abc", 1.0, 1.0), "abc"),
        ("substring", (12345, 1, 2), "23"),
    ],
)
def test_strings(vm: Any, name: str, args: tuple[Any, ...], expected: Any) -> None:
    assert vm.run(name, *args) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("{}-{}", 1, "b"), "1-b"),
        (("{}-{}", 1), "1-{}"),
        (("{}", 1, 2), "1"),
        (("{} {}",), "{} {}"),
        (("a",), "a"),
        ((), ""),
        (("{x}/{y}", {"x": 1}), "1/{y}"),
        (("{x}{x}", {"x": "{x}"}), "{x}{x}"),
        (("{ {x}", {"x": 1}), "{ {x}"),
        (("{x} {", {"x": 1}), "1 {"),
        (("{}", {"": "e"}), "e"),
        (("{}", {}), "{}"),
        (("{}", {}, 5), "{}"),
        (("a{b", {"b": 1}), "a{b"),
        (("{0}", 1), "{0}"),
        (("{}", "{}"), "{}"),
    ],
)
def test_format(vm: Any, args: tuple[Any, ...], expected: str) -> None:
    assert vm.run("format", *args) == expected


@given(st.text(), st.text(max_size=3))
def test_join_undoes_split(s: str, sep: str) -> None:
    vm = Vm()
    assert strings.join(vm, strings.split(vm, s, sep), sep) == s


@pytest.mark.parametrize(
    ("name", "s", "expected"),
    [
        ("snake_to_camel", "user_first_name", "userFirstName"),
        ("snake_to_camel", "__a__B_", "aB"),
        ("snake_to_camel", "USER_NAME", "userName"),
        ("snake_to_camel", "", ""),
        ("snake_to_pascal", "user_name", "UserName"),
        ("snake_to_kebab", "user_name", "user-name"),
        ("kebab_to_camel", "user-name", "userName"),
        ("kebab_to_snake", "User--Name", "user_name"),
        ("camel_to_snake", "userName", "user_name"),
        ("camel_to_snake", "HTTPServer", "http_server"),
        ("camel_to_snake", "getHTTP2Response", "get_http2_response"),
        ("camel_to_snake", "already_snake", "already_snake"),
        ("camel_to_snake", "A", "a"),
        ("camel_to_snake", "", ""),
        ("camel_to_snake", "étéÉtat", "été_état"),
        ("camel_to_kebab", "userName", "user-name"),
        ("camel_to_pascal", "userName", "UserName"),
        ("pascal_to_snake", "XMLParser", "xml_parser"),
        ("pascal_to_camel", "UserName", "userName"),
        ("uppercase_first", "ßa", "SSa"),
        ("uppercase_first", "", ""),
        ("lowercase_first", "ABC", "aBC"),
        ("title_case", "hELLO  wORLD\tx", "Hello  World\tX"),
        ("title_case", "", ""),
        ("title_case", "o'neil-smith", "O'neil-smith"),
    ],
)
def test_case_conversions(vm: Any, name: str, s: str, expected: str) -> None:
    assert vm.run(name, s) == expected


WORDS = st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=6), max_size=5)


@given(WORDS)
def test_case_conversions_round_trip(words: list[str]) -> None:
    snake = "_".join(words)
    camel = case.snake_to_camel(None, snake)  # type: ignore[arg-type]
    # One-letter words make acronyms, where the way back is ambiguous.
    if all(len(word) > 1 for word in words):
        assert case.camel_to_snake(None, camel) == snake  # type: ignore[arg-type]
    kebab = case.snake_to_kebab(None, snake)  # type: ignore[arg-type]
    assert case.kebab_to_snake(None, kebab) == snake  # type: ignore[arg-type]
    assert case.kebab_to_camel(None, kebab) == camel  # type: ignore[arg-type]
    pascal = case.camel_to_pascal(None, camel)  # type: ignore[arg-type]
    assert pascal == case.snake_to_pascal(None, snake)  # type: ignore[arg-type]
    assert case.pascal_to_camel(None, pascal) == camel  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("ab", 5), "ab   "),
        (("ab", 5, "-", "left"), "---ab"),
        (("ab", 5, "-", "both"), "-ab--"),
        (("ab", 5, "xy"), "abxxx"),
        (("ab", 4, ""), "ab  "),
        (("ab", 2, "-", "nowhere"), "ab"),
        (("ab", -1), "ab"),
        (("ab",), "ab"),
        (("e\u0301", 2, "."), "e\u0301."),
        (("👨‍👩‍👧", 2, "🇩🇪x"), "👨‍👩‍👧🇩🇪"),
        ((5, 3), "5  "),
    ],
)
def test_str_pad(vm: Any, args: tuple[Any, ...], expected: str) -> None:
    assert vm.run("str_pad", *args) == expected


def test_str_pad_side(vm: Any) -> None:
    text = "Runtime error: str_pad: side must be left, right, or both"
    assert vm.failure("str_pad", "a", 3, "-", "top") == text


def test_unicode(vm: Any) -> None:
    assert vm.run("unicode_normalize", "e\u0301") == "é"
    assert vm.run("unicode_normalize", "ﬁ", "nfkd") == "fi"
    text = "Runtime error: unicode_normalize: form must be NFC, NFD, NFKC, or NFKD"
    assert vm.failure("unicode_normalize", "a", "NFX") == text
    assert vm.run("unicode_graphemes", "e\u0301🇩🇪🇫🇷👍🏽") == ["e\u0301", "🇩🇪", "🇫🇷", "👍🏽"]
    assert vm.run("unicode_graphemes", "") == []


@given(st.text())
def test_graphemes_make_up_the_string(s: str) -> None:
    assert "".join(regexes.unicode_graphemes(None, s)) == s  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "directory", "name", "extension"),
    [
        ("a/b/c.rs", "a/b", "c.rs", ".rs"),
        ("/a/b", "/a", "b", ""),
        ("/a", "/", "a", ""),
        ("a", "", "a", ""),
        ("/", "", "", ""),
        ("", "", "", ""),
        ("a/b/", "a", "b", ""),
        ("a//b", "a", "b", ""),
        ("./a/b.txt", "./a", "b.txt", ".txt"),
        ("a/.", "", "a", ""),
        ("a/..", "a", "", ""),
        ("archive.tar.gz", "", "archive.tar.gz", ".gz"),
        (".x", "", ".x", ""),
        (".x.y", "", ".x.y", ".y"),
        ("d.ir/f", "d.ir", "f", ""),
    ],
)
def test_path_pieces(vm: Any, path: str, directory: str, name: str, extension: str) -> None:
    assert vm.run("dirname", path) == directory
    assert vm.run("basename", path) == name
    assert vm.run("extname", path) == extension
