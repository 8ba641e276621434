"""One open file: its text, its tree, what was found in it, and what is at an offset. Spec: 12 §2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from harnpy.check.checker import ABOVE, VISITS
from harnpy.check.findings import Finding
from harnpy.check.lint.uses import Uses
from harnpy.check.scopes import Scope
from harnpy.check.walk import Walk
from harnpy.checking import CheckedFile
from harnpy.syntax import ast
from harnpy.syntax.mending import mended

if TYPE_CHECKING:
    from harnpy.check.edits import Item
    from harnpy.check.environment import Environment
    from harnpy.check.inference import Inference
    from harnpy.check.knowledge import Knowledge
    from harnpy.check.types.type_nodes import Type
    from harnpy.checking import Bring
    from harnpy.lsp.advice import Advice
    from harnpy.lsp.text import Text


#: What stands for the word that is being typed, in `Document.supposed`. No program has it.
CURSOR = "__harnpy_cursor__"

_T = TypeVar("_T")
#: Words, and what has words in it that aren't code.
_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|""".*?"""|"(?:[^"\\\n]|\\.)*"|[^\W\d]\w*', re.DOTALL)


class Spot(NamedTuple):
    """A place in a document: the item there, and the nodes around it, the outermost first.

    The nodes have the offsets of their item's reading; ``offset`` is the place by those. `Document.span` has
    a node's place in the text.
    """

    item: Item
    offset: int
    nodes: tuple[ast.Node, ...]

    @property
    def node(self) -> ast.Node:
        """The innermost node."""
        return self.nodes[-1]


class Document:
    """``path`` is absolute, and None for what is in no file. ``version`` is the client's, None without any.

    What is looked up lazily is so once for each text.
    """

    def __init__(
        self, uri: str, path: str | None, text: Text, knowledge: Knowledge, *, strict: bool = False
    ) -> None:
        self.uri = uri
        self.path = path
        self.text = text
        self.version: int | None = None
        #: The `Workspace.revision` that it has last seen the other files in.
        self.revision = 0
        self.knowledge = knowledge
        self.checked = CheckedFile(knowledge, strict=strict)
        self._of_text: dict[str, Any] = {}
        #: What the linter has found, see harnpy/lsp/linting.py; None until it has looked.
        self.advice: Advice | None = None
        self._kept: dict[Any, dict[Item, Any]] = {}
        self._enums: set[str] = set()
        self._lasting: dict[Any, dict[Item, tuple[list[Finding] | None, Any]]] = {}

    def edit(self, text: Text, bring: Bring, version: int | None = None) -> None:
        """Take another text."""
        self.text = text
        self.version = version
        self.checked.edit(text.source, bring)
        self._of_text.clear()
        if self.environment.enums_anywhere != self._enums:
            # `a.b` in any item is a variant if `a` is an enum.
            self._enums = self.environment.enums_anywhere
            self._kept.clear()
        for name in ("uses", "findings"):
            self.__dict__.pop(name, None)

    @property
    def source(self) -> str:
        return self.text.source

    @property
    def environment(self) -> Environment:
        return self.checked.environment

    @property
    def items(self) -> list[Item]:
        """The top-level items; their nodes have the offsets of their own readings."""
        return self.checked.draft.items

    @cached_property
    def uses(self) -> Uses:
        """The bindings of the file and their uses, by the offsets of their readings: see `place`."""
        return Uses(
            ast.Program(0, 0, tuple(item.node for item in self.items)), self.environment.enums_anywhere
        )

    @cached_property
    def findings(self) -> list[Finding]:
        """What the checker has to say of the parts that parse, by offsets in the text."""
        return self.checked.findings()

    def standing_advice(self) -> list[Finding]:
        """Return what is known of the linter's findings by now, by offsets in the text."""
        if self.advice is None:
            return []
        return list(self.advice.standing(self.source, self.items, self.place))

    def once(self, what: str, read: Callable[[], _T]) -> _T:
        """Return what ``read`` reads of the whole text: once, until it is edited."""
        if what not in self._of_text:
            self._of_text[what] = read()
        found: _T = self._of_text[what]
        return found

    def kept(self, item: Item, read: Callable[[Document, Item], _T]) -> _T:
        """Return what ``read`` reads of an item: once, until the item is edited."""
        known = self._kept.setdefault(read, {})
        if item not in known:
            if len(known) > 2 * len(self.items) + 16:
                self._kept[read] = known = {one: known[one] for one in self.items if one in known}
            known[item] = read(self, item)
        found: _T = known[item]
        return found

    def lasting(self, item: Item, read: Callable[[Document, Item], _T]) -> _T:
        """Return what ``read`` reads of an item and of what it sees, as long as the item's findings hold."""
        if item.findings is None:
            _ = self.findings
        known = self._lasting.setdefault(read, {})
        before = known.get(item)
        if before is None or item.findings is None or before[0] is not item.findings:
            if len(known) > 2 * len(self.items) + 16:
                self._lasting[read] = known = {one: known[one] for one in self.items if one in known}
            before = known[item] = item.findings, read(self, item)
        found: _T = before[1]
        return found

    def place(self, offset: int) -> int:
        """Return where an offset of a node is in the text."""
        return self.checked.draft.place(offset)

    def span(self, node: ast.Node) -> tuple[int, int]:
        """Return where a node is in the text."""
        return self.place(node.start), self.place(node.end)

    def name_span(self, node: ast.Node, name: str) -> tuple[int, int]:
        """Return where a node first has a word, such as the name that it declares; all of it if nowhere."""
        start, end = self.span(node)
        for at in _words(self.source, name, start, end):
            return at, at + len(name)
        return start, end

    def supposed(self, start: int, end: int, word: str) -> Supposed | None:
        """Return what would be at ``start`` if a word stood in the place of ``source[start:end]``.

        The document stays as it is. None where no item would be there.
        """
        draft = self.checked.draft
        piece = next(one for one in draft.pieces if start <= one.end)
        if start == piece.end and piece is not draft.pieces[-1] and not end - start:
            # A word at the margin begins a piece of its own.
            piece = next((one for one in draft.pieces if one.start == start), piece)
        text = piece.text[: start - piece.start] + word + piece.text[end - piece.start :]
        nodes = mended(text).items
        offset = start - piece.start
        item = next((node for node in reversed(nodes) if node.start <= offset <= node.end), None)
        if item is None:
            return None
        environment = self.checked.supposing(piece, nodes)
        probe = _Probe(environment, item, offset)
        probe.look()
        return Supposed(text, piece.start, offset, tuple(_around(item, offset)), probe.sight)

    def item_at(self, offset: int) -> Item | None:
        """Return the item that an offset of the text is in, or that ends there."""
        found = None
        for item in self.items:
            if item.start > offset:
                break
            if offset <= item.end:
                found = item
        return found

    def spot(self, offset: int) -> Spot | None:
        """Return what is at an offset of the text; None between the items."""
        item = self.item_at(offset)
        if item is None:
            return None
        inner = offset - item.moved
        return Spot(item, inner, tuple(_around(item.node, inner)))

    def scope(self, spot: Spot) -> Sight:
        """Return what is in sight at a spot, with the types that hold there."""
        probe = _Probe(self.environment, spot.item.node, spot.offset)
        probe.look()
        return probe.sight

    def type_of(self, spot: Spot, node: ast.Node) -> Type | None:
        """Return the type of an expression at a spot; None if it isn't known."""
        sight = self.scope(spot)
        return sight.inference.of(node, sight.scope)


