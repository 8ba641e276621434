"""Offsets to lines and columns: the only code that counts. Spec: reference 01 §1.

Offsets, lines and columns count characters (Unicode scalars); lines and columns start at 1.
"""

from __future__ import annotations

from bisect import bisect_right


class Span:
    """``source[start:end]``, with the position of its first character."""

    __slots__ = ("column", "end", "line", "start")

    def __init__(self, start: int, end: int, line: int, column: int) -> None:
        self.start = start
        self.end = end
        self.line = line
        self.column = column

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Span({self.start}, {self.end}, {self.line}, {self.column})"

    def _key(self) -> tuple[int, int, int, int]:
        return self.start, self.end, self.line, self.column


class Lines:
    """The lines of one source text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._starts = [0]
        at = source.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = source.find("\n", at + 1)

    def line(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def locate(self, offset: int) -> tuple[int, int]:
        """The line and column of ``offset``; an offset past the end is just past the last character."""
        offset = min(offset, len(self.source))
        line = self.line(offset)
        return line, offset - self._starts[line - 1] + 1

    def span(self, start: int, end: int) -> Span:
        return Span(start, end, *self.locate(start))

    def text(self, line: int) -> str | None:
        """Line number ``line`` without its line feed; None when there is no such line.

        A final line feed ends the last line, it does not begin another.
        """
        if not 1 <= line <= len(self._starts):
            return None
        start = self._starts[line - 1]
        if start == len(self.source) and line > 1:
            return None
        end = self.source.find("\n", start)
        return self.source[start:] if end < 0 else self.source[start:end]
