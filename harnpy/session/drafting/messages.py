"""Messages by who says them, in harnpy's shape. Spec: 10 §A1.3."""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]


def user(content: str | list[Any]) -> Message:
    """What a user says: a text, or a list of parts."""
    return {"role": "user", "content": content}


def system(content: str | list[Any]) -> Message:
    """What the model is told beforehand. A strict session's log takes none: set its ``system_prompt``."""
    return {"role": "system", "content": content}


def assistant(
    content: str | list[Any] = "",
    *,
    tool_calls: list[Message] | None = None,
    reasoning: str | None = None,
    thinking_blocks: list[Message] | None = None,
) -> Message:
    """What a model answers, and the calls that it makes."""
    more = {"tool_calls": tool_calls, "reasoning": reasoning, "thinking_blocks": thinking_blocks}
    return {"role": "assistant", "content": content, **{key: value for key, value in more.items() if value}}


def tool(name: str, tool_id: str, content: str | list[Any]) -> Message:
    """What a call came to; ``tool_id`` is the call's id."""
    return {"role": "tool", "name": name, "tool_call_id": tool_id, "content": content}
