"""What a search looks through: the text of an event. Spec: 10 §C6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def text_of(type: str, data: Any) -> str | None:
    """Return the text of an event with that stored data, None when it has none."""
    texts = _TEXTS.get(type)
    if texts is None or not isinstance(data, dict):
        return None
    return "\n".join(filter(None, texts(data))) or None


def _message(message: dict[str, Any]) -> Iterator[str]:
    """The text of a message: its content, or the text in its blocks or parts."""
    content = message.get("content")
    for part in (
        [content] if isinstance(content, str | dict) else [*(content or []), *_list(message, "parts")]
    ):
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            yield from _strings(part, ("text", "content"))


def _list(data: dict[str, Any], key: str) -> list[Any]:
    found = data.get(key)
    return found if isinstance(found, list) else []


def _strings(data: dict[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        value = data.get(key)
        if isinstance(value, str):
            yield value


def _of(*keys: str) -> Callable[[dict[str, Any]], Iterator[str]]:
    return lambda data: _strings(data, keys)


def _cut(data: dict[str, Any]) -> Iterator[str]:
    """The messages that a cut has written out, its summary among them."""
    for entry in (*_list(data, "entries"), *_list(data, "messages")):
        message = entry.get("message") if isinstance(entry, dict) else None
        if isinstance(message, dict):
            yield from _message(message)


def _register(data: dict[str, Any]) -> Iterator[str]:
    if data.get("key") == "memo" and data.get("value") is not None:
        from harnpy.text.json.writer import to_json

        yield to_json(data["value"])


_TEXTS: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    kinds.MESSAGE_ADDED: _message,
    kinds.HISTORY_REPLACED: _cut,
    kinds.COMPACTION_TRIGGERED: _cut,
    kinds.REGISTER_SET: _register,
    "context_added": _of("content"),
    "branch_summary": _of("summary"),
    "tool_started": _of("args"),
    "tool_completed": _of("output"),
    "child_completed": _of("summary"),
}
