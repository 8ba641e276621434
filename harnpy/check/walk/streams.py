"""Generators, streams, and bodies that run beside the program. Spec: 03 §8.1."""

from __future__ import annotations

from harnpy.check.inference.dynamic import known
from harnpy.check.scopes import Binding, Scope
from harnpy.check.types import elements
from harnpy.check.types.names import INT, is_named, shown
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.walk.visitor import Walk


def yield_(walk: Walk, node: ast.Yield) -> None:
    if walk.function.gen:
        text = "`yield` is not a stream emit; use `emit` inside `gen fn`"
        walk.reported.error("misplaced-yield", node, text)
    walk.optional(node.value)


def emit(walk: Walk, node: ast.Emit) -> None:
    if not walk.function.gen:
        walk.reported.error("misplaced-emit", node, "`emit` can only be used inside a `gen fn`")
    walk.visit(node.value)
    expected = walk.function.item
    if expected is None:
        return
    actual = walk.type(node.value)
    if actual is not None and not walk.accepts(expected, node.value, actual):
        text = f"emit type doesn't match: expected {shown(expected)}, got {shown(actual)}"
        walk.findings.error("emit-type", node.value, text)


def parallel(walk: Walk, node: ast.Parallel) -> None:
    walk.visit(node.source)
    if node.max_concurrent is not None:
        walk.visit(node.max_concurrent)
        found = known(walk.type(node.max_concurrent))
        if found is not None and not is_named(found, "int") and not is_named(found, "never"):
            text = f"`max_concurrent` on `parallel` must be int, got {shown(found)}"
            walk.findings.error("max-concurrent-type", node.max_concurrent, text)
    inner = Scope(walk.scope, function=True)
    if node.param:
        item = INT if node.kind == "count" else elements.element(walk.type(node.source))
        inner.declare(Binding(node.param, node, item))
    _apart(walk, node.body, inner, handled=node.kind == "settle")


def spawn(walk: Walk, node: ast.Spawn) -> None:
    _apart(walk, node.body, Scope(walk.scope, function=True), handled=True)


def _apart(walk: Walk, body: ast.Block, scope: Scope, handled: bool) -> None:
    """Visit a body that runs as a task; ``handled``: whoever waits for it gets its error as a value."""

    def visit() -> None:
        walk.block(body, scope=scope)

    inside = walk.function.inner()
    walk.in_function(inside, scope, (lambda: walk.quietly(visit)) if handled else visit)
