"""Tools: their definitions as `tool_define` reads them, and handlers as loops call them. Spec: 07 §4.2."""

from __future__ import annotations

from harnpy.agent.tool_registry import TOOLS, define_tool
from harnpy.builtins.agents.agent_functions import takes_several
from harnpy.builtins.judging.known_arguments import as_run, is_known, part_refused
from harnpy.builtins.option_places import places_of
from harnpy.check.agents import REST
from harnpy.check.knowledge import TOOL_DEFINITION, TOOL_HANDLER, TOOL_PARAMETERS, Problem
from harnpy.formats.suggestions import nearest, nearest_at_run_time
from harnpy.llm.native_tools import TYPE_NAMES
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    from harnpy.builtins.judging.known_arguments import Dict

    Path = tuple[str | int, ...]

CONFIG = 3
#: What a definition may say, besides what programs keep there for themselves.
CONFIG_KEYS = (
    "parameters", "handler", "executor", "returns", "annotations", "defer_loading", "namespace", "compact",
    "host_capability", "mcp_server", "metadata", "policy", "examples",
)  # fmt: skip
#: What decides whether a definition can be run.
_DECIDING = ("executor", "handler", "host_capability", "mcp_server", "defer_loading", "namespace")
#: Further words for types: they become strings for a model, and are meant so.
_WORDS = ("string", "any", "nil", "null", "bytes", "duration", "text", "path", "url", "date")


