"""A schema in JSON Schema's spelling, or OpenAPI's. Spec: 04 §12.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.schemas.canonical import canonical, with_inner

if TYPE_CHECKING:
    from harnpy.schemas.canonical import Schema

_TYPES = {
    "dict": "object",
    "list": "array",
    "set": "array",
    "string": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "nil": "null",
}
_KEYS = {
    "min": "minimum",
    "max": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "additional_properties": "additionalProperties",
    "all_of": "allOf",
}
#: What may refuse null whatever the type.
_REFUSE_NULL = frozenset(["const", "oneOf", "anyOf", "allOf", "$ref"])


class Dialect(NamedTuple):
    """``union``: its key; ``nullable``: whether that is a key; ``own``: whether `x-harn-type` is known."""

    union: str = "oneOf"
    nullable: bool = False
    own: bool = True


JSON_SCHEMA = Dialect()
OPENAPI = Dialect(nullable=True)
#: What the services of models take.
SERVICE = Dialect(union="anyOf", own=False)


def spelled(schema: Any, dialect: Dialect) -> Schema:
    """A schema in the spelling of a dialect. Raises `SchemaError` for anything but a schema."""
    return _spelled(canonical(schema), dialect)


def _spelled(schema: Schema, dialect: Dialect) -> Schema:
    found = _type(schema, dialect)
    for key, value in with_inner(schema, lambda inner: _spelled(inner, dialect)).items():
        if key in ("min", "max") and type(value) is int:
            found[_KEYS[key]] = float(value)
        elif key == "union":
            found[dialect.union] = value
        elif key not in ("type", "nullable", "x-harn-type"):
            found[_KEYS.get(key, key)] = value
    if dialect.own and "x-harn-type" in schema:
        found["x-harn-type"] = schema["x-harn-type"]
    if schema.get("nullable") is not True:
        return found
    return {**found, "nullable": True} if dialect.nullable else _or_null(found)


def _type(schema: Schema, dialect: Dialect) -> Schema:
    """The type; one that JSON does not have is a string to others, but for a set."""
    name = schema.get("type")
    if name is None or name == "any":
        return {}
    if not isinstance(name, str):
        return {"type": name}
    if name in _TYPES:
        return {"type": _TYPES[name]} | ({"uniqueItems": True} if name == "set" else {})
    return {"type": "string"} | ({"x-harn-type": name} if dialect.own else {})


def _or_null(schema: Schema) -> Schema:
    """The same for JSON Schema, where a schema allows null only if all that it says does."""
    kind, allowed = schema.get("type"), schema.get("enum")
    if kind is None or not _REFUSE_NULL.isdisjoint(schema):
        return {"anyOf": [schema, {"type": "null"}]}
    found = schema if kind == "null" else {**schema, "type": [kind, "null"]}
    return found if not isinstance(allowed, list) or None in allowed else {**found, "enum": [*allowed, None]}
