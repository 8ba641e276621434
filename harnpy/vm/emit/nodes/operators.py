"""Operators, each by its node. Spec: 02 §2–4."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.nodes.logic import coalesce, condition, logic_value
from harnpy.vm.emit.nodes.ring import SLOW, ring
from harnpy.vm.emit.operand import constant
from harnpy.vm.resolve.kinds import RING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.operand import Operand, Text


def binary(e: Emitter, node: ast.Binary, into: Operand | None) -> Text:
    op = node.op
    if op in RING:
        return ring(e, node, into)
    if op in ("&&", "||"):
        return logic_value(e, node)
    if op == "??":
        return coalesce(e, node, into)
    if op == "not in":
        left, right = e.operands([node.left, node.right])
        return f"(not in_({left}, {right}))"
    if op in ("==", "!="):
        return equality(e, node)
    if op in ("<", ">", "<=", ">="):
        return comparison(e, node)
    if op in ("/", "%"):
        return division(e, node)
    left, right = e.operands([node.left, node.right])
    return e.mark(node, f"{SLOW[op]}({left}, {right})")


def division(e: Emitter, node: ast.Binary) -> str:
    left, right = e.atoms([node.left, node.right])
    slow = e.mark(node, f"{SLOW[node.op]}({left}, {right})")
    if isinstance(node.right, ast.Int) and node.right.value > 0 and e.kind(node.left) in ("int", "any"):
        guard = f"type({left}) is int and " if e.kind(node.left) == "any" else ""
        fast = f"{left} // {right}" if node.op == "/" else f"{left} % {right}"
        return f"({fast} if {guard}{left} >= 0 else {slow})"
    return slow


def comparison(e: Emitter, node: ast.Binary) -> str:
    kinds = [e.kind(node.left), e.kind(node.right)]
    if kinds == ["int", "int"] or kinds == ["str", "str"]:
        left, right = e.operands([node.left, node.right])
        return f"({left} {node.op} {right})"
    left, right = e.atoms([node.left, node.right])
    guards = [f"type({a}) is int" for a, k in zip((left, right), kinds, strict=True) if k != "int"]
    slow = f"{SLOW[node.op]}({left}, {right})"
    return f"({left} {node.op} {right} if {' and '.join(guards)} else {slow})"


def equality(e: Emitter, node: ast.Binary) -> str:
    op = node.op
    for known, other in ((node.right, node.left), (node.left, node.right)):
        if isinstance(known, ast.Nil):
            return f"({e.slot(other)} {'is' if op == '==' else 'is not'} None)"
        if isinstance(known, ast.Str):
            left, right = e.operands([node.left, node.right])
            return f"({left} {op} {right})"
    kinds = [e.kind(node.left), e.kind(node.right)]
    if kinds == ["int", "int"] or kinds == ["str", "str"]:
        left, right = e.operands([node.left, node.right])
        return f"({left} {op} {right})"
    left, right = e.atoms([node.left, node.right])
    slow = f"{SLOW[op]}({left}, {right})"
    if "int" in kinds:
        unsure = left if kinds[1] == "int" else right
        return f"({left} {op} {right} if type({unsure}) is int else {slow})"
    return f"({left} {op} {right} if type({left}) is int and type({right}) is int else {slow})"


def unary(e: Emitter, node: ast.Unary, into: Operand | None) -> Text:
    if node.op == "!":
        return f"(not {condition(e, node.operand)})"
    if isinstance(node.operand, ast.Int):
        return constant(-node.operand.value)
    return e.mark(node, f"neg({e.expr(node.operand)})")


def range_to(e: Emitter, node: ast.RangeTo, into: Operand | None) -> Text:
    first, last = e.operands([node.first, node.last])
    return f"range_to({first}, {last}, {node.exclusive})"
