"""Which keys a dict takes that is given to a builtin, and which words may be values in it. Spec: 12 §3.3.

The tables and shapes are those that the run reads. Indexes in a path are of lists; which one doesn't matter.
"""

from __future__ import annotations

from harnpy.agent.rules.permissions import ApprovalLists
from harnpy.agent.rules.policy import CapabilityPolicy
from harnpy.builtins.judging.graph_arguments import EDGES, GRAPHS, NODES
from harnpy.builtins.judging.tool_arguments import CONFIG, CONFIG_KEYS
from harnpy.builtins.option_places import places_of
from harnpy.builtins.options import TABLES, known_providers
from harnpy.builtins.sessions.verbs import verb_of
from harnpy.formats.options import Option
from harnpy.formats.shapes import fields_of
from harnpy.llm.native_tools import TYPE_NAMES
from harnpy.workflow import graph
from harnpy.workflow.graph_shapes import ALIASES, POLICIES, AuditEntry, Edge, Graph, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from harnpy.vm.vm import Vm

    Path = Sequence[str | int]

#: The argument of a builtin that is the options of a tool, and the keys of a parameter that is a schema.
_TOOL, _PARAMETERS = "tool_define", "parameters"
_TOOL_MEANINGS = {
    "parameters": ("dict", "its parameters by name: a type, or a JSON Schema"),
    "handler": ("closure", "what a call does; it gets a dict of the arguments"),
    "executor": ("string", "where it runs"),
    "returns": ("dict", "what it returns"),
    "annotations": ("dict", "what rules know of it, such as its side effects"),
    "defer_loading": ("bool", "a model finds it by searching alone"),
    "namespace": ("string", "a group that it belongs to"),
}
_SCHEMA = (
    Option("type", "string", "", f"{', '.join(TYPE_NAMES[:-1])} or {TYPE_NAMES[-1]}"),
    Option("description", "string", "", "what it is for"),
    Option("required", "bool", "true", "whether a call must give it"),
    Option("default", "any", "", "what it is when it isn't given"),
    Option("enum", "list", "", "the values that it may have"),
    Option("items", "dict", "", "the schema of a list's items"),
    Option("properties", "dict", "", "the schemas of an object's properties"),
)


def keys(vm: Vm, function: str, path: Path) -> Sequence[Option]:
    """Return the keys of a dict; ``path`` leads to it: the argument's number, then keys and indexes."""
    place, inner = path[0], [step for step in path[1:] if isinstance(step, str)]
    if place in GRAPHS.get(function, ()):
        return _of_graph(inner)
    if NODES.get(function) == place:
        return _of_node(inner)
    if EDGES.get(function) == place:
        return _of_shape(Edge, inner)
    if function == _TOOL:
        return _of_tool(inner) if place == CONFIG else ()
    if place in places_of(function):
        return TABLES[function].within(inner)
    return _of_session(vm, function, place, inner) if function.startswith("__session_") else ()


def words(vm: Vm, function: str, path: Path) -> Sequence[str]:
    """Return the words that a text may be, as far as they are few and known; ``path`` leads to it."""
    name = path[-1]
    if name == "provider":
        return sorted(known_providers(vm))
    if function == _TOOL and list(path[1:-1]) == [_PARAMETERS]:
        return [*TYPE_NAMES, "string"]
    found = next((row for row in keys(vm, function, path[:-1]) if row.name == name), None)
    return () if found is None else found.words


def _of_session(vm: Vm, function: str, place: Any, inner: Sequence[str]) -> Sequence[Option]:
    declaration = vm.builtins.find(function)
    verb = None if declaration is None else verb_of(declaration.function)
    if verb is None or verb.place_of_options != place:
        return ()
    return verb.options if not inner else ()


def _of_tool(inner: Sequence[str]) -> Sequence[Option]:
    if not inner:
        return [_tool_key(key) for key in CONFIG_KEYS]
    # `parameters: {NAME: {…}}`, and in it `properties: {NAME: {…}}` or `items: {…}`.
    if inner[0] != _PARAMETERS or len(inner) < 2:
        return ()
    steps = list(inner[2:])
    while steps:
        step = steps.pop(0)
        if step == "properties" and steps:
            steps.pop(0)
        elif step != "items":
            return ()
    return _SCHEMA


def _tool_key(key: str) -> Option:
    type_, meaning = _TOOL_MEANINGS.get(key, ("any", ""))
    return Option(key, type_, "", meaning)


def _of_graph(inner: Sequence[str]) -> Sequence[Option]:
    match inner:
        case []:
            rows = _of_shape(Graph, ())
            return [
                *rows,
                *_named([key for key in graph.GRAPH_KEYS if key not in {row.name for row in rows}]),
            ]
        case ["nodes"]:
            return ()
        case ["nodes", _, *rest]:
            return _of_node(rest)
        case ["edges", *rest]:
            return _of_shape(Edge, rest)
        case ["audit_log", *rest]:
            return _of_shape(AuditEntry, rest)
        case [str(key), *rest] if key in graph.SHORTHANDS:
            own = () if rest else _named(graph.SHORTHAND_KEYS)
            return [*_of_node(rest), *own]
        case [str(key), *rest]:
            return _of_policy(key, rest)
    return ()


def _of_node(inner: Sequence[str]) -> Sequence[Option]:
    match inner:
        case []:
            rows = [_NODE_WORDS.get(row.name, row) for row in _of_shape(Node, ())]
            return [*rows, *_named([key for key in graph.STAGE_KEYS if key not in fields_of(Node).always])]
        case ["verify"] | ["verify", "contract"]:
            return _named(graph.VERIFY_KEYS if len(inner) == 1 else graph.CONTRACT_KEYS)
        case ["verify", "checks"] | ["verify", "contract", "checks"]:
            return _named(graph.CHECK_KEYS)
        case ["context_assembler"]:
            return _named(graph.ASSEMBLER_KEYS)
    return _of_policy(inner[0], inner[1:])


#: The keys of a node that are one of a few words.
_NODE_WORDS = {
    "kind": Option("kind", "string", graph.STAGE, f"{', '.join(graph.KINDS[:-1])} or {graph.KINDS[-1]}"),
    "mode": Option("mode", "string", "", f"{', '.join(graph.MODES[:-1])} or {graph.MODES[-1]}"),
}


def _of_policy(field: str, inner: Sequence[str]) -> Sequence[Option]:
    shapes: dict[str, Any] = {
        **POLICIES,
        "capability_policy": CapabilityPolicy,
        "approval_policy": ApprovalLists,
    }
    if field not in shapes:
        return ()
    aliases = () if inner else _named(ALIASES.get(field, {}))
    return [*_of_shape(shapes[field], inner), *aliases]


def _of_shape(shape: Any, inner: Sequence[str]) -> Sequence[Option]:
    """Return the keys of a shape, or of a part of it."""
    known = fields_of(shape)
    fields = {**known.always, **known.optional}
    if inner:
        field = fields.get(inner[0])
        part = None if field is None else field.part
        return () if part is None else _of_shape(part, inner[1:])
    return [
        Option(key, field.kind, "" if field.default in (None, "", [], {}) else str(field.default), "")
        for key, field in fields.items()
        if not key.startswith("_")
    ]


def _named(names: Iterable[str]) -> Sequence[Option]:
    return [Option(name, "any", "", "") for name in names]
