"""The dict that `llm_call` answers with. Spec: 07 §1.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.llm.protocol import TAGS, parse_reply
from harnpy.llm.visible import visible_text

if TYPE_CHECKING:
    from harnpy.llm.reply import Reply


def result_dict(reply: Reply) -> dict[str, Any]:
    """The result without its ``transcript``; keys that don't apply are absent."""
    usage = reply.usage()
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
    if reply.tool_calls or any(tag in reply.text for tag in TAGS):
        result |= _protocol_keys(reply)
    optional = {
        "tool_calls": reply.tool_calls,
        "thinking": reply.thinking,
        "private_reasoning": reply.thinking,
        "thinking_summary": reply.thinking_summary,
        "stop_reason": reply.stop_reason,
    }
    return result | {key: value for key, value in optional.items() if value}


def _protocol_keys(reply: Reply) -> dict[str, Any]:
    parsed = parse_reply(reply.text)
    keys = {
        "prose": parsed.prose,
        "protocol_violations": parsed.violations,
        "tool_parse_errors": parsed.errors,
        "done_marker": parsed.done_marker,
        "canonical_text": parsed.canonical,
    }
    return {key: value for key, value in keys.items() if value}
