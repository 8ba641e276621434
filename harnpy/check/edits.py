"""One file while it is being written: after an edit, only the items that it touched are read again.

A file is a list of top-level items. An edit leaves most of them as they were, further up or down; the text
between those is parsed by itself, and stands for the items that it replaces. Nothing is guessed: where the
parts would not meet as they did, the whole file is read again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from harnpy.syntax import ast
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from harnpy.check.findings import Finding

#: Every reading has offsets of its own, so that an offset tells in which reading its node was made.
_READING = 1 << 40


class Item:
    """A top-level item. Its node has the offsets of the reading that made it, ``moved`` away by now.

    ``findings`` are what was found in it, by the node's offsets; None until it is checked.
    """

    __slots__ = ("findings", "moved", "node")

    def __init__(self, node: ast.Node, moved: int) -> None:
        self.node = node
        self.moved = moved
        self.findings: list[Finding] | None = None

    @property
    def start(self) -> int:
        return self.node.start + self.moved

    @property
    def end(self) -> int:
        return self.node.end + self.moved


class Draft:
    """The text of a file and its items.

    ``fresh`` are those that the last edit made, in the place of those that are ``replaced``; no item is
    replaced when the whole file was read.
    """

    def __init__(self, source: str, file: str = "<script>") -> None:
        """Raises SyntaxFault."""
        self._file = file
        self._read_whole(source)

    def _read_whole(self, source: str) -> None:
        program = parse(source, file=self._file)
        self.source = source
        self.items = [Item(node, 0) for node in program.items]
        self.replaced: Sequence[Item] = ()
        self.fresh: Sequence[Item] = self.items
        self._reading = 0

    def edit(self, source: str) -> None:
        """Take ``source`` as the new text. Raises SyntaxFault, and keeps the old one."""
        if not self._edit_items(source):
            self._read_whole(source)

    def _edit_items(self, source: str) -> bool:
        """Read what changed; False when that can't be told apart from the rest."""
        same_before = _common(self.source, source)
        room = min(len(self.source), len(source)) - same_before
        same_after = _common(self.source[::-1][:room], source[::-1][:room])
        # An item that touches the edit has changed; its neighbours show whether the parts still meet.
        first = bisect_left(self.items, same_before, key=lambda item: item.end) - 1
        last = bisect_right(self.items, len(self.source) - same_after, key=lambda item: item.start) + 1
        first, last = max(first, 0), min(last, len(self.items))
        grown = len(source) - len(self.source)
        begin = self.items[first].start if first else 0
        end = self.items[last - 1].end + grown if last < len(self.items) else len(source)
        if not self.items or begin > same_before or end < len(source) - same_after:
            return False
        try:
            nodes = parse(source[begin:end]).items
        except SyntaxFault:
            return False
        replaced = self.items[first:last]
        if not nodes or (last < len(self.items) and nodes[-1] != replaced[-1].node):
            return False
        if first and nodes[0] != replaced[0].node:
            return False
        self._reading += 1
        base = self._reading * _READING
        fresh = [Item(placed(node, base), begin - base) for node in nodes]
        after = self.items[last:]
        for item in after:
            item.moved += grown
        self.items[first:last] = fresh
        self.replaced, self.fresh, self.source = replaced, fresh, source
        return True

    def place(self, offset: int) -> int:
        """Return where an offset of any reading is in the text now; one of a node that is gone stays."""
        for item in self.items:
            if item.node.start <= offset <= item.node.end:
                return offset + item.moved
        return min(offset % _READING, len(self.source))


def placed(node: ast.Node, by: int) -> ast.Node:
    """``node`` ``by`` characters further on: a copy of its tree, or itself when it stays where it is."""
    if not by:
        return node
    # No recursion: a sum of twenty thousand terms is a tree that deep.
    nodes = [node]
    for each in nodes:
        nodes.extend(each.children())
    copies: dict[int, ast.Node] = {}
    for each in reversed(nodes):
        fields = [_copied(getattr(each, name), copies) for name in each.__slots__]
        copies[id(each)] = type(each)(each.start + by, each.end + by, *fields)
    return copies[id(node)]


def _copied(field: Any, copies: Mapping[int, ast.Node]) -> Any:
    """A field of a node with the copies of the nodes in it."""
    if type(field) is tuple:
        return tuple([copies.get(id(part), part) for part in field])
    return copies.get(id(field), field)


def _common(left: str, right: str) -> int:
    """Return how many characters two texts begin with in common."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
