"""Schema dicts read as types, before anything runs. Spec: 03 §8.3, 04 §12.1."""

from __future__ import annotations

from harnpy.check.types.names import ANY, NIL, STRING, dict_of, is_named, list_of, named, schema_for
from harnpy.check.types.unions import union
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.check.types.names import Type
    from harnpy.check.types.questions import Questions

    #: The literal that a variable is bound to.
    Local = Callable[[str], ast.Node | None]

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
    """See `Types.schema`: an alias's name, `schema_of(Alias)`, a literal dict, or a variable bound to one."""
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
    """What `type: "…"` or `type: ["…", …]` names."""
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
    """See `Types.seen_as`."""
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
