"""Graphs: their fields as normalising reads them, their nodes and edges as validating does. Spec: 08 §6."""

from __future__ import annotations

import re

from harnpy.builtins.judging.known_arguments import as_run, is_known, unknown_at
from harnpy.check.agents import REST
from harnpy.check.knowledge import DUPLICATE_EDGE, GRAPH_FIELD, GRAPH_NODE, UNREACHABLE_NODE, Problem
from harnpy.formats.dicts import FieldError
from harnpy.syntax.ast import Node
from harnpy.workflow.graph import VERIFY, normalise_edge, normalise_graph, normalise_node
from harnpy.workflow.graph_validation import misplaced, misshapen, reachable_nodes, unreachable
from harnpy.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from harnpy.builtins.judging.known_arguments import Dict, Reader
    from harnpy.workflow.graph_shapes import Graph

#: Which arguments are graphs, counted from 0.
GRAPHS = {
    **dict.fromkeys(
        "workflow_graph workflow_validate workflow_inspect workflow_policy_report workflow_clone "
        "workflow_commit workflow_insert_node workflow_replace_node workflow_rewire "
        "workflow_set_model_policy workflow_set_context_policy workflow_set_auto_compact "
        "workflow_set_output_visibility".split(),
        (0,),
    ),
    "workflow_diff": (0, 1),
    "workflow_execute": (1,),
}
NODES = {"workflow_insert_node": 1, "workflow_replace_node": 2}
EDGES = {"workflow_insert_node": 2}

_PAYLOAD = " | payload="
_UNKNOWN_KEY = re.compile(r"unknown key '(.*?)' \((?:did you mean '(\w+)'\?)?")
_INDEX = re.compile(r"\[(\d+)\]")


