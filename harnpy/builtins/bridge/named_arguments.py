"""Arguments by name, as models and MCP clients give them, for functions whose parameters have schemas.

A `tool` declaration is called this way wherever an agent or a client calls it. Spec: 07 §4.3.
"""

from __future__ import annotations

from harnpy.formats.schema_checks import SchemaValues, check
from harnpy.formats.schemas import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Schema = dict[str, Any]


def input_schema(parameters: Mapping[str, Schema]) -> Schema:
    """Return the JSON Schema of the arguments; a parameter with `required: false` may be left out."""
    properties = {name: _without_flag(schema) for name, schema in parameters.items()}
    required = [name for name, schema in parameters.items() if schema.get("required") is not False]
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _without_flag(schema: Schema) -> Schema:
    """Return a parameter's schema without `required: false`, which is the enclosing schema's to say."""
    if isinstance(schema.get("required"), bool):
        return {key: value for key, value in schema.items() if key != "required"}
    return schema


def refusal(name: str, schema: Schema, arguments: Mapping[str, Any]) -> str | None:
    """Return what to say of arguments of the tool ``name`` that its input schema doesn't allow."""
    problems = check(arguments, canonical(schema), SchemaValues()).errors
    return f"{name}: wrong arguments: {'; '.join(problems)}" if problems else None


def in_order(names: Iterable[str], rest: bool, arguments: Mapping[str, Any], absent: Any) -> list[Any]:
    """Return the arguments as the function takes them; ``absent`` stands for what isn't given.

    ``rest``: the last parameter takes any number of arguments, which are given as a list.
    """
    args = [arguments.get(name, absent) for name in names]
    if not rest:
        return args
    last = args.pop()
    return args if last is absent else [*args, *last]
