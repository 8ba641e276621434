"""Schemas as types: dicts read as types, and what a test against a schema leaves of a type.

Spec: 03 §6, §8.3; 04 §12.1.
"""

from __future__ import annotations

from harnpy.check.types.type_nodes import (
    ANY,
    NEVER,
    NIL,
    STRING,
    base,
    dict_of,
    is_named,
    list_of,
    named,
    schema_for,
    union,
)
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.check.types.declared import Questions
    from harnpy.check.types.type_nodes import Type

    #: The literal that a variable is bound to.
    Local = Callable[[str], ast.Node | None]

# Schema dicts read as types, before anything runs. Spec: 03 §8.3, 04 §12.1.


_SPELLINGS = {
    "object": "dict",
    "array": "list",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "nil",
}
_KINDS = frozenset("string int float bool nil list dict set bytes closure duration any".split())


def schema(types: Questions, node: ast.Node, local: Local) -> Type | None:
    """Return the type of the values that a schema expression accepts; None when it can't be read.

    That is an alias's name, `schema_of(Alias)`, a literal dict, or a variable that ``local`` knows as one.
    """
    if isinstance(node, ast.Call) and node.name == "schema_of" and len(node.args) == 1:
        return _alias(types, node.args[0])
    if isinstance(node, ast.Name):
        literal = local(node.name)
        return _alias(types, node) if literal is None else _read(literal, local)
    return _read(node, local)


def _alias(types: Questions, node: ast.Node) -> Type | None:
    if not isinstance(node, ast.Name) or node.name not in types.declared.aliases:
        return None
    body = types.unfolded(named(node.name))
    return None if is_named(body, node.name) else body


def _read(node: ast.Node, local: Local) -> Type | None:
    """A schema that is a literal dict; None when it says nothing that can be read."""
    if isinstance(node, ast.Name):
        literal = local(node.name)
        return _read(literal, local) if isinstance(literal, ast.Dict) else None
    entries = _entries(node)
    if entries is None:
        return None
    type = _type(entries, local)
    nullable = entries.get("nullable")
    if type is not None and isinstance(nullable, ast.Bool) and nullable.value:
        return union([type, NIL])
    return type


def _type(entries: dict[str, ast.Node], local: Local) -> Type | None:
    """A union before properties, those before items, and those before the type that is named."""
    for name in ("union", "oneOf", "anyOf"):
        if name in entries:
            branches = entries[name]
            return _union(branches, local) if isinstance(branches, ast.List) else None
    if "properties" in entries:
        return _shape(entries, local)
    if "items" in entries:
        return list_of(_read(entries["items"], local) or ANY)
    type = _named(entries.get("type"))
    if type is not None and is_named(type, "dict"):
        for name in ("additional_properties", "additionalProperties"):
            value = _read(entries[name], local) if name in entries else None
            if value is not None:
                return dict_of(STRING, value)
    return type


def _union(branches: ast.List, local: Local) -> Type:
    return union(_read(branch, local) or ANY for branch in branches.items)


def _shape(entries: dict[str, ast.Node], local: Local) -> Type | None:
    node = entries["properties"]
    properties = _entries(local(node.name) if isinstance(node, ast.Name) else node)
    if properties is None:
        return None
    listed = entries.get("required")
    items = listed.items if isinstance(listed, ast.List) else ()
    required = {item.value for item in items if isinstance(item, ast.Str)}
    fields = [
        ast.ShapeField(0, 0, name, name not in required, _read(value, local) or ANY)
        for name, value in properties.items()
    ]
    return ast.TypeShape(0, 0, tuple(fields))


def _named(node: ast.Node | None) -> Type | None:
    """Return what `type: "…"` or `type: ["…", …]` names."""
    if isinstance(node, ast.List):
        members = [_named(item) for item in node.items]
        return union(member for member in members if member) if members and all(members) else None
    if not isinstance(node, ast.Str):
        return None
    name = _SPELLINGS.get(node.value, node.value)
    return named(name) if name in _KINDS else None


def _entries(node: ast.Node | None) -> dict[str, ast.Node] | None:
    """The entries of a literal dict, all of whose keys are written out; None for anything else."""
    if not isinstance(node, ast.Dict):
        return None
    entries: dict[str, ast.Node] = {}
    for entry in node.entries:
        if not isinstance(entry, ast.DictEntry) or not isinstance(entry.key, ast.Str):
            return None
        entries[entry.key.value] = entry.value
    return entries


def seen_as(
    types: Questions, expected: Type, node: ast.Node, actual: Type | None, local: Local
) -> Type | None:
    """Return the type of an argument for a parameter of type ``expected``: schemas for `Schema<T>`."""
    expected = types.unfolded(expected)
    if any(map(_is_schema, types.members(expected))):
        type = schema(types, node, local)
        return actual if type is None else schema_for(type)
    entries = _entries(node)
    if entries is None or not isinstance(expected, ast.TypeShape) or not isinstance(actual, ast.TypeShape):
        return actual
    wanted = {field.name: field.type for field in expected.fields}
    fields = [
        ast.ShapeField(
            0,
            0,
            field.name,
            field.optional,
            seen_as(types, wanted[field.name], entries[field.name], field.type, local) or field.type,
        )
        if field.name in wanted
        else field
        for field in actual.fields
    ]
    return ast.TypeShape(0, 0, tuple(fields))


