"""What inference leaves open: `any`, blocks whose names it doesn't see. Spec: 03 §5."""

from __future__ import annotations

from harnpy.check.narrowing.exits import exits
from harnpy.check.scopes import Binding, Scope
from harnpy.check.types.names import NEVER, is_named
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.check.inference.engine import Inference
    from harnpy.check.types.names import Type


def known(type: Type | None) -> Type | None:
    """A type, unless it is `any`: such a value counts as having none."""
    return None if type is None or is_named(type, "any") else type


def bare(type: Type | None) -> str | None:
    """The name of a *named* type (03 §8.1); None for every other type.

    What has the type `never` isn't judged: facts may rule out more than a run does.
    """
    if not isinstance(type, ast.TypeName) or type.args or type.name in ("any", "never", "_"):
        return None
    return type.name


def block(inference: Inference, node: ast.Block, scope: Scope) -> Type | None:
    """The type of a block's value: `never`, or that of its last expression.

    It is inferred around the block: names that are bound inside have no type.
    """
    if exits(node):
        return NEVER
    if not node.statements:
        return None
    last = node.statements[-1]
    inside = [name for statement in node.statements for name in _bound_by(statement)]
    return inference.of(last, nameless(scope, inside) if inside else scope)


def nameless(scope: Scope, names: Iterable[str]) -> Scope:
    """A scope in which ``names`` mean something unknown."""
    inner = Scope(scope)
    for name in names:
        inner.names[name] = Binding(name, None)
    return inner


def _bound_by(statement: ast.Node) -> list[str]:
    from harnpy.syntax.ast.patterns import bound_names

    if isinstance(statement, ast.Let):
        return bound_names(statement.target)
    return [statement.name] if isinstance(statement, ast.FnDecl | ast.ToolDecl) else []
