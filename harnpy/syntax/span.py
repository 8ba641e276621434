"""Offsets to lines and columns: the only code that counts. Spec: 01 §1.

Offsets, lines and columns count characters (Unicode scalars); lines and columns start at 1.
"""

from __future__ import annotations

#: Longer source lines are shown in part, in characters.
_LONGEST_LINE = 240


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
    """The lines of one source text. Counts when asked; nothing is prepared."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._texts: list[str] | None = None

    def line(self, offset: int) -> int:
        return self.source.count("\n", 0, offset) + 1

    def locate(self, offset: int) -> tuple[int, int]:
        """The line and column of ``offset``; an offset past the end is just past the last character."""
        offset = min(offset, len(self.source))
        return self.line(offset), offset - self.source.rfind("\n", 0, offset)

    def span(self, start: int, end: int) -> Span:
        return Span(start, end, *self.locate(start))

    def text(self, line: int) -> str | None:
        """Line number ``line`` without its line feed; None when there is no such line.

        A final line feed ends the last line, it does not begin another.
        """
        if self._texts is None:
            self._texts = self.source.split("\n")
        if line > len(self._texts) or (line == len(self._texts) > 1 and not self._texts[-1]):
            return None
        return self._texts[line - 1]

    def excerpt(self, line: int, column: int) -> tuple[str, int] | None:
        """The line to show for a position, and the column in what is shown.

        All of it without a carriage return at its end, unless it is too long to find the place in: then what
        is around it. A secret in it is hidden: what is shown ends in logs.
        """
        text = self.text(line)
        if text is not None:
            from harnpy.text.secrets.literals import hidden  # loaded when something is wrong

            text = hidden(text.removesuffix("\r"))
        if text is None or len(text) <= _LONGEST_LINE:
            return None if text is None else (text, column)
        first = max(column - 1 - _LONGEST_LINE // 2, 0)
        last = min(first + _LONGEST_LINE, len(text))
        head, tail = "…" if first else "", "…" if last < len(text) else ""
        return f"{head}{text[first:last]}{tail}", column - first + len(head)
