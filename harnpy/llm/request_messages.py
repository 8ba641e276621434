"""Messages in the format of a request, their text, and the content blocks that services receive.

Spec: 07 §1.1–1.2, §2.2, §3, §6.7; 08 §2.1.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import OptionError
from harnpy.formats.json import compact_json, json_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Message = dict[str, Any]
    Block = dict[str, Any]


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


def strings_in(value: Any) -> list[str]:
    """Return every non-empty string found in ``value``; dicts in the order of their keys."""
    found, left = [], [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            if item:
                found.append(item)
        elif isinstance(item, dict):
            left += [item[key] for key in sorted(item, reverse=True)]
        elif isinstance(item, list):
            left += reversed(item)
    return found


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


# Marks up to which a service caches the prompt: ``cache_control`` of a message, a block or a tool. Pure.
#
# A mark is passed on as it is to services that want marks, and to no others. Spec: 07 §1.2.


MARK = "cache_control"
#: What `cache: true` marks with.
EPHEMERAL = {MARK: {"type": "ephemeral"}}
#: The marks that Anthropic takes in one request.
_MOST = 4
_UNMARKABLE = ("thinking", "redacted_thinking")


def mark_of(given: Block) -> Block:
    """The mark of a message, block or tool, as keys of another one. Raises `OptionError`."""
    mark = given.get(MARK)
    if mark is None:
        return {}
    if not isinstance(mark, dict):
        raise OptionError(f'{MARK}: expected a dict {{type: "ephemeral", ttl?}}')
    return {MARK: mark}


def mark_last(blocks: list[Block], mark: Block = EPHEMERAL) -> None:
    """Put a mark on the last of some blocks that can have one."""
    for at in range(len(blocks) - 1, -1, -1):
        if blocks[at].get("type") not in _UNMARKABLE:
            blocks[at] = {**blocks[at], **mark}
            return


def without_mark(block: Block) -> Block:
    return {key: value for key, value in block.items() if key != MARK} if MARK in block else block


def keep_last_marks(parts: Iterable[list[Block]]) -> None:
    """Take away the marks that are too many for one request: the first ones."""
    marked = [(blocks, at) for blocks in parts for at, block in enumerate(blocks) if MARK in block]
    for blocks, at in marked[:-_MOST]:
        blocks[at] = without_mark(blocks[at])


# Messages of any provider in one format: turns of content blocks.
#
# A conversation may hold messages of several providers: it was resumed elsewhere, or a fallback took over.
# The blocks are ``text``, ``image``, ``tool_use {id, name, input}``, ``tool_result {tool_use_id, content}``
# and a provider's own kinds, which are passed on unchanged. A message's mark for the cache is on its last
# block. Pure. Spec: 07 §1.2, §3, §6.7.


_TEXT = ("text", "output_text", "input_text")


class Turn(NamedTuple):
    """``role`` is as given, except that tool results are the user's."""

    role: str
    blocks: list[Block]

    def of(self, *types: str) -> list[Block]:
        return [block for block in self.blocks if block.get("type") in types]

    def without(self, *types: str) -> list[Block]:
        return [block for block in self.blocks if block.get("type") not in types]


def turns(messages: Iterable[dict[str, Any]]) -> Iterator[Turn]:
    """The turns of a conversation. Raises `OptionError` for an image without a source, or a wrong mark."""
    waiting = _Waiting()
    for message in messages:
        role = str(message.get("role") or "user")
        if role == "tool":
            id = message.get("tool_call_id") or waiting.take(message.get("tool_name"))
            result = {"type": "tool_result", "tool_use_id": id, "content": message.get("content")}
            yield Turn("user", [_plain_result({**result, **mark_of(message)})])
            continue
        blocks = [_block(block, waiting) for block in _listed(message.get("content"))]
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            blocks += [waiting.call(call) for call in calls if isinstance(call, dict)]
        if mark := mark_of(message):
            mark_last(blocks, mark)
        yield Turn(role, blocks)


class _Waiting:
    """Ids for calls without one; their results name only the tool, oldest call first."""

    def __init__(self) -> None:
        self._ids: dict[str, list[str]] = {}
        self._count = 0

    def call(self, call: Block) -> Block:
        """A tool call of any shape as a ``tool_use`` block."""
        function = call.get("function")
        if not isinstance(function, dict):
            function = call
        name = str(function.get("name"))
        id = call.get("id")
        if not id:
            self._count += 1
            id = f"call_{self._count}"
            self._ids.setdefault(name, []).append(id)
        given = function.get("arguments", function.get("input"))
        return {"type": "tool_use", "id": id, "name": name, "input": _arguments(given), **mark_of(call)}

    def take(self, name: Any) -> str:
        ids = self._ids.get(str(name))
        return ids.pop(0) if ids else "call_0"


def _listed(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [] if content is None else [{"type": "text", "text": _text(content)}]


def _block(block: Any, waiting: _Waiting) -> Block:
    if not isinstance(block, dict):
        return {"type": "text", "text": _text(block)}
    kind = block.get("type")
    if kind in _TEXT:
        return {"type": "text", "text": _text(block.get("text", "")), **mark_of(block)}
    if kind in ("tool_use", "tool_call"):
        return waiting.call(block)
    if kind == "tool_result":
        return _plain_result(block)
    if (
        kind == "image"
        and not isinstance(block.get("source"), dict)
        and (block.get("base64") is None) == (block.get("url") is None)
    ):
        raise OptionError("image block: expected exactly one of `base64`, `url`")
    return block


def _plain_result(block: Block) -> Block:
    content = block.get("content")
    if isinstance(content, list):
        content = "\n".join(
            _text(each["text"]) if isinstance(each, dict) and "text" in each else _text(each)
            for each in content
        )
    text = "" if content is None else _text(content)
    id = block.get("tool_use_id")
    return {"type": "tool_result", "tool_use_id": id, "content": text, **mark_of(block)}


def _arguments(given: Any) -> dict[str, Any]:
    """The arguments of a call; empty unless they are an object."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given if isinstance(given, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value)


def joined_text(blocks: Iterable[Block]) -> str:
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")


def read_arguments(name: str, text: str) -> dict[str, Any]:
    """The arguments of a call that a model wrote; unreadable ones become an error for the model (07 §6.7)."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {"__parse_error": f"The arguments of tool '{name}' are not valid JSON: {json_problem(text)}"}
    if isinstance(value, dict):
        return value
    return {"__parse_error": f"The arguments of tool '{name}' are not a JSON object: {text[:200]}"}


def tool_call(id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A call as a reply carries it."""
    return {"id": id, "type": "tool_call", "name": name, "arguments": arguments}
