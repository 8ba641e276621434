"""`if`, `match`, `guard`, `require` and blocks. Spec: 02 §11, §12."""

from __future__ import annotations

from harnpy.vm.errors import Thrown
from harnpy.vm.walk.patterns import fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.syntax import ast
    from harnpy.vm.walk.activation import Activation

    Value = Any


def block(a: Activation, node: ast.Block) -> Value:
    return a.block(node)


def if_(a: Activation, node: ast.If) -> Value:
    """The value of the branch taken, nil when there is none."""
    if a.value(node.cond):
        return a.block(node.then)
    return a.value(node.otherwise) if node.otherwise else None


def match(a: Activation, node: ast.Match) -> Value:
    """The value of the first arm whose pattern fits and whose guard holds (02 §12)."""
    value = a.value(node.value)
    for arm in node.arms:
        a.at = arm.start
        a.open_scope(arm)
        if fits(a, arm.patterns, value) and (arm.guard is None or a.value(arm.guard)):
            return a.block(arm.body)
    a.at = node.start
    raise Thrown("No match arm matched the value")


def guard(a: Activation, node: ast.Guard) -> None:
    if not a.value(node.cond):
        a.block(node.otherwise)


def require(a: Activation, node: ast.Require) -> None:
    if not a.value(node.cond):
        message = a.value(node.message) if node.message else "require condition failed"
        a.at = node.start
        raise Thrown(message)
