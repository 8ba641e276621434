"""Where the comments are, and which text only looks like one. Spec: 01 §1.1."""

from __future__ import annotations

import pytest

from harnpy.syntax.comments import comments_of
from harnpy.syntax.lexer import LexError


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("", []),
        ("a / b", []),
        ("// c", ["line // c"]),
        ("a // c\nb", ["line // c"]),
        ("/// c\n//// d\n", ["doc-line /// c", "line //// d"]),
        (
            "/* c */ a /** d */ /**/ /*** e */",
            ["block /* c */", "doc /** d */", "block /**/", "block /*** e */"],
        ),
        ("/* a /* b */ c\n// d */ e // f", ["block /* a /* b */ c\n// d */", "line // f"]),
        ('"// a" /* b */ r"/* c" """\n// d\n"""', ["block /* b */"]),
        ('"a ${f(/* b */ "// c ${d /* e */}")} // f" // g', ["block /* b */", "block /* e */", "line // g"]),
        ('"a ${# /* b */}" // c', ["line // c"]),
        ("a \\\n // b \\\n c", ["line // b \\"]),
        ("#!/usr//bin\n// a", ["line // a"]),
        ("#!//", []),
        ("f( // a\r\n)", ["line // a\r"]),
    ],
)
def test_kinds_and_places(source: str, found: list[str]) -> None:
    assert [f"{c.kind} {source[c.start : c.end]}" for c in comments_of(source)] == found


def test_a_comment_that_stays_open_is_told() -> None:
    with pytest.raises(LexError, match="Unterminated block comment"):
        comments_of("a /* b /* c */")
