"""A registry described: as a list, as a prompt, as JSON schemas. Pure. Spec: 07 §4.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.llm.native_tools import json_type, parameters_of
from harnpy.text.display import display

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict


SCHEMA_VERSION = "harn-tools/1.0"

_CALL_FORMAT = '<tool_call>{"name": "tool_name", "arguments": {"param": "value"}}</tool_call>'


def describe(entries: Iterable[Dict]) -> str:
    """Return a list with a line for each tool, by name."""
    lines = ["Available tools:"]
    for entry in _by_name(entries):
        lines.append(f"- {entry['name']}({_parameters(entry)}): {display(entry.get('description', ''))}")
        returns = _returns(entry)
        if returns:
            lines.append(f"  returns {returns}")
    return "\n".join(lines if len(lines) > 1 else [*lines, "(none)"])


def prompt(entries: Iterable[Dict]) -> str:
    """Return what a model needs to know to call the tools in its text."""
    tools = [_section(entry) for entry in _by_name(entries)]
    if not tools:
        return "No tools are available."
    head = (
        "# Available Tools",
        "To call a tool, write a block of this form, its body one JSON object:",
        _CALL_FORMAT,
        "A response may hold several such blocks. After the last one stop, and wait for the results.",
        "## Tools",
    )
    return "\n\n".join([*head, *tools])


def schemas(entries: Iterable[Dict], components: Any = None) -> Dict:
    """Return the tools as JSON schemas, in the registry's order; ``components`` can be referred to."""
    known = components if isinstance(components, dict) else {}
    document: Dict = {"schema_version": SCHEMA_VERSION, "tools": [_tool(entry, known) for entry in entries]}
    return document if components is None else {**document, "components": {"schemas": components}}


# In words.


def _by_name(entries: Iterable[Dict]) -> list[Dict]:
    return sorted(entries, key=lambda entry: entry["name"])


def _section(entry: Dict) -> str:
    labelled = (("Parameters", _parameters(entry)), ("Returns", _returns(entry)))
    lines = [f"### {entry['name']}", display(entry.get("description", ""))]
    return "\n".join(filter(None, [*lines, *(f"{label}: {text}" for label, text in labelled if text)]))


def _parameters(entry: Dict) -> str:
    return _pairs(parameters_of(entry))


def _returns(entry: Dict) -> str:
    output = entry.get("outputSchema")
    if isinstance(output, dict):
        return f"$ref({display(output['$ref'])})" if "$ref" in output else _pairs(output)
    return "" if output is None else display(output)


def _pairs(fields: Dict) -> str:
    return ", ".join(f"{key}: {display(fields[key])}" for key in sorted(fields))


# As schemas.


def _tool(entry: Dict, components: Dict) -> Dict:
    parameters = parameters_of(entry)
    schema: Dict = {
        "type": "object",
        "properties": {name: _schema(parameters[name], components) for name in sorted(parameters)},
    }
    if parameters:
        schema["required"] = sorted(parameters)
    tool = {"name": entry["name"], "description": entry.get("description", ""), "inputSchema": schema}
    output = entry.get("outputSchema")
    return tool if output is None else {**tool, "outputSchema": _schema(output, components)}


def _schema(given: Any, components: Dict) -> Dict:
    if not isinstance(given, dict):
        return json_type(given)
    if "$ref" not in given:
        return given
    name = str(given["$ref"]).removeprefix("#/components/schemas/")
    found = components.get(name)
    return found if isinstance(found, dict) else {"$ref": f"#/components/schemas/{name}"}
