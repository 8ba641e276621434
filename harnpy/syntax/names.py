"""Which names a program declares, and in what order: one walk for all that bind names. Spec: 02 §7, §10-§13.

A `Binder` visits a tree in the order of execution, and says of each name what declares it and where a scope
or a function begins and ends. What a scope holds, and what a use means, is for the subclass: the resolver
makes variables, the type checker bindings with types, the linter notes uses. The functions below answer for
one piece of syntax, and need no walk.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import bound_names, bound_places

#: The limit of recursion for walks: a few frames for each of the levels that the parser accepts. CPython 3.11
#: keeps them on the heap.
FRAMES = 60_000

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    Visits = Mapping[type[ast.Node], Callable[[Any, Any], object]]


class Binder:
    """The walk. ``visits`` says what to do with each class of node; others have their children visited."""

    #: The enums whose variants are patterns.
    enums: Collection[str] = ()

    def __init__(self, visits: Visits) -> None:
        self._visits = visits

    def visit(self, node: ast.Node) -> object:
        visit = self._visits.get(type(node))
        if visit:
            return visit(self, node)
        self.children(node)
        return None

    def children(self, node: ast.Node) -> None:
        for child in node.children():
            self.visit(child)

    def optional(self, node: ast.Node | None) -> None:
        if node is not None:
            self.visit(node)

    def statements(self, statements: Sequence[ast.Node]) -> bool | None:
        """Visit the statements of the scope that has just been opened."""
        self.predeclare(statements)
        for statement in statements:
            self.visit(statement)
        return None

    def predeclare(self, statements: Sequence[ast.Node]) -> None:
        """Note what these statements will declare, for functions that are called later (02 §7.4)."""
        raise NotImplementedError

    def open_scope(self, node: ast.Node) -> object:
        """Begin a scope, which belongs to ``node``."""
        raise NotImplementedError

    def close_scope(self) -> None:
        raise NotImplementedError

    def enter_function(self, node: ast.Node, name: str | None) -> object:
        """Begin a unit of evaluation, which is a scope, too."""
        raise NotImplementedError

    def leave_function(self) -> None:
        raise NotImplementedError

    def bind(
        self,
        node: ast.Node,
        place: ast.Node,
        name: str,
        role: str,
        mutable: bool = False,
        value: ast.Node | None = None,
    ) -> None:
        """Bind a name from here on. ``node`` declares it, ``place`` is the part of that which has the name.

        ``value`` is the expression that it is bound to, if there is one for it alone. Of the names that are
        `_` only parameters are reported.
        """
        raise NotImplementedError

    def attributes(self, node: Any) -> None:
        """Visit the attributes of a declaration: no evaluation needs them."""


# Patterns: in `let`, `for`, `match`, `catch` and `select`. Spec: 02 §11-§13.


def let(b: Binder, node: ast.Let) -> None:
    b.visit(node.value)
    let_names(b, node)


def let_names(b: Binder, node: ast.Let) -> None:
    plain = isinstance(node.target, ast.NamePattern)
    pattern(b, node, node.target, "let", node.mutable, node.value if plain else None)


def pattern(
    b: Binder, node: ast.Node, pattern: ast.Node, role: str, mutable: bool, value: ast.Node | None = None
) -> None:
    """Bind the names of a pattern; defaults see the names before them (02 §13)."""
    for place, name in bound_places(pattern):
        if isinstance(place, ast.PatternEntry):
            b.optional(place.default)
        if name != "_":
            b.bind(node, place, name, role, mutable, value)


def for_(b: Binder, node: ast.For) -> None:
    b.visit(node.iterable)
    b.open_scope(node)
    pattern(b, node, node.pattern, "for", True)
    b.statements(node.body.statements)
    b.close_scope()


def match(b: Binder, node: ast.Match) -> None:
    b.visit(node.value)
    for arm in node.arms:
        b.open_scope(arm)
        arm_names(b, arm)
        b.optional(arm.guard)
        b.visit(arm.body)
        b.close_scope()


def arm_names(b: Binder, arm: ast.Arm) -> None:
    for part in arm_parts(arm, b.enums):
        if not isinstance(part, ast.Name):
            b.visit(part)
        elif part.name != "_":
            b.bind(arm, part, part.name, "match")


def catch(b: Binder, node: ast.Catch) -> None:
    _with_name(b, node, "catch")


def select_case(b: Binder, node: ast.SelectCase) -> None:
    b.optional(node.source)
    _with_name(b, node, "select")


def _with_name(b: Binder, node: ast.Catch | ast.SelectCase, role: str) -> None:
    b.open_scope(node)
    if node.name and node.name != "_":
        b.bind(node, node, node.name, role)
    b.visit(node.body)
    b.close_scope()


# Functions: their parameters and statements are one scope. Spec: 02 §9.


def function(
    b: Binder, node: ast.Node, name: str | None, params: Sequence[ast.Param], body: ast.Block
) -> None:
    b.enter_function(node, name)
    for param in params:
        b.optional(param.default)
        b.bind(node, param, param.name, "param")
    b.statements(body.statements)
    b.leave_function()


def closure(b: Binder, node: ast.Closure | ast.FnExpr) -> None:
    function(b, node, None, node.params, node.body)


def impl_decl(b: Binder, node: ast.ImplDecl) -> None:
    b.attributes(node)
    for method in node.methods:
        b.attributes(method)
        function(b, method, f"{node.name}.{method.name}", method.params, method.body)


def spawn(b: Binder, node: ast.Spawn) -> None:
    function(b, node, None, (), node.body)


def parallel(b: Binder, node: ast.Parallel) -> None:
    b.visit(node.source)
    b.optional(node.max_concurrent)
    parallel_body(b, node)


def parallel_body(b: Binder, node: ast.Parallel) -> None:
    b.enter_function(node, None)
    if node.param:
        b.bind(node, node, node.param, "param")
    b.statements(node.body.statements)
    b.leave_function()


# Blocks, and declarations that are values.


def block(b: Binder, node: ast.Block) -> None:
    b.open_scope(node)
    b.statements(node.statements)
    b.close_scope()


def retry(b: Binder, node: ast.Retry) -> None:
    """Its body is no scope of its own (02 §7.2)."""
    b.visit(node.count)
    b.statements(node.body.statements)


def skill_decl(b: Binder, node: ast.SkillDecl) -> None:
    b.attributes(node)
    for field in node.fields:
        b.visit(field)
    b.bind(node, node, node.name, "skill")


def eval_pack(b: Binder, node: ast.EvalPack) -> None:
    """The fields see what is around the pack, the statements see the fields too (08 §8.7)."""
    b.attributes(node)
    for field in node.fields:
        b.visit(field)
    b.bind(node, node, node.name, "eval_pack")
    b.open_scope(node)
    for owner, name in pack_names(node):
        b.bind(owner, owner, name, "field")
    b.open_scope(node)
    b.statements(node.body)
    b.optional(node.summarize)
    b.close_scope()
    b.close_scope()


#: What binds names the same way for everybody.
VISITS: Visits = {
    ast.Let: let,
    ast.For: for_,
    ast.Match: match,
    ast.Catch: catch,
    ast.SelectCase: select_case,
    ast.Closure: closure,
    ast.FnExpr: closure,
    ast.ImplDecl: impl_decl,
    ast.Spawn: spawn,
    ast.Parallel: parallel,
    ast.Block: block,
    ast.Retry: retry,
    ast.SkillDecl: skill_decl,
    ast.EvalPack: eval_pack,
}


def declared_names(statement: ast.Node) -> list[str]:
    """Return the names of values that a statement declares in the block that it stands in."""
    if isinstance(statement, ast.Let):
        return bound_names(statement.target)
    if isinstance(statement, ast.FnDecl | ast.ToolDecl | ast.SkillDecl | ast.EvalPack):
        return [statement.name]
    return []


def declared_later(statements: Sequence[ast.Node]) -> Iterator[tuple[str, ast.FnDecl | ast.Let]]:
    """Yield what functions that are called later find, though a block declares it after them (02 §7.4)."""
    for node in statements:
        if isinstance(node, ast.FnDecl):
            yield node.name, node
        elif isinstance(node, ast.Let) and isinstance(node.target, ast.NamePattern):
            yield node.target.name, node


def pack_names(pack: ast.EvalPack) -> list[tuple[ast.Node, str]]:
    """The names that an eval pack's statements see besides its own, each with the node it comes from."""
    owners: dict[str, ast.Node] = {field.name: field for field in pack.fields}
    for name in ("id", "version"):
        if name != pack.name:
            owners.setdefault(name, pack)
    return [(owner, name) for name, owner in owners.items()]


