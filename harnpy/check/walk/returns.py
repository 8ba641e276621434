"""What functions return against what they declare. Spec: 03 §8.1 ("Return checking").

Values are looked at without the local variables: of a returned local nothing is known.
"""

from __future__ import annotations

from harnpy.check.inference.dynamic import nameless
from harnpy.check.narrowing.exits import exits
from harnpy.check.narrowing.facts import after_if
from harnpy.check.types.names import shown
from harnpy.check.walk.foreign_types import hint
from harnpy.syntax import ast
from harnpy.syntax.ast.patterns import bound_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.scopes import Scope
    from harnpy.check.types.names import Type
    from harnpy.check.walk.visitor import Walk


def check_returns(walk: Walk, body: ast.Block, expected: Type, scope: Scope) -> None:
    """Compare the `return`s of a body, and of the `if`s in it, with the declared result."""
    _statements(walk, body.statements, expected, nameless(scope, ()))


def _statements(walk: Walk, statements: Sequence[ast.Node], expected: Type, scope: Scope) -> None:
    for statement in statements:
        if isinstance(statement, ast.Return):
            _compare(walk, statement, expected, scope)
            return
        if isinstance(statement, ast.Throw | ast.Break | ast.Continue):
            return
        if isinstance(statement, ast.If):
            _branches(walk, statement, expected, scope)
        else:
            scope = _hidden(statement, scope)


def _hidden(statement: ast.Node, scope: Scope) -> Scope:
    """The scope after a statement: what it declares hides what had the name before."""
    if isinstance(statement, ast.Let):
        return nameless(scope, bound_names(statement.target))
    if isinstance(statement, ast.FnDecl | ast.ToolDecl):
        return nameless(scope, [statement.name])
    return scope


def _compare(walk: Walk, node: ast.Return, expected: Type, scope: Scope) -> None:
    actual = walk.inference.of(node.value, scope) if node.value is not None else None
    if actual is None or node.value is None:
        return
    if not walk.accepts(expected, node.value, actual):
        text = f"return type doesn't match: expected {shown(expected)}, got {shown(actual)}"
        walk.findings.error("return-type", node.value, text, help=hint(walk, expected))


def _branches(walk: Walk, node: ast.If, expected: Type, scope: Scope) -> bool:
    """Judge both branches; whether both leave."""
    sides = walk.inference.sides(node.cond, scope)
    _statements(walk, node.then.statements, expected, walk.inference.narrowed(sides[0], scope))
    then_leaves, else_leaves = exits(node.then), False
    inner = walk.inference.narrowed(sides[1], scope)
    if isinstance(node.otherwise, ast.If):
        else_leaves = _branches(walk, node.otherwise, expected, inner)
    elif isinstance(node.otherwise, ast.Block):
        _statements(walk, node.otherwise.statements, expected, inner)
        else_leaves = exits(node.otherwise)
    facts = after_if(sides, then_leaves, else_leaves)
    scope.narrow(facts.types, facts.ruled_out)
    return then_leaves and else_leaves
