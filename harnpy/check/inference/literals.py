"""The types of what is written out: scalars, collections, closures, structs. Spec: 03 §5."""

from __future__ import annotations

from harnpy.check.inference import dynamic
from harnpy.check.types.names import (
    ANY,
    BOOL,
    CLOSURE,
    DICT,
    FLOAT,
    INT,
    LIST,
    NIL,
    RANGE,
    STRING,
    function,
    list_of,
    named,
    shape,
)
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.inference.engine import Inference
    from harnpy.check.scopes import Scope
    from harnpy.check.types.names import Type


def int_(inference: Inference, node: ast.Int, scope: Scope) -> Type:
    return INT


def float_(inference: Inference, node: ast.Float, scope: Scope) -> Type:
    return FLOAT


def bool_(inference: Inference, node: ast.Bool, scope: Scope) -> Type:
    return BOOL


def nil(inference: Inference, node: ast.Nil, scope: Scope) -> Type:
    return NIL


def str_(inference: Inference, node: ast.Str, scope: Scope) -> Type | None:
    return None if node.raw else STRING


def interp(inference: Inference, node: ast.Interp, scope: Scope) -> Type:
    return STRING


def range_(inference: Inference, node: ast.RangeTo, scope: Scope) -> Type:
    return RANGE


def list_(inference: Inference, node: ast.List, scope: Scope) -> Type:
    found: list[Type] = []
    for item in node.items:
        type = None if isinstance(item, ast.Spread) else inference.of(item, scope)
        if type is None:
            return LIST
        found.append(type)
    return list_of(inference.types.union(found)) if found else LIST


def dict_(inference: Inference, node: ast.Dict, scope: Scope) -> Type:
    """A shape when every key is written; a value without a type is `any`."""
    fields: dict[str, Type] = {}
    for entry in node.entries:
        if not isinstance(entry, ast.DictEntry) or entry.computed or not isinstance(entry.key, ast.Str):
            return DICT
        fields[entry.key.value] = inference.of(entry.value, scope) or ANY
    return shape(fields) if fields else DICT


def closure(inference: Inference, node: ast.Closure | ast.FnExpr, scope: Scope) -> Type:
    """A function type when everything about it is known; its own parameters have no type in this."""
    if not node.params or any(param.type is None or param.rest or param.default for param in node.params):
        return CLOSURE
    inner = dynamic.nameless(scope, [param.name for param in node.params])
    result = dynamic.block(inference, node.body, inner)
    return CLOSURE if result is None else function([p.type for p in node.params if p.type], result)


def struct(inference: Inference, node: ast.StructLit, scope: Scope) -> Type:
    """The struct, with type arguments as its fields determine them."""
    declared = inference.types.declared.structs.get(node.name)
    if declared is None or not declared.type_params:
        return named(node.name)
    expected = {field.name: field.type for field in declared.fields}
    given = []
    for entry in node.entries:
        if isinstance(entry, ast.DictEntry) and isinstance(entry.key, ast.Str):
            wanted = expected.get(entry.key.value)
            actual = inference.of(entry.value, scope) if wanted is not None else None
            if wanted is not None and actual is not None:
                given.append((wanted, actual))
    return inference.types.applied(node.name, declared.type_params, given)
