"""A text cut into pieces for colours: tokens, comments, the parts of strings, and what is none of them.

The tokens are the lexer's and their reading is the layout's, so that colours agree with what a program means.
Any text has pieces: where the lexer refuses to go on, a piece says so and the next one begins behind it. Put
together, they are the text. Spec: 01 §1, §2, §4.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from harnpy.syntax.layout import MEMBER_WORDS, OPEN_BRACES, arrange, is_identifier
from harnpy.syntax.lexer import (
    RESERVED,
    TEXT,
    LexError,
    Tokens,
    closing_brace,
    comment_end,
    read,
    shebang_end,
)

Kind = Literal[
    "blank",
    "shebang",
    "comment",
    "doc",
    "word",  # reserved, or contextual where it means something
    "constant",  # true, false, nil
    "name",
    "function",  # a name behind `fn`, `pipeline`, `tool`, `skill`
    "type",  # a name behind `struct`, `enum`, `interface`, `type`, `impl`
    "attribute",  # a name behind `@`, and the mark
    "member",  # a name behind a dot, or a reserved word that is a key
    "int",
    "float",
    "duration",
    "string",
    "escape",
    "interpolation",  # `${` and its `}`
    "raw",
    "open string",  # the text of a string that doesn't end where it must
    "bracket",
    "operator",
    "error",
    "code",  # what stands in an interpolation; never a piece
]


class Piece(NamedTuple):
    """``source[start:end]`` and what it is."""

    kind: Kind
    start: int
    end: int


_BLANK = re.compile(r"(?:[ \t\r\n]|\\\n)+")
_LINE_COMMENT = re.compile(r"//[^\n]*")
_DOC = re.compile(r"///(?!/)|/\*\*(?![*/])")
_ESCAPE = re.compile(r"\\[\s\S]")
_KNOWN_ESCAPES = frozenset([r"\n", r"\t", r"\\", r"\"", r"\$"])
#: Where the text of an open string is interrupted, or ends after all.
_STOP = re.compile(rf'{TEXT}("|\$\{{)')
_TRIPLE_STOP = re.compile(r'[\s\S]*?("""|\$\{)')

_CONSTANTS = frozenset(["true", "false", "nil"])
_LITERALS: dict[str, Kind] = {"INT": "int", "FLOAT": "float", "DURATION": "duration", "RAW_STRING": "raw"}
#: What a name is, by the token before it.
_NAMES: dict[str, Kind] = {
    **dict.fromkeys(["fn", "pipeline", "override", "tool", "skill"], "function"),
    **dict.fromkeys(["struct", "enum", "interface", "type", "impl"], "type"),
    **dict.fromkeys([".", "?."], "member"),
    "@": "attribute",
}


def pieces(source: str) -> list[Piece]:
    """Return the pieces of ``source``, in order and without gaps."""
    found: list[Piece] = []
    begin = shebang_end(source)
    # The code of interpolations waits here for its turn, so that nesting costs no stack.
    waiting = [Piece("code", begin, len(source)), Piece("shebang", 0, begin)]
    while waiting:
        piece = waiting.pop()
        if piece.kind == "code":
            waiting += reversed(_code(source, piece.start, piece.end))
        elif piece.start < piece.end:
            found.append(piece)
    return found


def _code(source: str, start: int, end: int) -> list[Piece]:
    """The pieces of ``source[start:end]``, the code of its interpolations not yet cut."""
    tokens, refused = _tokens(source, start, end)
    meanings = _meanings(tokens)
    found: list[Piece] = []
    at, before = start, ""
    for i, kind in enumerate(tokens.kinds[:-1]):
        begin, stop = tokens.starts[i], tokens.ends[i]
        meaning = meanings.get(begin, "")
        if kind != "NL":
            found += _gap(source, at, begin)
            if i in refused:
                found += refused[i]
            elif kind == "STRING" or kind == "INTERP":
                found += _string(source, begin, stop, _codes(tokens.values[i]), "string")
            else:
                found.append(Piece(_kind(tokens.kinds, i, meaning or kind, before), begin, stop))
            at = stop
        before = meaning or before
    return found + _gap(source, at, end)


def _tokens(source: str, start: int, end: int) -> tuple[Tokens, dict[int, list[Piece]]]:
    """The tokens of a text, and the pieces of those that the lexer refuses, by their number.

    To the layout, what is refused is a string: an operand.
    """
    tokens = Tokens(source)
    refused: dict[int, list[Piece]] = {}
    while True:
        try:
            read(tokens, start, end)
        except LexError:
            start = max([start, *tokens.ends[-1:]])
            start = max([start, *(piece.end for piece in _gap(source, start, end)[-1:])])
            if start < end:
                found = refused[len(tokens.kinds)] = _refused(source, start, end)
                stop = max(start, found[-1].end)
                tokens.add("STRING", "", start, stop)
                start = stop
                continue
        tokens.add("$END", "", end, end)
        return tokens, refused


