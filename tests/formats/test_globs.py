"""The two dialects of patterns; patterns of paths against a matcher that tries everything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.globs import PatternError, affix_matches, common, first_match, glob_matches, path_matcher


@pytest.mark.parametrize(
    ("pattern", "text", "everywhere", "at_an_end"),
    [
        ("abc", "abc", True, True),
        ("*", "", True, True),
        ("ab*", "abc", True, True),
        ("*bc", "abc", True, True),
        ("a*c", "abc", True, False),
        ("*b*", "abc", True, False),
        ("ab*bc", "abc", False, False),
    ],
)
def test_stars(pattern: str, text: str, everywhere: bool, at_an_end: bool) -> None:
    assert glob_matches(pattern, text) is everywhere
    assert affix_matches(pattern, text) is at_an_end


def test_first_match_and_what_two_lists_have_in_common() -> None:
    assert first_match(["write", "read*"], "read_file") == "read*"
    assert first_match([], "read_file") is None
    assert common(["read*"], ["read_file", "write"]) == ("read_file",)
    assert common(["read_file"], ["*"]) == ("read_file",)


PATTERNS = st.lists(
    st.sampled_from(["a", "b", "/", "*", "?", "**/", "[ab]", "[!a]", "{a,b/}", "{,*}", "\\*"]), max_size=6
).map("".join)
PATHS = st.text("ab/*", max_size=6)


def matches(pattern: str, path: str) -> bool:
    if "{" not in pattern:
        return plain_matches(pattern, path)
    before, _, rest = pattern.partition("{")
    choices, _, after = rest.partition("}")
    return any(matches(before + choice + after, path) for choice in choices.split(","))


def plain_matches(pattern: str, path: str, at_name: bool = True) -> bool:
    if not pattern:
        return not path
    if pattern.startswith("**/") and at_name:
        ends = [i for i, char in enumerate(path) if char == "/"]
        return any(plain_matches(pattern[3:], path[start:]) for start in [0, *(end + 1 for end in ends)])
    if pattern.startswith("*"):
        return any(plain_matches(pattern[1:], path[i:], at_name=False) for i in range(len(path) + 1))
    if not path:
        return False
    head, rest = path[0], path[1:]
    if pattern.startswith("["):
        end = pattern.index("]")
        chosen = head not in pattern[2:end] if pattern[1] == "!" else head in pattern[1:end]
        return chosen and plain_matches(pattern[end + 1 :], rest, at_name=False)
    if pattern.startswith("\\"):
        return pattern[1] == head and plain_matches(pattern[2:], rest, at_name=False)
    return pattern[0] in ("?", head) and plain_matches(pattern[1:], rest, at_name=pattern[0] == "/")


@given(PATTERNS, PATHS)
def test_what_matches(pattern: str, path: str) -> None:
    assert path_matcher(pattern)(path) == matches(pattern, path)


@pytest.mark.parametrize("pattern", ["{a", "[a", "a\\", "{a,{b}", "{a,b}" * 11, "{" * 500, "a/**/" * 11])
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(PatternError):
        path_matcher(pattern)


def test_no_pattern_takes_long() -> None:
    assert not path_matcher("*a" * 200 + "b")("a" * 5000)
