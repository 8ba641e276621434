"""Validating a graph before it runs. Pure. Spec: 08 §6.3."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.rules.policy import PolicyError, policy_dict, read_policy
from harnpy.agent.tools import surface
from harnpy.faults import MisuseError, OptionError
from harnpy.llm.native_tools import tool_entries
from harnpy.workflow.graph.policies import BUILT_IN, stage_policy, tools_policy, with_granted_tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harnpy.agent.rules.policy import Policy
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.graph.graph_types import Edge, Graph, Node


_BRANCHES = ("true", "false")


class Flaw(NamedTuple):
    """Something in a graph that can't run; ``path`` leads to it, through the graph's keys and indexes."""

    path: tuple[str | int, ...]
    message: str


def validate(graph: Graph, ceiling: Policy | None = None) -> Dict:
    """Return ``{valid, errors, warnings, reachable_nodes}`` for a normalised graph under a ceiling."""
    ceiling = BUILT_IN if ceiling is None else ceiling
    reachable = reachable_nodes(graph)
    tool_errors, tool_warnings = _tool_surfaces(graph, ceiling)
    flaws = [flaw.message for flaw in (*misplaced(graph), *misshapen(graph))]
    errors = [*flaws, *_exceeding(graph, ceiling), *tool_errors]
    warnings = [unreachable(id) for id in graph["nodes"] if id not in reachable]
    return {
        "valid": not errors,
        "errors": errors,
        "warnings": [*warnings, *_doubtful(graph), *tool_warnings],
        "reachable_nodes": sorted(reachable),
    }


def _outgoing(graph: Graph) -> dict[str, list[Edge]]:
    """Return the edges that leave each node."""
    found: dict[str, list[Edge]] = {}
    for edge in graph["edges"]:
        found.setdefault(edge["from"], []).append(edge)
    return found


def reachable_nodes(graph: Graph) -> set[str]:
    """Return the ids of the nodes that a run may come to, and of missing ones that edges lead to."""
    found: set[str] = set()
    waiting = [graph["entry"]]
    edges = _outgoing(graph)
    while waiting:
        id = waiting.pop()
        if id not in found:
            found.add(id)
            waiting += [edge["to"] for edge in edges.get(id, ())]
    return found


def unreachable(id: str) -> str:
    return f"node is unreachable: {id}"


def misplaced(graph: Graph) -> Iterator[Flaw]:
    """Report references to nodes that don't exist."""
    nodes = graph["nodes"]
    if graph["entry"] not in nodes:
        yield Flaw(("entry",), f"entry node does not exist: {graph['entry']}")
    for index, edge in enumerate(graph["edges"]):
        for end in ("from", "to"):
            if edge[end] not in nodes:
                message = f"edge.{end} references unknown node: {edge[end]}"
                yield Flaw(("edges", index, end), message)


def misshapen(graph: Graph) -> Iterator[Flaw]:
    """Report nodes that lack what their kind needs."""
    for id, reason in _lacks(graph):
        yield Flaw(("nodes", id), f"node {id}: {reason}")


def _lacks(graph: Graph) -> Iterator[tuple[str, str]]:
    leaving = _outgoing(graph)
    for id, node in graph["nodes"].items():
        contract, kind, edges = node["input_contract"], node["kind"], leaving.get(id, [])
        least, most = contract["min_inputs"], contract["max_inputs"]
        if least is not None and most is not None and least > most:
            yield id, "input contract min_inputs exceeds max_inputs"
        if kind == "condition" and not {edge["branch"] for edge in edges}.issuperset(_BRANCHES):
            yield id, "condition nodes require both 'true' and 'false' branch edges"
        if kind == "fork" and len(edges) < 2:
            yield id, "fork nodes require at least two outgoing edges"
        items = node["map_policy"]["items"] or node["map_policy"]["item_artifact_kind"]
        if kind == "map" and not items and not contract["input_kinds"]:
            yield id, "map nodes require items, item_artifact_kind, or input_contract.input_kinds"


def _doubtful(graph: Graph) -> Iterator[str]:
    """Report nodes that may not do what their author meant."""
    incoming = Counter(edge["to"] for edge in graph["edges"])
    for id, node in graph["nodes"].items():
        if node["kind"] == "join" and incoming[id] < 2:
            yield f"node {id}: join node has fewer than two incoming edges"
        if node["kind"] == "reduce" and not node["input_contract"]["input_kinds"]:
            yield (
                f"node {id}: reduce node has no input_contract.input_kinds; "
                "it will consume all available artifacts"
            )


def _exceeding(graph: Graph, ceiling: Policy) -> Iterator[str]:
    """Report policies that ask for more than the ceiling grants."""
    try:
        ceiling.intersect(read_policy(graph["capability_policy"]))
    except MisuseError as error:
        yield error.message
    for id, node in graph["nodes"].items():
        try:
            ceiling.intersect(read_policy(node["capability_policy"])).intersect(tools_policy(node))
        except MisuseError as error:
            yield f"node {id}: {error.message}"
        except OptionError as error:
            yield f"node {id}: {error}"


def _tool_surfaces(graph: Graph, ceiling: Policy) -> tuple[list[str], list[str]]:
    """Return errors and warnings about the tools of the nodes."""
    errors: list[str] = []
    warnings: list[str] = []
    for node in graph["nodes"].values():
        try:
            diagnostics = _of_tools(graph, with_granted_tools(node), ceiling)
        except OptionError:  # already reported: these are not tools
            continue
        for diagnostic in diagnostics:
            found = errors if diagnostic["severity"] == "error" else warnings
            found.append(f"{diagnostic['code']}: {diagnostic['message']}")
    return errors, warnings


def _of_tools(graph: Graph, node: Node, ceiling: Policy) -> list[Dict]:
    if not tool_entries(node["tools"]):
        return []
    policy: Mapping[str, Any]
    try:
        policy = policy_dict(stage_policy(ceiling, graph, node))
    except PolicyError:  # the run reports it, or `_exceeding` has
        policy = node["capability_policy"]
    texts = {"system": node["system"], "prompt": node["prompt"]}
    approval = node["approval_policy"]
    return surface.validate({"tools": node["tools"], "policy": policy, "approval_policy": approval, **texts})
