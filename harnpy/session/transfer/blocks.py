"""Content blocks of other systems' messages, as sessions have them. Spec: 10 §C5, §C17."""

from __future__ import annotations

import json
from typing import Any

from harnpy.formats.media import TEXTS
from harnpy.session.transfer.shapes import shape_of

Json = dict[str, Any]


def from_anthropic(message: Json) -> Json:
    """Return a message of Anthropic's, whose content is a text or blocks."""
    content = message.get("content")
    if isinstance(content, list):
        content = [_block(block) for block in content]
        if len(content) == 1 and _is_plain_text(content[0]):
            content = content[0]["text"]
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
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)}
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
        return {"type": "text", "text": block.get("text", "")}
    if kind == "tool_use":
        return {key: block.get(key) for key in ("type", "id", "name", "input")}
    if kind == "tool_result" and isinstance(block.get("content"), list):
        return {**block, "content": _result_content(block["content"])}
    return block


def _result_content(content: Any) -> Any:
    if not isinstance(content, list):
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return [made for part in content if (made := _as_anthropic(part)) is not None]


def _object(text: str) -> Any:
    """Return the arguments of a call; ones that can't be read as their text."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"__unreadable": text}


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


def _is_plain_text(block: Json) -> bool:
    return block.keys() == {"type", "text"} and block["type"] == "text" and isinstance(block["text"], str)


# Items of OpenAI's Responses API, as `llm.providers.responses` keeps them.


def from_response_item(item: Json) -> list[Json]:
    """Return the blocks of an item that a model wrote."""
    kind = item.get("type", "message")
    if kind == "message":
        content = item.get("content")
        parts = (
            content if isinstance(content, list) else [{"type": "output_text", "text": str(content or "")}]
        )
        own = _own(item)
        return [
            {
                "type": "text",
                "text": str(part.get("text", part.get("refusal", ""))),
                "content": {key: value for key, value in part.items() if key != "text"},
                "item": own,
            }
            for part in parts
            if isinstance(part, dict)
        ]
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
    blocks = [_input(part) for part in parts if isinstance(part, dict)]
    return blocks[0]["text"] if len(blocks) == 1 and _is_plain_text(blocks[0]) else blocks


_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
#: What of an item its block says.
_SAID = frozenset({"type", "role", "content", "call_id", "name", "arguments", "input", "action"})


def _own(item: Json) -> Json:
    return {key: value for key, value in item.items() if key not in _SAID}


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
        url: str = part["image_url"]
        head, comma, data = url.partition(";base64,")
        if comma and head.startswith("data:"):
            return {"type": "image", "media_type": head.removeprefix("data:"), "base64": data}
        return {"type": "image", "url": url}
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
            items.append(_told(block, is_own))
        elif kind == "tool_use":
            said.add(block["id"])
            said_call = {
                "call_id": block["id"],
                "name": block["name"],
                "arguments": json.dumps(block["input"]),
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
        made = _as_anthropic(block)
        source = made["source"] if made else {}
        data, kind = source.get("data"), source.get("media_type")
        return {"type": "input_image", "image_url": source.get("url") or f"data:{kind};base64,{data}"}
    return {"type": "input_text", "text": json.dumps(block, ensure_ascii=False)}
