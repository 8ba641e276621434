"""The comments of a source text, where they stand and of which kind. Spec: 01 §1.1.

Comments are what is left between the tokens: strings are tokens, so their text is never looked at, and the
code of an interpolation is read by itself.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal, NamedTuple

from harnpy.syntax.lexer import Tokens, comment_end, lex, shebang_end
from harnpy.syntax.literals import LexError

Kind = Literal["line", "doc-line", "block", "doc"]

_OPENING = re.compile(r"/[/*]")
#: Neither `////` nor `/**/` nor `/***` is documentation.
_DOC_LINE = re.compile(r"///(?!/)")
_DOC_BLOCK = re.compile(r"/\*\*(?![*/])")


class Comment(NamedTuple):
    """``source[start:end]``, its marks included; a line comment ends before its line break."""

    start: int
    end: int
    kind: Kind

    @property
    def breaks_line(self) -> bool:
        """Whether nothing may follow it on its line."""
        return self.kind in ("line", "doc-line")


def comments_of(source: str) -> tuple[Comment, ...]:
    """The comments in the order of their positions, those within ``${…}`` included.

    Raises `LexError` where the text has no tokens.
    """
    if "//" not in source and "/*" not in source:
        return ()
    return comments_between(lex(source, 0, len(source)), shebang_end(source))


def comments_between(tokens: Tokens, start: int) -> tuple[Comment, ...]:
    """The comments before, between and behind the tokens of a text that begins at ``start``."""
    source = tokens.source
    found: list[Comment] = []
    # Few gaps hold a comment, so each mark is looked up rather than each gap searched.
    at = start
    while (mark := _OPENING.search(source, at, tokens.ends[-1])) is not None:
        token = bisect_right(tokens.starts, mark.start()) - 1
        if token >= 0 and mark.start() < tokens.ends[token]:
            at = tokens.ends[token]
            found += _in_string(source, tokens.values[token])
            continue
        comment = _comment(source, mark.start(), tokens.ends[-1])
        found.append(comment)
        at = comment.end
    return tuple(found)


def _in_string(source: str, pieces: object) -> Iterator[Comment]:
    """The comments in the code of an interpolated string; code that has no tokens has none."""
    for piece in pieces if isinstance(pieces, list) else ():
        if isinstance(piece, tuple):
            try:
                inner = lex(source, *piece)
            except LexError:
                continue
            yield from comments_between(inner, piece[0])


def _comment(source: str, start: int, limit: int) -> Comment:
    if source.startswith("//", start):
        end = source.find("\n", start, limit)
        kind: Kind = "doc-line" if _DOC_LINE.match(source, start) else "line"
        return Comment(start, end if end >= 0 else limit, kind)
    return Comment(
        start, comment_end(source, start, limit), "doc" if _DOC_BLOCK.match(source, start) else "block"
    )
