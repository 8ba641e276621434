"""Messages on their way to a model, and the text in them. Spec: 07 §1.1, §2.2; 08 §2.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Message = dict[str, Any]


def request_message(message: Message) -> Message:
    """A script's message as a request carries it; the same object where nothing needs to change."""
    if message.get("role") == "tool_result":
        content = message.get("content")
        text = content if isinstance(content, str) else compact_json(content)
        result = {"type": "tool_result", "tool_use_id": message.get("tool_use_id"), "content": text}
        return {"role": "user", "content": [result]}
    if "role" in message and message.get("content") is not None:
        return message
    filled = {"role": "user", **message}
    if filled.get("content") is None:
        filled["content"] = ""
    return filled


def request_messages(given: Iterable[Any]) -> list[Message]:
    """The messages of an option or a session; anything but a dict is dropped."""
    return [request_message(message) for message in given if isinstance(message, dict)]


def strings_in(value: Any) -> Iterator[str]:
    """Every non-empty string found in ``value``; dicts in the order of their keys."""
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from strings_in(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)


def match_text(messages: list[Message]) -> str:
    """The text that the patterns of mocks are matched with: all strings of all messages, one a line."""
    return "\n".join(strings_in(messages))


def prompt_text(messages: list[Message]) -> str:
    """The text of the last message that has some."""
    for message in reversed(messages):
        text = "\n".join(strings_in(message.get("content")))
        if text.strip():
            return text
    return ""
