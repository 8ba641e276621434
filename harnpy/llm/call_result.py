"""The dict that `llm_call` returns. Spec: 07 §1.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.llm.text_format.blocks import Parsed, interpreted
from harnpy.llm.visible import visible_text

if TYPE_CHECKING:
    from harnpy.llm.reply import Reply
    from harnpy.llm.structured.asking import Reading


def result_dict(
    reply: Reply, tools: list[dict[str, Any]] | None = None, reading: Reading | None = None
) -> dict[str, Any]:
    """The result without its ``transcript``; keys that don't apply are absent.

    ``tools`` are those that were sent, ``reading`` is the structured output of the reply.
    """
    usage = reply.usage()
    parsed = interpreted(reply, tools)
    result: dict[str, Any] = {
        "text": reply.text,
        "prose": reply.text,
        "visible_text": visible_text(reply.text),
        "model": reply.model,
        "provider": reply.provider,
        "blocks": reply.blocks(),
        "usage": usage,
        **usage,
    }
    if parsed is not None:
        result |= _protocol_keys(parsed)
        if tools and not reply.tool_calls:
            result["visible_text"] = parsed.prose
    if reading is not None and reading.found:
        result["data"] = reading.data
    optional = {
        "tool_calls": reply.tool_calls,
        "thinking": reply.thinking,
        "private_reasoning": reply.thinking,
        "thinking_summary": reply.thinking_summary,
        "stop_reason": reply.stop_reason,
    }
    return result | {key: value for key, value in optional.items() if value}


def _protocol_keys(parsed: Parsed) -> dict[str, Any]:
    keys = {
        "prose": parsed.prose,
        "tool_calls": parsed.calls,
        "protocol_violations": parsed.violations,
        "tool_parse_errors": parsed.errors,
        "done_marker": parsed.done_marker,
        "canonical_text": parsed.canonical,
    }
    return {key: value for key, value in keys.items() if value}
