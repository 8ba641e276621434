"""Types for the evaluators: checks of annotations, schemas.

Spec: 02 §20, 03 §12, 07 §4.3.
"""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from harnpy.vm.resolve import Resolution

    Schema = dict[str, Any]
    Aliases = Mapping[str, ast.Node]
    #: What a parameter is checked for (`harnpy.vm.run.parameter_types`).
    Spec = tuple[Any, ...]

# Type expressions to what is checked when a function is entered. Spec: 02 §20, 03 §12.
#
# What cannot be checked (struct and alias names, type parameters, `any` …) has no spec; `run.parameter_types`
# says what a spec is, and checks it.


#: Types that are checked by the class of the value alone.
SCALARS = frozenset(["int", "float", "string", "bool", "list", "set", "nil", "closure", "bytes"])


def annotation_spec(type_: ast.Node, resolution: Resolution) -> Spec | None:
    """Return what an annotation demands of a value, or None when it is not enforced."""
    match type_:
        case ast.TypeName(name=name, args=()) if name in SCALARS:
            return ("scalar", name)
        case ast.TypeName(name="list", args=(item,)):
            return ("list", annotation_spec(item, resolution))
        case ast.TypeName(name="dict", args=()):
            return ("dict", None)
        case ast.TypeName(name="dict", args=(key, value)):
            named = isinstance(key, ast.TypeName) and key.name == "string"
            return ("dict", annotation_spec(value, resolution) if named else None)
        case ast.TypeName(name=name, args=()) if name in resolution.interfaces:
            return ("interface", name)
        case ast.TypeLiteral(value=value):
            return ("literal", value)
        case ast.TypeFn():
            return ("scalar", "closure")
        case ast.TypeUnion(members=members):
            return _union_spec([annotation_spec(member, resolution) for member in members])
        case ast.TypeShape(fields=fields):
            specs = [(f.name, f.optional, annotation_spec(f.type, resolution)) for f in fields]
            return ("shape", tuple(specs)) if all(spec for _, _, spec in specs) else None
    return None


def _union_spec(members: list[Spec | None]) -> Spec | None:
    if not all(members):
        return None
    specs = [spec for spec in members if spec]
    if all(spec[0] == "literal" for spec in specs) and len({type(spec[1]) for spec in specs}) == 1:
        return ("literals", tuple(spec[1] for spec in specs))
    return ("union", tuple(specs))


# Type expressions to schemas: those that a `tool` declares, and those that a type's name stands for.
#
# Spec: 07 §4.3, 03 §12.


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
_LITERAL_TYPES: dict[type, str] = {str: "string", int: "int"}


#: Types whose name `type_of` returns.
_NAMED = frozenset("string int float bool nil list dict set bytes closure duration any".split())


def without(aliases: Aliases, name: str) -> Aliases:
    return {key: aliases[key] for key in aliases if key != name}


def takes_whole_dict(node: ast.ToolDecl) -> bool:
    """Return True for a tool that is written for one dict of all its arguments (07 §4.3).

    Its only parameter has no type and no default, and the body reads in it the parameter of its own name:
    ``tool hours(shop) { shop.shop }``.
    """
    if len(node.params) != 1:
        return False
    (param,) = node.params
    if param.rest or param.type is not None or param.default is not None:
        return False
    waiting: list[ast.Node] = [node.body]
    while waiting:
        match waiting.pop():
            case ast.Member(object=ast.Name(name=of), name=read) if of == read == param.name:
                return True
            case ast.Index(object=ast.Name(name=of), index=ast.Str(value=read)) if of == read == param.name:
                return True
            case other:
                waiting.extend(other.children())
    return False


def json_schema(type_: ast.Node | None, aliases: Aliases) -> Schema:
    """The JSON schema of a type, None being any; ``aliases`` are the types that names stand for.

    What JSON Schema can't say (a function, a struct's name, `any` …) allows everything.
    """
    match type_:
        case ast.TypeName(name=name, args=()) if name in aliases:
            # An alias of itself allows everything where it comes back to itself.
            return json_schema(aliases[name], without(aliases, name))
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
            return _union_schema(members, aliases)
        case ast.TypeShape(fields=fields):
            return _shape_schema(fields, aliases)
    return {}


def _union_schema(members: Sequence[ast.Node], aliases: Aliases) -> Schema:
    values = [member.value for member in members if isinstance(member, ast.TypeLiteral)]
    kinds = {type(value) for value in values}
    if len(values) == len(members) and len(kinds) == 1:
        return {"type": _LITERALS[kinds.pop()], "enum": values}
    schemas = [json_schema(member, aliases) for member in members]
    return {"oneOf": schemas} if all(schemas) else {}


def _shape_schema(fields: Sequence[ast.ShapeField], aliases: Aliases) -> Schema:
    required = [field.name for field in fields if not field.optional]
    schema: Schema = {
        "type": "object",
        "properties": {field.name: json_schema(field.type, aliases) for field in fields},
    }
    return {**schema, "required": required} if required else schema


def value_schema(type_: ast.Node, aliases: Aliases) -> Schema | None:
    """The canonical schema of a type (04 §12.1), None when one of its parts has none."""
    match type_:
        case ast.TypeName(name=name, args=()) if name in aliases:
            return value_schema(aliases[name], without(aliases, name))
        case ast.TypeName(name=name, args=()) if name in _NAMED:
            return {"type": name}
        case ast.TypeName(name="list", args=(item,)):
            return _with({"type": "list"}, "items", value_schema(item, aliases))
        case ast.TypeName(name="dict", args=(ast.TypeName(name="string"), value)):
            return _with({"type": "dict"}, "additional_properties", value_schema(value, aliases))
        case ast.TypeLiteral(value=value):
            return {"type": _LITERAL_TYPES[type(value)], "const": value}
        case ast.TypeUnion(members=members):
            return _union_value_schema(members, aliases)
        case ast.TypeShape(fields=fields):
            properties = {field.name: value_schema(field.type, aliases) for field in fields}
            required = [field.name for field in fields if not field.optional]
            schema = _with({"type": "dict"}, "properties", properties if all(properties.values()) else None)
            return _with(schema, "required", required) if schema and required else schema
    return None


def _union_value_schema(members: Sequence[ast.Node], aliases: Aliases) -> Schema | None:
    values = [member.value for member in members if isinstance(member, ast.TypeLiteral)]
    kinds = {type(value) for value in values}
    if len(values) == len(members) and len(kinds) == 1:
        return {"type": _LITERAL_TYPES[kinds.pop()], "enum": values}
    schemas = [value_schema(member, aliases) for member in members]
    return {"union": schemas} if all(schemas) else None


def _with(schema: Schema, key: str, value: Any) -> Schema | None:
    return None if value is None else {**schema, key: value}
