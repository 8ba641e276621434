"""Parameters as TypeScript types, from type names and JSON schemas. Pure. Spec: 07 §4.4."""

from __future__ import annotations

import json
import re
from typing import Any

_UNKNOWN = "unknown"
_NAMES = {
    "string": "string",
    "int": "number",
    "integer": "number",
    "float": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "unknown[]",
    "array": "unknown[]",
    "dict": "object",
    "object": "object",
    "nil": "null",
    "null": "null",
}
_BRACES = re.compile(r"\{.*\}")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")

#: Deeper types are cut off.
_DEPTH_LIMIT = 16


def parameter_list(parameters: Any) -> str:
    """Return the type of a call's argument: each parameter, whether it is required, and its purpose."""
    if not isinstance(parameters, dict) or not parameters:
        return "{}"
    fields = (_parameter(name, parameters[name]) for name in sorted(parameters))
    return f"{{ {'; '.join(fields)} }}"


def ts_type(schema: Any, depth: int = 0) -> str:
    """Return the type that a type name or a JSON schema describes; `unknown` if neither does."""
    if isinstance(schema, str):
        return _NAMES.get(schema, _UNKNOWN)
    if not isinstance(schema, dict) or depth > _DEPTH_LIMIT:
        return _UNKNOWN
    found = _of_schema(schema, depth)
    return _union([found, "null"]) if schema.get("nullable") is True else found


def _parameter(name: str, schema: Any) -> str:
    optional = isinstance(schema, dict) and (schema.get("required") is False or "default" in schema)
    description = schema.get("description") if isinstance(schema, dict) else None
    note = "optional" if optional else "required"
    if isinstance(description, str) and description.strip():
        note += f" — {' '.join(description.split())}".replace("*/", "* /")
    mark = "?" if optional else ""
    return f"{_key(name)}{mark}: {ts_type(schema)} /* {note} */"


def _of_schema(schema: dict[str, Any], depth: int) -> str:
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return _union(map(_literal, choices))
    if "const" in schema:
        return _literal(schema["const"])
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            return _union(ts_type(option, depth + 1) for option in options)
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        return _union(_of_type(name, schema, depth) for name in kind)
    return _of_type(kind, schema, depth)


def _of_type(kind: Any, schema: dict[str, Any], depth: int) -> str:
    if kind in ("array", "list") and "items" in schema:
        item = ts_type(schema["items"], depth + 1)
        return f"({item})[]" if " | " in _BRACES.sub("", item) else f"{item}[]"
    if kind in ("object", "dict") or (kind is None and "properties" in schema):
        return _object(schema, depth)
    return _NAMES.get(kind, _UNKNOWN) if isinstance(kind, str) else _UNKNOWN


def _object(schema: dict[str, Any], depth: int) -> str:
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        required = schema.get("required")
        names = required if isinstance(required, list) else []
        fields = (
            f"{_key(name)}{'' if name in names else '?'}: {ts_type(properties[name], depth + 1)}"
            for name in sorted(properties)
        )
        return f"{{ {'; '.join(fields)} }}"
    values = schema.get("additionalProperties")
    return f"Record<string, {ts_type(values, depth + 1)}>" if isinstance(values, (dict, str)) else "object"


def _union(types: Any) -> str:
    """Join the types, each once; `unknown` absorbs the rest."""
    different = dict.fromkeys(types)
    return _UNKNOWN if _UNKNOWN in different else " | ".join(different)


def _key(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _literal(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError):
        return _UNKNOWN