def _refused(source: str, start: int, end: int) -> list[Piece]:
    """The pieces of what begins no token at ``start``: an open string, or one character."""
    quote = start + source.startswith('r"', start, end)
    if not source.startswith('"', quote, end):
        return [Piece("error", start, start + 1)]
    line_end = source.find("\n", quote, end)
    line_end = line_end if line_end >= 0 else end
    if quote > start:
        return [Piece("open string", start, line_end)]
    triple = source.startswith('"""', quote, end)
    stop, pattern = (end, _TRIPLE_STOP) if triple else (line_end, _STOP)
    codes: list[tuple[int, int]] = []
    at = quote + (3 if triple else 1)
    while (interrupted := pattern.match(source, at, stop)) is not None:
        at = interrupted.end()
        if interrupted[1] != "${":
            return _string(source, start, at, codes, "string")
        try:
            close = closing_brace(source, at, stop, quote)
        except LexError:
            # Half written: the rest of the line is its code.
            close = source.find("\n", at, stop)
            close = close if close >= 0 else stop
        codes.append((at, close))
        at = close + source.startswith("}", close, stop)
    return _string(source, start, stop, codes, "open string")


def _meanings(tokens: Tokens) -> dict[int, str]:
    """What the layout makes of the tokens that it keeps, by their offset; as far as it comes."""
    arranged = tokens.copy()
    try:
        arrange(arranged)
    except LexError:
        arranged.drop_empty()
    return dict(zip(arranged.starts, arranged.kinds, strict=True))


def _kind(kinds: list[str], i: int, meaning: str, before: str) -> Kind:
    """The kind of the piece that token ``i`` is, and that means ``meaning`` behind a token ``before``."""
    kind = kinds[i]
    if kind in _LITERALS:
        return _LITERALS[kind]
    if is_identifier(meaning):
        return _NAMES.get(before, "name")
    if kind in RESERVED or kind[0] == "~":
        begins_entry = before in OPEN_BRACES or before in (",", "NL")
        if begins_entry and kinds[i + 1] == ":" and kind in MEMBER_WORDS:
            return "member"
        return "constant" if kind in _CONSTANTS else "word"
    if kind in "()[]{}":
        return "bracket"
    return "attribute" if kind == "@" else "operator"


def _gap(source: str, start: int, end: int) -> list[Piece]:
    """The blanks and comments from ``start`` on, up to ``end`` or something else."""
    found: list[Piece] = []
    while start < end:
        if blank := _BLANK.match(source, start, end):
            kind: Kind = "blank"
            stop = blank.end()
        elif source.startswith(("//", "/*"), start, end):
            kind = "doc" if _DOC.match(source, start, end) else "comment"
            stop = _comment_end(source, start, end)
        else:
            break
        found.append(Piece(kind, start, stop))
        start = stop
    return found


def _comment_end(source: str, start: int, end: int) -> int:
    if comment := _LINE_COMMENT.match(source, start, end):
        return comment.end()
    try:
        return comment_end(source, start, end)
    except LexError:
        return end


def _codes(value: object) -> list[tuple[int, int]]:
    """Where the code of a string's interpolations stands, by the token's value."""
    return [part for part in value if isinstance(part, tuple)] if isinstance(value, list) else []


def _string(source: str, start: int, end: int, codes: list[tuple[int, int]], kind: Kind) -> list[Piece]:
    """The pieces of a string whose interpolations have their code at ``codes``."""
    found: list[Piece] = []
    plain = source.startswith('"""', start, end)
    at = start
    for begin, close in codes:
        found += _text(source, at, begin - 2, kind, plain)
        at = close + source.startswith("}", close, end)
        found += Piece("interpolation", begin - 2, begin), Piece("code", begin, close)
        found.append(Piece("interpolation", close, at))
    return found + _text(source, at, end, kind, plain)


def _text(source: str, start: int, end: int, kind: Kind, plain: bool) -> list[Piece]:
    """Text of a string, its escapes apart unless it is ``plain``."""
    found: list[Piece] = []
    at = start
    for escape in () if plain else _ESCAPE.finditer(source, start, end):
        if escape[0] in _KNOWN_ESCAPES:
            found += Piece(kind, at, escape.start()), Piece("escape", *escape.span())
            at = escape.end()
    found.append(Piece(kind, at, end))
    return found
