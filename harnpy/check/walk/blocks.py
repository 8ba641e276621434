"""Statements: bindings, blocks and what decides whether they run, `match`, and what leaves a block.

Spec: 03 §5, §6, §8, §10.
"""

from __future__ import annotations

from harnpy.check.findings import declared_here
from harnpy.check.inference import annotated, certain
from harnpy.check.narrowing import after_if, arm_facts, check_arm, check_coverage, check_exhaustive
from harnpy.check.scopes import Binding, Scope
from harnpy.check.types import type_nodes
from harnpy.check.types.type_nodes import is_named, shown
from harnpy.check.walk.declarations import function
from harnpy.check.walk.undeclared_names import foreign_type_hint
from harnpy.syntax import ast
from harnpy.syntax.ast import bound_names
from harnpy.syntax.names import arm_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.check.narrowing import Facts
    from harnpy.check.walk import Walk

# `let`, `var` and assignments. Spec: 03 §5 (bindings), §8.1, §8.2.


def let(walk: Walk, node: ast.Let) -> None:
    if isinstance(node.value, ast.Closure | ast.FnExpr):
        function(walk, node.value)
    else:
        walk.visit(node.value)
    if isinstance(node.target, ast.NamePattern):
        _let_name(walk, node, node.target)
        return
    _let_pattern(walk, node)


def _let_name(walk: Walk, node: ast.Let, target: ast.NamePattern) -> None:
    actual = walk.type(node.value)
    if node.type is not None and actual is not None and not walk.accepts(node.type, node.value, actual):
        detail = walk.types.detail(actual, node.type)
        text = f"'{target.name}' declared as {shown(node.type)}, but assigned {shown(actual)}{detail}"
        places = [declared_here(node.type)]
        walk.findings.error(
            "assignment-type", node.value, text, help=foreign_type_hint(walk, node.type), places=places
        )
    if walk.at_file_level:
        _untyped(walk, node, target.name)
        return
    sure = certain(walk.inference, node.value, walk.scope) if not node.mutable else None
    walk.scope.declare(
        Binding(
            target.name,
            target,
            node.type or actual,
            mutable=node.mutable,
            value=None if node.mutable else node.value,
            certain=sure if node.type is None else annotated(walk.inference, node.type),
            inferred=node.type is None,
            widens=node.mutable and node.type is None and is_named(actual, "nil"),
        )
    )


def _let_pattern(walk: Walk, node: ast.Let) -> None:
    """A pattern's names have no type; a default sees the names before it (02 §13)."""
    for entry in node.target.entries:  # type: ignore[attr-defined]
        walk.optional(entry.default)
        _untyped(walk, node, entry.name)
    rest = node.target.rest  # type: ignore[attr-defined]
    if rest:
        _untyped(walk, node, rest)


def _untyped(walk: Walk, node: ast.Let, name: str) -> None:
    walk.scope.declare(Binding(name, node.target, mutable=node.mutable))


# Statements that leave a block, and imports. Spec: 03 §8.1, §10.2; 06 §6.


def return_(walk: Walk, node: ast.Return) -> bool:
    walk.optional(node.value)
    return True


def throw(walk: Walk, node: ast.Throw) -> bool:
    walk.visit(node.value)
    never_returns(walk, "throw", node)
    return True


def leave(walk: Walk, node: ast.Node) -> bool:
    return True


def never_returns(walk: Walk, site: str, node: ast.Node) -> None:
    """Judge which `unknown` variables have been tested in part where control never comes back."""
    unknowns = [
        (binding.name, binding.excluded)
        for binding in walk.scope.locals()
        if binding.excluded and _is_unknown(binding.type)
    ]
    if unknowns:
        check_coverage(site, node, unknowns[::-1], walk.findings)


def _is_unknown(type: ast.Node | None) -> bool:
    return getattr(type, "name", None) == "unknown"


def import_(walk: Walk, node: ast.Import) -> None:
    """Report the names that a module has not (06 §6); in a block, bind those that it has."""
    imported = walk.environment.imported
    if imported is not None and not walk.at_file_level:
        for name in imported.bound_by(node):
            walk.scope.declare(Binding(name, node))
    if imported is not None and not walk.quiet and (missing := imported.missing(node)):
        module, names = missing
        for name in names:
            text = f"Import error: '{name}' is not defined in {module}"
            other = f'only functions can be listed; `import "{node.path}"` brings its types'
            help_ = other if name in imported.names else None
            walk.findings.error("unknown-import", node, text, help=help_)


# What is known of variables inside a loop, which may have assigned them before. Spec: 03 §5, §6.


#: Values of the kind that a variable of theirs has had before.
_KEEPING = (ast.Int, ast.Float, ast.Str, ast.Interp, ast.Bool)
_ARITHMETIC = frozenset("+-*/%") | {"**"}


def loop_scope(walk: Walk, body: ast.Block) -> Scope:
    """A scope for a loop: what holds of a variable that the body assigns may hold only the first time."""
    inner = Scope(walk.scope)
    for name, keeps in assigned(body):
        found = walk.scope.find(name)
        if found is not None and _is_open(found, keeps):
            inner.views[name] = found.view(None)
    return inner


def _is_open(found: Binding, keeps: bool) -> bool:
    """Whether a variable may hold something else the next time; ``keeps``: not what is assigned here."""
    if found.widens or found.type is not found.declared:
        return True
    is_plain = isinstance(found.type, ast.TypeName) and not found.type.args
    return found.inferred and not (is_plain and keeps)


def assigned(block: ast.Node) -> Iterator[tuple[str, bool]]:
    """The variables that ``block`` assigns, each time with whether the value is surely of their kind."""
    stack: list[ast.Node] = [block]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Assign):
            root = node.target
            while isinstance(root, ast.Member | ast.Index):
                root = root.object
            if isinstance(root, ast.Name):
                yield root.name, root is node.target and _keeps(node)
        stack.extend(node.children())