class Sight(NamedTuple):
    """What is in sight at one place. ``certain``: see `Binding.certain` in harnpy/check/scopes.py."""

    scope: Scope
    inference: Inference


class Supposed(NamedTuple):
    """What is at ``offset`` in the ``text`` of a piece that is not there: nodes around it, what is in sight.

    The piece begins at ``start`` in the document.
    """

    text: str
    start: int
    offset: int
    nodes: tuple[ast.Node, ...]
    sight: Sight


def _around(node: ast.Node, offset: int) -> Iterator[ast.Node]:
    """Yield the nodes that an offset is in, the outermost first; where two meet, the later one."""
    while True:
        yield node
        inner = [child for child in node.children() if child.start <= offset <= child.end]
        if not inner:
            return
        node = inner[-1]


def _words(source: str, word: str, start: int, end: int) -> Iterator[int]:
    """Yield where a word stands by itself in the code of ``source[start:end]``: no comment, no string."""
    for found in _CODE.finditer(source, start, end) if word else ():
        if found[0] == word:
            yield found.start()


class _Probe(Walk):
    """The checker's walk over one item, for the scope at one place."""

    def __init__(self, environment: Environment, item: ast.Node, offset: int) -> None:
        super().__init__(environment, item, VISITS, ABOVE)
        self._offset = offset
        self.sight = Sight(self.scope, self.inference)

    def look(self) -> None:
        """Visit the item."""
        self.visit(self.item)

    def visit(self, node: ast.Node) -> object:
        if node.start <= self._offset <= node.end:
            self._note()
        return super().visit(node)

    def _note(self) -> None:
        """Keep what is in sight now: what comes later in a block changes its scope."""
        inference = type(self.inference)(self.environment)
        inference.types = self.inference.types
        self.sight = Sight(_copied(self.scope), inference)


def _copied(scope: Scope) -> Scope:
    """Return a scope as it is now; the file's own, which all share, stays itself."""
    if scope.parent is None:
        return scope
    copied = Scope(_copied(scope.parent), function=scope.function, opaque=scope.opaque)
    copied.names, copied.views, copied.later = scope.names.copy(), scope.views.copy(), scope.later.copy()
    return copied
