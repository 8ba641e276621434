"""Tools as text: their description for a model, the calls it writes, the results it reads. Spec: 07 §4.1."""

from __future__ import annotations

from harnpy.agent.tools import docs as tool_docs
from harnpy.agent.tools.tool_registry import TOOLS
from harnpy.builtins.agents.tools.tool_registries import need
from harnpy.text.json.reader import JsonError, parse_json
from harnpy.text.json.writer import quote
from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


@builtin("tool_describe(registry: dict) -> string", family="tools")
def tool_describe(vm: Vm, registry: Value) -> str:
    """The tools as a list for people, by name, with parameters and what they return.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }})
        tool_describe(tools).contains("Look around")  // true
    """
    return tool_docs.describe(TOOLS.entries_of(registry, "tool_describe"))


@builtin("tool_prompt(registry: dict) -> string", family="tools")
def tool_prompt(vm: Vm, registry: Value) -> str:
    """What a model needs to know to call the tools in its text.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }})
        tool_prompt(tools).contains("look")  // true
    """
    return tool_docs.prompt(TOOLS.entries_of(registry, "tool_prompt"))


@builtin("tool_schema(registry: dict, components?: dict) -> dict", family="tools")
def tool_schema(vm: Vm, registry: Value, components: Value) -> dict[str, Any]:
    """The tools as JSON schemas; `{$ref: "X"}` parameters are looked up in `components`.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {
          parameters: {at: "string"},
          handler: { args -> "a door" },
        })
        tool_schema(tools).tools[0].inputSchema.required  // ["at"]
    """
    return tool_docs.schemas(TOOLS.entries_of(registry, "tool_schema"), components)


@builtin("tool_parse_call(text: string) -> list", family="tools")
def tool_parse_call(vm: Vm, text: str) -> list[Value]:
    r"""The JSON values in the `<tool_call>` blocks of a text; blocks without JSON are left out.

    Example:
        tool_parse_call("<tool_call>{\"name\": \"look\"}</tool_call>")  // [{name: "look"}]
    """
    found = []
    for body in _bodies(text):
        try:
            found.append(parse_json(body))
        except JsonError:
            continue
    return found


@builtin("tool_format_result(name: string, result: string) -> string", family="tools", counted=True)
def tool_format_result(vm: Vm, name: Value = ABSENT, result: Value = ABSENT) -> str:
    """The result of a tool as a `<tool_result>` block.

    Example:
        tool_format_result("look", "a door").contains("a door")  // true
    """
    need("tool_format_result", "name and result", result)
    return (
        f'<tool_result>{{"name": {quote(display(name))}, "result": {quote(display(result))}}}</tool_result>'
    )


def _bodies(text: str) -> Iterator[str]:
    """Return the contents of the blocks; an unclosed block ends the search."""
    at = text.find(_OPEN)
    while at >= 0:
        begin = at + len(_OPEN)
        end = text.find(_CLOSE, begin)
        if end < 0:
            return
        yield text[begin:end]
        at = text.find(_OPEN, end)
