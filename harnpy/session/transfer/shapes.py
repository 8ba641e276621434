"""A message taken apart, for systems that keep its parts under keys of their own. Spec: 10 §C5, §C17."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from harnpy.formats.media import TEXTS, left_out
from harnpy.formats.tool_messages import RESULT_ROLES

Json = dict[str, Any]

_CALLS = ("tool_use", "tool_call")
_THINKING = ("thinking", "redacted_thinking")
_RESULT_IDS = ("tool_call_id", "tool_use_id", "tool_id")


class CallPart(NamedTuple):
    """``arguments`` is JSON text."""

    id: str
    name: str
    arguments: str


class ResultPart(NamedTuple):
    """The result of a call."""

    id: str
    name: str
    text: str
    is_error: bool


class Shape(NamedTuple):
    """``texts`` are the texts of the message itself, ``others`` its blocks that are none of the rest."""

    role: str
    texts: list[str]
    calls: list[CallPart]
    results: list[ResultPart]
    thinking: list[Json]
    others: list[Json]

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def shape_of(message: Json) -> Shape:
    """Take a message of any shape apart."""
    role = message["role"]
    content = message.get("content")
    shape = Shape("tool" if role in RESULT_ROLES else role, [], [], [], [], [])
    if role in RESULT_ROLES:
        id = next((message[key] for key in _RESULT_IDS if message.get(key)), "")
        text = _text_of(content)
        shape.results.append(ResultPart(str(id), _text(message.get("name")), text, _failed(message)))
        return shape
    if isinstance(content, list):
        for block in content:
            _take(shape, block)
    elif content not in (None, ""):
        shape.texts.append(_text_of(content))
    listed = message.get("tool_calls")
    shape.calls.extend(map(_call, filter(_is_dict, listed if isinstance(listed, list) else [])))
    thinking = message.get("thinking_blocks")
    shape.thinking.extend(filter(_is_dict, thinking if isinstance(thinking, list) else []))
    return shape


def _take(shape: Shape, block: Any) -> None:
    if isinstance(block, str):
        shape.texts.append(block)
        return
    if not isinstance(block, dict):
        return
    kind = block.get("type")
    if kind in TEXTS and isinstance(block.get("text"), str):
        shape.texts.append(block["text"])
    elif kind in _CALLS:
        shape.calls.append(_call(block))
    elif kind == "tool_result":
        id = next((block[key] for key in _RESULT_IDS if block.get(key)), "")
        name, text = _text(block.get("name")), _text_of(block.get("content"))
        shape.results.append(ResultPart(str(id), name, text, _failed(block)))
    elif kind in _THINKING:
        shape.thinking.append(block)
    else:
        shape.others.append(block)


def _call(call: Json) -> CallPart:
    function = call.get("function")
    said = function if isinstance(function, dict) else call
    arguments: Any = next((said[key] for key in ("arguments", "input") if key in said), {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return CallPart(_text(call.get("id")), _text(said.get("name")), text)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (_told(part) if isinstance(part, dict) else part for part in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return "" if content is None else json.dumps(content, ensure_ascii=False)


def _told(part: Json) -> Any:
    """Return the text of a result's part; words for an image, which other forms have no place for there."""
    if part.get("type") == "image":
        return left_out("image", part.get("media_type"), part.get("base64"), part.get("url"))
    return part.get("text")


def _failed(result: Json) -> bool:
    return result.get("is_error") is True


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