def _is_schema(type: Type) -> bool:
    return isinstance(type, ast.TypeName) and type.name == "Schema"


# What two types have in common, for values that were tested against a schema. Spec: 03 §6.
#
# Only what can't be is taken away: where it is open whether two types overlap, they do.


#: Kinds of values: a value of one is never of another, but that an int may pass for a float.
_DISJOINT_KINDS = frozenset("int float string bool nil list dict closure bytes set duration range".split())


def intersection(types: Questions, type: Type, other: Type) -> Type | None:
    """Return what a value of ``type`` is once it is known to be of ``other`` (03 §6); maybe `never`.

    `any` stays what it is. None when it can't be said: an `unknown` stays one before a shape.
    """
    if _is_name(type, "any") or _is_name(other, "any", "unknown"):
        return type
    branches = types.members(other)
    if _is_name(type, "unknown"):
        shapes = any(isinstance(types.unfolded(branch), ast.TypeShape) for branch in branches)
        return None if shapes else other
    members = types.members(type)
    if len(members) == 1 and len(branches) == 1:
        return _of_two(types, type, other)
    parts = (intersection(types, member, branch) or member for member in members for branch in branches)
    return union(parts)


def _of_two(types: Questions, type: Type, other: Type) -> Type:
    """The intersection of two types that are no unions, the one that says more if that is all it is."""
    one, two = types.unfolded(type), types.unfolded(other)
    if not _meet(types, one, two):
        return NEVER
    into, back = types.fits(type, other), types.fits(other, type)
    if into and back:
        return other if _precision(two) > _precision(one) else type
    if into:
        return type
    if not back and isinstance(one, ast.TypeShape) and isinstance(two, ast.TypeShape):
        return _merged(one, two)
    return other


def _precision(type: Type) -> int:
    """A shape says more than a `dict<…>`, that more than a `dict`; a literal more than its kind."""
    return int(bool(type.args)) if isinstance(type, ast.TypeName) else 2


def _merged(one: ast.TypeShape, two: ast.TypeShape) -> ast.TypeShape:
    """The fields of both; of one that both have the second's type, which is what was tested."""
    fields = {field.name: field for field in (*one.fields, *two.fields)}
    return ast.TypeShape(0, 0, tuple(fields.values()))


def _meet(types: Questions, type: Type, other: Type) -> bool:
    """Return True if a value may be of both of two types that are neither unions nor aliases."""
    if isinstance(type, ast.TypeLiteral) and isinstance(other, ast.TypeLiteral):
        return type == other
    if isinstance(type, ast.TypeShape) and isinstance(other, ast.TypeShape):
        return _tags_meet(types, type, other)
    one, two = _kind(type), _kind(other)
    return one is None or two is None or one == two or {one, two} == {"int", "float"}


def _tags_meet(types: Questions, type: ast.TypeShape, other: ast.TypeShape) -> bool:
    """Return True if no field that both shapes require is a different literal in each."""
    tags = _literals(types, type)
    return all(tags.get(name, tag) == tag for name, tag in _literals(types, other).items())


def _literals(types: Questions, shape: ast.TypeShape) -> dict[str, Type]:
    fields = ((field, types.unfolded(field.type)) for field in shape.fields if not field.optional)
    return {field.name: type for field, type in fields if isinstance(type, ast.TypeLiteral)}


def _kind(type: Type) -> str | None:
    """The kind of all values of a type; None when they may be of any kind."""
    if isinstance(type, ast.TypeLiteral):
        return "string" if isinstance(type.value, str) else "int"
    if isinstance(type, ast.TypeShape):
        return "dict"
    if isinstance(type, ast.TypeFn):
        return "closure"
    if isinstance(type, ast.TypeName) and base(type.name) in _DISJOINT_KINDS:
        return type.name
    return None


def _is_name(type: Type, *names: str) -> bool:
    return isinstance(type, ast.TypeName) and type.name in names


# Unions of shapes that a field tells apart. Spec: 03 §6.


def tagged(types: Questions, type: Type) -> tuple[str, list[tuple[str | int, Type]]] | None:
    """Return the discriminant of a union of shapes (03 §6) and its variants: their literal, and the shape.

    It is the first field of the first shape that can be one.
    """
    shapes = [types.unfolded(member) for member in types.members(type)]
    if len(shapes) < 2 or not isinstance(shapes[0], ast.TypeShape):
        return None
    for field in shapes[0].fields:
        tags = _tags(types, shapes, field.name)
        if len(set(tags)) == len(shapes):
            return field.name, list(zip(tags, shapes, strict=True))
    return None


def _tags(types: Questions, shapes: Sequence[Type], name: str) -> list[str | int]:
    """The literals of the shapes that require the field ``name`` to be one."""
    tags: list[str | int] = []
    for shape in shapes:
        fields = shape.fields if isinstance(shape, ast.TypeShape) else ()
        for field in fields:
            type = types.unfolded(field.type)
            if field.name == name and not field.optional and isinstance(type, ast.TypeLiteral):
                tags.append(type.value)
    return tags
