"""Lines of generated Python, and the stretch of the Harn source that each one stands for.

An expression that can fail is put on a line of its own: `mark` leaves a marker before it that becomes a
line break inside parentheses. `harnpy.vm.emit.locations` turns the number of a generated line into a place
in the source, so a Python traceback tells which expression failed, and a program that doesn't fail pays
nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.syntax import ast

    #: The offsets of a node in the source: its start and its end.
    Stretch = tuple[int, int]

_OPEN, _BETWEEN, _CLOSE = "\x01", "\x03", "\x02"


class Line:
    """One statement: its indentation level, its text with markers, the node that it stands for.

    Without text it is a line left free, and not rendered.
    """

    __slots__ = ("indent", "node", "text")

    def __init__(self, indent: int, text: str, node: ast.Node) -> None:
        self.indent = indent
        self.text = text
        self.node = node


def mark(text: str, node: ast.Node) -> str:
    """``text``, an expression, set on a line that stands for ``node``."""
    return f"({_OPEN}{node.start}{_BETWEEN}{node.end}{_CLOSE}{text})"


def is_marked(text: str) -> bool:
    """Whether ``text`` has a part on a line of its own."""
    return _OPEN in text


def plain(line: Line) -> str:
    """The text of a line without markers."""
    head, *marked = line.text.split(_OPEN)
    return head + "".join(piece.partition(_CLOSE)[2] for piece in marked)


def render(lines: Iterable[Line]) -> tuple[str, list[Stretch]]:
    """The program text, and what each of its lines stands for."""
    text: list[str] = []
    stretches: list[Stretch] = []
    for line in lines:
        if not line.text:
            continue
        head, *marked = line.text.split(_OPEN)
        text.append(" " * line.indent + head)
        stretches.append((line.node.start, line.node.end))
        for piece in marked:
            place, _, rest = piece.partition(_CLOSE)
            start, _, end = place.partition(_BETWEEN)
            text.append(rest)
            stretches.append((int(start), int(end)))
    return "\n".join(text) + "\n", stretches
