"""The tool calls and results that a message holds, in every shape that messages have. Spec: 10 §C5.

Calls are ``tool_calls`` or content blocks of type ``tool_use`` or ``tool_call``; a result is a message of
role ``tool`` or ``tool_result``, or a ``tool_result`` block of a user message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.transcript import RESULT_ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Message = dict[str, Any]

_RESULT_IDS = ("tool_call_id", "tool_use_id", "tool_id")
_CALL_BLOCKS = ("tool_use", "tool_call")


class Call(NamedTuple):
    """``id`` is None for a call that nobody could answer by name."""

    id: str | None
    name: str | None
    block: bool


def as_dict(message: Any) -> Any:
    """Return a message object, which has a role and a content, as a dict; all else as it is."""
    if not isinstance(message, dict) and hasattr(message, "role") and hasattr(message, "content"):
        return {"role": message.role, "content": message.content}
    return message


def calls_of(message: Message) -> list[Call]:
    """Return an assistant's calls, in order."""
    if message.get("role") != "assistant":
        return []
    listed = [Call(_text(call.get("id")), _name(call), False) for call in _dicts(message.get("tool_calls"))]
    blocks = (block for block in _dicts(message.get("content")) if block.get("type") in _CALL_BLOCKS)
    return [*listed, *(Call(_text(block.get("id")), _name(block), True) for block in blocks)]


def with_calls(message: Message, kept: Sequence[bool]) -> Message:
    """Return the message with those of its calls that are ``kept``."""
    if all(kept):
        return message
    made = dict(message)
    flags = iter(kept)
    listed = [call for call in _list(message.get("tool_calls")) if not isinstance(call, dict) or next(flags)]
    if listed:
        made["tool_calls"] = listed
    else:
        made.pop("tool_calls", None)
    return _with_blocks(made, lambda block: block.get("type") not in _CALL_BLOCKS or next(flags))


def results_of(message: Message) -> list[str | None] | None:
    """Return the ids of the calls that a message answers, None for an answer without id; None unless it is
    a result."""
    role = message.get("role")
    if role in RESULT_ROLES:
        return [_result_id(message)]
    if role != "user":
        return None
    found = [_result_id(block) for block in _dicts(message.get("content")) if _is_result(block)]
    return found or None


def with_results(message: Message, answered: Sequence[str | None]) -> Message | None:
    """Return the message with the results that answer a call, under the id of that call, which is empty when
    the call has none; None when nothing is left of it."""
    if message.get("role") in RESULT_ROLES:
        id = answered[0]
        if not id or id == _result_id(message):
            return message if id is not None else None
        return {**message, "tool_call_id": id}
    if None in answered:
        flags = iter(answered)
        message = _with_blocks(message, lambda block: not _is_result(block) or next(flags) is not None)
    ids = iter([id for id in answered if id is not None])
    content = [_identified(block, ids) for block in message["content"]]
    if not content:
        return None
    return message if content == message["content"] else {**message, "content": content}


def result_message(call: Call, text: str) -> Message:
    """Return a result of ``call``, in the shape that answers its message."""
    if call.block:
        block = {"type": "tool_result", "tool_use_id": call.id, "content": text}
        return {"role": "user", "content": [block]}
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def has_payload(message: Message) -> bool:
    """Whether an assistant's message says anything. Spec: 10 §A1.3."""
    if message.get("tool_calls") or message.get("thinking_blocks"):
        return True
    if any(_is_said(message.get(key)) for key in ("content", "reasoning")):
        return True
    return any(_is_said(part.get("text")) for part in _dicts(message.get("parts")))


def _is_said(content: Any) -> bool:
    if isinstance(content, list):
        return any(
            _is_said(part if isinstance(part, str) else part.get("text", "x"))
            for part in content
            if isinstance(part, str | dict)
        )
    return isinstance(content, str) and bool(content.strip())


def _identified(block: Any, ids: Any) -> Any:
    """Return a result's block under its call's id."""
    if not isinstance(block, dict) or not _is_result(block):
        return block
    id = next(ids)
    return block if not id or _result_id(block) == id else {**block, "tool_use_id": id}


def _with_blocks(message: Message, kept: Callable[[Message], bool]) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [part for part in content if not isinstance(part, dict) or kept(part)]}


def _is_result(block: Message) -> bool:
    return block.get("type") == "tool_result"


def _result_id(result: Message) -> str | None:
    return next((text for key in _RESULT_IDS if (text := _text(result.get(key)))), None)


def _name(call: Message) -> str | None:
    function = call.get("function")
    return _text(function.get("name") if isinstance(function, dict) else call.get("name"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: Any) -> list[Message]:
    return [item for item in _list(value) if isinstance(item, dict)]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