# The patterns of `match`. Spec: 02 §12.


def arm_parts(arm: ast.Arm, enums: Collection[str]) -> list[ast.Node]:
    """The parts of an arm's patterns that are bound (names) or compared (all else).

    Where there are several patterns, none binds a name.
    """
    if len(arm.patterns) == 1:
        return match_parts(arm.patterns[0], enums)
    return [pattern for pattern in arm.patterns if not isinstance(pattern, ast.Name)]


def match_parts(pattern: ast.Node, enums: Collection[str]) -> list[ast.Node]:
    """The parts of an only pattern that are bound (names) or compared (all else)."""
    if is_computed(pattern):
        return [pattern]
    if isinstance(pattern, ast.Dict):
        return [entry.value for entry in pattern.entries if isinstance(entry, ast.DictEntry)]
    if isinstance(pattern, ast.List):
        return list(pattern.items)
    variant = enum_variant(pattern, enums)
    if variant:
        return list(pattern.args) if isinstance(pattern, ast.MethodCall) else []
    return [pattern]


def is_computed(pattern: ast.Node) -> bool:
    """Return True if a match pattern, with a spread or computed key, is a value to compare with (02 §12)."""
    return any(
        isinstance(part, ast.Spread) or (isinstance(part, ast.DictEntry) and part.computed)
        for part in pattern.children()
    )


