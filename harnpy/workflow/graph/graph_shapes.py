"""What graphs, nodes and their policies are made of: fields, types and defaults. Spec: 08 §6.1, §6.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIST = "list of strings"


class Shape(NamedTuple):
    """Every field of ``types`` is in the normal form, as its default or nil where it isn't given; those of
    ``passed`` only when they are. An ``open`` shape keeps functions under any other key too.
    """

    types: Mapping[str, str]
    defaults: Mapping[str, Any] = {}
    passed: Mapping[str, str] = {}
    open: bool = False


GRAPH = Shape(
    {
        "_type": "string", "id": "string", "name": "string", "version": "int", "entry": "string",
        "nodes": "dict", "edges": "list", "capability_policy": "dict", "approval_policy": "dict",
        "metadata": "dict", "audit_log": "list of dicts",
    },
    {"_type": "workflow_graph", "metadata": {}},
)  # fmt: skip

EDGE = Shape(
    {"from": "string", "to": "string", "branch": "string", "label": "string"}, {"from": "", "to": ""}
)

AUDIT_ENTRY = Shape(
    {
        "id": "string", "op": "string", "node_id": "string", "timestamp": "string", "reason": "string",
        "metadata": "dict",
    },
    {"metadata": {}},
)  # fmt: skip

NODE = Shape(
    {
        "id": "string", "kind": "string", "mode": "string", "prompt": "string", "system": "string",
        "task_label": "string", "done_sentinel": "string", "tools": "any", "model_policy": "dict",
        "auto_compact": "dict", "output_visibility": "string", "context_policy": "dict",
        "retry_policy": "dict", "capability_policy": "dict", "approval_policy": "dict",
        "input_contract": "dict", "output_contract": "dict", "branch_semantics": "dict",
        "map_policy": "dict", "join_policy": "dict", "reduce_policy": "dict", "escalation_policy": "dict",
        "verify": "dict", "exit_when_verified": "bool", "metadata": "dict",
    },
    {"metadata": {}},
    {"context_assembler": "dict"},
)  # fmt: skip

CAPABILITY_POLICY = Shape(
    {
        "tools": _LIST, "capabilities": "dict of lists of strings", "workspace_roots": _LIST,
        "side_effect_level": "string", "recursion_limit": "int", "tool_arg_constraints": "list of dicts",
        "tool_annotations": "dict of dicts",
    },
    {
        "tools": [], "capabilities": {}, "workspace_roots": [], "tool_arg_constraints": [],
        "tool_annotations": {},
    },
)  # fmt: skip

CONSTRAINT = Shape({"tool": "string", "arg_patterns": _LIST, "arg_key": "string"}, {"arg_patterns": []})

_APPROVAL_LISTS = ("auto_approve", "auto_deny", "require_approval", "write_path_allowlist")
APPROVAL_POLICY = Shape(dict.fromkeys(_APPROVAL_LISTS, _LIST), {key: [] for key in _APPROVAL_LISTS})

TURN_POLICY = Shape(
    {"require_action_or_yield": "bool", "allow_done_sentinel": "bool", "max_prose_chars": "int"},
    {"require_action_or_yield": False, "allow_done_sentinel": True},
)

_CONTRACT = Shape(
    {
        "input_kinds": _LIST, "output_kinds": _LIST, "min_inputs": "int", "max_inputs": "int",
        "require_transcript": "bool", "schema": "any",
    },
    {"input_kinds": [], "output_kinds": []},
)  # fmt: skip

_KIND_LISTS = ("include_kinds", "exclude_kinds", "prioritize_kinds", "pinned_ids", "include_stages")

#: The policies that only nodes have, by field.
POLICIES: Mapping[str, Shape] = {
    "model_policy": Shape(
        {
            "provider": "string", "model": "string", "model_tier": "string", "temperature": "number",
            "max_tokens": "int", "max_iterations": "int", "max_nudges": "int", "nudge": "string",
            "tool_examples": "string", "stop_after_successful_tools": _LIST,
            "require_successful_tools": _LIST, "turn_policy": "dict", "tool_format": "string",
            "native_tool_fallback": "string",
        },
        {"max_iterations": 16, "max_nudges": 3},
        {
            "session_id": "any", "skills": "any", "skill_match": "any", "permissions": "any",
            "command_policy": "any", "policy": "any", "post_turn_callback": "any", "task_ledger": "any",
        },
        open=True,
    ),
    "auto_compact": Shape(
        {
            "enabled": "bool", "token_threshold": "int", "tool_output_max_chars": "int",
            "compact_strategy": "string", "hard_limit_tokens": "int", "hard_limit_strategy": "string",
        },
        {"enabled": False},
        {
            "compact_keep_last": "int", "keep_last": "int", "summarize_prompt": "any",
            "compress_callback": "any", "mask_callback": "any", "custom_compactor": "any",
        },
        open=True,
    ),
    "context_policy": Shape(
        {
            "max_artifacts": "int", "max_tokens": "int", "reserve_tokens": "int",
            **dict.fromkeys(_KIND_LISTS, _LIST),
            "prefer_recent": "bool", "prefer_fresh": "bool", "render": "string",
        },
        {key: [] for key in _KIND_LISTS},
    ),
    "retry_policy": Shape(
        {
            "max_attempts": "int", "verify": "bool", "repair": "bool", "backoff_ms": "int",
            "backoff_multiplier": "number",
        },
        {"max_attempts": 1},
    ),
    "input_contract": _CONTRACT,
    "output_contract": _CONTRACT,
    "branch_semantics": Shape(
        dict.fromkeys(
            ("success", "failure", "verify_pass", "verify_fail", "condition_true", "condition_false",
             "loop_continue", "loop_exit", "escalation"),
            "string",
        )
    ),
    "map_policy": Shape(
        {
            "items": "list", "item_artifact_kind": "string", "output_kind": "string", "max_items": "int",
            "max_concurrent": "int",
        },
        {"items": []},
    ),
    "join_policy": Shape(
        {"strategy": "string", "require_all_inputs": "bool", "min_completed": "int"},
        {"strategy": "all", "require_all_inputs": False},
    ),
    "reduce_policy": Shape(
        {"strategy": "string", "separator": "string", "output_kind": "string"},
        {"strategy": "concat", "separator": "\n\n"},
    ),
    "escalation_policy": Shape({"level": "string", "queue": "string", "reason": "string"}),
}  # fmt: skip

#: What the keys of a policy may be called instead.
ALIASES: Mapping[str, Mapping[str, str]] = {
    "auto_compact": {"compact_threshold": "token_threshold", "auto_compact": "enabled"}
}
