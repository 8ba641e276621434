"""Native tools and ``tool_choice`` in a provider's own format, whatever format they came in.

A fallback chain may give one provider what was made for another. Keys that begin with ``x-harn`` are ours:
services reject keys they don't know. So are marks for the cache to all but Anthropic. Pure. Spec: 07 §4.5.
"""

from __future__ import annotations

from typing import Any

from harnpy.llm.providers.cache_marks import without_mark

Tool = dict[str, Any]


def openai_tool(tool: Tool) -> Tool:
    if "function" in tool:
        return {**without_mark(_public(tool)), "function": _public(tool["function"])}
    if "input_schema" not in tool:
        return tool  # a service's own tool
    rest = without_mark(_public(tool))
    schema = rest.pop("input_schema")
    function = {"name": rest.pop("name"), "description": rest.pop("description", ""), "parameters": schema}
    return {"type": "function", "function": function, **rest}


def anthropic_tool(tool: Tool) -> Tool:
    if "function" not in tool:
        return _public(tool)
    function = tool["function"]
    rest = {key: value for key, value in _public(tool).items() if key not in ("type", "function")}
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {
        "name": function["name"],
        "description": function.get("description", ""),
        "input_schema": schema,
        **rest,
    }


def openai_choice(choice: Any) -> Any:
    if isinstance(choice, dict):
        kind = choice.get("type")
        if kind == "tool":
            return {"type": "function", "function": {"name": choice.get("name")}}
        return {"auto": "auto", "none": "none", "any": "required"}.get(str(kind), choice)
    if choice == "any":
        return "required"
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def anthropic_choice(choice: Any) -> Any:
    if isinstance(choice, dict):
        function = choice.get("function")
        return {"type": "tool", "name": function.get("name")} if isinstance(function, dict) else choice
    if choice in ("required", "any"):
        return {"type": "any"}
    if choice in ("auto", "none"):
        return {"type": choice}
    return {"type": "tool", "name": choice}


def _public(tool: Tool) -> Tool:
    return {key: value for key, value in tool.items() if not key.startswith("x-harn")}
