"""What a stage may do: policies of host, graph, node and tools, each below the one before. Spec: 08 §6.4."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.annotations import NETWORK, rank, read_annotations
from harnpy.agent.rules.approval import ApprovalPolicy, read_approval_policy
from harnpy.agent.rules.policy import Policy, read_policy
from harnpy.llm.native_tools import is_registry, tool_entries
from harnpy.reading.strict import errors_after
from harnpy.text.globs import first_match
from harnpy.workflow.graph.normalise import capability_policy, given_policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.graph.graph_types import Graph, Node


#: The ceiling unless the host gives one.
BUILT_IN = Policy(side_effect_level=NETWORK, recursion_limit=8)

_ANNOTATED = (
    "kind", "side_effect_level", "path_params", "arg_aliases", "required", "emits_artifacts",
    "result_readers", "inline_result",
)  # fmt: skip


def read_ceiling(given: Any) -> Policy:
    """Return the ceiling in a dict, the built-in one for nil. Raise `MisuseError`."""
    if given is None:
        return BUILT_IN
    with errors_after("policy parse error: "):
        return read_policy(capability_policy(given, ""))


def stage_policy(ceiling: Policy, graph: Graph, node: Node) -> Policy:
    """Return the policy in force while a normalised node runs. Raise `PolicyError`."""
    of_graph, of_node = read_policy(graph["capability_policy"]), read_policy(node["capability_policy"])
    return ceiling.intersect(of_graph).intersect(of_node).intersect(tools_policy(node))


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
        side_effect_level=max(levels, key=rank, default=None),
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
