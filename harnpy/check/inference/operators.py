"""The types of operators' results. Spec: 03 §5."""

from __future__ import annotations

from harnpy.check.inference.dynamic import bare, known
from harnpy.check.types.names import BOOL, FLOAT, INT, NIL, STRING, is_named, named
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.inference.engine import Inference
    from harnpy.check.scopes import Scope
    from harnpy.check.types.names import Type

_LOGICAL = frozenset(["==", "!=", "<", ">", "<=", ">=", "&&", "||", "in", "not in"])
#: What `+` joins with its like.
_JOINED = ("string", "list", "dict")


def binary(inference: Inference, node: ast.Binary, left: Type | None, scope: Scope) -> Type | None:
    if node.op in _LOGICAL:
        return BOOL
    right = inference.of(node.right, scope)
    if node.op == "??":
        return coalesced(inference, known(left), known(right))
    return arithmetic(node.op, left, right)


def unary(inference: Inference, node: ast.Unary, operand: Type | None, scope: Scope) -> Type | None:
    return BOOL if node.op == "!" else known(operand)


def passed(inference: Inference, node: ast.TryStar, value: Type | None, scope: Scope) -> Type | None:
    return value


def coalesced(inference: Inference, left: Type | None, right: Type | None) -> Type | None:
    """``left ?? right``."""
    if left is None or is_named(left, "nil"):
        return right
    return inference.types.without(left, NIL) or right if isinstance(left, ast.TypeUnion) else left


def arithmetic(op: str, left: Type | None, right: Type | None) -> Type | None:
    """``left op right``: `+ - * / % **`."""
    a, b = bare(left), bare(right)
    if a is None or b is None:
        return None
    if op == "*" and {a, b} == {"string", "int"}:
        return STRING
    if a == b == "int":
        return INT
    if "float" in (a, b):
        return FLOAT
    if op == "+" and a == b and a in _JOINED:
        return named(a)
    return None
