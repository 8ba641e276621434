"""Messages as Canto writes them. Spec: 10 §A1.3, §C17."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.transfer.shapes import shape_of

if TYPE_CHECKING:
    from harnpy.session.transfer.shapes import Shape

    Json = dict[str, Any]

_KEYS = frozenset({
    "role", "content", "parts", "reasoning", "thinking_blocks", "name", "tool_id", "tool_calls",
    "cache_control",
})  # fmt: skip
_AS_THEY_ARE = ("reasoning", "cache_control")


def to_canto(message: Json) -> list[Json]:
    """Return a message in Canto's shape. Several results in one message are a message each."""
    if _is_cantos(message):
        return [message]
    shape = shape_of(message)
    found: list[Json] = [_result(message, shape, number) for number in range(len(shape.results))]
    if not found or shape.texts or shape.others:
        found.append(_said(message, shape))
    return found


def _is_cantos(message: Json) -> bool:
    """Whether it has that shape already, as messages of Canto's logs have."""
    if not message.keys() <= _KEYS or not isinstance(message.get("content", ""), str):
        return False
    if message["role"] == "tool" and "tool_id" not in message:
        return False
    calls = message.get("tool_calls", [])
    return message["role"] != "tool_result" and all("function" in call for call in calls)


def _result(message: Json, shape: Shape, number: int) -> Json:
    result = shape.results[number]
    name = {"name": result.name} if result.name else {}
    return {"role": "tool", "content": result.text, **name, "tool_id": result.id}


def _said(message: Json, shape: Shape) -> Json:
    said: Json = {"role": shape.role, "content": shape.text}
    parts = [part for block in shape.others if (part := _part(block)) is not None]
    if parts:
        said["parts"] = [*({"type": "text", "text": text} for text in shape.texts), *parts]
    said |= {key: message[key] for key in _AS_THEY_ARE if message.get(key)}
    if shape.thinking:
        said["thinking_blocks"] = shape.thinking
    if isinstance(message.get("name"), str):
        said["name"] = message["name"]
    if shape.calls:
        said["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in shape.calls
        ]
    return said


def _part(block: Json) -> Json | None:
    """Return an image as Canto writes it; None for what it has no part for."""
    source = block.get("source")
    if isinstance(source, dict):
        return {"type": "image", "mime_type": source.get("media_type", ""), "data": source.get("data", "")}
    url = block.get("image_url", block.get("url"))
    url = url.get("url") if isinstance(url, dict) else url
    return {"type": "image", "url": url} if isinstance(url, str) else None
