"""From a node to its loop or call, option by option. Spec: 08 §6.1, §7.3 step 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.loop.ledger import read_ledger
from harnpy.agent.loop.loop_compaction import compaction_of
from harnpy.agent.loop.loop_settings import (
    LoopSettings,
    checked_tools,
    inherited_skills,
    opening,
)
from harnpy.agent.loop.options import (
    LLM_BACKOFF_MS,
    OVERFLOW_RETRIES,
    SENTINEL,
    TOOL_BACKOFF_MS,
    LoopOptions,
    callable_or_none,
    native_fallback,
)
from harnpy.agent.skills.active import read_matching, read_skills
from harnpy.reading.lenient import Options, not_negative
from harnpy.session.resize.compaction import KEEP_LAST, TOOL_OUTPUT_MAX_CHARS, CompactPolicy
from harnpy.text.json.writer import pretty_json
from harnpy.workflow.graph.normalise import given_policy

if TYPE_CHECKING:
    from harnpy.agent.loop.loop_compaction import LoopCompaction
    from harnpy.agent.runtime import Runtime
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.graph.graph_types import Node


FORMAT_VARIABLE = "HARN_AGENT_TOOL_FORMAT"
_CALLER = "agent_loop"
_LLM_RETRIES = 2

_CALL = ("provider", "model", "model_tier", "temperature", "max_tokens")


def call_options(node: Node) -> Dict:
    """Return the options of a single call, from the node's model policy."""
    policy: Any = node["model_policy"]
    return {key: policy[key] for key in _CALL if policy[key] is not None}


def tool_format(runtime: Runtime, node: Node) -> str:
    """Return the node's tool format, else the environment's, else the model's."""
    given = node["model_policy"]["tool_format"] or runtime.sessions.world.unguarded.environment.get(
        FORMAT_VARIABLE
    )
    if given:
        return given
    models = runtime.models
    provider, model = models.router.route(models.options(call_options(node))).first
    return models.config.known_models.tool_format(model, provider)


def loop_settings(runtime: Runtime, node: Node, session_id: str, prompt: str) -> LoopSettings:
    """Return the settings of the node's agent loop in a session.

    Raise `OptionError`, `MisuseError`, `PolicyError` and `ResizeError`.
    """
    models, policy, system = runtime.models, node["model_policy"], node["system"]
    format = tool_format(runtime, node)
    call = models.options({**call_options(node), "tools": node["tools"], "tool_format": format})
    request = models.request(
        prompt, system, call, once=False, retries=_LLM_RETRIES, backoff_ms=LLM_BACKOFF_MS, schema_retries=0
    )
    capability, approval = given_policy(node["capability_policy"]), given_policy(node["approval_policy"])
    permissions = policy.get("permissions")
    outer = runtime.context().rules
    rules = outer.for_policies(capability, approval, permissions, _CALLER).placed(runtime.workplace.real_root)
    surface = {
        "tools": node["tools"], "policy": capability, "approval_policy": approval, "tool_search": None
    }  # fmt: skip
    tools = checked_tools(runtime, surface, rules, system, prompt, _CALLER)
    skills, matching = inherited_skills(runtime, policy.get("skills"), policy.get("skill_match"))
    return LoopSettings(
        request=request,
        options=_loop_options(node, session_id, format),
        tools=tools,
        rules=rules,
        skills=read_skills(skills, _CALLER),
        matching=read_matching(Options(matching)),
        ledger=read_ledger(Options(policy.get("task_ledger"))),
        compaction=_compaction(node, request.model),
        opening=opening(prompt),
    )


def _loop_options(node: Node, session_id: str, format: str) -> LoopOptions:
    policy, compact, turn = node["model_policy"], node["auto_compact"], node["model_policy"]["turn_policy"]
    return LoopOptions(
        max_iterations=max(0, policy["max_iterations"]),
        max_nudges=max(0, policy["max_nudges"]),
        tool_retries=0,
        tool_backoff_ms=TOOL_BACKOFF_MS,
        overflow_retries=OVERFLOW_RETRIES,
        persistent=True,
        sentinel=node["done_sentinel"] or SENTINEL,
        nudge=policy["nudge"],
        break_unless_phase=None,
        exit_when_verified=bool(node["exit_when_verified"]),
        require_action=turn is not None and turn["require_action_or_yield"],
        allow_sentinel=turn is None or turn["allow_done_sentinel"],
        max_prose_chars=None if turn is None else turn["max_prose_chars"],
        tool_format="native" if format == "native" else "text",
        mode="native" if format == "native" else "text",
        tool_output_max_chars=_tool_output_limit(node),
        native_tool_fallback=native_fallback(policy["native_tool_fallback"], _CALLER),
        tool_examples=policy["tool_examples"],
        stop_after_tools=policy["stop_after_successful_tools"] or [],
        require_tools=policy["require_successful_tools"] or [],
        loop_detect_warn=2,
        loop_detect_block=3,
        loop_detect_skip=4,
        post_turn_callback=callable_or_none(policy.get("post_turn_callback")),
        compress_callback=callable_or_none(compact.get("compress_callback")) if compact["enabled"] else None,
        session_id=session_id,
        token_budget=None,
    )


def _tool_output_limit(node: Node) -> int:
    limit = not_negative(node["auto_compact"]["tool_output_max_chars"], "tool_output_max_chars", _CALLER)
    return TOOL_OUTPUT_MAX_CHARS if limit is None else limit


def _compaction(node: Node, model: str) -> LoopCompaction | None:
    """Return how the loop compacts its conversation, None for not at all."""
    given = node["auto_compact"]
    if not given["enabled"]:
        return None
    hard_limit = not_negative(given["hard_limit_tokens"], "hard_limit_tokens", _CALLER)
    threshold = not_negative(given["token_threshold"], "compact_threshold", _CALLER)
    kept = given.get("compact_keep_last", given.get("keep_last"))
    keep_last = not_negative(kept, "compact_keep_last", _CALLER)
    compactor = given.get("custom_compactor")
    strategy = given["compact_strategy"] or ("observation_mask" if compactor is None else "custom")
    policy = CompactPolicy(
        keep_last=KEEP_LAST if keep_last is None else keep_last,
        strategy=strategy,
        hard_limit_tokens=hard_limit,
        hard_limit_strategy=given["hard_limit_strategy"] or "llm",
        tool_output_max_chars=_tool_output_limit(node),
        custom_compactor=compactor,
        mask_callback=callable_or_none(given.get("mask_callback")),
        compress_callback=callable_or_none(given.get("compress_callback")),
        prompt=callable_or_none(given.get("summarize_prompt")),
        pretty=pretty_json,
    )
    return compaction_of(strategy, policy, threshold, model)
