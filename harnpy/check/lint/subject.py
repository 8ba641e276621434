"""One file as the lint rules look at it, and what a rule reports of it. Spec: 03 §15.

The tree is indexed by class and by parent; tokens, comments and names are computed when a rule first asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

from harnpy.check.findings import Place
from harnpy.check.lint.settings import Settings
from harnpy.check.lint.uses import Uses
from harnpy.syntax import ast
from harnpy.syntax.ast import Node
from harnpy.syntax.comments import Comment, comments_between
from harnpy.syntax.diagnostic import Edit, Fix
from harnpy.syntax.lexer import Tokens, lex, shebang_end
from harnpy.syntax.names import DECLARATIONS

if TYPE_CHECKING:
    from harnpy.check.knowledge import Imported, Knowledge

_A = TypeVar("_A", bound=ast.Node)
_B = TypeVar("_B", bound=ast.Node)
_C = TypeVar("_C", bound=ast.Node)


class Subject:
    """``consumed`` are the names of this file that other files import by name."""

    def __init__(
        self,
        source: str,
        program: ast.Program,
        file: str,
        knowledge: Knowledge | None,
        imported: Imported | None,
        settings: Settings,
        consumed: Collection[str] = (),
    ) -> None:
        self.source = source
        self.program = program
        self.file = file
        self.knowledge = knowledge
        self.imported = imported
        self.settings = settings
        self.consumed = consumed
        self._parents: dict[int, ast.Node] = {}
        self._by_type: dict[type[ast.Node], list[ast.Node]] = {}
        stack: list[ast.Node] = [program]
        while stack:
            node = stack.pop()
            self._by_type.setdefault(type(node), []).append(node)
            inner = node.children()
            for child in inner:
                self._parents[id(child)] = node
            stack.extend(reversed(inner))

    @overload
    def each(self, one: type[_A], /) -> Iterator[_A]: ...
    @overload
    def each(self, one: type[_A], two: type[_B], /) -> Iterator[_A | _B]: ...
    @overload
    def each(self, one: type[_A], two: type[_B], three: type[_C], /) -> Iterator[_A | _B | _C]: ...
    @overload
    def each(self, *types: type[ast.Node]) -> Iterator[Any]: ...
    def each(self, *types: type[ast.Node]) -> Iterator[Any]:
        """The nodes of these types, in source order for each type."""
        for type_ in types:
            yield from self._by_type.get(type_, ())

    def parent(self, node: ast.Node) -> ast.Node | None:
        return self._parents.get(id(node))

    def above(self, node: ast.Node) -> Iterator[ast.Node]:
        """Yield what encloses ``node``, from the inside out."""
        parent = self.parent(node)
        while parent is not None:
            yield parent
            parent = self.parent(parent)

    def is_discarded(self, node: ast.Node) -> bool:
        """Return True if ``node`` is a statement whose value nobody can get.

        The last statement of a block may be the block's value, and a function's result.
        """
        block = self.parent(node)
        if isinstance(block, ast.Program):
            return True
        if not isinstance(block, ast.Block):
            return False
        loops = isinstance(self.parent(block), ast.For | ast.While | ast.Defer)
        return loops or node is not block.statements[-1]

    def means_builtin(self, call: ast.Call) -> bool:
        """Return True if a call is surely one of a builtin, since nothing else has the name."""
        return call.name not in self.own_names and self._imports_none_of(call.name)

    def _imports_none_of(self, name: str) -> bool:
        """Return True if no import of a whole module can bring a name."""
        if self._foreign is None:
            return all(node.names is not None for node in self.each(ast.Import))
        return name not in self._foreign

    @cached_property
    def _foreign(self) -> frozenset[str] | None:
        """The values that the imports bring; None where that isn't known of all of them."""
        if self.imported is None or not self.imported.complete:
            return None
        return frozenset(self.imported.functions).union(self.imported.names)

    @cached_property
    def own_names(self) -> set[str]:
        """Every name that the file declares, wherever."""
        return {binding.name for binding in self.uses.bindings}

    def text(self, node: ast.Node) -> str:
        return self.source[node.start : node.end]

    def name_span(self, node: ast.Node, name: str) -> tuple[int, int]:
        """Return where ``node``, which declares ``name``, has it."""
        attrs = getattr(node, "attrs", ())
        start = attrs[-1].end if attrs else node.start
        if isinstance(node, ast.PatternEntry) and node.key not in (None, name):
            start = self.source.index(":", start)
        elif isinstance(node, ast.Parallel):
            start = self.source.rindex(name, start, node.body.start)
        return next(_words(self.source, name, start, node.end), (node.start, node.end))

    @cached_property
    def uses(self) -> Uses:
        """The names of the file. An imported type may be an enum, so its variants pass for patterns."""
        enums = {"Result", *(node.name for node in self.each(ast.EnumDecl))}
        return Uses(self.program, enums.union(self.imported.types if self.imported else ()))

    @cached_property
    def mentioned(self) -> set[str]:
        """All names that are read or called or stand for a type."""
        found = {node.name for node in self.each(ast.TypeName, ast.StructLit, ast.ImplDecl)}
        bounds = {bound for node in self.each(ast.FnDecl) for _, bound in node.where}
        # `E.V` and `E.V(…)` as patterns; the walk looks at what stands in the brackets alone.
        matched = (pattern for node in self.each(ast.Arm) for pattern in node.patterns)
        owners = (one.object for one in matched if isinstance(one, ast.Member | ast.MethodCall))
        enums = {owner.name for owner in owners if isinstance(owner, ast.Name)}
        return self.uses.mentioned | found | bounds | enums

    @cached_property
    def texts(self) -> set[str]:
        """All string literals, by which things may be named too."""
        return {node.value for node in self.each(ast.Str)}

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens; those of an interpolated string are one."""
        return lex(self.source, 0, len(self.source))

    @cached_property
    def comments(self) -> tuple[Comment, ...]:
        """The comments, those in interpolations included."""
        return comments_between(self.tokens, shebang_end(self.source))

    @cached_property
    def is_library(self) -> bool:
        """Return True if the file only declares: then others may use whatever it exports (06 §2)."""
        return all(isinstance(item, _DECLARATIONS) for item in self.program.items)


_DECLARATIONS = (ast.Import, ast.Let, *DECLARATIONS)


def _words(source: str, name: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where ``name`` stands as a word in ``source[start:end]``."""
    while (at := source.find(name, start, end)) >= 0:
        start = at + len(name)
        if not (_in_word(source[at - 1 : at]) or _in_word(source[start : start + 1])):
            yield at, start


def _in_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


class Remark:
    """A finding of a rule in ``source[start:end]``. ``edits`` mend it; ``safe`` ones change nothing else."""

    __slots__ = ("end", "fix", "help", "message", "places", "start")

    def __init__(
        self,
        start: int,
        end: int,
        message: str,
        *,
        help: str | None = None,
        places: Sequence[Place] = (),
        edits: Sequence[Edit] = (),
        safe: bool = True,
    ) -> None:
        self.start = start
        self.end = end
        self.message = message
        self.help = help
        self.places = places
        self.fix = Fix(edits, safe) if edits else None


def remark(
    node: Node, message: str, *, help: str | None = None, edits: Sequence[Edit] = (), safe: bool = True
) -> Remark:
    """A remark about all of ``node``."""
    return Remark(node.start, node.end, message, help=help, edits=edits, safe=safe)


Check = Callable[[Subject], Iterator[Remark]]


class Rule:
    """``check`` finds what a rule called ``id`` is against. One that isn't a ``default`` is asked for."""

    __slots__ = ("check", "default", "id", "severity")

    def __init__(self, id: str, check: Check, *, severity: str = "warning", default: bool = True) -> None:
        self.id = id
        self.check = check
        self.severity = severity
        self.default = default
