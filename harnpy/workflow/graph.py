"""The normal form of a graph: every key present, defaults filled in, shorthands expanded. Spec: 08 §6.1–6.2.

Data in a graph is checked. Anything else, such as a tool's function, is kept as the object it is. Nothing
here runs a graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.loop_options import DELIVERABLE, LEDGER, SKILL_MATCH
from harnpy.agent.rules.command_policy import COMMAND_POLICY_TYPE
from harnpy.agent.rules.permissions import PERMISSION_KEYS, ApprovalLists
from harnpy.agent.rules.policy import CapabilityPolicy
from harnpy.formats.dicts import dicts_at, one_of, only_keys, read_fields, unknown_key
from harnpy.formats.shapes import fields_of, made, read, read_strictly
from harnpy.llm.errors import CATEGORIES
from harnpy.session.compaction import STRATEGIES
from harnpy.workflow.graph_shapes import (
    ALIASES,
    POLICIES,
    AuditEntry,
    Edge,
    Graph,
    ModelPolicy,
    Node,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.world import World

SHORTHANDS = ("act", "verify", "repair")
#: What shorthand nodes take from their graph: for their model policy, and for themselves.
MODEL_KEYS = ("provider", "model", "model_tier", "temperature", "max_tokens")
NODE_KEYS = ("mode", "done_sentinel")
_FOR_SHORTHANDS = (*SHORTHANDS, *MODEL_KEYS, "tier", *NODE_KEYS)

#: What `stage_prompt`, `workflow_options` and `run_stage` of `std/agents` read.
STAGE_KEYS = (
    "context", "context_separator", "context_max_chars", "context_section_max_chars", "suffix", "model_alias",
    "context_callback", "context_filter", "top_p", "top_k", "stop", "seed", "frequency_penalty",
    "presence_penalty", "response_format", "schema", "thinking", "tool_choice", "cache", "timeout",
    "structural_experiment", "max_iterations", "max_nudges", "nudge", "turn_policy",
    "stop_after_successful_tools", "require_successful_tools", "tool_retries", "tool_backoff_ms",
    "tool_format", "native_tool_fallback", "transcript",
)  # fmt: skip
GRAPH_KEYS = (*_FOR_SHORTHANDS, *STAGE_KEYS, "persistent", "system", "task_label", "prompt", "tools")

#: What the `verify` of a node may be given directly.
VERIFICATION = ("assert_text", "command", "expect_status", "expect_text")
#: What a shorthand node may have beside the keys of every node.
SHORTHAND_KEYS = (*MODEL_KEYS, "tier", "persistent")

#: The keys of a contract, in its file, under `verify.contract` and directly in `verify`. Spec: 08 §7.5.
CONTRACT_KEYS = (
    *VERIFICATION, "summary", "required_identifiers", "identifiers", "required_paths", "paths",
    "required_text", "exact_text", "required_strings", "notes", "checks",
)  # fmt: skip
VERIFY_KEYS = (*CONTRACT_KEYS, "contract", "contract_path", "verification_contract_path")
CHECK_KEYS = ("kind", "value", "note")
#: The keys of what a model policy hands on to loops.
_HANDED_ON: Mapping[str, Sequence[str]] = {
    "skill_match": tuple(SKILL_MATCH.own),
    "permissions": PERMISSION_KEYS,
    "policy": (COMMAND_POLICY_TYPE,),
    "task_ledger": tuple(LEDGER.own),
}
#: The keys of `context_assembler`: the options of `assemble_context` but its artifacts. Spec: 08 §5.5.
ASSEMBLER_KEYS = (
    "budget_tokens", "microcompact_threshold", "dedup", "strategy", "query", "semantic_overlap",
    "ranker_callback",
)  # fmt: skip


def refuse_shorthands(given: Mapping[str, Any]) -> None:
    """Raise `FieldError` for a key that does nothing beside a graph's ``nodes``."""
    for key in _FOR_SHORTHANDS:
        if given.get(key) is not None:
            raise unknown_key(key, f"only for the shorthand nodes {', '.join(SHORTHANDS)}", "graph", given)


STAGE, VERIFY = "stage", "verify"
_KINDS = (STAGE, VERIFY, "condition", "fork", "join", "map", "reduce", "escalation", "subagent")
_MODES = ("agent", "llm", "completion")
_STRATEGY_KEYS = ("compact_strategy", "hard_limit_strategy")


