"""The types of graphs in normal form: nodes, edges, policies. `graph_shapes` reads them. Spec: 08 §6.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


#: `from` is a keyword, so this one can't be a class.
Edge = TypedDict("Edge", {"from": str, "to": str, "branch": str | None, "label": str | None})


class AuditEntry(TypedDict):
    """An edit of a graph."""

    id: str | None
    op: str | None
    node_id: str | None
    timestamp: str | None
    reason: str | None
    metadata: Dict


class ToolConstraint(TypedDict):
    tool: str
    arg_patterns: list[str]
    arg_key: str | None


class CapabilityPolicy(TypedDict):
    tools: list[str]
    capabilities: dict[str, list[str]]
    workspace_roots: list[str]
    side_effect_level: str | None
    recursion_limit: int | None
    tool_arg_constraints: list[ToolConstraint]
    tool_annotations: dict[str, Dict]


class ApprovalLists(TypedDict):
    """The approval policy of a graph or node."""

    auto_approve: list[str]
    auto_deny: list[str]
    require_approval: list[str]
    write_path_allowlist: list[str]


class TurnPolicy(TypedDict):
    require_action_or_yield: bool
    allow_done_sentinel: bool
    max_prose_chars: int | None


class ModelPolicy(TypedDict):
    """Also holds functions, under any other key."""

    provider: str | None
    model: str | None
    model_tier: str | None
    temperature: float | None
    max_tokens: int | None
    max_iterations: int
    max_nudges: int
    nudge: str | None
    tool_examples: str | None
    stop_after_successful_tools: list[str] | None
    require_successful_tools: list[str] | None
    turn_policy: TurnPolicy | None
    tool_format: str | None
    native_tool_fallback: str | None
    session_id: NotRequired[Any]
    skills: NotRequired[Any]
    skill_match: NotRequired[Any]
    permissions: NotRequired[Any]
    command_policy: NotRequired[Any]
    policy: NotRequired[Any]
    post_turn_callback: NotRequired[Any]
    task_ledger: NotRequired[Any]


class AutoCompact(TypedDict):
    """Also holds functions, under any other key."""

    enabled: bool
    token_threshold: int | None
    tool_output_max_chars: int | None
    compact_strategy: str | None
    hard_limit_tokens: int | None
    hard_limit_strategy: str | None
    compact_keep_last: NotRequired[int]
    keep_last: NotRequired[int]
    summarize_prompt: NotRequired[Any]
    compress_callback: NotRequired[Any]
    mask_callback: NotRequired[Any]
    custom_compactor: NotRequired[Any]


class ContextPolicy(TypedDict):
    max_artifacts: int | None
    max_tokens: int | None
    reserve_tokens: int | None
    include_kinds: list[str]
    exclude_kinds: list[str]
    prioritize_kinds: list[str]
    pinned_ids: list[str]
    include_stages: list[str]
    prefer_recent: bool | None
    prefer_fresh: bool | None
    render: str | None


class RetryPolicy(TypedDict):
    max_attempts: int
    verify: bool | None
    repair: bool | None
    backoff_ms: int | None
    backoff_multiplier: float | None


class Contract(TypedDict):
    """What a node takes, or what it produces."""

    input_kinds: list[str]
    output_kinds: list[str]
    min_inputs: int | None
    max_inputs: int | None
    require_transcript: bool | None
    schema: Any


class BranchSemantics(TypedDict):
    success: str | None
    failure: str | None
    verify_pass: str | None
    verify_fail: str | None
    condition_true: str | None
    condition_false: str | None
    loop_continue: str | None
    loop_exit: str | None
    escalation: str | None


class MapPolicy(TypedDict):
    items: list[Any]
    item_artifact_kind: str | None
    output_kind: str | None
    max_items: int | None
    max_concurrent: int | None


class JoinPolicy(TypedDict):
    strategy: str
    require_all_inputs: bool
    min_completed: int | None


class ReducePolicy(TypedDict):
    strategy: str
    separator: str
    output_kind: str | None


class EscalationPolicy(TypedDict):
    level: str | None
    queue: str | None
    reason: str | None


class Node(TypedDict):
    id: str
    kind: str
    mode: str | None
    prompt: str | None
    system: str | None
    task_label: str | None
    done_sentinel: str | None
    tools: Any
    model_policy: ModelPolicy
    auto_compact: AutoCompact
    output_visibility: str | None
    context_policy: ContextPolicy
    retry_policy: RetryPolicy
    capability_policy: CapabilityPolicy
    approval_policy: ApprovalLists
    input_contract: Contract
    output_contract: Contract
    branch_semantics: BranchSemantics
    map_policy: MapPolicy
    join_policy: JoinPolicy
    reduce_policy: ReducePolicy
    escalation_policy: EscalationPolicy
    verify: Dict | None
    exit_when_verified: bool | None
    metadata: Dict
    context_assembler: NotRequired[Dict]


class Graph(TypedDict):
    _type: str
    id: str
    name: str | None
    version: int
    entry: str
    nodes: dict[str, Node]
    edges: list[Edge]
    capability_policy: CapabilityPolicy
    approval_policy: ApprovalLists
    metadata: Dict
    audit_log: list[AuditEntry]