def listed(function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    """Yield the tools that a loop can't call among those that the option `tools` lists as dicts."""
    for place in places_of(function):
        given = arguments[place] if place < len(arguments) else None
        entries = given.get("tools") if type(given) is dict else None
        for index, entry in enumerate(entries if type(entries) is list else ()):
            name = entry.get("name") if type(entry) is dict else None
            if type(name) is str:
                path = (place, "tools", index)
                yield from _parameters(name, entry.get("parameters"), path)
                yield from _handler(name, entry, path)


def defined(arguments: Sequence[Any]) -> Iterator[Problem]:
    """Yield what `tool_define` refuses in its arguments, and what a loop can't call."""
    if len(arguments) <= CONFIG or isinstance(arguments[CONFIG], ast.Node):
        return
    config, name = arguments[CONFIG], arguments[1]
    if type(name) is not str:
        return
    refusal = _refusal(name, config)
    if refusal is not None:
        yield refusal
    if type(config) is dict:
        yield from _misspelt(config)
        yield from _parameters(name, config.get("parameters"), (CONFIG,))
        yield from _handler(name, config, (CONFIG,))


def _refusal(name: str, config: Any) -> Problem | None:
    """Return what `tool_define` itself throws."""
    if type(config) is dict:
        if REST in config or not all(is_known(config[key]) for key in _DECIDING if key in config):
            return None
        config = {key: as_run(value) if is_known(value) else None for key, value in config.items()}

    def read(given: Any) -> object:
        return define_tool(TOOLS.registry_of([]), name, "", given)

    found = part_refused("tool_define", read, config)
    if found is None:
        return None
    return Problem(TOOL_DEFINITION, found.message, (CONFIG, *found.path[:1]))


def _misspelt(config: Dict) -> Iterator[Problem]:
    """Keys that are nearly one of a definition: a definition may have others, so nothing refuses them."""
    for key in config:
        near = nearest_at_run_time(key, CONFIG_KEYS) if key not in (*CONFIG_KEYS, REST) else None
        if near is not None and near not in config:
            message = f"tool_define: unknown key '{key}' (did you mean '{near}'?)"
            yield _warning(TOOL_DEFINITION, message, (CONFIG, key), of_key=True, near=near)


def _parameters(name: str, given: Any, path: Path) -> Iterator[Problem]:
    place = (*path, "parameters")
    if type(given) is not dict:
        return
    if given.get("type") == "object" and type(given.get("properties")) is dict:
        message = (
            f"tool '{name}': the keys of `parameters` are the parameters' names, so a JSON Schema makes "
            "`type` and `properties` two of them: write only what stands in its `properties`"
        )
        yield _warning(TOOL_PARAMETERS, message, place)
        return
    known = (*TYPE_NAMES, *_WORDS)
    for key, type_ in given.items():
        near = nearest(type_, known, limit=1) if type(type_) is str and type_.lower() not in known else None
        if near is not None:
            message = (
                f"tool '{name}': unknown type '{type_}' of `{key}` reads as string (did you mean '{near}'?)"
            )
            yield _warning(TOOL_PARAMETERS, message, (*place, key), near=near)
        yield from _required(name, type_, (*place, key))


def _required(name: str, schema: Any, place: Path) -> Iterator[Problem]:
    """Names that an object's schema requires and doesn't have."""
    if type(schema) is not dict:
        return
    properties, required = schema.get("properties"), schema.get("required")
    if type(properties) is not dict or REST in properties:
        return
    for index, key in enumerate(required if type(required) is list else ()):
        if type(key) is str and key not in properties:
            message = f"tool '{name}': `required` names '{key}', which `properties` doesn't have"
            near = nearest_at_run_time(key, properties)
            yield _warning(TOOL_PARAMETERS, message, (*place, "required", index), near=near)
    for key, inner in properties.items():
        yield from _required(name, inner, (*place, "properties", key))


def _handler(name: str, config: Dict, path: Path) -> Iterator[Problem]:
    """Yield what is wrong with a handler that is written out: it gets one dict of the arguments."""
    handler = config.get("handler")
    if not isinstance(handler, ast.Closure | ast.FnExpr):
        return
    place = (*path, "handler")
    params = [param.name for param in handler.params]
    if len(params) > 1 and not handler.params[-1].rest:
        yield _warning(TOOL_HANDLER, takes_several(name, params), place)
    given = config.get("parameters")
    if len(params) != 1 or handler.params[0].rest or type(given) is not dict or not given:
        return
    names = _names(given, config.get("annotations"))
    if names is None or params[0] in _bound(handler.body):
        return
    for node, read in _reads(handler.body, params[0]):
        if read not in names:
            near = nearest_at_run_time(read, names)
            hint = f"did you mean '{near}'?" if near else f"it has: {', '.join(sorted(given))}"
            message = f"tool '{name}' reads `{params[0]}.{read}`, which is none of its parameters ({hint})"
            yield Problem(TOOL_HANDLER, message, place, severity="warning", node=node)


def _names(parameters: Dict, annotations: Any) -> Collection[str] | None:
    """Return what the arguments may have for keys, None where that isn't known."""
    if REST in parameters or isinstance(annotations, ast.Node):
        return None
    aliases = annotations.get("arg_aliases") if type(annotations) is dict else None
    if aliases is None:
        return parameters
    return {*parameters, *map(str, aliases.values())} if is_known(aliases) and type(aliases) is dict else None


def _reads(node: ast.Node, param: str) -> Iterator[tuple[ast.Node, str]]:
    """Yield the keys of ``param`` that are read, by a property or a literal index."""
    for each in _below(node):
        if isinstance(each, ast.Member) and _is(each.object, param):
            yield each, each.name
        elif isinstance(each, ast.Index) and _is(each.object, param) and type(each.index) is ast.Str:
            yield each, each.index.value


def _bound(node: ast.Node) -> set[str]:
    """Return the names that are bound or changed within: such a one isn't the parameter any more."""
    names: set[str] = set()
    for each in _below(node):
        if isinstance(each, ast.NamePattern | ast.Param):
            names.add(each.name)
        elif isinstance(each, ast.Assign):
            target: ast.Node = each.target
            while isinstance(target, ast.Member | ast.Index):
                target = target.object
            if isinstance(target, ast.Name):
                names.add(target.name)
    return names


def _below(node: ast.Node) -> Iterator[ast.Node]:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(reversed(each.children()))


def _is(node: ast.Node, name: str) -> bool:
    return type(node) is ast.Name and node.name == name


def _warning(
    code: str,
    message: str,
    path: Path,
    *,
    of_key: bool = False,
    near: str | None = None,
) -> Problem:
    return Problem(code, message, path, of_key=of_key, near=near, severity="warning")
