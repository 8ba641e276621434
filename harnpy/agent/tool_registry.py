"""Registries, and the tools in them: what an entry needs, how it is described, and how a tool fails.

A registry of tools or skills is an immutable dict ``{_type, <entries>}``; a change makes a new one. What a
tool needs depends on its *executor*, which runs it. A tool can also be made of a description alone. Spec: 07
§4.1, §4.2, §4.8, §6.7.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.faults import Interruption, OptionError
from harnpy.formats.display import display
from harnpy.formats.json import compact_json
from harnpy.llm.native_tools import json_type, parameters_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.formats.dicts import Dict


class ToolFailure(Exception):
    """A tool raised; ``text`` is the error as the model reads it, without ``Error`` in front.

    ``category`` is one of the error categories of 07 §1.7, None when the error has none.
    """

    def __init__(self, text: str, category: str | None = None) -> None:
        super().__init__(text, category)
        self.text = text
        self.category = category

    def __str__(self) -> str:
        return self.text


def failure_reason(error: BaseException) -> str:
    """Return an error's message, without its kind."""
    if isinstance(error, Interruption) and error.__cause__ is not None:
        error = error.__cause__
    return getattr(error, "message", None) or str(error)


class RegistryKind:
    """A kind of registries; ``noun`` is what an entry is called."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._type = f"{noun}_registry"
        self._key = f"{noun}s"

    def registry_of(self, entries: Iterable[Dict]) -> Dict:
        return {"_type": self._type, self._key: list(entries)}

    def is_registry(self, value: Any) -> bool:
        return isinstance(value, dict) and value.get("_type") == self._type

    def entries_of(self, registry: Any, caller: str, what: str | None = None) -> list[Dict]:
        """Return the entries of an argument of ``caller``; errors say ``what`` it should have been."""
        if not isinstance(registry, dict):
            raise OptionError(f"{caller}: {what or f'requires a {self.noun} registry'}")
        entries: Any = registry.get(self._key)
        if not self.is_registry(registry) or not are_entries(entries):
            made = f"created with {self._type}()"
            raise OptionError(f"{caller}: argument must be a {self.noun} registry ({made})")
        found: list[Dict] = entries
        return found

    def first_entries(self, registry: Any, caller: str) -> list[Dict]:
        """Return the entries of a builtin's first argument of several."""
        return self.entries_of(registry, caller, f"first argument must be a {self.noun} registry")

    def select(self, registry: Any, names: Any, name_of: Callable[[Any], Any]) -> Dict:
        """Return the registry with only the entries that ``names``, a program's value, list."""
        caller = f"{self.noun}_select"
        entries = self.first_entries(registry, caller)
        if not isinstance(names, list):
            raise OptionError(f"{caller}: second argument must be a list of {self.noun} names")
        wanted = [name_of(name) for name in names]
        return self.registry_of(entry for entry in entries if entry["name"] in wanted)


def are_entries(value: Any) -> bool:
    """Return True if ``value`` is a list of entries, each with a name."""
    return isinstance(value, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in value
    )


def find(entries: Iterable[Dict], name: Any) -> Dict | None:
    return next((entry for entry in entries if entry["name"] == name), None)


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
            '"interaction.ask") so `harnpy check` can validate the binding against the host capability '
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


TOOLS = RegistryKind("tool")

#: Keys of a config that the entry has under another name or in another form.
_TAKEN = frozenset({"name", "description", "handler", "parameters", "executor", "returns"})


def without_handler(entry: Dict) -> Dict:
    return {key: value for key, value in entry.items() if key != "handler"}


def define_tool(registry: Any, name: str, description: str, config: Any) -> Dict:
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


TOOL_SCHEMA_VERSION = "harn-tools/1.0"

_CALL_FORMAT = '<tool_call>{"name": "tool_name", "arguments": {"param": "value"}}</tool_call>'


def describe_tools(entries: Iterable[Dict]) -> str:
    """Return a list with a line for each tool, by name."""
    lines = ["Available tools:"]
    for entry in _by_name(entries):
        lines.append(f"- {entry['name']}({_parameters(entry)}): {display(entry.get('description', ''))}")
        returns = _returns(entry)
        if returns:
            lines.append(f"  returns {returns}")
    return "\n".join(lines if len(lines) > 1 else [*lines, "(none)"])


def tools_prompt(entries: Iterable[Dict]) -> str:
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


def tool_schemas(entries: Iterable[Dict], components: Any = None) -> Dict:
    """Return the tools as JSON schemas, in the registry's order; ``components`` can be referred to."""
    known = components if isinstance(components, dict) else {}
    document: Dict = {
        "schema_version": TOOL_SCHEMA_VERSION,
        "tools": [_tool(entry, known) for entry in entries],
    }
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


# Tools synthesized from a description alone: their specs, ids and call results. Spec: 07 §4.8.


_NAME = re.compile(r"[A-Za-z0-9_]+")
#: Prefixes of capabilities and the side effects that they imply, the strongest first.
_EFFECTS = (
    (re.compile(r"http|oauth|network|connector|mcp"), "network"),
    (re.compile(r"process|exec|shell"), "process_exec"),
    (re.compile(r"workspace\W?(?:write|apply|delete)"), "workspace_write"),
    (re.compile(""), "read_only"),
)