class NormalGraph(dict[str, Any]):
    """A graph that is known to be in normal form, and to hold data only. ``parts``: the ids of its parts."""

    def __init__(self, graph: Graph, parts: Collection[int]) -> None:
        super().__init__(graph)
        self.parts = parts


def normalise_graph(given: Any, world: World) -> Graph:
    """Return the graph in a dict, or an empty one for nil. Raise `MisuseError`."""
    if type(given) is NormalGraph:
        known: Any = given
        return known  # type: ignore[no-any-return]
    given = {} if given is None else given
    only_keys(tuple(fields_of(Graph).always), given, "graph", GRAPH_KEYS)
    graph = read(Graph, given)
    if graph["nodes"]:
        refuse_shorthands(given)
    nodes: Dict = graph["nodes"] or _shorthand_nodes(given)
    others = () if graph["nodes"] else SHORTHAND_KEYS
    edges: list[Any] = graph["edges"] or ([] if graph["nodes"] else _shorthand_edges(nodes))
    return {
        **graph,
        "_type": graph["_type"] or fields_of(Graph).always["_type"].default,
        "id": graph["id"] or f"workflow_{world.ids.new()}",
        "version": graph["version"] or 1,
        "entry": graph["entry"] or min(nodes, default="act"),
        "nodes": {id: normalise_node(nodes[id], id, others) for id in sorted(nodes)},
        "edges": [normalise_edge(edge, f"edges[{index}]") for index, edge in enumerate(edges)],
        "capability_policy": capability_policy(graph["capability_policy"], "capability_policy"),
        "approval_policy": approval_policy(graph["approval_policy"], "approval_policy"),
        "audit_log": [
            read_strictly(AuditEntry, entry, f"audit_log[{index}]")
            for index, entry in enumerate(graph["audit_log"] or [])
        ],
    }


def normalise_node(given: Any, id: str, others: Sequence[str] = ()) -> Node:
    """Return the node of that id with every key; it may have those of ``others``. Raise `MisuseError`."""
    path = f"nodes.{id}"
    if isinstance(given, dict) and given.get("kind") == VERIFY:
        others = (*others, *VERIFICATION)
    part: Any = read_strictly(Node, given, path, (*STAGE_KEYS, *others))
    for field in POLICIES:
        part[field] = node_policy(field, part[field], f"{path}.{field}")
    node: Node = part
    node["id"] = id
    node["kind"] = one_of(_KINDS, node["kind"] or STAGE, "node kind", f"{path}.kind", given)
    if node["mode"]:
        one_of(_MODES, node["mode"], "mode", f"{path}.mode", given)
    check_contract_keys(node["verify"], f"{path}.verify", VERIFY_KEYS)
    check_contract_keys((node["verify"] or {}).get("contract"), f"{path}.verify.contract")
    only_keys(ASSEMBLER_KEYS, node.get("context_assembler"), f"{path}.context_assembler")
    node["capability_policy"] = capability_policy(node["capability_policy"], f"{path}.capability_policy")
    node["approval_policy"] = approval_policy(node["approval_policy"], f"{path}.approval_policy")
    contract = node["output_contract"]
    contract["output_kinds"] = contract["output_kinds"] or [_output_kind(node)]
    return node


def check_contract_keys(given: Any, path: str, names: Sequence[str] = CONTRACT_KEYS) -> None:
    """Raise `FieldError` for a key that a contract, or one of its checks, can't have."""
    only_keys(names, given, path)
    for index, check in enumerate(dicts_at(given, "checks")):
        only_keys(CHECK_KEYS, check, f"{path}.checks[{index}]" if path else f"checks[{index}]")


def normalise_edge(given: Any, path: str) -> Edge:
    """Return the edge with every key; an empty branch becomes nil. Raise `MisuseError`."""
    edge = read_strictly(Edge, given, path)
    return {**edge, "branch": edge["branch"] or None}


