"""Type expressions to the JSON schemas that a `tool` declares. Spec: reference 07 §4.3, 03 §12.

A type that JSON Schema can't say (a function, a struct's name, `any` …) allows everything.
"""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Schema = dict[str, Any]
    Aliases = Mapping[str, ast.Node]

_SCALARS = {
    "string": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "nil": "null",
    "list": "array",
    "dict": "object",
}
_LITERALS: dict[type, str] = {str: "string", int: "integer"}


def json_schema(type_: ast.Node | None, aliases: Aliases) -> Schema:
    """The schema of a type, None being any; ``aliases`` are the types that names stand for."""
    match type_:
        case ast.TypeName(name=name, args=()) if name in aliases:
            # An alias of itself allows everything where it comes back to itself.
            return json_schema(aliases[name], {key: aliases[key] for key in aliases if key != name})
        case ast.TypeName(name=name, args=()) if name in _SCALARS:
            return {"type": _SCALARS[name]}
        case ast.TypeName(name="list", args=(item,)):
            return {"type": "array", "items": json_schema(item, aliases)}
        case ast.TypeName(name="dict", args=(ast.TypeName(name="string"), value)):
            return {"type": "object", "additionalProperties": json_schema(value, aliases)}
        case ast.TypeName(name="dict"):
            return {"type": "object"}
        case ast.TypeLiteral(value=value):
            return {"type": _LITERALS[type(value)], "const": value}
        case ast.TypeUnion(members=members):
            return _union(members, aliases)
        case ast.TypeShape(fields=fields):
            return _shape(fields, aliases)
    return {}


def _union(members: Sequence[ast.Node], aliases: Aliases) -> Schema:
    values = [member.value for member in members if isinstance(member, ast.TypeLiteral)]
    kinds = {type(value) for value in values}
    if len(values) == len(members) and len(kinds) == 1:
        return {"type": _LITERALS[kinds.pop()], "enum": values}
    schemas = [json_schema(member, aliases) for member in members]
    return {"oneOf": schemas} if all(schemas) else {}


def _shape(fields: Sequence[ast.ShapeField], aliases: Aliases) -> Schema:
    required = [field.name for field in fields if not field.optional]
    schema: Schema = {
        "type": "object",
        "properties": {field.name: json_schema(field.type, aliases) for field in fields},
    }
    return {**schema, "required": required} if required else schema
