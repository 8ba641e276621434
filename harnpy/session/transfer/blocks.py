"""Content blocks of other systems' messages, as sessions have them. Spec: 10 §C5, §C17."""

from __future__ import annotations

import json
from typing import Any

from harnpy.formats.json import without_nulls
from harnpy.formats.media import TEXTS
from harnpy.formats.tool_messages import RESULT_ROLES
from harnpy.session.transfer.shapes import shape_of

Json = dict[str, Any]


def blocks_of(message: Json) -> list[Json]:
    """Return what a message of any shape says, as blocks in its order; a result is one."""
    shape, content = shape_of(message), message.get("content")
    if message["role"] in RESULT_ROLES:
        [result] = shape.results
        said = list(map(_block, content)) if isinstance(content, list) else result.text
        failed = {"is_error": True} if result.is_error else {}
        return [{"type": "tool_result", "tool_use_id": result.id, "content": said, **failed}]
    given = content if isinstance(content, list) else [] if content in (None, "") else [text_block(content)]
    blocks = [*_dicts(message.get("thinking_blocks")), *map(_block, given)]
    for call in _dicts(message.get("tool_calls")):
        [known] = shape_of({"role": "assistant", "tool_calls": [call]}).calls
        more = {key: value for key, value in call.items() if key not in _CALL_KEYS}
        blocks.append(call_block(known.id, known.name, arguments_of(known.arguments), **more))
    return blocks


#: What a call says, in any spelling.
_CALL_KEYS = frozenset({"id", "type", "name", "function", "arguments", "input", "args", "index"})


def text_block(text: Any) -> Json:
    """Return a text as a block."""
    return {"type": "text", "text": text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)}


def call_block(id: str, name: str, arguments: Any, **more: Any) -> Json:
    """Return a call of a tool as a block."""
    return {"type": "tool_use", "id": id, "name": name, "input": arguments, **more}


def alone(blocks: list[Json]) -> Any:
    """Return blocks as a content: one that is only a text, as the text."""
    return blocks[0]["text"] if len(blocks) == 1 and _is_plain_text(blocks[0]) else blocks


def from_anthropic(message: Json) -> Json:
    """Return a message of Anthropic's, whose content is a text or blocks."""
    content = message.get("content")
    if isinstance(content, list):
        content = alone(list(map(_block, content)))
    return {"role": message["role"], "content": "" if content is None else content}


def to_anthropic(message: Json) -> Json:
    """Return a message of any shape as one of Anthropic's, without what only another service understands."""
    shape = shape_of(message)
    role = "assistant" if shape.role == "assistant" else "user"
    content = message.get("content")
    if isinstance(content, str) and not (shape.calls or shape.results or shape.thinking):
        return {"role": role, "content": content}
    if isinstance(content, list) and shape.role != "tool":
        blocks = [made for block in content if (made := _as_anthropic(block)) is not None]
    else:
        blocks = [*shape.thinking, *({"type": "text", "text": text} for text in shape.texts if text)]
    said = {block.get("id") for block in blocks}
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_of(call.arguments)}
        for call in shape.calls
        if call.id not in said
    ]
    if shape.role == "tool":
        blocks += [
            {
                "type": "tool_result",
                "tool_use_id": result.id,
                "content": _result_content(content),
                **({"is_error": True} if result.is_error else {}),
            }
            for result in shape.results
        ]
    return {"role": role, "content": blocks}


def is_foreign(block: Any) -> bool:
    """Return whether no transcript of Anthropic's has a place for a block."""
    return isinstance(block, dict) and _as_anthropic(block) is None


#: Blocks that Anthropic's messages have.
_ANTHROPIC = frozenset({
    "text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking", "document",
    "server_tool_use", "search_result", "web_search_tool_result",
})  # fmt: skip


#: What Anthropic's texts and calls have.
ANTHROPIC_KEYS = {
    "text": ("type", "text", "citations", "cache_control"),
    "tool_use": ("type", "id", "name", "input", "caller", "cache_control"),
}


