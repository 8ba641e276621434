"""Blocks and what decides whether they run: conditions, loops, `try`. Spec: 03 §5, §6."""

from __future__ import annotations

from harnpy.check.narrowing.facts import after_if
from harnpy.check.scopes import Binding, Scope
from harnpy.check.types import elements
from harnpy.check.walk.loops import assigned, loop_scope
from harnpy.syntax import ast
from harnpy.syntax.ast.patterns import bound_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.narrowing.facts import Facts
    from harnpy.check.walk.visitor import Walk


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
        inner.declare(Binding(pattern.name, pattern, elements.element(iterated), inferred=True))
    elif isinstance(pattern, ast.PairPattern):
        for name, type in zip((pattern.first, pattern.second), elements.pair(iterated), strict=True):
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
