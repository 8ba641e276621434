"""Who runs a tool, and what the tool needs for it. Spec: 07 §4.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.reading.dicts import Dict


#: Tools that the runtime answers itself: they need no handler (07 §6.7).
RUNTIME_SERVED = frozenset({"read_file", "list_directory", "emit_plan", "update_plan"})
EXECUTORS = ("harn", "host_bridge", "mcp_server", "provider_native")

_ALIASES = {"harn_builtin": "harn"}


def executor_of(name: str, config: Dict) -> str:
    """Return the executor that the config names or implies, after checking its conditions."""
    given, handled = config.get("executor"), config.get("handler") is not None
    if given is None:
        if not handled:
            raise _refusal(name, _NEITHER.format(name=name))
        given = "harn"
    if not isinstance(given, str):
        raise OptionError(
            'tool_define: `executor` must be a string ("harn", "host_bridge", "mcp_server", '
            'or "provider_native")'
        )
    executor = _ALIASES.get(given, given)
    if executor not in EXECUTORS:
        expected = ", ".join(f'"{known}"' for known in EXECUTORS)
        raise OptionError(
            f'tool_define: unknown executor "{given}" for tool "{name}". Expected one of: {expected}'
        )
    fault = _FAULTS[executor](name, config, handled)
    if fault is not None:
        raise _refusal(name, f'declares executor: "{executor}" but {fault}')
    return executor


def _refusal(name: str, why: str) -> OptionError:
    return OptionError(f'tool_define: tool "{name}" {why}')


_NEITHER = (
    'has no `handler` and no `executor`. Either attach a `handler` fn (executor: "harn") or declare an '
    'alternate backend, e.g. executor: "host_bridge" + host_capability: "cap.op", executor: "mcp_server" + '
    'mcp_server: "server-name", executor: "provider_native". Defining a handlerless tool would surface as '
    "`[builtin_call] unhandled: {name}` at the first model call."
)


def _harn_fault(name: str, config: Dict, handled: bool) -> str | None:
    if not handled and name not in RUNTIME_SERVED:
        return "has no `handler`. Attach the handler fn or change the executor."
    if config.get("host_capability") is not None:
        return (
            "also sets `host_capability`. Drop one — the harn executor runs the handler in-VM and never "
            "reaches the host bridge."
        )
    if config.get("mcp_server") is not None:
        return 'also sets `mcp_server`. Drop one — MCP-served tools must declare executor: "mcp_server".'
    return None


def _host_fault(name: str, config: Dict, handled: bool) -> str | None:
    if handled:
        return (
            "also has a `handler`. Drop the handler — host-bridge tools are dispatched by the host shell, "
            "not the VM."
        )
    if not is_text(config.get("host_capability")):
        return (
            "is missing `host_capability`. Set it to the canonical bridge identifier (e.g. "
            '"interaction.ask") so `harn check` can validate the binding against the host capability '
            "manifest."
        )
    return None


def _mcp_fault(name: str, config: Dict, handled: bool) -> str | None:
    if handled:
        return "also has a `handler`. Drop the handler — MCP-served tools route through the MCP transport."
    if not is_text(config.get("mcp_server")):
        return "is missing `mcp_server` (the configured server name)."
    return None


def _provider_fault(name: str, config: Dict, handled: bool) -> str | None:
    if handled:
        return (
            "also has a `handler`. Provider-side tools are executed by the model server; the runtime never "
            "dispatches them locally."
        )
    return None


_FAULTS: dict[str, Callable[[str, Dict, bool], str | None]] = {
    "harn": _harn_fault,
    "host_bridge": _host_fault,
    "mcp_server": _mcp_fault,
    "provider_native": _provider_fault,
}


def is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""