def _as_anthropic(block: Any) -> Json | None:
    if not isinstance(block, dict):
        return {"type": "text", "text": str(block)}
    kind = block.get("type")
    if kind not in _ANTHROPIC or (kind == "thinking" and not block.get("signature")):
        return None
    if kind == "image" and not isinstance(block.get("source"), dict):
        if block.get("url") is not None:
            return {"type": "image", "source": {"type": "url", "url": block["url"]}}
        data = {"type": "base64", "media_type": block.get("media_type"), "data": block.get("base64")}
        return {"type": "image", "source": data}
    if kind == "text":
        return {
            "type": kind,
            "text": "",
            **{key: block[key] for key in ANTHROPIC_KEYS["text"] if key in block},
        }
    if kind == "tool_use":
        return {key: block[key] for key in ANTHROPIC_KEYS["tool_use"] if key in block}
    if kind == "tool_result" and isinstance(block.get("content"), list):
        return {**block, "content": _result_content(block["content"])}
    return block


def _result_content(content: Any) -> Any:
    if not isinstance(content, list):
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return [made for part in content if (made := _as_anthropic(part)) is not None]


#: The one argument of a call whose own can't be read (07 §1.17).
_UNREADABLE = "__unreadable"


def arguments_of(text: str) -> Any:
    """Return the arguments of a call; ones that can't be read as their text."""
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {_UNREADABLE: text}


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


def _block(block: Any) -> Json:
    if not isinstance(block, dict):
        return {"type": "text", "text": str(block)}
    kind = block.get("type")
    if kind == "image":
        return _image(block)
    if kind in ("image_url", "input_image"):
        given = block.get("image_url")
        url = given.get("url") if isinstance(given, dict) else given
        detail = given.get("detail") if isinstance(given, dict) else block.get("detail")
        return {**image_at(str(url)), **({"detail": detail} if detail else {})}
    if kind == "tool_call":
        [call] = shape_of({"role": "assistant", "content": [block]}).calls
        return call_block(call.id, call.name, arguments_of(call.arguments))
    if kind == "tool_result" and isinstance(block.get("content"), list):
        return {**block, "content": [_block(part) for part in block["content"]]}
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


def image_at(url: str) -> Json:
    """Return the image at an address, or in one."""
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return {"type": "image", "media_type": head.removeprefix("data:"), "base64": data}
    return {"type": "image", "url": url}


def image_url(block: Json) -> str:
    """Return the address of an image, which may hold its data."""
    source = block["source"] if isinstance(block.get("source"), dict) else block
    data = source.get("base64") or source.get("data")
    if data:
        return f"data:{source.get('media_type') or 'image/png'};base64,{data}"
    return str(source.get("url") or "")


def _dicts(values: Any) -> list[Json]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _is_plain_text(block: Json) -> bool:
    return block.keys() == {"type", "text"} and block["type"] == "text" and isinstance(block["text"], str)


# Items of OpenAI's Responses API, as `llm.providers.responses` keeps them.


def from_response_item(item: Json) -> list[Json]:
    """Return the blocks of an item that a model wrote, without keys that are null, which services refuse."""
    item = without_nulls(item)
    kind = item.get("type", "message")
    if kind == "message":
        content, own = item.get("content"), _own(item)
        parts = content if isinstance(content, list) else [{"text": str(content or "")}]
        return [_said(part, own) for part in parts if isinstance(part, dict)]
    if kind in _CALLS:
        own = _own(item)
        return [
            {
                "type": "tool_use",
                "id": str(item.get("call_id") or item.get("id") or ""),
                "name": str(item.get("name") or kind.removesuffix("_call")),
                "input": _arguments(item),
                **({"item": own} if own else {}),
            }
        ]
    return [item]


def _said(part: Json, own: Json) -> Json:
    """Return a text of a model's, with what else its part and its item say."""
    more = {key: value for key, value in part.items() if key != "text"}
    block = text_block(str(part.get("text", part.get("refusal", ""))))
    if not own and not any(value for key, value in more.items() if key != "type"):
        return block
    return {**block, "content": more, "item": own}


