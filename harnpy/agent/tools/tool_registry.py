"""Tool registries and the tools in them.

What a tool needs depends on its *executor*, which runs it. Spec: 07 §4.1, §4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.registries import RegistryKind, find
from harnpy.agent.tools.executors import executor_of, is_text
from harnpy.faults import OptionError

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict

TOOLS = RegistryKind("tool")

#: Keys of a config that the entry has under another name or in another form.
_TAKEN = frozenset({"name", "description", "handler", "parameters", "executor", "returns"})


def without_handler(entry: Dict) -> Dict:
    return {key: value for key, value in entry.items() if key != "handler"}


def define(registry: Any, name: str, description: str, config: Any) -> Dict:
    """Return the registry with the tool at its end. Raises `OptionError` for a tool that can't be run."""
    others = [entry for entry in TOOLS.first_entries(registry, "tool_define") if entry["name"] != name]
    if not isinstance(config, dict):
        raise OptionError("tool_define: config must be a dict with parameters and handler")
    if "params" in config and "parameters" not in config:
        raise OptionError("tool_define: use 'parameters', not 'params'")
    executor = executor_of(name, config)
    _check_deferral(config)
    entry = {key: value for key, value in config.items() if key not in _TAKEN}
    entry |= {
        "name": name,
        "description": description,
        "handler": config.get("handler"),
        "parameters": {} if config.get("parameters") is None else config["parameters"],
        "executor": executor,
    }
    if config.get("returns") is not None:
        entry["outputSchema"] = config["returns"]
    return TOOLS.registry_of([*others, entry])


def bound_entry(registry: Dict | None, caller: str, name: Any) -> Dict:
    """Return the entry ``name`` of the bound registry. Raises `OptionError`, which names ``caller``."""
    if not isinstance(name, str):
        raise OptionError(f"{caller}: name must be a string literal")
    if registry is None:
        raise OptionError(
            f"{caller}: no tool registry bound to this scope. Call tool_bind(registry) first, "
            "or invoke inside an agent_loop."
        )
    entries = TOOLS.entries_of(registry, caller)
    entry = find(entries, name)
    if entry is None:
        known = ", ".join(entry["name"] for entry in entries) or "(none registered)"
        raise OptionError(f'{caller}: unknown tool "{name}". Registered tools: {known}')
    return entry


def _check_deferral(config: Dict) -> None:
    if not isinstance(config.get("defer_loading", False), bool):
        raise OptionError(
            "tool_define: `defer_loading` must be a bool (true → hold schema back until a tool_search call "
            "surfaces it; false or absent → ship eagerly)"
        )
    namespace = config.get("namespace")
    if namespace is not None and not is_text(namespace):
        raise OptionError(
            "tool_define: `namespace` must be a non-empty string (groups deferred tools for OpenAI "
            "tool_search; Anthropic ignores it)"
        )
