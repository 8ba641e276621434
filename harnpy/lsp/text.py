"""Lines and positions of a text as the Language Server Protocol counts them. Spec: 12 §1.2.

A line ends with ``\\n``, ``\\r\\n`` or ``\\r``, and with nothing else. A character of a position is a unit of
the encoding that client and server agreed on: of UTF-16 unless the client offers another.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from lsprotocol.types import Position, PositionEncodingKind, Range

_LINE_END = re.compile(r"\r\n|\n|\r")


class Text:
    """One text, which never changes; `changed` returns another."""

    def __init__(
        self, source: str, encoding: PositionEncodingKind | str = PositionEncodingKind.Utf16
    ) -> None:
        self.source = source
        self.encoding = encoding
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(source))]

    @property
    def lines(self) -> int:
        return len(self._starts)

    def line(self, offset: int) -> int:
        """Return the number of the line that an offset is in, counted from 0."""
        return bisect_right(self._starts, offset) - 1

    def line_start(self, line: int) -> int:
        """Return where a line begins; the end of the text where there is no such line."""
        return self._starts[line] if line < len(self._starts) else len(self.source)

    def line_end(self, line: int) -> int:
        """Return where the text of a line ends, before its line break."""
        end = self.line_start(line + 1)
        if line + 1 < len(self._starts):
            end -= 2 if self.source.startswith("\r\n", end - 2) else 1
        return end

    def offset(self, position: Position) -> int:
        """Return the offset of a position; behind the end of a line it is that end.

        A position in the middle of a character counts as that character's beginning.
        """
        if position.line >= len(self._starts):
            return len(self.source)
        start, end = self.line_start(position.line), self.line_end(position.line)
        text = self.source[start:end]
        if text.isascii() or self.encoding == PositionEncodingKind.Utf32:
            return min(start + position.character, end)
        left = position.character
        for index, character in enumerate(text):
            left -= self._units(character)
            if left < 0:
                return start + index
        return end

    def position(self, offset: int) -> Position:
        """Return the position of an offset; one behind the text is its end."""
        offset = max(0, min(offset, len(self.source)))
        line = self.line(offset)
        before = self.source[self._starts[line] : min(offset, self.line_end(line))]
        return Position(line, self.length(before))

    def range(self, start: int, end: int) -> Range:
        """Return the range of ``source[start:end]``."""
        return Range(self.position(start), self.position(end))

    def span(self, range: Range) -> tuple[int, int]:
        """Return the offsets of a range."""
        return self.offset(range.start), self.offset(range.end)

    def changed(self, edits: Sequence[tuple[Range | None, str]]) -> Text:
        """Return the text behind some edits, each counted from the one before; no range: all of it."""
        text = self
        for range, new in edits:
            if range is None:
                text = Text(new, self.encoding)
            else:
                start, end = text.span(range)
                text = Text(text.source[:start] + new + text.source[max(start, end) :], self.encoding)
        return text

    def _units(self, character: str) -> int:
        if self.encoding == PositionEncodingKind.Utf8:
            return len(character.encode("utf-8", "surrogatepass"))
        return 2 if character > "\uffff" else 1

    def length(self, text: str) -> int:
        """Return how many units a text has."""
        if text.isascii() or self.encoding == PositionEncodingKind.Utf32:
            return len(text)
        if self.encoding == PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
