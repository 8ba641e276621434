"""Generated Python for people: with the lines of the program that it stands for.

It is still Python. Each of the program's lines is a comment before what it becomes:

    #  3 | println(total)
        b_println_(vm, total_1)

Places inside a line, which `writer` keeps apart, are put together again.
"""

from __future__ import annotations

from harnpy.syntax.span import Lines
from harnpy.vm.emit.writer import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.vm.emit.writer import Line

_INDENTATION = "    "


def listing(lines: Iterable[Line], source: str) -> str:
    """The text of ``lines``, indented as usual, with the lines of ``source``."""
    program = Lines(source)
    width = len(str(program.line(len(source))))
    out: list[str] = []
    shown = 0
    for line in lines:
        at = program.line(line.node.start)
        if at != shown:
            out.append(f"# {at:>{width}} | {program.text(at) or ''}".rstrip())
            shown = at
        text = plain(line)
        statement = text.lstrip(" ")
        # A line may hold a suite of one statement, indented by a space.
        out.append(_INDENTATION * (line.indent + len(text) - len(statement)) + statement)
    return "\n".join(out) + "\n"
