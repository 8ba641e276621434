"""From a node to the options of its loop or call. Spec: 08 §6.1, §7.3 step 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.workflow.graph.normalise import given_policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harnpy.agent.runtime import Runtime
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.graph.graph_types import Node


FORMAT_VARIABLE = "HARN_AGENT_TOOL_FORMAT"

_CALL = ("provider", "model", "model_tier", "temperature", "max_tokens")
_LOOP = (
    "max_iterations", "max_nudges", "nudge", "tool_examples", "stop_after_successful_tools",
    "require_successful_tools", "turn_policy", "native_tool_fallback", "skills", "skill_match", "permissions",
    "command_policy", "post_turn_callback", "task_ledger",
)  # fmt: skip
_FIXED = {
    "persistent": True,
    "llm_retries": 2,
    "llm_backoff_ms": 2000,
    "tool_retries": 0,
    "loop_detect_warn": 2,
    "loop_detect_block": 3,
    "loop_detect_skip": 4,
}

#: The loop's names for the keys of `auto_compact`, the preferred ones last.
_COMPACTION = {
    "hard_limit_tokens": "hard_limit_tokens",
    "hard_limit_strategy": "hard_limit_strategy",
    "summarize_prompt": "summarize_prompt",
    "compress_callback": "compress_callback",
    "mask_callback": "mask_callback",
    "custom_compactor": "compact_callback",
    "compact_strategy": "compact_strategy",
    "keep_last": "compact_keep_last",
    "compact_keep_last": "compact_keep_last",
    "compact_threshold": "compact_threshold",
    "token_threshold": "compact_threshold",
}


def call_options(node: Node) -> Dict:
    """The options of a single call, from the normalised node's model policy."""
    return _given(node["model_policy"], _CALL)


def loop_options(runtime: Runtime, node: Node, session_id: str) -> Dict:
    """The options of an agent loop in a session, from all that the normalised node says."""
    policy = node["model_policy"]
    inner = policy.get("policy")
    return {
        **call_options(node),
        **_given(inner if isinstance(inner, dict) else {}, ("command_policy",)),
        **_given(policy, _LOOP),
        **_FIXED,
        **_compaction(node["auto_compact"]),
        "session_id": session_id,
        "tools": node["tools"],
        "tool_format": tool_format(runtime, node),
        "done_sentinel": node["done_sentinel"],
        "exit_when_verified": node["exit_when_verified"],
        "policy": given_policy(node["capability_policy"]),
        "approval_policy": given_policy(node["approval_policy"]),
    }


def tool_format(runtime: Runtime, node: Node) -> str:
    """The node's, else the environment's, else the model's."""
    policy = node["model_policy"]
    given = policy.get("tool_format") or runtime.sessions.world.environment.get(FORMAT_VARIABLE)
    if given:
        return str(given)
    models = runtime.models
    provider, model = models.router.route(models.options(call_options(node))).first
    return models.config.known_models.tool_format(model, provider)


def _compaction(given: Mapping[str, Any]) -> Dict:
    enabled = given.get("auto_compact") if given.get("enabled") is None else given["enabled"]
    options = {"auto_compact": bool(enabled), **_given(given, ("tool_output_max_chars",))}
    if enabled:
        options |= {_COMPACTION[key]: given[key] for key in _COMPACTION if given.get(key) is not None}
    return options


def _given(policy: Mapping[str, Any], keys: Sequence[str]) -> Dict:
    return {key: policy[key] for key in keys if policy.get(key) is not None}
