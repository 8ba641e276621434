"""Schemas: their canonical spelling, schemas made of others, and JSON Schema's spelling. Spec: 04 §12.

A schema is a dict in the canonical spelling or in JSON Schema's. A canonical one has ``type`` names as
`type_of` returns them, so that an int is not a float.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harnpy.faults import OptionError, paced

Schema = dict[str, Any]

# The canonical spelling of a schema. Spec: 04 §12.1.


_TYPES = {
    "object": "dict",
    "array": "list",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "nil",
}
_KEYS = {
    "minimum": "min",
    "maximum": "max",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "additionalProperties": "additional_properties",
    "oneOf": "union",
    "anyOf": "union",
    "allOf": "all_of",
}
_KEPT = frozenset(
    "type min max min_length max_length min_items max_items additional_properties union all_of properties"
    " items required default const enum pattern nullable definitions components $ref title description"
    " format deprecated readOnly writeOnly example examples x-harn-type".split()
)
#: Keys with a dict of schemas, with a list of schemas, and with one schema.
_NAMED = ("properties", "definitions")
_LISTED = ("union", "all_of")
_SINGLE = ("items", "additional_properties")

#: Types that JSON does not have; `x-harn-type` says that one is meant.
_BEYOND_JSON = frozenset(
    "set bytes closure builtin duration enum task_handle channel atomic rng sync_permit mcp_client generator"
    " stream range iter pair".split()
)


class SchemaError(OptionError):
    """A given value isn't a schema."""


def canonical(schema: Any) -> Schema:
    """The schema in its canonical spelling, without unknown keys. Raises `SchemaError`."""
    if not isinstance(schema, dict):
        raise SchemaError("schema must be a dict")
    given: Schema = schema
    found: Schema = {}
    unions = []
    for spelling, value in paced([*given.items()]):
        key = _KEYS.get(spelling, spelling)
        if key == "union":
            unions.append(_changed(key, value, canonical))
        elif key in _KEPT:
            found[key] = _changed(key, value, canonical)
    kinds = found.pop("type", None)
    if isinstance(kinds, list):
        unions.append([{"type": _type(kind)} for kind in paced(kinds)])
    elif kinds is not None:
        found["type"] = _type(kinds)
    return found | _all_of_unions(unions, found) | _own_type(given, found)


def _all_of_unions(unions: list[list[Schema]], schema: Schema) -> Schema:
    """The last union as it is; of several, the value must match a branch of each."""
    if not unions:
        return {}
    *others, last = unions
    if not others:
        return {"union": last}
    return {"union": last, "all_of": [*schema.get("all_of", ()), *({"union": union} for union in others)]}


def _own_type(given: Schema, schema: Schema) -> Schema:
    """The type that JSON does not have, if the schema means one."""
    if schema.get("type") == "list" and given.get("uniqueItems") is True:
        return {"type": "set"}
    own = given.get("x-harn-type")
    return {"type": own} if isinstance(own, str) and own in _BEYOND_JSON else {}


def _type(name: Any) -> Any:
    return _TYPES.get(name, name) if isinstance(name, str) else name


def with_inner(schema: Schema, change: Callable[[Any], Schema]) -> Schema:
    """The canonical schema with ``change`` made to every schema in it."""
    return {key: _changed(key, value, change) for key, value in schema.items()}


def _changed(key: str, value: Any, change: Callable[[Any], Schema]) -> Any:
    """The entry of a schema with ``change`` made to every schema in it."""
    if key in _LISTED:
        if not isinstance(value, list):
            raise SchemaError("schema union/all_of must be a list")
        return [change(branch) for branch in paced(value)]
    if key in _NAMED and isinstance(value, dict):
        return _each(value, change)
    if key in _SINGLE and not isinstance(value, bool) and value is not None:
        return change(value)
    if key == "components" and isinstance(value, dict) and isinstance(value.get("schemas"), dict):
        return {**value, "schemas": _each(value["schemas"], change)}
    return value


def _each(schemas: dict[str, Any], change: Callable[[Any], Schema]) -> dict[str, Schema]:
    return {name: change(schema) for name, schema in paced([*schemas.items()])}


# Schemas made of others. Spec: 04 §12.3.


def extended(base: Any, overrides: Any) -> Schema:
    """Both; what ``overrides`` has at its top level wins. Raises `SchemaError`, as all here."""
    return canonical(base) | canonical(overrides)


def partial(schema: Any) -> Schema:
    """The schema with nothing required, at any depth."""
    return _without_required(canonical(schema))


def _without_required(schema: Schema) -> Schema:
    return with_inner({key: schema[key] for key in schema if key != "required"}, _without_required)


def picked(schema: Any, keys: set[str]) -> Schema:
    """The schema with those of its properties."""
    return _filtered(schema, lambda key: key in keys)


def omitted(schema: Any, keys: set[str]) -> Schema:
    """The schema without those properties."""
    return _filtered(schema, lambda key: key not in keys)


def _filtered(schema: Any, kept: Callable[[str], bool]) -> Schema:
    found = canonical(schema)
    properties, required = found.get("properties"), found.pop("required", None)
    if isinstance(properties, dict):
        found["properties"] = {key: properties[key] for key in paced([*properties]) if kept(key)}
    if isinstance(required, list):
        required = [key for key in paced(required) if isinstance(key, str) and kept(key)]
    return {**found, "required": required} if required else found


# A schema in JSON Schema's spelling, or OpenAPI's. Spec: 04 §12.3.


_SPELLING_TYPES = {
    "dict": "object",
    "list": "array",
    "set": "array",
    "string": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "nil": "null",
}
_SPELLING_KEYS = {
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
    found = _spelling_type(schema, dialect)
    for key, value in with_inner(schema, lambda inner: _spelled(inner, dialect)).items():
        if key in ("min", "max") and type(value) is int:
            found[_SPELLING_KEYS[key]] = float(value)
        elif key == "union":
            found[dialect.union] = value
        elif key not in ("type", "nullable", "x-harn-type"):
            found[_SPELLING_KEYS.get(key, key)] = value
    if dialect.own and "x-harn-type" in schema:
        found["x-harn-type"] = schema["x-harn-type"]
    if schema.get("nullable") is not True:
        return found
    return {**found, "nullable": True} if dialect.nullable else _or_null(found)


def _spelling_type(schema: Schema, dialect: Dialect) -> Schema:
    """The type; one that JSON does not have is a string to others, but for a set."""
    name = schema.get("type")
    if name is None or name == "any":
        return {}
    if not isinstance(name, str):
        return {"type": name}
    if name in _SPELLING_TYPES:
        return {"type": _SPELLING_TYPES[name]} | ({"uniqueItems": True} if name == "set" else {})
    return {"type": "string"} | ({"x-harn-type": name} if dialect.own else {})


def _or_null(schema: Schema) -> Schema:
    """The same for JSON Schema, where a schema allows null only if all that it says does."""
    kind, allowed = schema.get("type"), schema.get("enum")
    if kind is None or not _REFUSE_NULL.isdisjoint(schema):
        return {"anyOf": [schema, {"type": "null"}]}
    found = schema if kind == "null" else {**schema, "type": [kind, "null"]}
    return found if not isinstance(allowed, list) or None in allowed else {**found, "enum": [*allowed, None]}
