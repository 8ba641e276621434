"""Operators on types that they can't take. Spec: 03 §8.1, §8.2."""

from __future__ import annotations

from harnpy.check.inference.dynamic import bare
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.types.names import Type
    from harnpy.check.walk.visitor import Walk

_NUMBERS = frozenset(["int", "float"])
_ORDERED = frozenset(["int", "float", "string"])
_JOINED = frozenset(["string", "list", "dict"])


def binary(walk: Walk, node: ast.Binary, left: Type | None) -> None:
    walk.visit(node.right)
    if node.op in _JUDGED:
        judge(walk, node, node.op, left, walk.type(node.right))


def judge(walk: Walk, node: ast.Node, op: str, left: Type | None, right: Type | None) -> None:
    """Report that two *named* types don't go together under ``op``."""
    a, b = bare(left), bare(right)
    if a is not None and b is not None and op in _JUDGED:
        _JUDGED[op](walk, node, op, a, b)


def _added(walk: Walk, node: ast.Node, op: str, a: str, b: str) -> None:
    if not ({a, b} <= _NUMBERS or (a == b and a in _JOINED)):
        fix = None
        if isinstance(node, ast.Binary) and "string" in (a, b):
            from harnpy.check.walk.interpolating import interpolation

            fix = interpolation(node, walk.environment.source)
        walk.findings.error("operand-type", node, f"can't add {a} and {b}", fix=fix)


def _calculated(walk: Walk, node: ast.Node, op: str, a: str, b: str) -> None:
    if not {a, b} <= _NUMBERS:
        text = f"can't use '{op}' on {a} and {b} (needs numeric operands)"
        walk.findings.error("operand-type", node, text)


def _multiplied(walk: Walk, node: ast.Node, op: str, a: str, b: str) -> None:
    if not ({a, b} <= _NUMBERS or {a, b} == {"string", "int"}):
        walk.findings.error("operand-type", node, f"can't multiply {a} and {b} (try string * int)")


def _compared(walk: Walk, node: ast.Node, op: str, a: str, b: str) -> None:
    if a == b == "duration":
        return
    if not {a, b} <= _ORDERED:
        text = f"Comparison '{op}' may not be meaningful for types {a} and {b}"
        walk.findings.warn("comparison-type", node, text)
    elif a != b and "string" in (a, b):
        text = f"Comparing {a} with {b} using '{op}' may give unexpected results"
        walk.findings.warn("comparison-type", node, text)


_JUDGED = {
    "+": _added,
    "*": _multiplied,
    **dict.fromkeys(["-", "/", "%", "**"], _calculated),
    **dict.fromkeys(["<", ">", "<=", ">="], _compared),
}


def unary(walk: Walk, node: ast.Unary, operand: Type | None) -> None:
    """Any value has an opposite of its truth; what has none of its amount fails by itself."""


def passed(walk: Walk, node: ast.Node, value: Type | None) -> None:
    """Nothing is judged here but what is below."""


def pipe(walk: Walk, node: ast.Pipe, left: Type | None) -> None:
    walk.visit(node.right)
