"""Closures and function expressions. Spec: 03 §5."""

from __future__ import annotations

from harnpy.check.inference.certain import annotated
from harnpy.check.scopes import Binding, Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.walk.visitor import Walk
    from harnpy.syntax import ast


def closure(walk: Walk, node: ast.Closure | ast.FnExpr) -> None:
    """A closure that goes who knows where: whoever calls it may handle its errors."""
    walk.quietly(lambda: function(walk, node))


def function(walk: Walk, node: ast.Closure | ast.FnExpr) -> None:
    inner = Scope(walk.scope, function=True)

    def visit() -> None:
        parameters(walk, node.params)
        walk.block(node.body, scope=inner)

    walk.in_function(walk.function.inner(), inner, visit)


def parameters(walk: Walk, params: Sequence[ast.Param]) -> None:
    """Declare parameters; a default sees those before it."""
    for param in params:
        walk.optional(param.default)
        sure = None if param.type is None or param.rest else annotated(walk.inference, param.type)
        walk.scope.declare(Binding(param.name, param, param.type, certain=sure))
