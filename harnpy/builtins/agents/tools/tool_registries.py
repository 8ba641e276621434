"""Tool registries: defining, finding and selecting tools. Spec: 07 §4.1, §4.2."""

from __future__ import annotations

from harnpy.agent.registries import find
from harnpy.agent.tools.tool_registry import TOOLS, define, without_handler
from harnpy.faults import OptionError
from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def need(caller: str, what: str, *args: Value) -> None:
    """Throw unless all arguments were given."""
    if any(arg is ABSENT for arg in args):
        raise OptionError(f"{caller}: requires {what}")


@builtin("tool_registry() -> dict", family="tools")
def tool_registry(vm: Vm) -> Dict:
    """A registry without tools.

    Example:
        tool_list(tool_registry())  // []
    """
    return TOOLS.registry_of([])


@builtin(
    "tool_define(registry: dict, name: string, description: string, config: dict) -> dict",
    family="tools",
    counted=True,
)
def tool_define(
    vm: Vm,
    registry: Value = ABSENT,
    name: Value = ABSENT,
    description: Value = ABSENT,
    config: Value = ABSENT,
) -> Dict:
    """The registry with a tool added, or replaced if its name is taken.

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
    return define(registry, display(name), display(description), config)


@builtin("tool_list(registry: dict) -> list", family="tools")
def tool_list(vm: Vm, registry: Value) -> list[Dict]:
    """The tools of a registry, without their handlers.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }})
        tool_list(tools).map({ found -> found.name })  // ["look"]
    """
    return [without_handler(entry) for entry in TOOLS.entries_of(registry, "tool_list")]


@builtin("tool_find(registry: dict, name: string) -> dict | nil", family="tools", counted=True)
def tool_find(vm: Vm, registry: Value = ABSENT, name: Value = ABSENT) -> Dict | None:
    """The tool called `name`, with its handler; nil if there is none.

    Example:
        tool_find(tool_registry(), "look")  // nil
    """
    need("tool_find", "registry and name", name)
    return find(TOOLS.first_entries(registry, "tool_find"), display(name))


@builtin("tool_select(registry: dict, names: list) -> dict", family="tools", counted=True)
def tool_select(vm: Vm, registry: Value = ABSENT, names: Value = ABSENT) -> Dict:
    """A registry with only the named tools, in the order they had.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }})
        tool_count(tool_select(tools, ["look", "no such tool"]))  // 1
    """
    need("tool_select", "registry and names list", names)
    return TOOLS.select(registry, names, display)


@builtin("tool_remove(registry: dict, name: string) -> dict", family="tools", counted=True)
def tool_remove(vm: Vm, registry: Value = ABSENT, name: Value = ABSENT) -> Dict:
    """The registry without the tool called `name`.

    Example:
        let tools = tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }})
        tool_count(tool_remove(tools, "look"))  // 0
    """
    need("tool_remove", "registry and name", name)
    entries = TOOLS.first_entries(registry, "tool_remove")
    unwanted = display(name)
    return TOOLS.registry_of(entry for entry in entries if entry["name"] != unwanted)


@builtin("tool_count(registry: dict) -> int", family="tools")
def tool_count(vm: Vm, registry: Value) -> int:
    """How many tools a registry has.

    Example:
        tool_count(tool_registry())  // 0
    """
    return len(TOOLS.entries_of(registry, "tool_count"))
