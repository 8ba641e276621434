"""Operators and choices between values. Spec: 02 §2-4."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.values import operators

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.values.objects import Range
    from harnpy.vm.walk.activation import Activation

    Value = Any


def _not_in(x: Value, container: Value) -> bool:
    return not operators.in_(x, container)


#: Operators that take two values.
OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": operators.div,
    "%": operators.mod,
    "**": operators.power,
    "==": operators.eq,
    "!=": operators.ne,
    "<": operators.lt,
    ">": operators.gt,
    "<=": operators.le,
    ">=": operators.ge,
    "in": operators.in_,
    "not in": _not_in,
}


def binary(a: Activation, node: ast.Binary) -> Value:
    """Left, then right; `&&`, `||` and `??` evaluate their right side only when it decides (02 §4.2)."""
    left = a.value(node.left)
    if node.op == "&&":
        return bool(left and a.value(node.right))
    if node.op == "||":
        return bool(left or a.value(node.right))
    if node.op == "??":
        return a.value(node.right) if left is None else left
    right = a.value(node.right)
    a.at = node.start
    return OPERATORS[node.op](left, right)


def unary(a: Activation, node: ast.Unary) -> Value:
    if node.op == "!":
        return not a.value(node.operand)
    if isinstance(node.operand, ast.Int):
        # The smallest int has no positive counterpart.
        return -node.operand.value
    operand = a.value(node.operand)
    a.at = node.start
    return operators.neg(operand)


def ternary(a: Activation, node: ast.Ternary) -> Value:
    return a.value(node.then) if a.value(node.cond) else a.value(node.otherwise)


def range_to(a: Activation, node: ast.RangeTo) -> Range:
    first, last = a.values([node.first, node.last])
    return operators.range_to(first, last, node.exclusive)
