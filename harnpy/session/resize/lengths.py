"""How long messages are, in printed characters, and messages with less text. Spec: 10 §A2.4, §C8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    Message = dict[str, Any]

_CALLS = ("tool_use", "tool_call")


def printed_length(message: Message) -> int:
    """Return the characters of the message's Python text, role and content first."""
    return len(str({"role": message.get("role"), "content": message.get("content"), **message}))


def length_of(messages: Iterable[Message]) -> int:
    return sum(map(printed_length, messages))


def last_text(message: Message, room: int) -> tuple[Message, int]:
    """Return the message with the last ``room`` characters of its text, and the room that is left then.

    Parts of a content list that are neither text nor a call nor a result go. A message whose text fits is
    returned as it is.
    """
    content, left = _last_of(message.get("content"), room)
    return (message if content == message.get("content") else {**message, "content": content}), left


def _last_of(content: Any, room: int) -> tuple[Any, int]:
    if content is None:
        return None, room
    if not isinstance(content, list):
        text = content if isinstance(content, str) else str(content)
        kept = text[max(0, len(text) - room) :]
        return kept, room - len(kept)
    if _text_length(content) <= room:
        return content, room - _text_length(content)
    parts: list[Any] = []
    for part in reversed(content):
        cut, room = _last_of_part(part, room)
        if cut is not None:
            parts.append(cut)
    return parts[::-1] or "", room


def _last_of_part(part: Any, room: int) -> tuple[Any, int]:
    """Return what stays of a part, None for nothing, and the room that is left."""
    if isinstance(part, str):
        text, room = _last_of(part, room)
        return text or None, room
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _CALLS:
        return part, room
    key = {"text": "text", "tool_result": "content"}.get(str(kind))
    if key is None:
        return None, room
    cut, room = _last_of(part.get(key), room)
    return ({**part, key: cut} if cut or kind == "tool_result" else None), room


def _text_length(content: list[Any]) -> int:
    total = 0
    for part in content:
        inner = part.get("text", part.get("content")) if isinstance(part, dict) else part
        if isinstance(inner, list):
            total += _text_length(inner)
        elif isinstance(inner, str):
            total += len(inner)
    return total