class Synthesis:
    """The tools that one program has synthesized, by id."""

    def __init__(self) -> None:
        self._specs: dict[str, Dict] = {}
        self._clients: dict[str, Any] = {}

    def add(self, config: Any) -> Dict:
        """Return the spec of the tool that ``config`` describes, with its id. Equal ones are one tool.

        Of equal ones the latest `mcp_client` counts.
        """
        spec = read_spec(config)
        self._clients[spec["id"]] = config.get("mcp_client")
        return self._specs.setdefault(spec["id"], spec)

    def client(self, spec: Dict) -> Any:
        """Return the `mcp_client` that a tool was described with, whatever it is."""
        return self._clients[spec["id"]]

    def specs(self) -> list[Dict]:
        """Return the specs in the order in which they were added."""
        return list(self._specs.values())

    def clear(self) -> None:
        self._specs.clear()
        self._clients.clear()

    def find(self, id: str) -> Dict:
        """Return the spec with that id. Raises `OptionError` if it isn't, or is no longer, known."""
        if id not in self._specs:
            raise OptionError(
                f'tool_synth_invoke: unknown synthesis id "{id}"; synthesize the tool in this run first'
            )
        return self._specs[id]


def read_spec(config: Any) -> Dict:
    """Return the entry that the cache keeps. Raises `OptionError`."""
    if not isinstance(config, dict):
        raise OptionError("tool_synthesize: requires a config dict")
    description = config.get("description")
    if not isinstance(description, str) or not description.strip():
        raise OptionError("tool_synthesize: description must be a non-empty string")
    capabilities = _capabilities(config.get("capabilities"))
    level = config.get("side_effect_level")
    spec = {
        "name": _name(config.get("name"), description),
        "description": description,
        "parameters": _first(config, "parameters", "params") or {},
        "return_type": _first(config, "return_type", "returns"),
        "capabilities": capabilities,
        "side_effect_level": _strongest(capabilities) if level is None else display(level),
    }
    spec |= _backend(config, spec["name"])
    return {"id": f"tool_synth_{_hash(spec)}", **spec}


def check_dry_run(spec: Dict, args: Any) -> None:
    """Raise `OptionError` for arguments that the tool can't be called with."""
    parameters = spec["parameters"]
    if not isinstance(parameters, dict) or not parameters:
        return
    if not isinstance(args, dict):
        raise OptionError(f"{spec['name']}: arguments must be a dict")
    for name in sorted(parameters):
        if name not in args and not _is_optional(parameters[name]):
            raise OptionError(f'{spec["name"]}: missing required argument "{name}"')


def dry_run(spec: Dict, args: Any) -> Dict:
    """Return the result of a call that runs nothing."""
    shown = {key: spec[key] for key in ("name", "description", "capabilities", "side_effect_level")}
    return {
        "_type": "synthesized_tool_result",
        "status": "dry_run",
        "tool_id": spec["id"],
        **shown,
        "args": args,
        "message": f"Dry run of synthesized tool '{spec['name']}': nothing was executed.",
    }


def _name(given: Any, description: str) -> str:
    if given is None:
        return "synth_" + re.sub(r"[^a-z0-9]+", "_", description.lower()).strip("_")
    name = display(given)
    if _NAME.fullmatch(name) is None:
        raise OptionError(
            f'tool_synthesize: invalid tool name "{name}"; use ASCII letters, digits, and underscores'
        )
    return name


def _capabilities(given: Any) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise OptionError("tool_synthesize: capabilities must be a list of strings")
    return sorted(set(given))


def _strongest(capabilities: list[str]) -> str:
    for beginning, level in _EFFECTS:
        if any(map(beginning.match, capabilities)):
            return level
    return "none"


def _backend(config: Dict, name: str) -> Dict:
    """Return the executor, and its name for the tool."""

    def text(key: str, default: str | None = None) -> str | None:
        return default if config.get(key) is None else display(config[key])

    executor = text("executor", "dry_run")
    if executor == "dry_run":
        return {"executor": executor}
    if executor == "host_bridge":
        return {"executor": executor, "host_tool": text("host_tool", name)}
    if executor == "mcp_server":
        server = text("mcp_server")
        named = {} if server is None else {"mcp_server": server}
        return {"executor": executor, "mcp_tool": text("mcp_tool", name), **named}
    raise OptionError(
        f'tool_synthesize: unknown executor "{executor}"; expected "dry_run", "host_bridge", or "mcp_server"'
    )


def _first(config: Dict, key: str, alias: str) -> Any:
    return config[key] if config.get(key) is not None else config.get(alias)


def _is_optional(parameter: Any) -> bool:
    return isinstance(parameter, dict) and (parameter.get("required") is False or "default" in parameter)


def _hash(spec: Dict) -> str:
    import hashlib

    return hashlib.sha256(compact_json(spec).encode("utf-8", "surrogatepass")).hexdigest()[:16]
