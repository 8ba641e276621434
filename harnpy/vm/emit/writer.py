"""Lines of generated Python, and the place in the Harn source that each one stands for.

An expression that can fail is put on a line of its own: `mark` leaves a marker before it that becomes a
line break inside parentheses. A Python traceback's line number then tells which expression failed,
and a program that doesn't fail pays nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_OPEN, _CLOSE = "\x01", "\x02"


class Line:
    """One statement: its indentation level, its text with markers, its source offset."""

    __slots__ = ("indent", "offset", "text")

    def __init__(self, indent: int, text: str, offset: int) -> None:
        self.indent = indent
        self.text = text
        self.offset = offset


def mark(text: str, offset: int) -> str:
    """``text``, an expression, set on a line that stands for ``offset``."""
    return f"({_OPEN}{offset}{_CLOSE}{text})"


def render(lines: Iterable[Line]) -> tuple[str, list[int]]:
    """The program text, and the source offset of each of its lines."""
    text: list[str] = []
    offsets: list[int] = []
    for line in lines:
        head, *marked = line.text.split(_OPEN)
        text.append(" " * line.indent + head)
        offsets.append(line.offset)
        for piece in marked:
            offset, _, rest = piece.partition(_CLOSE)
            text.append(rest)
            offsets.append(int(offset))
    return "\n".join(text) + "\n", offsets
