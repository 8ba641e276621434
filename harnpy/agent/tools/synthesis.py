"""Tools synthesized from a description alone: their specs, ids and call results. Spec: 07 §4.8."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.text.display import display
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


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


def check_arguments(spec: Dict, args: Any) -> None:
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
