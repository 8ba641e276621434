"""One file while it is being written: after an edit, only what it touched is read again. Spec: 12 §2.

A text falls into pieces, each of which can be read by itself: one begins at the margin of a line. How depends
on the text alone and not on the edits that led to it, so a draft is what reading the whole text gives. A
piece that doesn't parse is `broken`; its items are those of its mended text.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from harnpy.syntax import ast
from harnpy.syntax.diagnostic import LexFault, SyntaxFault
from harnpy.syntax.mending import mended
from harnpy.syntax.parser import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from harnpy.check.findings import Finding
    from harnpy.syntax.diagnostic import Diagnostic

#: Every reading has offsets of its own, so that an offset tells in which reading its node was made.
_READING = 1 << 40
#: Where a piece begins: at a word that no line goes on with (01 §3).
_BEGINNING = re.compile(r"(?<!\\\n)^(?:(?!(?:else|catch|finally)\b)[^\W\d]|@)", re.MULTILINE)
#: Depths of texts that are remembered beside those of the pieces.
_DEPTHS = 1_000
_WORD = re.compile(r"[^\W\d]\w*")
_QUIET = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|//[^\n]*")


class Item:
    """A top-level item. Its node has the offsets of the reading that made it, ``moved`` away by now.

    ``findings`` are what was found in it, by the node's offsets; None until it is checked. ``broken``: it was
    mended.
    """

    __slots__ = ("broken", "findings", "moved", "node")

    def __init__(self, node: ast.Node, moved: int, broken: bool = False) -> None:
        self.node = node
        self.moved = moved
        self.broken = broken
        self.findings: list[Finding] | None = None

    @property
    def start(self) -> int:
        return self.node.start + self.moved

    @property
    def end(self) -> int:
        return self.node.end + self.moved


class Piece:
    """A part of the text that is read by itself. ``faults`` are why it is broken, by offsets in it."""

    __slots__ = ("_words", "faults", "items", "reading", "start", "text")

    def __init__(self, text: str, start: int, reading: int) -> None:
        self.text = text
        self.start = start
        self.reading = reading
        self.items: list[Item] = []
        self.faults: Sequence[Diagnostic] = ()
        self._words: frozenset[str] | None = None

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def words(self) -> frozenset[str]:
        """The words in it, every name that it mentions among them."""
        if self._words is None:
            self._words = frozenset(_WORD.findall(self.text))
        return self._words

    def move(self, by: int) -> None:
        self.start += by
        for item in self.items:
            item.moved += by


class Draft:
    """The text of a file and its items.

    ``fresh`` are those that the last edit made, in the place of those that are ``replaced``; no item is
    replaced when the whole file was read.
    """

    def __init__(self, source: str = "") -> None:
        self.source = ""
        self.pieces: list[Piece] = []
        self.items: list[Item] = []
        self.replaced: Sequence[Item] = ()
        self.fresh: Sequence[Item] = ()
        self._reading = 0
        self._by_reading: dict[int, Piece] = {}
        self._nodes: dict[str, tuple[ast.Node, ...] | SyntaxFault] = {}
        self._depths: dict[str, int] = {}
        self.edit(source)

    @property
    def broken(self) -> list[Piece]:
        """The pieces that don't parse."""
        return [piece for piece in self.pieces if piece.faults]

    def piece_at(self, offset: int) -> Piece:
        """Return the piece that an offset is in; where two meet, the later one."""
        at = max(bisect_right(self.pieces, offset, key=lambda piece: piece.start) - 1, 0)
        return self.pieces[at]

    def edit(self, source: str, *, undivided: bool = False) -> None:
        """Take ``source`` as the new text. ``undivided``: as one piece, which takes longer."""
        known, self._nodes = self._nodes, {}
        if len(self._depths) > 2 * len(self.pieces) + _DEPTHS:
            self._depths.clear()
        if undivided:
            self._read(source, known)
        spans = [(0, len(source))] if undivided else list(self._spans(source, known))
        old = self.pieces
        room = min(len(spans), len(old))
        before = next((i for i in range(room) if old[i].text != source[slice(*spans[i])]), room)
        room -= before
        after = next((i for i in range(room) if old[-1 - i].text != source[slice(*spans[-1 - i])]), room)
        last = len(old) - after
        self.replaced = [item for piece in old[before:last] for item in piece.items]
        fresh = [self._piece(source, start, end) for start, end in spans[before : len(spans) - after]]
        self.fresh = [item for piece in fresh for item in piece.items]
        grown = len(source) - len(self.source)
        for piece in old[last:] if grown else ():
            piece.move(grown)
        for piece in old[before:last]:
            self._by_reading.pop(piece.reading, None)
        self._by_reading.update((piece.reading, piece) for piece in fresh)
        old[before:last] = fresh
        self.items = [item for piece in old for item in piece.items]
        self.source = source

    def _spans(
        self, source: str, known: Mapping[str, tuple[ast.Node, ...] | SyntaxFault]
    ) -> Iterator[tuple[int, int]]:
        """Yield the pieces of a text by their offsets."""
        bounds = [match.start() for match in _BEGINNING.finditer(source)]
        bounds = [0, *(at for at in bounds if at), len(source)]
        at = 0
        while at < len(bounds) - 1:
            end = at + 1
            for longer in self._longer(source, bounds, at, known):
                end = longer
            yield bounds[at], bounds[end]
            at = end

    def _longer(
        self,
        source: str,
        bounds: Sequence[int],
        at: int,
        known: Mapping[str, tuple[ast.Node, ...] | SyntaxFault],
    ) -> Iterator[int]:
        """Yield the end of the piece from ``bounds[at]`` on, if it is further away than the next bound.

        It is where a string or comment is closed, or the brackets are, or behind a line that goes on; but
        only if the piece can be read then.
        """
        end = at + 1
        while isinstance(fault := self._read(source[bounds[at] : bounds[end]], known), SyntaxFault):
            further = self._further(source, bounds, at, end, fault)
            if further is None:
                return
            end = further
        if end > at + 1:
            yield end

    def _further(
        self, source: str, bounds: Sequence[int], at: int, end: int, fault: SyntaxFault
    ) -> int | None:
        """Return how far a piece may reach that doesn't parse up to ``bounds[end]``; None if no further."""
        if end == len(bounds) - 1:
            return None
        text = source[bounds[at] : bounds[end]]
        closer = _closer(fault, text)
        if closer:
            found = source.find(closer, bounds[end])
            return None if found < 0 else bisect_right(bounds, found)
        depth = _depth(text)
        if depth <= 0:
            return end + 1 if _at_end(fault, text) else None
        while depth > 0 and end < len(bounds) - 1:
            depth += self._depth(source[bounds[end] : bounds[end + 1]])
            end += 1
        return end if depth <= 0 else None

    def _depth(self, text: str) -> int:
        """Return the depth of a text, kept: behind an open bracket, each keystroke asks for all of them."""
        found = self._depths.get(text)
        if found is None:
            found = self._depths[text] = _depth(text)
        return found

    def _read(
        self, text: str, known: Mapping[str, tuple[ast.Node, ...] | SyntaxFault]
    ) -> tuple[ast.Node, ...] | SyntaxFault:
        """Return the items of a piece, or why there are none."""
        found = self._nodes.get(text) or known.get(text)
        if found is None:
            try:
                found = parse(text).items
            except SyntaxFault as fault:
                found = fault
        self._nodes[text] = found
        return found

    def _piece(self, source: str, start: int, end: int) -> Piece:
        self._reading += 1
        piece = Piece(source[start:end], start, self._reading)
        found = self._nodes[piece.text]
        broken = isinstance(found, SyntaxFault)
        if isinstance(found, SyntaxFault):
            piece.faults = found.diagnostics
            found = mended(piece.text).items
        base = piece.reading * _READING
        piece.items = [Item(placed(node, base), start - base, broken) for node in found]
        return piece

    def place(self, offset: int) -> int:
        """Return where an offset of any reading is in the text now; one of a node that is gone stays."""
        piece = self._by_reading.get(offset // _READING)
        within = offset % _READING
        return min(within if piece is None else piece.start + within, len(self.source))


def _closer(fault: SyntaxFault, text: str) -> str | None:
    """Return what would close the string or comment that is still open at the end of a text."""
    span = fault.diagnostics[0].span
    if span is None or not isinstance(fault, LexFault):
        return None
    rest = text[span.start :]
    if rest.startswith("/*"):
        return "*/"
    if rest.startswith('"""'):
        return '"""'
    # Only the code in a string of one line may go on in the next.
    return "}" if rest.startswith('"') and "${" in rest.partition("\n")[0] else None


def _depth(text: str) -> int:
    """Return how many more brackets a text opens than it closes."""
    code = _QUIET.sub("", text)
    return sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))


def _at_end(fault: SyntaxFault, text: str) -> bool:
    """Return whether what is lacking is lacking at the end of the text."""
    span = fault.diagnostics[0].span
    return span is not None and not text[span.start :].strip()


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