def _keeps(node: ast.Assign) -> bool:
    value = node.value
    is_arithmetic = isinstance(value, ast.Binary) and value.op in _ARITHMETIC
    return node.op != "=" or is_arithmetic or isinstance(value, _KEEPING)


# Blocks and what decides whether they run: conditions, loops, `try`. Spec: 03 §5, §6.


def block(walk: Walk, node: ast.Block) -> bool:
    return walk.block(node)


def if_(walk: Walk, node: ast.If) -> bool:
    walk.visit(node.cond)
    sides = walk.inference.sides(node.cond, walk.scope)
    then_leaves = walk.block(node.then, sides[0])
    else_leaves = _otherwise(walk, node.otherwise, sides[1])
    facts = after_if(sides, then_leaves, else_leaves)
    stayed = node.otherwise if then_leaves else node.then
    if facts and stayed is not None:
        # The branch that goes on may have changed what the condition was about.
        facts = facts.without({name for name, _ in assigned(stayed)})
    walk.learn(facts)
    return then_leaves and else_leaves


def _otherwise(walk: Walk, node: ast.Node | None, facts: Facts) -> bool:
    if node is None:
        return False
    if isinstance(node, ast.Block):
        return walk.block(node, facts)
    outer = walk.scope
    walk.scope = walk.inference.narrowed(facts, outer)
    leaves = bool(walk.visit(node))
    walk.scope = outer
    return leaves


def ternary(walk: Walk, node: ast.Ternary) -> None:
    walk.visit(node.cond)
    outer = walk.scope
    for facts, side in zip(walk.inference.sides(node.cond, outer), (node.then, node.otherwise), strict=True):
        walk.scope = walk.inference.narrowed(facts, outer)
        walk.visit(side)
    walk.scope = outer


def while_(walk: Walk, node: ast.While) -> None:
    outer = walk.scope
    walk.scope = loop_scope(walk, node.body)
    walk.visit(node.cond)
    walk.block(node.body, walk.inference.sides(node.cond, walk.scope)[0])
    walk.scope = outer


def for_(walk: Walk, node: ast.For) -> None:
    walk.visit(node.iterable)
    iterated = walk.type(node.iterable)
    inner = loop_scope(walk, node.body)
    outer, walk.scope = walk.scope, inner
    pattern = node.pattern
    if isinstance(pattern, ast.NamePattern):
        inner.declare(Binding(pattern.name, pattern, type_nodes.element(iterated), inferred=True))
    elif isinstance(pattern, ast.PairPattern):
        for name, type in zip((pattern.first, pattern.second), type_nodes.pair(iterated), strict=True):
            inner.declare(Binding(name, pattern, type, inferred=True))
    else:
        for entry in getattr(pattern, "entries", ()):
            walk.optional(entry.default)
            inner.declare(Binding(entry.name, pattern))
        for name in bound_names(pattern):
            inner.declare(Binding(name, pattern))
    walk.block(node.body, scope=inner)
    walk.scope = outer


def guard(walk: Walk, node: ast.Guard) -> None:
    walk.visit(node.cond)
    sides = walk.inference.sides(node.cond, walk.scope)
    walk.block(node.otherwise, sides[1])
    walk.learn(sides[0])


def try_(walk: Walk, node: ast.Try) -> None:
    walk.quietly(lambda: walk.block(node.body))
    if node.catch is not None:
        inner = Scope(walk.scope)
        if node.catch.name:
            inner.declare(Binding(node.catch.name, node.catch, node.catch.type))
        outer, walk.scope = walk.scope, inner
        walk.block(node.catch.body)
        walk.scope = outer
    walk.optional(node.finally_)


def retry(walk: Walk, node: ast.Retry) -> None:
    """A body that may fail without harm; it opens no scope (02 §7.2)."""
    walk.visit(node.count)
    scope = loop_scope(walk, node.body)
    walk.scope.views.update(scope.views)
    walk.quietly(lambda: walk.block(node.body, scope=walk.scope))


def select(walk: Walk, node: ast.Select) -> None:
    for case in node.cases:
        walk.optional(case.source)
        inner = Scope(walk.scope)
        if case.name:
            inner.declare(Binding(case.name, case))
        outer, walk.scope = walk.scope, inner
        walk.block(case.body)
        walk.scope = outer


# `match`: its value, its arms in order, whether they leave nothing out. Spec: 03 §6, §8.1, §10.1; 02 §12.


def match(walk: Walk, node: ast.Match) -> None:
    walk.visit(node.value)
    value_type = walk.type(node.value)
    object_type = walk.type(node.value.object) if isinstance(node.value, ast.Member) else None
    for arm, facts in zip(node.arms, arm_facts(node, walk.scope.type_of, walk.types), strict=True):
        _arm(walk, arm, facts, value_type)
    check_exhaustive(node, value_type, object_type, walk.types, walk.function.type_params, walk.findings)


def _arm(walk: Walk, arm: ast.Arm, facts: Facts, value_type: ast.Node | None) -> None:
    outer = walk.scope
    walk.scope = inner = Scope(outer)
    for part in arm_parts(arm, walk.environment.enums_anywhere):
        if isinstance(part, ast.Name):
            inner.declare(Binding(part.name, part))
        else:
            walk.visit(part)
    check_arm(arm, value_type, walk.types, walk.findings)
    inner.narrow({n: t for n, t in facts.types.items() if n not in inner.names}, facts.ruled_out)
    walk.optional(arm.guard)
    walk.block(arm.body)
    walk.scope = outer
