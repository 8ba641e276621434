"""The canonical spelling of a schema. Spec: 04 §12.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    Schema = dict[str, Any]

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
    """What was given is not a schema."""


def canonical(schema: Any) -> Schema:
    """The schema in its canonical spelling, without unknown keys. Raises `SchemaError`."""
    if not isinstance(schema, dict):
        raise SchemaError("schema must be a dict")
    given: Schema = schema
    found: Schema = {}
    unions = []
    for spelling, value in given.items():
        key = _KEYS.get(spelling, spelling)
        if key == "union":
            unions.append(_changed(key, value, canonical))
        elif key in _KEPT:
            found[key] = _changed(key, value, canonical)
    kinds = found.pop("type", None)
    if isinstance(kinds, list):
        unions.append([{"type": _type(kind)} for kind in kinds])
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
        return [change(branch) for branch in value]
    if key in _NAMED and isinstance(value, dict):
        return {name: change(schema) for name, schema in value.items()}
    if key in _SINGLE and not isinstance(value, bool) and value is not None:
        return change(value)
    if key == "components" and isinstance(value, dict) and isinstance(value.get("schemas"), dict):
        return {**value, "schemas": {name: change(schema) for name, schema in value["schemas"].items()}}
    return value