def problems(function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    """Yield what the builtin refuses in graphs, nodes and edges, and what can't run in a graph to execute."""
    for place in GRAPHS.get(function, ()):
        given = _at(arguments, place)
        if given is not None:
            fields = list(_fields(_normalised, given, place, "graph"))
            yield from fields
            if function == "workflow_execute" and not fields:
                yield from _structure(given, place)
    if function in NODES:
        yield from _edited(function, arguments)


def _edited(function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    """Yield what an edit refuses in its node and its edge, which it calls by their places in the graph."""
    graph = _at(arguments, 0) or {}
    nodes, edges = _at([graph.get("nodes")], 0), graph.get("edges", [])
    node = _at(arguments, NODES[function])
    if node is not None:
        given = arguments[1] if function == "workflow_replace_node" else node.get("id")
        id = given if type(given) is str and given else f"node_{len(nodes or ()) + 1}"
        yield from _fields(lambda given: normalise_node(given, id), node, NODES[function], f"nodes.{id}")
    edge = _at(arguments, EDGES.get(function, len(arguments)))
    if edge is not None:
        path = f"edges[{len(edges) if type(edges) is list else 0}]"
        yield from _fields(lambda given: normalise_edge(given, path), edge, EDGES[function], path)


def _normalised(given: Dict) -> Graph:
    """Return the normal form of a graph. Its id is given: a check mints none, and so needs no world."""
    return normalise_graph({"id": "graph", **given}, World())


def _at(arguments: Sequence[Any], place: int) -> Dict | None:
    given = arguments[place] if place < len(arguments) else None
    return given if type(given) is dict else None


def _fields(reader: Reader, given: Dict, place: int, beginning: str = "") -> Iterator[Problem]:
    """Yield what the reader says of each field; ``beginning`` is how it calls what it reads."""
    while True:
        known = _pruned(given)
        try:
            reader(known)
        except FieldError as error:
            text = str(error).partition(_PAYLOAD)[0]
            where, _, reason = error.problem.partition(_PAYLOAD)[0].partition(": ")
            where = where.removeprefix(beginning).removeprefix(".")
            if "nodes" not in known:  # the short form has its nodes at the top
                where = where.removeprefix("nodes.")
            path = _steps(known, where)
            key = _UNKNOWN_KEY.match(reason)
            if key:
                path = (*path, key[1])
            path = tuple(_written(given, path))
            yield Problem(
                GRAPH_FIELD,
                text,
                (place, *path),
                of_key=key is not None,
                near=key[2] if key else None,
            )
            if not path:
                return
            given = unknown_at(given, path)
        else:
            return


def _steps(value: Any, where: str) -> tuple[str | int, ...]:
    """Return the path in ``value`` that a message calls ``nodes.a.kind``; ids may have dots themselves."""
    if type(value) is dict and where:
        for key in sorted(value, key=len, reverse=True):
            if where == key or where.startswith((f"{key}.", f"{key}[")):
                return (key, *_steps(value[key], where[len(key) :].removeprefix(".")))
    index = _INDEX.match(where)
    if type(value) is list and index and int(index[1]) < len(value):
        return (int(index[1]), *_steps(value[int(index[1])], where[index.end() :].removeprefix(".")))
    return ()


def _structure(given: Dict, place: int) -> Iterator[Problem]:
    """Yield what validating says of a graph whose nodes are all known by name."""
    nodes, edges = given.get("nodes"), given.get("edges", [])
    if REST in given or type(nodes) is not dict or REST in nodes or not nodes or type(edges) is not list:
        return
    ends = [edge for edge in edges if type(edge) is dict and _ends_are_known(edge)]
    places = [index for index, edge in enumerate(edges) if any(edge is each for each in ends)]
    whole = len(ends) == len(edges)
    graph = _normalised(
        {
            **_pruned(given),
            "nodes": {id: _pruned(_dict(node)) for id, node in nodes.items()},
            "edges": _pruned(ends),
        }
    )
    if not isinstance(given.get("entry"), Node):
        for path, message in misplaced(graph):
            at = ("edges", places[int(path[1])], path[2]) if path[0] == "edges" else path
            yield Problem(GRAPH_NODE, _invalid(message), (place, *at))
    if whole:
        yield from _shapes(graph, given, place)
    yield from _duplicates(graph, places, place)


def _shapes(graph: Graph, given: Dict, place: int) -> Iterator[Problem]:
    for path, message in misshapen(graph):
        if is_known(given["nodes"][path[1]]):
            yield Problem(GRAPH_NODE, _invalid(message), (place, *path), of_key=True)
    if isinstance(given.get("entry"), Node) or graph["entry"] not in graph["nodes"]:
        return
    reachable = reachable_nodes(graph)
    for id, node in graph["nodes"].items():
        # What a verify node asks for holds for the whole run, whether it is reached or not.
        if id not in reachable and node["kind"] != VERIFY:
            yield Problem(
                UNREACHABLE_NODE, unreachable(id), (place, "nodes", id), of_key=True, severity="warning"
            )


def _duplicates(graph: Graph, places: list[int], place: int) -> Iterator[Problem]:
    seen: dict[tuple[str, str, str | None], int] = {}
    for index, edge in zip(places, graph["edges"], strict=True):
        key = edge["from"], edge["to"], edge["branch"]
        # A loop of a node to itself may be repeated: each edge is one more turn.
        if key in seen and edge["from"] != edge["to"]:
            message = f"edges[{index}] repeats edges[{seen[key]}]: {edge['from']} -> {edge['to']}"
            yield Problem(DUPLICATE_EDGE, message, (place, "edges", index), severity="warning")
        seen.setdefault(key, index)


def _invalid(message: str) -> str:
    return f"workflow_execute: invalid workflow: {message}"


def _ends_are_known(edge: Dict) -> bool:
    return REST not in edge and all(
        type(edge.get(key)) in (str, type(None)) for key in ("from", "to", "branch")
    )


def _dict(node: Any) -> Dict:
    return node if type(node) is dict else {}


def _pruned(value: Any) -> Any:
    """Return what is known of a value: unknown entries and items are left out."""
    if type(value) is dict:
        return {key: _pruned(item) for key, item in value.items() if _has_known(item)}
    if type(value) is list:
        return [_pruned(item) for item in value if _has_known(item)]
    return as_run(value)


def _has_known(value: Any) -> bool:
    return type(value) in (dict, list) or is_known(value)


def _written(given: Any, path: tuple[str | int, ...]) -> Iterator[str | int]:
    """Return a path in a pruned value as one in the value itself."""
    for step in path:
        if type(given) is list and type(step) is int:
            kept = [index for index, item in enumerate(given) if _has_known(item)]
            step = kept[step]
        yield step
        given = given[step]
