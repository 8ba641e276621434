"""The bound registry: where tools are looked up by name. Spec: 07 §4.1.

Each task has its own, or else its parent's, so that concurrent loops don't overwrite one another's.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from harnpy.agent.tools.tool_registry import TOOLS, bound_entry, without_handler
from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.run.tasks.task import Task
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


class _Bindings:
    def __init__(self) -> None:
        self.by_task: WeakKeyDictionary[Task, Dict | None] = WeakKeyDictionary()


def bound_registry(vm: Vm) -> Dict | None:
    """Return the registry that is bound for the running task."""
    by_task = vm.state(_Bindings).by_task
    task: Task | None = vm.tasks.current
    while task is not None:
        if task in by_task:
            return by_task[task]
        task = task.parent
    return None


def bind(vm: Vm, registry: Dict | None) -> None:
    """Bind a registry for the running task, or none. A caller that restores it keeps the old one."""
    vm.state(_Bindings).by_task[vm.tasks.current] = registry


@builtin("tool_bind(registry?: dict) -> dict | nil", family="tools")
def tool_bind(vm: Vm, registry: Value) -> Value:
    """Bind a registry for `tool_ref` and `tool_def`; nil unbinds it. Returns its argument.

    Example:
        tool_bind(tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }}))
        tool_ref("look")  // "look"
    """
    if registry is not None:
        TOOLS.entries_of(registry, "tool_bind", "argument must be a tool registry or nil")
    bind(vm, registry)
    return registry


@builtin("tool_ref(name: any) -> string", family="tools")
def tool_ref(vm: Vm, name: Value) -> str:
    """The name, if the bound registry has such a tool; throws if not.

    Example:
        tool_bind(tool_registry())
        try { tool_ref("look") } catch (e) { "no such tool" }  // "no such tool"
    """
    found: str = bound_entry(bound_registry(vm), "tool_ref", name)["name"]
    return found


@builtin("tool_def(name: any) -> dict", family="tools")
def tool_def(vm: Vm, name: Value) -> Dict:
    """The tool of that name in the bound registry, without its handler; throws if there is none.

    Example:
        tool_bind(tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }}))
        tool_def("look").description  // "Look around"
    """
    return without_handler(bound_entry(bound_registry(vm), "tool_def", name))
