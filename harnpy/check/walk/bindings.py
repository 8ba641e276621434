"""`let`, `var` and assignments. Spec: 03 §5 (bindings), §8.1, §8.2."""

from __future__ import annotations

from harnpy.check.findings import declared_here
from harnpy.check.inference.certain import annotated, certain
from harnpy.check.scopes import Binding
from harnpy.check.types.names import is_named, shown
from harnpy.check.walk.closures import function
from harnpy.check.walk.foreign_types import hint
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.walk.visitor import Walk


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
        walk.findings.error("assignment-type", node.value, text, help=hint(walk, node.type), places=places)
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
