"""What holds for a part of a function while it is written: context managers that `Emitter` makes.

Classes, because `contextlib` is not worth its import when a program starts.
"""

from __future__ import annotations

from harnpy.vm.emit.leftovers import Leftovers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.syntax import ast
    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.operand import Operand
    from harnpy.vm.emit.writer import Line

#: Python's own limit on indentation is 100; this leaves room for what we add.
_MAX_INDENT = 90


class TooDeep(Exception):
    """The blocks of ``function``, a node, are nested deeper than Python can express."""

    def __init__(self, function: ast.Node) -> None:
        super().__init__("blocks are nested too deeply")
        self.function = function


class Indented:
    """The lines are one level deeper."""

    __slots__ = ("_e",)

    def __init__(self, e: Emitter) -> None:
        self._e = e

    def __enter__(self) -> None:
        self._e.indent += 1
        if self._e.indent > _MAX_INDENT:
            raise TooDeep(self._e.function.node)

    def __exit__(self, *failure: object) -> None:
        self._e.indent -= 1


class Suite(Indented):
    """The lines stand below a header; `pass` does, if there are none."""

    __slots__ = ("_before", "_header")

    def __init__(self, e: Emitter, header: str) -> None:
        super().__init__(e)
        self._header = header

    def __enter__(self) -> None:
        self._e.line(self._header + ":")
        self._before = len(self._e.lines)
        super().__enter__()

    def __exit__(self, *failure: object) -> None:
        if len(self._e.lines) == self._before:
            self._e.line("pass")
        super().__exit__(*failure)


class Apart:
    """The lines go into a list of their own, ``deeper`` levels deeper."""

    __slots__ = ("_deeper", "_e", "_outside")

    def __init__(self, e: Emitter, deeper: int) -> None:
        self._e = e
        self._deeper = deeper

    def __enter__(self) -> list[Line]:
        lines: list[Line] = []
        self._outside, self._e.lines = self._e.lines, lines
        self._e.indent += self._deeper
        return lines

    def __exit__(self, *failure: object) -> None:
        self._e.indent -= self._deeper
        self._e.lines = self._outside


class Protected:
    """Something is still to be done after the calls of these lines, so none of them is a tail call."""

    __slots__ = ("_e",)

    def __init__(self, e: Emitter) -> None:
        self._e = e

    def __enter__(self) -> None:
        self._e.protections += 1

    def __exit__(self, *failure: object) -> None:
        self._e.protections -= 1


class Within:
    """``item`` is on top of a stack."""

    __slots__ = ("_item", "_stack")

    def __init__(self, stack: list[Any], item: Any) -> None:
        self._stack = stack
        self._item = item

    def __enter__(self) -> None:
        self._stack.append(self._item)

    def __exit__(self, *failure: object) -> None:
        self._stack.pop()


class NestedFunction:
    """The lines are the body of a Python function inside the one that is written.

    ``lines`` are its own, ``assigned`` the slots of the function around it that it assigns.
    """

    __slots__ = ("_e", "_outside", "assigned", "lines")

    def __init__(self, e: Emitter) -> None:
        self._e = e
        self.lines: list[Line] = []
        self.assigned: set[Operand] = set()

    def __enter__(self) -> NestedFunction:
        e = self._e
        self._outside = e.lines, e.own, e.outer, e.loops, e.generator, e.leftovers
        e.lines, e.own, e.outer, e.loops, e.generator = self.lines, set(), self.assigned, [], False
        e.leftovers = Leftovers()
        e.indent += 1
        return self

    def __exit__(self, *failure: object) -> None:
        e = self._e
        e.indent -= 1
        e.lines, e.own, e.outer, e.loops, e.generator, e.leftovers = self._outside


class Deferring:
    """Around the body of a function: what it defers, if anything, runs after it.

    The deferred blocks are called from the function as a whole.
    """

    __slots__ = ("_e", "_suite")

    def __init__(self, e: Emitter) -> None:
        self._e = e
        self._suite = Suite(e, "try") if e.function.defers else None

    def __enter__(self) -> None:
        if self._suite:
            self._e.line("defers = []")
            self._suite.__enter__()

    def __exit__(self, *failure: object) -> None:
        if self._suite:
            self._suite.__exit__(*failure)
            self._e.at = self._e.function.node
            self._e.line("finally:")
            self._e.line(" if alive(): run_defers(defers)")
