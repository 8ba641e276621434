"""The two dialects of patterns."""

from __future__ import annotations

import pytest

from harnpy.formats.globs import affix_matches, common, first_match, glob_matches


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
