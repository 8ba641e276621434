"""Synthesized tools: made from a description, for a server or the host to run. Spec: 07 §4.8."""

from __future__ import annotations

from harnpy.agent.tools.synthesis import Synthesis, check_arguments, dry_run
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.builtins.language.host.host import host_tool_call
from harnpy.faults import OptionError
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.values.objects import Fn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("tool_synthesize(spec: dict) -> closure", family="tools")
def tool_synthesize(vm: Vm, spec: Value) -> Fn:
    """A closure for a tool without code: it checks its arguments and returns what it would do.

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
    """Call a synthesized tool by its id; throws if it is no longer known.

    Example:
        tool_synthesize({name: "greet", description: "Greet someone"})
        tool_synthesis_clear()
        try { tool_synth_invoke("greet") } catch (e) { "forgotten" }  // "forgotten"
    """
    synthesis = vm.state(Synthesis)
    spec = synthesis.find(id)
    check_arguments(spec, args)
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
    """The synthesized tools, as `{id, name, description, parameters, executor, …}`, in that order.

    Example:
        tool_synthesis_clear()
        tool_synthesize({name: "greet", description: "Greet someone"})
        tool_synthesis_cache().map({ made -> made.name })  // ["greet"]
    """
    return vm.state(Synthesis).specs()


@builtin("tool_synthesis_clear() -> nil", family="tools")
def tool_synthesis_clear(vm: Vm) -> None:
    """Forget the synthesized tools; their closures throw from now on.

    Example:
        tool_synthesis_clear()
        tool_synthesis_cache()  // []
    """
    vm.state(Synthesis).clear()
