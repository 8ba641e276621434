"""Validating a graph before it runs, and what its stages may do. Pure. Spec: 08 §6.3–6.5.

The policies of host, graph, node and tools are each below the one before.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent import toolbox
from harnpy.agent.rules.permissions import ApprovalPolicy, read_approval_policy
from harnpy.agent.rules.policy import (
    NETWORK,
    Policy,
    PolicyError,
    policy_dict,
    read_annotations,
    read_policy,
    side_effect_rank,
)
from harnpy.faults import MisuseError, OptionError
from harnpy.formats.dicts import errors_after
from harnpy.formats.globs import first_match
from harnpy.formats.json import to_json
from harnpy.llm.native_tools import is_registry, tool_entries
from harnpy.workflow.graph import capability_policy, given_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.graph_shapes import Edge, Graph, Node

#: The ceiling unless the host gives one.
BUILT_IN_CEILING = Policy(side_effect_level=NETWORK, recursion_limit=8)

_ANNOTATED = (
    "kind", "side_effect_level", "path_params", "arg_aliases", "required", "emits_artifacts",
    "result_readers", "inline_result",
)  # fmt: skip


def read_ceiling(given: Any) -> Policy:
    """Return the ceiling in a dict, the built-in one for nil. Raise `MisuseError`."""
    if given is None:
        return BUILT_IN_CEILING
    with errors_after("policy parse error: "):
        return read_policy(capability_policy(given, ""))


def stage_policy(ceiling: Policy, graph: Graph, node: Node) -> Policy:
    """Return the policy in force while a normalised node runs. Raise `PolicyError`."""
    of_graph, of_node = read_policy(graph["capability_policy"]), read_policy(node["capability_policy"])
    return ceiling.intersect(of_graph).intersect(of_node).intersect(tools_policy(node))


def has_rules(node: Node) -> bool:
    """Return whether a normalised node, or a tool of it, has a policy of its own."""
    own = given_policy(node["capability_policy"]) or given_policy(node["approval_policy"])
    return bool(node["tools"]) or own is not None


def tools_policy(node: Node) -> Policy:
    """Return the policy that the node's tools imply; an empty one unless a tool has `policy` metadata."""
    entries = tool_entries(with_granted_tools(node)["tools"])
    said = {entry["name"]: entry["policy"] for entry in entries if isinstance(entry.get("policy"), dict)}
    if not said:
        return Policy()
    levels = [level for policy in said.values() if isinstance(level := policy.get("side_effect_level"), str)]
    return Policy(
        tools=tuple(entry["name"] for entry in entries),
        capabilities=_united(said.values()),
        side_effect_level=max(levels, key=side_effect_rank, default=None),
        tool_annotations={name: _annotations(policy) for name, policy in said.items()},
    )


def with_granted_tools(node: Node) -> Node:
    """Return the node with only the tools that its own policy names."""
    granted, tools = node["capability_policy"]["tools"], node["tools"]
    if not granted or tools is None:
        return node
    entries = [entry for entry in tool_entries(tools) if first_match(granted, entry["name"]) is not None]
    return {**node, "tools": {**tools, "tools": entries} if is_registry(tools) else entries}


def stage_approval(outer: ApprovalPolicy | None, graph: Graph, node: Node) -> ApprovalPolicy | None:
    """Return the approval policy in force while a normalised node runs, None without any."""
    inner = [read_approval_policy(given_policy(owner["approval_policy"])) for owner in (graph, node)]
    given = [policy for policy in (outer, *inner) if policy is not None]
    return reduce(ApprovalPolicy.intersect, given) if given else None


def _united(policies: Iterable[Dict]) -> dict[str, tuple[str, ...]]:
    """Return all the capabilities; one needed by a tool without operations is needed with all of them."""
    united: dict[str, tuple[str, ...]] = {}
    for policy in policies:
        said = read_annotations(policy)
        for name, operations in {} if said is None else said.capabilities.items():
            known = united.get(name)
            whole = not operations or known == ()
            united[name] = () if whole else tuple(dict.fromkeys((*(known or ()), *operations)))
    return united


def _annotations(policy: Dict) -> Dict:
    said = read_annotations(policy)
    values = {key: getattr(said, key) for key in _ANNOTATED}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


_BRANCHES = ("true", "false")


class Flaw(NamedTuple):
    """Something in a graph that can't run; ``path`` leads to it, through the graph's keys and indexes."""

    path: tuple[str | int, ...]
    message: str


def validate_graph(graph: Graph, ceiling: Policy | None = None) -> Dict:
    """Return ``{valid, errors, warnings, reachable_nodes}`` for a normalised graph under a ceiling."""
    ceiling = BUILT_IN_CEILING if ceiling is None else ceiling
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
        if not has_rules(node):
            continue
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
    return toolbox.surface_diagnostics(
        {"tools": node["tools"], "policy": policy, "approval_policy": approval, **texts}
    )


# Graphs at a glance: inspection, policies, differences. Spec: 08 §6.5.


def inspect_graph(graph: Graph, ceiling: Any) -> Dict:
    """Return a normalised graph with its validation and counts. Raise `MisuseError` for the ceiling."""
    return {
        "graph": graph,
        "validation": validate_graph(graph, read_ceiling(ceiling)),
        "node_count": len(graph["nodes"]),
        "edge_count": len(graph["edges"]),
    }


def policy_report(graph: Graph, ceiling: Any) -> Dict:
    """Return the policies of a normalised graph and its nodes, and the ceiling. Raise `MisuseError`."""
    limit = read_ceiling(ceiling)
    return {
        "workflow_policy": graph["capability_policy"],
        "ceiling": policy_dict(limit),
        "validation": validate_graph(graph, limit),
        "nodes": [
            {"node_id": id, "policy": node["capability_policy"], "tools": _tool_names(node["tools"])}
            for id, node in graph["nodes"].items()
        ],
    }


def graph_diff(left: Graph, right: Graph) -> Dict:
    """Compare two normalised graphs as data; functions don't count."""
    changed = to_json(left) != to_json(right)
    return {"changed": changed, "left": left, "right": right}


def _tool_names(tools: Any) -> list[str]:
    return [entry["name"] for entry in tool_entries(tools)]
