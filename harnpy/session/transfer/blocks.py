"""Messages of any shape taken apart, and content blocks of other systems as sessions have them.

Spec: 10 §C5, §C17.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode as from_json

from harnpy.formats.dicts import as_dicts
from harnpy.formats.media import TEXTS, left_out
from harnpy.formats.tool_messages import RESULT_ROLES

Json = dict[str, Any]


# A message taken apart, for systems that keep its parts under keys of their own.


_CALL_BLOCKS = ("tool_use", "tool_call")
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
    shape.calls.extend(map(_call, as_dicts(listed)))
    thinking = message.get("thinking_blocks")
    shape.thinking.extend(as_dicts(thinking))
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
    elif kind in _CALL_BLOCKS:
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
    return CallPart(_text(call.get("id")), _text(said.get("name")), as_text(arguments))


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (_result_part(part) if isinstance(part, dict) else part for part in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return "" if content is None else as_text(content)


def _result_part(part: Json) -> Any:
    """Return the text of a result's part; words for an image, which other forms have no place for there."""
    if part.get("type") == "image":
        return left_out("image", part.get("media_type"), part.get("base64"), part.get("url"))
    return part.get("text")


def _failed(result: Json) -> bool:
    return result.get("is_error") is True


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# Its blocks.


def blocks_of(message: Json) -> list[Json]:
    """Return what a message of any shape says, as blocks in its order; a result is one."""
    shape, content = shape_of(message), message.get("content")
    if message["role"] in RESULT_ROLES:
        [result] = shape.results
        said = list(map(block_of, content)) if isinstance(content, list) else result.text
        more = {"is_error": True} if result.is_error else {}
        more |= {"item": message["item"]} if isinstance(message.get("item"), dict) else {}
        return [{"type": "tool_result", "tool_use_id": result.id, "content": said, **more}]
    blocks = [*as_dicts(message.get("thinking_blocks")), *map(block_of, parts_of(content))]
    said_ids = {block.get("id") for block in blocks}
    for call in as_dicts(message.get("tool_calls")):
        [known] = shape_of({"role": "assistant", "tool_calls": [call]}).calls
        more = {key: value for key, value in call.items() if key not in _CALL_KEYS}
        if known.id not in said_ids:
            blocks.append(call_block(known.id, known.name, arguments_of(known.arguments), **more))
    return blocks


#: The usual addresses of the services whose own blocks sessions keep, by their dialects.
ADDRESSES = {
    "anthropic": "https://api.anthropic.com/v1",
    "responses": "https://api.openai.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}
#: What a call says, in any spelling.
_CALL_KEYS = frozenset({"id", "type", "name", "function", "arguments", "input", "args", "index"})


def as_text(value: Any) -> str:
    """Return a value as a text: one as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def text_block(text: Any) -> Json:
    """Return a text as a block."""
    return {"type": "text", "text": as_text(text)}


def call_block(id: str, name: str, arguments: Any, **more: Any) -> Json:
    """Return a call of a tool as a block."""
    return {"type": "tool_use", "id": id, "name": name, "input": arguments, **more}


def alone(blocks: list[Json]) -> Any:
    """Return blocks as a content: one that is only a text, as the text."""
    return blocks[0]["text"] if len(blocks) == 1 and _is_plain_text(blocks[0]) else blocks


#: The one argument of a call whose own can't be read (07 §1.17).
_UNREADABLE = "__unreadable"


def arguments_of(given: Any) -> Json:
    """Return the arguments of a call; ones that can't be read as their text."""
    if isinstance(given, str):
        try:
            given = from_json(given) if given.strip() else {}
        except (DecodeError, RecursionError):
            return {_UNREADABLE: given}
    return given if isinstance(given, dict) else {} if given is None else {_UNREADABLE: as_text(given)}


def arguments_text(arguments: Any) -> str:
    """Return the arguments of a call as JSON; ones that couldn't be read as they were written."""
    if isinstance(arguments, dict) and arguments.keys() == {_UNREADABLE}:
        return str(arguments[_UNREADABLE])
    return json.dumps(arguments, ensure_ascii=False)


def text_of(content: Any) -> str:
    """Return the texts of a content, joined."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(block["text"]) for block in blocks if isinstance(block, dict) and "text" in block)


def block_of(block: Any) -> Json:
    if not isinstance(block, dict):
        return {"type": "text", "text": str(block)}
    kind = block.get("type")
    if kind == "image":
        return _image(block)
    if kind in ("image_url", "input_image"):
        given = block.get("image_url")
        url = given.get("url") if isinstance(given, dict) else given
        detail = given.get("detail") if isinstance(given, dict) else block.get("detail")
        return {**media("image", None, url=str(url)), **({"detail": detail} if detail else {})}
    if kind == "tool_call":
        [call] = shape_of({"role": "assistant", "content": [block]}).calls
        return call_block(call.id, call.name, arguments_of(call.arguments))
    if kind == "tool_result" and isinstance(block.get("content"), list):
        return {**block, "content": [block_of(part) for part in block["content"]]}
    return block


def _image(block: Json) -> Json:
    """An image has its address or its data itself."""
    source = block.get("source")
    if not isinstance(source, dict):
        return block
    rest = {key: value for key, value in block.items() if key not in ("type", "source")}
    if source.get("type") == "url":
        return {"type": "image", "url": source.get("url"), **rest}
    if source.get("type") == "base64":
        return {"type": "image", "media_type": source.get("media_type"), "base64": source.get("data"), **rest}
    return block


def media(kind: str, media_type: Any, data: Any = None, url: Any = None) -> Json:
    """Return a block of an image, or of another kind of file, by its data in base64 or its address."""
    typed = {"media_type": media_type} if isinstance(media_type, str) else {}
    if isinstance(url, str) and url.startswith("data:") and ";base64," in url:
        head, _, data = url.partition(";base64,")
        typed, url = {"media_type": head.removeprefix("data:")}, None
    if kind == "image":
        return {"type": "image", **typed, **({"base64": data} if url is None else {"url": url})}
    told = {"data": data} if url is None else {"url": url}
    return {"type": kind, "source": {"type": "base64" if url is None else "url", **typed, **told}}


def file_of(block: Json) -> tuple[str | None, str | None, str | None] | None:
    """Return the type, data and address of an image or another file; None for a block that is none."""
    if block.get("type") not in ("image", "document", "audio", "video"):
        return None
    source = block.get("source")
    told = source if isinstance(source, dict) else block
    data, url = told.get("base64", told.get("data")), told.get("url")
    if not isinstance(data, str) and not isinstance(url, str):
        return None
    return told.get("media_type"), data if isinstance(data, str) else None, url


def kind_of(media_type: Any) -> str:
    """Return what a block of a file is called, by its type."""
    kind = str(media_type).partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"


def parts_of(content: Any) -> list[Json]:
    """Return a content as blocks."""
    if not isinstance(content, list):
        return [] if content in (None, "") else [text_block(content)]
    return [each if isinstance(each, dict) else text_block(each) for each in content]


def image_url(block: Json) -> str:
    """Return the address of an image, which may hold its data."""
    source = block["source"] if isinstance(block.get("source"), dict) else block
    data = source.get("base64") or source.get("data")
    if data:
        return f"data:{source.get('media_type') or 'image/png'};base64,{data}"
    return str(source.get("url") or "")


def _is_plain_text(block: Json) -> bool:
    return block.keys() == {"type", "text"} and block["type"] == "text" and isinstance(block["text"], str)
