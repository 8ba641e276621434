"""What a highlighter's colours must agree with: the tokens of our own lexer, as the layout reads them.

A highlighter is whatever cuts a text into coloured spans. Its test maps its own words to ours, `Colour`, and
asks `disagreements` for each program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Literal

from harnpy.syntax.comments import comments_of
from harnpy.syntax.layout import arrange
from harnpy.syntax.lexer import RESERVED, LexError, Tokens, lex, shebang_end

Colour = Literal["word", "name", "number", "string", "comment", "mark", "plain"]
Span = tuple[int, int, Colour]

_NUMBERS = frozenset(["INT", "FLOAT", "DURATION"])
_STRINGS = frozenset(["STRING", "RAW_STRING", "INTERP"])


def disagreements(source: str, spans: Iterable[Span]) -> list[str]:
    """Return where ``spans``, a highlighter's colours of ``source``, aren't what our lexer says.

    Raises `LexError` for a text that has no tokens, of which it has no opinion.
    """
    colours: list[Colour] = ["plain"] * len(source)
    for start, end, colour in spans:
        colours[start:end] = [colour] * (end - start)
    found = []
    for start, end, allowed in _expected(source):
        seen = sorted(set(colours[start:end]) - allowed)
        if seen:
            line = source.count("\n", 0, start) + 1
            wanted = " or ".join(sorted(allowed))
            found.append(f"line {line}: {source[start:end]!r} is {', '.join(seen)}, not {wanted}")
    return found


def _expected(source: str) -> Iterator[tuple[int, int, frozenset[Colour]]]:
    """The spans of tokens and comments, and the colours that each may have."""
    yield 0, shebang_end(source), frozenset(["comment"])
    yield from _of_code(source, 0, len(source))
    for comment in comments_of(source):
        yield comment.start, comment.end, frozenset(["comment"])


def _of_code(source: str, start: int, end: int) -> Iterator[tuple[int, int, frozenset[Colour]]]:
    tokens = lex(source, start, end)
    meanings = _meanings(tokens)
    for i, kind in enumerate(tokens.kinds[:-1]):
        begin, stop = tokens.starts[i], tokens.ends[i]
        if kind == "INTERP":
            yield from _of_string(source, begin, stop, tokens.values[i])
        elif kind != "NL":
            meaning = meanings.get(begin, kind)
            yield begin, stop, frozenset(_colours(kind, meaning, tokens.kinds[i + 1]))


def _colours(kind: str, meaning: str, after: str) -> list[Colour]:
    if kind in _NUMBERS:
        return ["number"]
    if kind in _STRINGS:
        return ["string"]
    if kind == "IDENT" or meaning == "IDENT":
        return ["name"]
    if kind in RESERVED:
        # A key, `match: 1` or `match?: int`; or `true` in a conditional.
        return ["word", "name"] if after in (":", "?") else ["word"]
    if kind == "@":
        return ["mark", "name"]  # of an attribute
    return ["word"] if kind[0] == "~" else ["mark"]


def _of_string(
    source: str, start: int, end: int, pieces: list[str | tuple[int, int]]
) -> Iterator[tuple[int, int, frozenset[Colour]]]:
    text: frozenset[Colour] = frozenset(["string"])
    mark: frozenset[Colour] = frozenset(["string", "mark"])
    at = start
    for begin, close in (piece for piece in pieces if isinstance(piece, tuple)):
        yield at, begin - 2, text
        yield begin - 2, begin, mark
        # Code that doesn't lex shows nothing when the program runs, and may look like anything.
        with suppress(LexError):
            yield from list(_of_code(source, begin, close))
        yield close, close + 1, mark
        at = close + 1
    yield at, end, text


def _meanings(tokens: Tokens) -> dict[int, str]:
    arranged = tokens.copy()
    arrange(arranged)
    return dict(zip(arranged.starts, arranged.kinds, strict=True))
