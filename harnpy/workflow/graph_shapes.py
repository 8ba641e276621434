"""The shapes of graphs in normal form: types, fields and defaults of graphs, nodes and their policies.

Spec: 08 §6.1, §6.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from harnpy.workflow.shapes import Field, Shape, StrictShape, all_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.formats.dicts import Dict

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


_TEXT, _TEXTS = Field("string"), Field("list of strings", [])
_INT, _FLAG, _NUMBER, _LIST = Field("int"), Field("bool"), Field("number"), Field("list", [])
_DICT, _MAYBE_DICT, _ANY = Field("dict", {}), Field("dict"), Field("any")


GRAPH: Shape[Graph] = Shape(
    {
        "_type": Field("string", "workflow_graph"),
        **all_of(_TEXT, "id name"),
        "version": _INT,
        "entry": _TEXT,
        "nodes": _MAYBE_DICT,
        "edges": Field("list"),
        **all_of(_MAYBE_DICT, "capability_policy approval_policy"),
        "metadata": _DICT,
        "audit_log": Field("list of dicts"),
    }
)

EDGE: Shape[Edge] = StrictShape({**all_of(Field("string", ""), "from to"), **all_of(_TEXT, "branch label")})

AUDIT_ENTRY: Shape[AuditEntry] = StrictShape(
    {**all_of(_TEXT, "id op node_id timestamp reason"), "metadata": _DICT}
)

NODE: Shape[Node] = StrictShape(
    {
        **all_of(_TEXT, "id kind mode prompt system task_label done_sentinel"),
        "tools": _ANY,
        **all_of(_MAYBE_DICT, "model_policy auto_compact"),
        "output_visibility": _TEXT,
        **all_of(
            _MAYBE_DICT,
            "context_policy retry_policy capability_policy approval_policy input_contract output_contract "
            "branch_semantics map_policy join_policy reduce_policy escalation_policy verify",
        ),
        "exit_when_verified": _FLAG,
        "metadata": _DICT,
    },
    {"context_assembler": "dict"},
)

_CONSTRAINT: Shape[ToolConstraint] = StrictShape(
    {"tool": Field("string", required=True), "arg_patterns": _TEXTS, "arg_key": _TEXT}
)

CAPABILITY_POLICY: Shape[CapabilityPolicy] = StrictShape(
    {
        "tools": _TEXTS,
        "capabilities": Field("dict of lists of strings", {}),
        "workspace_roots": _TEXTS,
        "side_effect_level": _TEXT,
        "recursion_limit": _INT,
        "tool_arg_constraints": Field("list of dicts", [], _CONSTRAINT),
        "tool_annotations": Field("dict of dicts", {}),
    }
)

APPROVAL_POLICY: Shape[ApprovalLists] = StrictShape(
    all_of(_TEXTS, "auto_approve auto_deny require_approval write_path_allowlist")
)

_TURN_POLICY: Shape[TurnPolicy] = StrictShape(
    {
        "require_action_or_yield": Field("bool", False),
        "allow_done_sentinel": Field("bool", True),
        "max_prose_chars": _INT,
    }
)

MODEL_POLICY: Shape[ModelPolicy] = StrictShape(
    {
        **all_of(_TEXT, "provider model model_tier"),
        "temperature": _NUMBER,
        "max_tokens": _INT,
        "max_iterations": Field("int", 16),
        "max_nudges": Field("int", 3),
        **all_of(_TEXT, "nudge tool_examples"),
        **all_of(Field("list of strings"), "stop_after_successful_tools require_successful_tools"),
        "turn_policy": Field("dict", None, _TURN_POLICY),
        **all_of(_TEXT, "tool_format native_tool_fallback"),
    },
    dict.fromkeys(
        ("session_id", "skills", "skill_match", "permissions", "command_policy", "policy",
         "post_turn_callback", "task_ledger"),
        "any",
    ),
)  # fmt: skip

AUTO_COMPACT: Shape[AutoCompact] = StrictShape(
    {
        "enabled": Field("bool", False),
        **all_of(_INT, "token_threshold tool_output_max_chars"),
        "compact_strategy": _TEXT,
        "hard_limit_tokens": _INT,
        "hard_limit_strategy": _TEXT,
    },
    {
        "compact_keep_last": "int",
        "keep_last": "int",
        **dict.fromkeys(
            ("summarize_prompt", "compress_callback", "mask_callback", "custom_compactor"), "any"
        ),
    },
)

CONTEXT_POLICY: Shape[ContextPolicy] = StrictShape(
    {
        **all_of(_INT, "max_artifacts max_tokens reserve_tokens"),
        **all_of(_TEXTS, "include_kinds exclude_kinds prioritize_kinds pinned_ids include_stages"),
        **all_of(_FLAG, "prefer_recent prefer_fresh"),
        "render": _TEXT,
    }
)

RETRY_POLICY: Shape[RetryPolicy] = StrictShape(
    {
        "max_attempts": Field("int", 1),
        **all_of(_FLAG, "verify repair"),
        "backoff_ms": _INT,
        "backoff_multiplier": _NUMBER,
    }
)

CONTRACT: Shape[Contract] = StrictShape(
    {
        **all_of(_TEXTS, "input_kinds output_kinds"),
        **all_of(_INT, "min_inputs max_inputs"),
        "require_transcript": _FLAG,
        "schema": _ANY,
    }
)

BRANCH_SEMANTICS: Shape[BranchSemantics] = StrictShape(
    all_of(
        _TEXT,
        "success failure verify_pass verify_fail condition_true condition_false loop_continue loop_exit "
        "escalation",
    )
)

MAP_POLICY: Shape[MapPolicy] = StrictShape(
    {
        "items": _LIST,
        **all_of(_TEXT, "item_artifact_kind output_kind"),
        **all_of(_INT, "max_items max_concurrent"),
    }
)

JOIN_POLICY: Shape[JoinPolicy] = StrictShape(
    {
        "strategy": Field("string", "all"),
        "require_all_inputs": Field("bool", False),
        "min_completed": _INT,
    }
)

REDUCE_POLICY: Shape[ReducePolicy] = StrictShape(
    {
        "strategy": Field("string", "concat"),
        "separator": Field("string", "\n\n"),
        "output_kind": _TEXT,
    }
)

ESCALATION_POLICY: Shape[EscalationPolicy] = StrictShape(all_of(_TEXT, "level queue reason"))

#: The policies that only nodes have, by field.
POLICIES: Mapping[str, Shape[Any]] = {
    "model_policy": MODEL_POLICY,
    "auto_compact": AUTO_COMPACT,
    "context_policy": CONTEXT_POLICY,
    "retry_policy": RETRY_POLICY,
    "input_contract": CONTRACT,
    "output_contract": CONTRACT,
    "branch_semantics": BRANCH_SEMANTICS,
    "map_policy": MAP_POLICY,
    "join_policy": JOIN_POLICY,
    "reduce_policy": REDUCE_POLICY,
    "escalation_policy": ESCALATION_POLICY,
}

#: What the keys of a policy may be called instead.
ALIASES: Mapping[str, Mapping[str, str]] = {
    "auto_compact": {"compact_threshold": "token_threshold", "auto_compact": "enabled"}
}
