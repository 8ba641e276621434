"""A history in which user and assistant take turns, as some providers want it. Spec: 10 §A2.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harnpy.session.shown.message_parts import calls_of
from harnpy.session.transcript import RESULT_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    Message = dict[str, Any]

_FIRST: Final = {"role": "user", "content": "[CHAT HISTORY]"}
_LAST: Final = {"role": "assistant", "content": "[User continue input]"}


def strictly_ordered(messages: Iterable[Message]) -> list[Message]:
    """Return the messages, neighbours of one role as one; a user's first, an assistant's last. None stay
    none. Each result of a tool stays a message of its own."""
    found: list[Message] = []
    for message in messages:
        if found and _belong_together(found[-1], message):
            content = _joined(found[-1].get("content"), message.get("content"))
            found[-1] = {**found[-1], **message, "content": content}
        else:
            found.append(message)
    if found and found[0].get("role") != "user":
        found.insert(0, dict(_FIRST))
    if found and found[-1].get("role") != "assistant":
        found.append(dict(_LAST))
    return found


def _belong_together(first: Message, second: Message) -> bool:
    role = first.get("role")
    return role == second.get("role") and role not in RESULT_ROLES and not calls_of(first)


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n{second}" if first and second else first or second
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": str(content)}] if content else []
