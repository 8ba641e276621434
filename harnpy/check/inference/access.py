"""The types of properties, elements and slices, and of `value?`. Spec: 03 §5."""

from __future__ import annotations

from harnpy.check.types import elements
from harnpy.check.types.names import STRING
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.inference.engine import Inference
    from harnpy.check.scopes import Scope
    from harnpy.check.types.names import Type


def member(inference: Inference, node: ast.Member, object: Type | None, scope: Scope) -> Type | None:
    if node.optional:
        return None
    if node.name == "variant" and isinstance(object, ast.TypeName):
        return STRING if object.name in inference.types.declared.enums else None
    return elements.field(object, node.name)


def index(inference: Inference, node: ast.Index, object: Type | None, scope: Scope) -> Type | None:
    return None if node.optional else elements.item(object, node.index)


def slice_(inference: Inference, node: ast.Slice, object: Type | None, scope: Scope) -> Type | None:
    return elements.part(object)


def method_call(inference: Inference, node: ast.MethodCall, object: Type | None, scope: Scope) -> Type | None:
    return inference.types.method_result(object, node.name)


def propagate(inference: Inference, node: ast.Propagate, value: Type | None, scope: Scope) -> Type | None:
    found = ok_type(value)
    return None if found is None else elements.known(found)


def ok_type(type: Type | None) -> Type | None:
    """``T`` of `Result<T, E>`."""
    return type.args[0] if is_result(type) else None  # type: ignore[union-attr]


def error_type(type: Type | None) -> Type | None:
    """``E`` of `Result<T, E>`."""
    return type.args[1] if is_result(type) else None  # type: ignore[union-attr]


def is_result(type: Type | None) -> bool:
    return isinstance(type, ast.TypeName) and type.name == "Result" and len(type.args) == 2
