"""Comments, line breaks and everything else that a source text says beside its tree. Spec: 01 §1.1, §12.

Comments are what is left between the tokens: strings are tokens, so their text is never looked at, and the
code of an interpolation is read by itself. `Written` tells a printer where the author broke lines and wrote
comments; a tree that was never text is `Unwritten`, and its printer decides by width alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Literal, NamedTuple

from harnpy.syntax.ast import Node
from harnpy.syntax.lexer import LexError, Tokens, comment_end, lex, shebang_end
from harnpy.syntax.print_literals import HELD_BREAK

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
        """Return True if nothing may follow it on its line."""
        return self.kind in ("line", "doc-line")


def comments_of(source: str) -> tuple[Comment, ...]:
    """The comments in the order of their positions, those within ``${…}`` included.

    Raises `LexError` where the text has no tokens.
    """
    if "//" not in source and "/*" not in source:
        return ()
    return comments_between(lex(source, 0, len(source)), shebang_end(source))


def doc_comment(source: str, start: int) -> str:
    """Return the text of the `/** … */` or the `///` lines right above ``start``, without their marks."""
    above = source[:start].rstrip()
    if above.endswith("*/"):
        begin = above.rfind("/*")
        block = above[begin + 3 : -2] if above.startswith("/**", begin) else ""
        return "\n".join(line.strip().removeprefix("*").strip() for line in block.split("\n")).strip()
    lines: list[str] = []
    for line in reversed(above.split("\n")):
        if not line.lstrip().startswith("///"):
            break
        lines.append(line.strip().removeprefix("///").strip())
    return "\n".join(reversed(lines))


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


OPENERS = ("(", "[", "{")
CLOSERS = (")", "]", "}")


class Unwritten:
    """The answers for a tree without source."""

    def commented(self, span: tuple[int, int]) -> bool:
        """Return True if a comment within ``span`` needs the lines that it stands on."""
        return False

    def brackets(self, start: int, opening: str = "(") -> tuple[int, int]:
        """The span of the first such bracket at or behind ``start``, with all that it encloses."""
        return 0, 0

    def closed(self, end: int) -> tuple[int, int]:
        """The span of the brackets that close right before ``end``."""
        return 0, 0

    def apart(self, left: Node, right: Node) -> bool:
        """Return True if ``right`` begins on a later line than ``left`` ends."""
        return False

    def parenthesised(self, operand: Node) -> bool:
        """Return True if an operand stands in parentheses of its own."""
        return False

    def dotted(self, receiver: Node) -> bool:
        """Return True if the ``.`` behind a receiver begins a line."""
        return False

    def literal(self, start: int, end: int) -> str | None:
        """The text of a string that is copied, each line break in it a `HELD_BREAK`; None for any other.

        Those are strings over several lines, and those that need no escapes thanks to their triple quotes.
        """
        return None

    def first_string(self, start: int) -> tuple[int, int]:
        """Return where the first string behind ``start`` stands."""
        return 0, 0

    def text(self, start: int, end: int) -> str | None:
        """``source[start:end]``."""
        return None


class Written(Unwritten):
    """A source that has been parsed: its tokens, and the comments between them.

    What stands within a string literal belongs to it: only ``all_comments`` has the comments there.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = lex(source, 0, len(source))
        self.all_comments = comments_between(self.tokens, shebang_end(source))
        self.comments = [comment for comment in self.all_comments if not self._inside_token(comment)]
        self._lines = [comment.start for comment in self.comments if self._needs_line(comment)]
        self.closing = matched(self.tokens)
        self._opening = {closing: opening for opening, closing in self.closing.items()}

    def commented(self, span: tuple[int, int]) -> bool:
        at = bisect_left(self._lines, span[0])
        return at < len(self._lines) and self._lines[at] < span[1]

    def brackets(self, start: int, opening: str = "(") -> tuple[int, int]:
        at = self.at(start)
        while (kind := self.tokens.kinds[at]) != opening and kind != "$END":
            at += 1
        end = self.closing.get(at)
        return self.tokens.starts[at], start if end is None else self.tokens.ends[end]

    def closed(self, end: int) -> tuple[int, int]:
        return self.tokens.starts[self._opening.get(self.at(end) - 1, 0)], end

    def apart(self, left: Node, right: Node) -> bool:
        return self.source.find("\n", left.end, right.start) >= 0

    def parenthesised(self, operand: Node) -> bool:
        before, behind = self.at(operand.start) - 1, self.at(operand.end)
        return self.tokens.kinds[before] == "(" and self.closing.get(before) == behind

    def dotted(self, receiver: Node) -> bool:
        at = self.at(receiver.end)
        while self.tokens.kinds[at] in ("NL", ")"):
            at += 1
        return self.tokens.kinds[at - 1] == "NL"

    def literal(self, start: int, end: int) -> str | None:
        text = self.source[start:end]
        needs_quotes = text.startswith('"""') and ('"' in text[3:-3] or "\\" in text)
        return text.replace("\n", HELD_BREAK) if "\n" in text or needs_quotes else None

    def first_string(self, start: int) -> tuple[int, int]:
        at = self.tokens.kinds.index("STRING", self.at(start))
        return self.tokens.starts[at], self.tokens.ends[at]

    def text(self, start: int, end: int) -> str | None:
        return self.source[start:end]

    def at(self, offset: int) -> int:
        """The number of the first token at or behind an offset."""
        return bisect_left(self.tokens.starts, offset)

    def begins_line(self, comment: Comment) -> bool:
        """Return True if no token stands before it on its line."""
        before = self.at(comment.start) - 1
        while before >= 0 and self.tokens.kinds[before] == "NL":
            before -= 1
        line = self.source.rfind("\n", 0, comment.start) + 1
        return before < 0 or self.tokens.ends[before] <= line

    def ends_line(self, comment: Comment) -> bool:
        """Return True if no token stands behind it on its line."""
        behind = self.at(comment.end)
        while self.tokens.kinds[behind] == "NL":
            behind += 1
        line_end = self.source.find("\n", comment.end)
        return self.tokens.kinds[behind] == "$END" or 0 <= line_end < self.tokens.starts[behind]

    def _needs_line(self, comment: Comment) -> bool:
        return self.ends_line(comment) or "\n" in self.source[comment.start : comment.end]

    def _inside_token(self, comment: Comment) -> bool:
        before = self.at(comment.end) - 1
        return before >= 0 and self.tokens.ends[before] > comment.start


def matched(tokens: Tokens) -> dict[int, int]:
    """The token that closes each bracket, by the number of the token that opens it."""
    closing: dict[int, int] = {}
    openings: list[int] = []
    for at, kind in enumerate(tokens.kinds):
        if kind in OPENERS:
            openings.append(at)
        elif kind in CLOSERS and openings:
            closing[openings.pop()] = at
    return closing