def node_policy(field: str, given: Any, path: str) -> Any:
    """Return one of the policies in `POLICIES` with every key. Raise `MisuseError`."""
    shape, aliases = POLICIES[field], ALIASES.get(field, {})
    given = {} if given is None else given
    policy = read_strictly(shape, given, path, aliases)
    for alias, key in aliases.items():
        if isinstance(given, dict) and given.get(key) is None and given.get(alias) is not None:
            policy[key] = read_fields(given, {alias: fields_of(shape).always[key].kind}, path)[alias]
    if field == "retry_policy":
        policy["max_attempts"] = policy["max_attempts"] or 1
        for at, category in enumerate(policy.get("on") or ()):
            one_of(sorted(CATEGORIES), category, "error category", f"{path}.on[{at}]", given)
    for key, names in _HANDED_ON.items() if field == "model_policy" else ():
        only_keys(names, policy.get(key), f"{path}.{key}")
    if field == "model_policy":
        for at, deliverable in enumerate(dicts_at(policy.get("task_ledger"), "deliverables")):
            only_keys(tuple(DELIVERABLE.own), deliverable, f"{path}.task_ledger.deliverables[{at}]")
    if field in ("join_policy", "reduce_policy"):
        policy["strategy"] = policy["strategy"] or fields_of(shape).always["strategy"].default
    for key in _STRATEGY_KEYS if field == "auto_compact" else ():
        if policy[key]:
            one_of(STRATEGIES, policy[key], "strategy", f"{path}.{key}", given)
        policy[key] = policy[key] or None
    return policy


def capability_policy(given: Any, path: str) -> CapabilityPolicy:
    """Return a capability policy with every key. Raise `MisuseError`."""
    return read_strictly(CapabilityPolicy, {} if given is None else given, path)


def approval_policy(given: Any, path: str) -> ApprovalLists:
    """Return an approval policy with every key. Raise `MisuseError`."""
    return read_strictly(ApprovalLists, {} if given is None else given, path)


def is_plain_model_policy(policy: ModelPolicy) -> bool:
    """Return whether a normalised model policy has only defaults."""
    return policy == made(ModelPolicy, {})


#: What sets something even as 0 or False.
_SET = frozenset((int, float, bool, str))


def given_policy(policy: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a normalised capability or approval policy, or None if it sets nothing."""
    return policy if any(policy.values()) or _SET.intersection(map(type, policy.values())) else None


def _output_kind(node: Node) -> str:
    """Return the kind of artifact that a node produces by default."""
    made: dict[str, str] = {
        "verify": "verification_result",
        "reduce": node["reduce_policy"]["output_kind"] or "summary",
        "map": node["map_policy"]["output_kind"] or "artifact",
        "escalation": "plan",
    }
    return made.get(node["kind"], "artifact")


# The shorthand: `act`, `verify` and `repair` directly in the graph.


def _shorthand_nodes(given: Dict) -> Dict:
    nodes = {id: given[id] for id in SHORTHANDS if given.get(id) is not None}
    return {id: _written_out(node, id, given) for id, node in nodes.items()}


def _written_out(node: Any, id: str, graph: Dict) -> Any:
    """Return the node with the graph's common settings; `normalise_node` refuses anything but a dict."""
    if not isinstance(node, dict):
        return node
    filled = {key: graph.get(key) for key in NODE_KEYS} | _set(node)
    filled.setdefault("kind", VERIFY if id == "verify" else STAGE)
    policy = filled.get("model_policy", {})
    if isinstance(policy, dict):
        filled["model_policy"] = _model_keys(graph) | _set(_model_keys(node)) | _set(policy)
    direct = {key: filled[key] for key in VERIFICATION if key in filled}
    if id == "verify" and direct:
        filled.setdefault("verify", direct)
    return dict.fromkeys(node) | filled  # a key that is unknown is so as nil, too


def _model_keys(given: Dict) -> Dict:
    keys = {key: given.get(key) for key in MODEL_KEYS}
    if keys["model_tier"] is None:
        keys["model_tier"] = given.get("tier")
    return keys


def _set(given: Dict) -> Dict:
    return {key: value for key, value in given.items() if value is not None}


def _shorthand_edges(nodes: Dict) -> list[Dict]:
    if "act" not in nodes:
        return []
    edges: list[Dict] = [{"from": "act", "to": "verify"}] if "verify" in nodes else []
    if "repair" in nodes:
        edges.append({"from": "verify", "to": "repair", "branch": "failed"})
        edges.append({"from": "repair", "to": "verify", "branch": "retry"})
    return edges
