"""Tools: registries, descriptions for models, calls and results as text. Spec: 07 §4.1, §4.2."""

from __future__ import annotations

from functools import partial

from harnpy.agent import tool_registry as tool_docs
from harnpy.agent.tool_registry import TOOLS, define_tool, find, without_handler
from harnpy.faults import OptionError, watched
from harnpy.formats.json import JsonError, parse_json, quote
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="tools")

# Tool registries: defining, finding and selecting tools. Spec: 07 §4.1, §4.2.


def need(caller: str, what: str, *args: Value) -> None:
    """Throw unless all arguments were given."""
    if any(arg is ABSENT for arg in args):
        raise OptionError(f"{caller}: requires {what}")


@builtin("tool_registry() -> dict")
def tool_registry(vm: Vm) -> Dict:
    """Return a registry without tools.

    Example: tool_list(tool_registry())  // []
    """
    return TOOLS.registry_of([])


@builtin("tool_define(registry: dict, name: string, description: string, config: dict) -> dict", counted=True)
def tool_define(
    vm: Vm,
    registry: Value = ABSENT,
    name: Value = ABSENT,
    description: Value = ABSENT,
    config: Value = ABSENT,
) -> Dict:
    """Return the registry with a tool added, or replaced if its name is taken.

    `config`: `{parameters, handler, executor?, returns?, annotations?, defer_loading?, namespace?, …}`;
    unknown keys are kept. Throws for a tool that can't be run. Spec: 07 §4.2.

    Example:
        let tools = tool_define(tool_registry(), "double", "Twice a number", {
          parameters: {n: "int"},
          handler: { args -> args.n * 2 },
        })
        tool_find(tools, "double").handler({n: 21})  // 42
    """
    need("tool_define", "registry, name, description, and config dict", config)
    return define_tool(registry, display(name), display(description), config)


@builtin("tool_list(registry: dict) -> list")
def tool_list(vm: Vm, registry: Value) -> list[Dict]:
    """Return the tools of a registry, without their handlers.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }})
        tool_list(tools).map({ found -> found.name })  // ["look"]
    """
    return [without_handler(entry) for entry in TOOLS.entries_of(registry, "tool_list")]


@builtin("tool_find(registry: dict, name: string) -> dict | nil", counted=True)
def tool_find(vm: Vm, registry: Value = ABSENT, name: Value = ABSENT) -> Dict | None:
    """Return the tool called `name`, with its handler, or nil.

    Example: tool_find(tool_registry(), "look")  // nil
    """
    need("tool_find", "registry and name", name)
    return find(TOOLS.first_entries(registry, "tool_find"), display(name))


@builtin("tool_select(registry: dict, names: list) -> dict", counted=True)
def tool_select(vm: Vm, registry: Value = ABSENT, names: Value = ABSENT) -> Dict:
    """Return a registry with only the named tools, in their original order.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }})
        tool_count(tool_select(tools, ["look", "no such tool"]))  // 1
    """
    need("tool_select", "registry and names list", names)
    return TOOLS.select(registry, names, display)


@builtin("tool_remove(registry: dict, name: string) -> dict", counted=True)
def tool_remove(vm: Vm, registry: Value = ABSENT, name: Value = ABSENT) -> Dict:
    """Return the registry without the tool called `name`.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }})
        tool_count(tool_remove(tools, "look"))  // 0
    """
    need("tool_remove", "registry and name", name)
    entries = TOOLS.first_entries(registry, "tool_remove")
    unwanted = display(name)
    return TOOLS.registry_of(entry for entry in entries if entry["name"] != unwanted)


@builtin("tool_count(registry: dict) -> int")
def tool_count(vm: Vm, registry: Value) -> int:
    """Return the number of tools in a registry.

    Example: tool_count(tool_registry())  // 0
    """
    return len(TOOLS.entries_of(registry, "tool_count"))


# Tools as text: their description for a model, the calls it writes, the results it reads. Spec: 07 §4.1.


_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


@builtin("tool_describe(registry: dict) -> string")
def tool_describe(vm: Vm, registry: Value) -> str:
    """Return the tools as a list for people, by name, with parameters and results.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }})
        tool_describe(tools).contains("Look around")  // true
    """
    return tool_docs.describe_tools(TOOLS.entries_of(registry, "tool_describe"))


@builtin("tool_prompt(registry: dict) -> string")
def tool_prompt(vm: Vm, registry: Value) -> str:
    """Return the text that tells a model how to write tool calls in its text.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }})
        tool_prompt(tools).contains("look")  // true
    """
    return tool_docs.tools_prompt(TOOLS.entries_of(registry, "tool_prompt"))


@builtin("tool_schema(registry: dict, components?: dict) -> dict")
def tool_schema(vm: Vm, registry: Value, components: Value) -> dict[str, Any]:
    """Return the tools as JSON schemas; `{$ref: "X"}` parameters are looked up in `components`.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {
          parameters: {at: "string"},
          handler: { args -> "a door" },
        })
        tool_schema(tools).tools[0].inputSchema.required  // ["at"]
    """
    return tool_docs.tool_schemas(TOOLS.entries_of(registry, "tool_schema"), components)


@builtin("tool_parse_call(text: string) -> list")
def tool_parse_call(vm: Vm, text: str) -> list[Value]:
    r"""Return the JSON values in the `<tool_call>` blocks of a text; skip blocks without JSON.

    Example: tool_parse_call("<tool_call>{\"name\": \"look\"}</tool_call>")  // [{name: "look"}]
    """
    found = []
    for body in watched(_bodies(text)):
        try:
            found.append(parse_json(body))
        except JsonError:
            continue
    return found


@builtin("tool_format_result(name: string, result: string) -> string", counted=True)
def tool_format_result(vm: Vm, name: Value = ABSENT, result: Value = ABSENT) -> str:
    """Return the result of a tool as a `<tool_result>` block.

    Example: tool_format_result("look", "a door").contains("a door")  // true
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
