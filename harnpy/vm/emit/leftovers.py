"""Temporaries that keep a part of a variable's value after the statement that read it.

    if len(o.items) > 3 { o.items = o.items + [i] }        t4 = o_1['items']; if len(t4) > 3: …

Nothing uses ``t4`` again, but it is one more holder of the list, for which an update would copy the list at
each turn of the loop. So an update first lets go of such temporaries: ``t4 = None``. Which ones there are,
also further down in the loop, is known when the loop has been written; until then a line is left free for it.
"""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.operand import Operand
    from harnpy.vm.emit.writer import Line
    from harnpy.vm.resolve.scopes import Reference


class Leftovers:
    """Those of one Python function."""

    __slots__ = ("_free", "_held", "_loops", "_numbered", "_open")

    def __init__(self) -> None:
        self._open: list[int] = []
        """The statements and conditions being written, innermost last, by number."""
        self._numbered = 0
        self._loops = 0
        self._held: list[tuple[Operand, str, int]] = []
        """Temporaries with the variable whose part they hold, and the innermost statement that made them."""
        self._free: list[tuple[Line, str, frozenset[int]]] = []
        """Lines left free for an update of a variable, with the statements around it."""

    def within(self) -> Within:
        """Around a statement or a condition: nothing uses its temporaries after it."""
        return Within(self)

    def loop(self) -> Loop:
        """Around a loop. What is left behind outside of loops costs one copy, not one at each turn."""
        return Loop(self)

    def hold(self, slot: Operand, variable: str) -> None:
        """Note that ``slot`` has got a part of the value of ``variable``, the text that reads it."""
        self._held.append((slot, variable, self._open[-1] if self._open else 0))

    def count(self) -> int:
        return len(self._held)

    def take(self, count: int) -> list[Operand]:
        """The temporaries beyond the first ``count``, which the caller lets go of."""
        taken = [slot for slot, _, _ in self._held[count:]]
        del self._held[count:]
        return taken

    def release_at(self, line: Line, variable: str) -> None:
        """Fill ``line`` when the loop is done with what lets go of the parts of ``variable``."""
        if self._loops:
            self._free.append((line, variable, frozenset(self._open)))

    def _settle(self) -> None:
        for line, updated, around in self._free:
            left = [slot for slot, of, made in self._held if of is updated and made not in around]
            line.text = release(left)
        self._free.clear()
        self._held.clear()


class Within:
    __slots__ = ("_all",)

    def __init__(self, leftovers: Leftovers) -> None:
        self._all = leftovers

    def __enter__(self) -> None:
        self._all._numbered += 1
        self._all._open.append(self._all._numbered)

    def __exit__(self, *failure: object) -> None:
        self._all._open.pop()


class Loop:
    __slots__ = ("_all",)

    def __init__(self, leftovers: Leftovers) -> None:
        self._all = leftovers

    def __enter__(self) -> None:
        if not self._all._loops:
            self._all._held.clear()
        self._all._loops += 1

    def __exit__(self, *failure: object) -> None:
        self._all._loops -= 1
        if not self._all._loops:
            self._all._settle()


def release(slots: list[Operand]) -> str:
    """``t4 = t7 = None``; nothing where there is nothing to let go of."""
    return f"{' = '.join(dict.fromkeys(map(str, slots)))} = None" if slots else ""


def part_of(refs: dict[int, Reference], node: ast.Node) -> str:
    """What reads the variable that ``node`` reads a part of; nothing for any other node."""
    while isinstance(node, ast.Member | ast.Index):
        node = node.object
    ref = refs.get(id(node)) if isinstance(node, ast.Name) else None
    return ref.variable.python if ref and ref.kind == "local" and ref.variable else ""
