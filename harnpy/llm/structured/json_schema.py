"""A schema in JSON Schema's spelling, the only one that services know. Pure. Spec: 04 §12."""

from __future__ import annotations

from typing import Any

from harnpy.llm.structured.schema import canonical

_TYPES = {
    "dict": "object",
    "list": "array",
    "set": "array",
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
    "union": "anyOf",
    "all_of": "allOf",
}
_OURS = ("nullable", "x-harn-type")


def json_schema(schema: Any) -> dict[str, Any]:
    """A schema in JSON Schema's spelling. Raises `SchemaError` for anything but a schema."""
    return _spelled(canonical(schema))


def _spelled(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "definitions") and isinstance(value, dict):
            found[key] = {name: _spelled(each) for name, each in value.items()}
        elif key in ("union", "all_of"):
            found[_KEYS[key]] = [_spelled(each) for each in value]
        elif key in ("items", "additional_properties") and isinstance(value, dict):
            found[_KEYS.get(key, key)] = _spelled(value)
        elif key == "type":
            found["type"] = _TYPES.get(value, value)
        elif key not in _OURS:
            found[_KEYS.get(key, key)] = value
    if schema.get("type") == "set":
        found["uniqueItems"] = True
    if schema.get("nullable"):
        return {"anyOf": [found, {"type": "null"}]}
    return found
