"""The keys that graphs and nodes may have beside those of their normal form. Spec: 08 §6.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.strict import unknown_key

if TYPE_CHECKING:
    from collections.abc import Mapping

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

#: The keys of `verify`. Spec: 08 §7.5.
VERIFY_KEYS = (
    *VERIFICATION, "summary", "required_identifiers", "identifiers", "required_paths", "paths",
    "required_text", "exact_text", "required_strings", "notes", "checks", "contract", "contract_path",
    "verification_contract_path",
)  # fmt: skip
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