def from_response_output(item: Json) -> Json:
    """Return the message of a call's result."""
    output = item.get("output")
    if isinstance(output, list):
        output = from_response_parts(output)
    elif not isinstance(output, str):
        output = json.dumps(output, ensure_ascii=False)
    return {"role": "tool", "tool_call_id": str(item.get("call_id") or ""), "content": output}


def from_response_parts(parts: Any) -> Any:
    """Return the content of a message of the user's: a text, or blocks."""
    if not isinstance(parts, list):
        return "" if parts is None else str(parts)
    return alone([_input(part) for part in parts if isinstance(part, dict)])


_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
#: What of an item its block says.
_WRITTEN = frozenset({"type", "role", "content", "call_id", "name", "arguments", "input", "action"})


def _own(item: Json) -> Json:
    return {key: value for key, value in item.items() if key not in _WRITTEN}


def _arguments(item: Json) -> Any:
    if item["type"] == "custom_tool_call":
        return {"input": item.get("input")}
    if item["type"] == "local_shell_call":
        return item.get("action")
    text = item.get("arguments")
    try:
        return json.loads(text) if isinstance(text, str) and text else {}
    except ValueError:
        return {"__unreadable": text}


def _input(part: Json) -> Json:
    kind = part.get("type")
    if kind in TEXTS:
        return {"type": "text", "text": str(part.get("text", ""))}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        detail = part.get("detail")
        return {**image_at(part["image_url"]), **({"detail": detail} if detail not in (None, "auto") else {})}
    return part


def to_response_items(message: Json, is_own: bool) -> list[Json]:
    """Return a message as items of the Responses API; ``is_own``: with what only that service understands."""
    shape = shape_of(message)
    if shape.role == "tool":
        content = message.get("content")
        output = [_as_input(part) for part in content] if isinstance(content, list) else shape.results[0].text
        return [{"type": "function_call_output", "call_id": shape.results[0].id, "output": output}]
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    items: list[Json] = []
    said: set[str] = set()
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and shape.role == "assistant":
            told = _told(block, is_own)
            if told.get("id") and items and items[-1].get("id") == told["id"]:
                items[-1]["content"] += told["content"]  # several texts of one item
            else:
                items.append(told)
        elif kind == "tool_use":
            said.add(block["id"])
            said_call = {
                "call_id": block["id"],
                "name": block["name"],
                "arguments": arguments_text(block["input"]),
            }
            items.append({"type": "function_call", **said_call, **(block.get("item", {}) if is_own else {})})
        elif kind == "tool_result":
            given = block.get("content")
            output = [_as_input(part) for part in given] if isinstance(given, list) else str(given or "")
            id = block.get("tool_use_id")
            items.append({"type": "function_call_output", "call_id": id, "output": output})
        elif kind in ("text", "image") or not isinstance(block, dict):
            if not items or items[-1].get("role") != "user":
                items.append({"type": "message", "role": "user", "content": []})
            items[-1]["content"].append(_as_input(block))
        elif is_own:
            items.append(block)
    for call in shape.calls:
        if call.id not in said:
            named = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
            items.append({"type": "function_call", **named})
    return items


def _told(block: Json, is_own: bool) -> Json:
    part = {"type": "output_text", "text": block.get("text", ""), "annotations": []}
    if is_own and isinstance(block.get("content"), dict):
        part |= block["content"]
    own = block.get("item", {}) if is_own else {}
    return {"type": "message", "role": "assistant", "content": [part], **own}


def _as_input(block: Any) -> Json:
    if not isinstance(block, dict):
        return {"type": "input_text", "text": str(block)}
    if block.get("type") == "text":
        return {"type": "input_text", "text": str(block.get("text", ""))}
    if block.get("type") == "image":
        detail = block.get("detail") or "auto"
        return {"type": "input_image", "image_url": image_url(block), "detail": detail}
    return {"type": "input_text", "text": json.dumps(block, ensure_ascii=False)}