def enum_variant(node: ast.Node, enums: Collection[str]) -> tuple[str, str] | None:
    """``(enum, variant)`` when ``node`` is written as one: ``E.V`` or ``E.V(…)``."""
    if isinstance(node, ast.Member | ast.MethodCall) and isinstance(node.object, ast.Name):
        known = node.object.name in enums and not node.optional
        return (node.object.name, node.name) if known else None
    return None


# The order in which the items of a file have their turn. Spec: 02 §10, 06 §1.


#: Declarations that a file with pipelines performs before the entry (02 §10.2).
DECLARATIONS = (
    ast.FnDecl,
    ast.ToolDecl,
    ast.SkillDecl,
    ast.StructDecl,
    ast.ImplDecl,
    ast.EnumDecl,
    ast.InterfaceDecl,
    ast.TypeDecl,
    ast.EvalPack,
)


def ancestry(pipeline: ast.Pipeline, by_name: Mapping[str, ast.Pipeline]) -> list[ast.Pipeline]:
    """A pipeline and those that it extends, the furthest ancestor first. Spec: 02 §10.4."""
    chain = [pipeline]
    while (parent := by_name.get(chain[-1].extends or "")) and all(parent is not one for one in chain):
        chain.append(parent)
    return chain[::-1]


def lineage(program: ast.Program, entry: ast.Pipeline) -> list[ast.Pipeline]:
    """``entry`` and the pipelines of the file that it extends, the furthest ancestor first."""
    return ancestry(entry, {item.name: item for item in program.items if isinstance(item, ast.Pipeline)})


def setup_order(program: ast.Program) -> list[ast.Node]:
    """Return what a file with pipelines does before its entry: imports, lets, declarations (02 §10.2)."""
    items = program.items
    return [
        *(item for item in items if isinstance(item, ast.Import)),
        *(item for item in items if isinstance(item, ast.Let)),
        *(item for item in items if isinstance(item, DECLARATIONS)),
    ]


def script_order(program: ast.Program) -> list[ast.Node]:
    """Return what a file without pipelines does: imports, then all else as it stands (06 §1)."""
    return sorted(program.items, key=lambda item: not isinstance(item, ast.Import))
