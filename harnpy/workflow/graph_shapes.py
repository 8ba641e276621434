"""The shapes of graphs in normal form: types, fields and defaults of graphs, nodes and their policies.

Spec: 08 §6.1, §6.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict, TypeVar

from harnpy.agent.rules.permissions import ApprovalLists
from harnpy.agent.rules.policy import CapabilityPolicy
from harnpy.formats.dicts import Dict
from harnpy.formats.shapes import Field

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
#: A dict that `normalise_graph` reads after the rest, with a path of its own in messages.
ReadLater = Annotated[T, Field("dict")]

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


class TurnPolicy(TypedDict):
    require_action_or_yield: bool
    allow_done_sentinel: Annotated[bool, True]
    max_prose_chars: int | None


class ModelPolicy(TypedDict):
    """Also holds functions, under any other key."""

    provider: str | None
    model: str | None
    model_tier: str | None
    temperature: float | None
    max_tokens: int | None
    max_iterations: Annotated[int, 16]
    max_nudges: Annotated[int, 3]
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
    max_attempts: Annotated[int, 1]
    verify: bool | None
    repair: bool | None
    backoff_ms: int | None
    backoff_multiplier: float | None
    on: NotRequired[list[str]]


class Contract(TypedDict):
    """The artifacts that a node takes, or those that it produces."""

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
    strategy: Annotated[str, "all"]
    require_all_inputs: bool
    min_completed: int | None


class ReducePolicy(TypedDict):
    strategy: Annotated[str, "concat"]
    separator: Annotated[str, "\n\n"]
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
    model_policy: ReadLater[ModelPolicy]
    auto_compact: ReadLater[AutoCompact]
    output_visibility: str | None
    context_policy: ReadLater[ContextPolicy]
    retry_policy: ReadLater[RetryPolicy]
    capability_policy: ReadLater[CapabilityPolicy]
    approval_policy: ReadLater[ApprovalLists]
    input_contract: ReadLater[Contract]
    output_contract: ReadLater[Contract]
    branch_semantics: ReadLater[BranchSemantics]
    map_policy: ReadLater[MapPolicy]
    join_policy: ReadLater[JoinPolicy]
    reduce_policy: ReadLater[ReducePolicy]
    escalation_policy: ReadLater[EscalationPolicy]
    verify: Dict | None
    exit_when_verified: bool | None
    metadata: Dict
    context_assembler: NotRequired[Dict]


class Graph(TypedDict):
    _type: Annotated[str, "workflow_graph"]
    id: str
    name: str | None
    version: int
    entry: str
    nodes: ReadLater[dict[str, Node]]
    edges: Annotated[list[Edge], Field("list")]
    capability_policy: ReadLater[CapabilityPolicy]
    approval_policy: ReadLater[ApprovalLists]
    metadata: Dict
    audit_log: Annotated[list[AuditEntry], Field("list of dicts")]


#: The policies that only nodes have, by field.
POLICIES: Mapping[str, type[Any]] = {
    "model_policy": ModelPolicy,
    "auto_compact": AutoCompact,
    "context_policy": ContextPolicy,
    "retry_policy": RetryPolicy,
    "input_contract": Contract,
    "output_contract": Contract,
    "branch_semantics": BranchSemantics,
    "map_policy": MapPolicy,
    "join_policy": JoinPolicy,
    "reduce_policy": ReducePolicy,
    "escalation_policy": EscalationPolicy,
}

#: What the keys of a policy may be called instead.
ALIASES: Mapping[str, Mapping[str, str]] = {
    "auto_compact": {"compact_threshold": "token_threshold", "auto_compact": "enabled"},
    "retry_policy": {"attempts": "max_attempts", "backoff": "backoff_ms"},
}
