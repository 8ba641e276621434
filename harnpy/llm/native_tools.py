"""Tools as a provider receives them: a registry's entries as native tool JSON. Spec: 07 §4.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    Entry = dict[str, Any]

REGISTRY = "tool_registry"

_NEITHER = "tools must be a tool_registry or a list of tool definition dicts"
_NO_DICT = "tools must be declared as tool definition dicts or a tool_registry"
_NO_DEFINITION = "tools must contain only tool definition dicts"

_TYPES = {
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "array",
    "array": "array",
    "dict": "object",
    "object": "object",
}

#: The words for types that mean something to a model's provider; any other is a string.
TYPE_NAMES = tuple(_TYPES)


class Parameters(dict[str, Any]):
    """A tool's parameters by name, made of a JSON Schema: providers get that one as it is."""

    def __init__(self, schema: dict[str, Any]) -> None:
        required = schema.get("required") or ()
        properties = schema.get("properties") or {}
        super().__init__({name: {**of, "required": name in required} for name, of in properties.items()})
        self.schema = schema


def is_registry(value: Any) -> bool:
    return isinstance(value, dict) and value.get("_type") == REGISTRY


def tool_entries(given: Any) -> list[Entry]:
    """The entries of a ``tools`` option: of a registry, of a list, or none of nil. Raises `OptionError`."""
    if given is None:
        return []
    entries = given.get("tools", []) if is_registry(given) else given
    if not isinstance(entries, list):
        raise OptionError(_NEITHER)
    if not all(isinstance(entry, dict) for entry in entries):
        raise OptionError(_NO_DEFINITION if is_registry(given) else _NO_DICT)
    if not all(isinstance(entry.get("name"), str) for entry in entries):
        raise OptionError(_NO_DEFINITION)
    return list(entries)


def native_style(provider: str, model: str) -> str:
    """Whose format the provider's tools, calls and results have: "anthropic", "ollama" or "openai"."""
    return provider if provider in ("anthropic", "ollama") else "openai"


def native_tools(entries: Iterable[Entry], style: str) -> list[dict[str, Any]]:
    """The entries as native tool JSON; ``style`` is as `native_style` has it; Ollama's is OpenAI's."""
    return [_anthropic(entry) if style == "anthropic" else _openai(entry) for entry in entries]


def native_name(tool: dict[str, Any]) -> str | None:
    """The name in native tool JSON of either style; a provider's own meta-tool may have none."""
    name: str | None = tool.get("function", tool).get("name")
    return name


def parameters_of(entry: Entry) -> dict[str, Any]:
    """The tool's parameters by name; empty unless they are a dict."""
    parameters = entry.get("parameters")
    return parameters if isinstance(parameters, dict) else {}


def json_type(name: Any) -> dict[str, Any]:
    """The schema for the name of a type; anything else is a string."""
    return {"type": _TYPES.get(name, "string") if isinstance(name, str) else "string"}


def _openai(entry: Entry) -> dict[str, Any]:
    return {"type": "function", "function": _definition(entry, "parameters"), **_for_services(entry)}


def _anthropic(entry: Entry) -> dict[str, Any]:
    return {**_definition(entry, "input_schema"), **_for_services(entry)}


def _definition(entry: Entry, schema_key: str) -> dict[str, Any]:
    definition = {
        "name": entry["name"],
        "description": entry.get("description") or "",
        schema_key: _schema(parameters_of(entry)),
    }
    output = entry.get("outputSchema")
    if output is not None:
        definition["x-harn-output-schema"] = output if isinstance(output, dict) else json_type(output)
    return definition


def _schema(parameters: dict[str, Any]) -> dict[str, Any]:
    """Every parameter is required, and one that is given as a dict is a string (07 §4.5)."""
    if isinstance(parameters, Parameters):
        return parameters.schema
    names = sorted(parameters)
    return {
        "type": "object",
        "properties": {name: json_type(parameters[name]) for name in names},
        "required": names,
        "additionalProperties": False,
    }


def _for_services(entry: Entry) -> dict[str, Any]:
    """What the entry says beside the definition to a service: of searching for it, and of the cache."""
    keys: dict[str, Any] = {"defer_loading": True} if entry.get("defer_loading") is True else {}
    return keys | {key: entry[key] for key in ("namespace", "cache_control") if entry.get(key) is not None}
