"""Tools in a running program: the bound registry, hooks around calls, synthesized tools.

Spec: 07 §4.1, §4.7, §4.8, §8.4.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from harnpy.agent.rules.hooks import Hooks
from harnpy.agent.tool_registry import TOOLS, Synthesis, bound_entry, check_dry_run, dry_run, without_handler
from harnpy.agent.toolbox import prompt_texts, surface_diagnostics, surface_errors
from harnpy.builtins import settings_of
from harnpy.builtins.language.host import host_tool_call
from harnpy.builtins.options import check_options
from harnpy.faults import OptionError
from harnpy.formats.dicts import Options
from harnpy.llm.native_tools import is_registry
from harnpy.vm.declare import builtin
from harnpy.vm.values import Fn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.formats.dicts import Dict
    from harnpy.vm.run.tasks import Task
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# The bound registry: where tools are looked up by name. Spec: 07 §4.1.
#
# Each task has its own, or else its parent's, so that concurrent loops don't overwrite one another's.


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
    """Return the name if the bound registry has such a tool; throw if not.

    Example:
        tool_bind(tool_registry())
        try { tool_ref("look") } catch (e) { "no such tool" }  // "no such tool"
    """
    found: str = bound_entry(bound_registry(vm), "tool_ref", name)["name"]
    return found


@builtin("tool_def(name: any) -> dict", family="tools")
def tool_def(vm: Vm, name: Value) -> Dict:
    """Return the tool with that name in the bound registry, without its handler; throw if there is none.

    Example:
        tool_bind(tool_define(tool_registry(), "look", "Look around", {handler: { args -> "a door" }}))
        tool_def("look").description  // "Look around"
    """
    return without_handler(bound_entry(bound_registry(vm), "tool_def", name))


@builtin("tool_surface_validate(surface?: dict, options?: dict) -> dict", family="tools")
def tool_surface_validate(vm: Vm, surface: Value, options: Value) -> dict[str, Any]:
    """Find problems that a model would have with its tools: `{valid, diagnostics}`.

    `surface`: `{tools, native_tools?, policy?, approval_policy?, tool_search?, system?, prompt?, prompts?}`
    or a registry, by default the bound one. `options` supplies missing keys.
    Spec: 07 §4.7.

    Example: tool_surface_validate(tool_registry()).valid  // true
    """
    given = options if type(options) is dict else {}
    own = surface if type(surface) is dict and not is_registry(surface) else {"tools": surface}
    if own.get("tools") is None:
        own = {key: value for key, value in own.items() if key != "tools"}
    merged = {**given, **own, "system": None, "prompt": None}
    merged["prompts"] = prompt_texts(own) + prompt_texts(given)
    if surface is None and "tools" not in merged:
        merged["tools"] = bound_registry(vm)
    diagnostics = surface_diagnostics(merged)
    return {"valid": not surface_errors(diagnostics), "diagnostics": diagnostics}


# Hooks around the tools of agents. Spec: 07 §8.4.


def hooks_of(vm: Vm) -> Hooks:
    """Return the program's hooks; the embedder's come first."""
    return vm.state(Hooks, lambda: Hooks(settings_of(vm).hooks))


@builtin("register_tool_hook(config: dict) -> nil", family="workflows")
def register_tool_hook(vm: Vm, config: Value) -> None:
    """Deny tools, or shorten their results: `{pattern = "*", deny?: string, max_output?: int}`.

    `deny` is the reason why agents may not call the tools that match. Spec: 07 §8.4.

    Example: register_tool_hook({pattern: "delete_*", deny: "nothing is deleted here"})  // nil
    """
    check_options(vm, "register_tool_hook", config)
    options = Options(config)
    hooks_of(vm).add_tool_rule(
        options.string("pattern") or "*", options.string("deny"), options.integer("max_output")
    )


@builtin("clear_tool_hooks() -> nil", family="workflows")
def clear_tool_hooks(vm: Vm) -> None:
    """Remove the tool hooks of the program and its manifest.

    Example: clear_tool_hooks()  // nil
    """
    hooks_of(vm).clear_tool_hooks()


# Synthesized tools: made from a description, for a server or the host to run. Spec: 07 §4.8.


@builtin("tool_synthesize(spec: dict) -> closure", family="tools")
def tool_synthesize(vm: Vm, spec: Value) -> Fn:
    """Return a closure for a tool without code: it checks its arguments and returns what it would do.

    `spec`: `{description, name?, parameters?, return_type?, capabilities?, executor?, …}`. Spec: 07 §4.8.

    Example:
        let greet = tool_synthesize({name: "greet", description: "Greet someone"})
        greet({name: "Ada"}).status  // "dry_run"
    """
    check_options(vm, "tool_synthesize", spec)
    made = vm.state(Synthesis).add(spec)
    id = made["id"]
    # The builtin, not the function below: only the builtin reports faults as Harn errors.
    invoke = vm.builtins.bound("tool_synth_invoke").call
    return Fn(made["name"], ("args",), lambda depth, args=None: invoke(vm, id, args))


@builtin("tool_synth_invoke(id: string, args?: dict) -> any", family="tools")
def tool_synth_invoke(vm: Vm, id: str, args: Value) -> Value:
    """Call a synthesized tool by its id; throw if it is no longer known.

    Example:
        tool_synthesize({name: "greet", description: "Greet someone"})
        tool_synthesis_clear()
        try { tool_synth_invoke("greet") } catch (e) { "forgotten" }  // "forgotten"
    """
    synthesis = vm.state(Synthesis)
    spec = synthesis.find(id)
    check_dry_run(spec, args)
    if spec["executor"] == "host_bridge":
        return host_tool_call(vm, spec.get("host_tool") or spec["name"], args)
    if spec["executor"] == "mcp_server":
        from harnpy.mcp.client import Client  # asyncio comes with it

        client = synthesis.client(spec)
        if type(client) is not Client:
            raise OptionError(f"{spec['name']}: calling it needs `mcp_client`, a connection to the server")
        return vm.tasks.await_coroutine(client.call(spec["mcp_tool"], args if type(args) is dict else {}))
    return dry_run(spec, args)


@builtin("tool_synthesis_cache() -> list", family="tools")
def tool_synthesis_cache(vm: Vm) -> list[Dict]:
    """Return the synthesized tools as `{id, name, description, parameters, executor, …}`. Spec: 07 §4.8.

    Example:
        tool_synthesis_clear()
        tool_synthesize({name: "greet", description: "Greet someone"})
        tool_synthesis_cache().map({ made -> made.name })  // ["greet"]
    """
    return vm.state(Synthesis).specs()


@builtin("tool_synthesis_clear() -> nil", family="tools")
def tool_synthesis_clear(vm: Vm) -> None:
    """Forget the synthesized tools; their closures throw from now on. Spec: 07 §4.8.

    Example:
        tool_synthesis_clear()
        tool_synthesis_cache()  // []
    """
    vm.state(Synthesis).clear()
