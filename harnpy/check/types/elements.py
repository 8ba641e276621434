"""What is inside values: items, entries, fields. Spec: 03 §5.

A part of type `any` has no type: it may be used freely. Aliases are not unfolded here.
"""

from __future__ import annotations

from harnpy.check.types.names import INT, LAZY, STRING, is_named
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.types.names import Type


def element(type: Type | None) -> Type | None:
    """The type of a loop's variable that runs over values of ``type``."""
    if not isinstance(type, ast.TypeName):
        return None
    if type.name == "string":
        return STRING
    if type.name == "range":
        return INT
    if (type.name == "list" or type.name in LAZY) and len(type.args) == 1:
        return known(type.args[0])
    return None


def pair(type: Type | None) -> tuple[Type | None, Type | None]:
    """The types of ``(a, b)`` in a loop over values of ``type``."""
    item = element(type)
    return field(item, "first"), field(item, "second")


def field(type: Type | None, name: str) -> Type | None:
    """The type of ``value.name``: of a field of a shape, or a part of a pair."""
    if isinstance(type, ast.TypeShape):
        return next((known(field.type) for field in type.fields if field.name == name), None)
    if name not in ("first", "second") or not isinstance(type, ast.TypeName):
        return None
    return known(type.args[name == "second"]) if type.name == "Pair" and len(type.args) == 2 else None


def item(type: Type | None, index: ast.Node) -> Type | None:
    """The type of ``value[index]``."""
    if isinstance(type, ast.TypeShape):
        return field(type, index.value) if isinstance(index, ast.Str) else None
    if not isinstance(type, ast.TypeName):
        return None
    if type.name == "string":
        return STRING
    if type.name == "list" and len(type.args) == 1:
        return known(type.args[0])
    if type.name == "dict" and len(type.args) == 2:
        return known(type.args[1])
    return None


def part(type: Type | None) -> Type | None:
    """The type of ``value[a:b]``."""
    return type if isinstance(type, ast.TypeName) and type.name in ("list", "string") else None


def known(type: Type) -> Type | None:
    """A type, or None for `any` and `_`."""
    return None if is_named(type, "any") or is_named(type, "_") else type
