"""Heredocs: `<<TAG`, lines of raw text, `TAG`. Spec: 07 §6.6.

The closing tag is at the start of a line, after blanks; anything that can't be part of a name may follow.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

_OPENING = re.compile(r"""<<(['"]?)([A-Za-z_]\w*)\1[ \t]*\r?\n""")
_FIRST_WORD = re.compile(r"^[ \t]*([A-Za-z_]\w*)", re.MULTILINE)


class Heredoc(NamedTuple):
    content: str
    end: int


class Heredocs:
    """The heredocs of one text. The words that could close one are indexed once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words: dict[str, list[tuple[int, int]]] | None = None

    def at(self, position: int) -> Heredoc | None:
        """The heredoc that begins at ``position``."""
        bounds = self._bounds(position)
        if bounds is None:
            return None
        start, line, end = bounds
        content = self._text[start:line]
        return Heredoc(content.removesuffix("\n").removesuffix("\r"), end)

    def end(self, position: int) -> int | None:
        """Where the heredoc that begins at ``position`` ends."""
        bounds = self._bounds(position)
        return None if bounds is None else bounds[2]

    def _bounds(self, position: int) -> tuple[int, int, int] | None:
        """Where the content begins, where the line of its closing tag does, and where that tag ends."""
        opening = _OPENING.match(self._text, position)
        if opening is None:
            return None
        start = opening.end()
        closers = self._index().get(opening[2], [])
        first = bisect_left(closers, (start, 0))
        return None if first == len(closers) else (start, *closers[first])

    def _index(self) -> dict[str, list[tuple[int, int]]]:
        """The first word of each line: where the line begins, and where the word ends."""
        if self._words is None:
            self._words = {}
            for word in _FIRST_WORD.finditer(self._text):
                self._words.setdefault(word[1], []).append((word.start(), word.end()))
        return self._words
