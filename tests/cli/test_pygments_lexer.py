"""Harn for Pygments: any text has tokens, and those of programs are our own lexer's."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pygments import token
from pygments.lexers import find_lexer_class_by_name, get_lexer_by_name, get_lexer_for_filename
from rich.console import Console
from rich.syntax import Syntax

from harnpy.builtins import catalog
from harnpy.cli.pygments_lexer import TOKENS, HarnLexer
from harnpy.syntax.lexer import CONTEXTUAL, RESERVED, LexError
from harnpy.syntax.pieces import Kind
from tests.counts import COUNT
from tests.highlighting import Colour, disagreements
from tests.support import assert_linear, calls_made
from tests.syntax.programs import programs

#: Ours for the words of Pygments; a kind below one of these is of its colour.
COLOURS: dict[Any, Colour] = {
    token.Keyword: "word",
    token.Name: "name",
    token.Number: "number",
    token.String: "string",
    token.String.Doc: "comment",
    token.Comment: "comment",
    token.Operator: "mark",
    token.Punctuation: "mark",
    token.Error: "plain",
    token.Whitespace: "plain",
}


def colour(kind: Any) -> Colour:
    return next(COLOURS[each] for each in reversed(kind.split()) if each in COLOURS)


def tokens(text: str) -> list[tuple[int, Any, str]]:
    return list(HarnLexer().get_tokens_unprocessed(text))


def cut(text: str) -> list[tuple[str, str]]:
    """The tokens that aren't blank, with the last word of their kind."""
    return [(kind[-1], piece) for _, kind, piece in tokens(text) if kind not in token.Whitespace]


def assert_whole(text: str) -> None:
    """The tokens are the text, each where it says it is."""
    at = 0
    for start, _, piece in tokens(text):
        assert (start, text[start : start + len(piece)]) == (at, piece)
        assert piece
        at += len(piece)
    assert at == len(text)


def test_the_tokens_of_programs_are_the_lexers() -> None:
    sample = programs()[:: COUNT.coloured_share]
    without_tokens = 0
    for source in sample:
        assert_whole(source)
        spans = [(start, start + len(piece), colour(kind)) for start, kind, piece in tokens(source)]
        try:
            assert disagreements(source, spans) == []
        except LexError:
            without_tokens += 1
    assert without_tokens < len(sample) / 20


def test_a_wrong_colour_is_a_disagreement() -> None:
    source = "#!x\nlet a = 1 // to\n"
    spans: list[Any] = [(0, 3, "comment"), (4, 7, "name"), (8, 9, "name"), (10, 11, "mark"), (12, 13, "mark")]
    assert disagreements(source, spans) == [
        "line 2: 'let' is name, not word",
        "line 2: '1' is mark, not number",
        "line 2: '// to' is plain, not comment",
    ]


_BITS = st.sampled_from(
    [*'" """ ${ { } ( ) // /* */ \\ r" # #! 1 m ² é'.split(), " ", "\n", *sorted(RESERVED | CONTEXTUAL)]
)


@settings(max_examples=COUNT.examples(200))
@given(st.lists(_BITS | st.text(max_size=4), max_size=30).map("".join))
def test_any_text_has_tokens(text: str) -> None:
    assert_whole(text)


@pytest.mark.parametrize("source", programs()[:: COUNT.coloured_share * 29])
def test_half_a_program_has_tokens(source: str) -> None:
    for end in range(0, len(source), max(1, len(source) // 40)):
        assert_whole(source[:end])


@pytest.mark.parametrize("unit", ['"${', '"""${', "#", "/*", '"${ {', 'r"\n', "{(", '"${1}', '"\\"\n'])
def test_the_work_grows_with_the_length(unit: str) -> None:
    assert_linear(lambda n: calls_made(lambda: tokens(unit * n)), 100)


def test_what_pygments_calls_the_parts_of_a_program() -> None:
    program = '@test\nfn f(a) { /* c */ return "x\\n${a.type}" + r"\\" * 5ms } // end'
    assert cut(program) == [
        ("Decorator", "@"),
        ("Decorator", "test"),
        ("Keyword", "fn"),
        ("Function", "f"),
        ("Punctuation", "("),
        ("Name", "a"),
        ("Punctuation", ")"),
        ("Punctuation", "{"),
        ("Comment", "/* c */"),
        ("Keyword", "return"),
        ("String", '"x'),
        ("Escape", "\\n"),
        ("Interpol", "${"),
        ("Name", "a"),
        ("Operator", "."),
        ("Name", "type"),
        ("Interpol", "}"),
        ("String", '"'),
        ("Operator", "+"),
        ("String", 'r"\\"'),
        ("Operator", "*"),
        ("Number", "5ms"),
        ("Punctuation", "}"),
        ("Comment", "// end"),
    ]


def test_words_are_words_where_they_mean_something() -> None:
    assert cut("let each = {type: nil, gen: true}") == [
        ("Keyword", "let"),
        ("Name", "each"),
        ("Operator", "="),
        ("Punctuation", "{"),
        ("Name", "type"),
        ("Operator", ":"),
        ("Constant", "nil"),
        ("Operator", ","),
        ("Name", "gen"),
        ("Operator", ":"),
        ("Constant", "true"),
        ("Punctuation", "}"),
    ]
    assert cut("parallel each xs { x -> println(x) }")[:2] == [("Keyword", "parallel"), ("Keyword", "each")]


def test_builtins_are_known_unless_they_are_members() -> None:
    assert "println" in catalog.names()
    assert cut("println(x.println)")[0] == ("Builtin", "println")
    assert cut("println(x.println)")[4] == ("Name", "println")


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ('print("hello ${na', [("String", '"hello '), ("Interpol", "${"), ("Name", "na")]),
        ('let a = "x\nlet', [("Operator", "="), ("String", '"x'), ("Keyword", "let")]),
        ("a /* b", [("Comment", "/* b")]),
        (
            '"""a ${b}\n',
            [("String", '"""a '), ("Interpol", "${"), ("Name", "b"), ("Interpol", "}"), ("String", "\n")],
        ),
        ('"""a ${b', [("Interpol", "${"), ("Name", "b")]),
        ("1 # 2", [("Integer", "1"), ("Error", "#"), ("Integer", "2")]),
        ('"${}" + 1', [("Interpol", "}"), ("String", '"'), ("Operator", "+"), ("Integer", "1")]),
    ],
)
def test_what_is_half_written(text: str, last: list[tuple[str, str]]) -> None:
    assert cut(text)[-len(last) :] == last


def test_every_kind_of_piece_has_its_token() -> None:
    assert set(TOKENS) == set(Kind.__args__) - {"code"}  # type: ignore[attr-defined]


def test_pygments_finds_it() -> None:
    assert find_lexer_class_by_name("harn").__name__ == HarnLexer.__name__
    assert type(get_lexer_for_filename("tour.harn")).__name__ == HarnLexer.__name__
    assert get_lexer_by_name("harn").mimetypes == ["text/x-harn"]


def test_pygmentize(tmp_path: Any) -> None:
    (tmp_path / "x.harn").write_text("let a = 1\n", encoding="utf-8")
    command = [sys.executable, "-m", "pygments", "-l", "harn", "-f", "raw", "x.harn"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("Token.Keyword\t'let'\n")


def test_rich_colours_it() -> None:
    console = Console(file=StringIO(), force_terminal=True, color_system="truecolor", width=40)
    console.print(Syntax("let a = nil", "harn", theme="monokai"))
    assert console.file.getvalue().count("\x1b[") > 4  # type: ignore[attr-defined]
