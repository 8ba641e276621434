"""Messages of Anthropic's, as sessions have them, and back. Spec: 10 §C17."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.errors import TransferError
from harnpy.session.transfer.blocks import alone, as_text, block_of, blocks_of, text_block, text_of
from harnpy.session.transfer.message_formats import (
    COMMON,
    SYSTEMS,
    Family,
    objects_in,
    role_of,
    text_in,
    with_results,
)

if TYPE_CHECKING:
    from harnpy.session.transfer.message_formats import Page, Talk

    Json = dict[str, Any]


def from_anthropic(message: Json) -> Json:
    """Return a message of Anthropic's, whose content is a text or blocks."""
    content = message.get("content")
    if isinstance(content, list):
        content = alone(list(map(block_of, content)))
    return {"role": message["role"], "content": "" if content is None else content}


def to_anthropic(message: Json) -> Json:
    """Return a message of any shape as one of Anthropic's, without what only another service understands."""
    role = "assistant" if message["role"] == "assistant" else "user"
    blocks, content = blocks_of(message), message.get("content")
    if isinstance(content, str) and blocks in ([], [text_block(content)]):
        return {"role": role, "content": content}
    known = [made for block in blocks if (made := _as_anthropic(block)) is not None]
    return {"role": role, "content": known}


def is_foreign(block: Any) -> bool:
    """Return whether no transcript of Anthropic's has a place for a block."""
    return isinstance(block, dict) and _as_anthropic(block) is None


#: Blocks that Anthropic's messages have.
_ANTHROPIC = frozenset({
    "text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking", "document",
    "server_tool_use", "search_result", "web_search_tool_result",
})  # fmt: skip


#: What Anthropic's texts, calls and results have.
_KEYS = {
    "text": ("type", "text", "citations", "cache_control"),
    "tool_use": ("type", "id", "name", "input", "caller", "cache_control"),
    "tool_result": ("type", "tool_use_id", "content", "is_error", "cache_control"),
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
            **{key: block[key] for key in _KEYS["text"] if key in block},
        }
    if kind in ("tool_use", "tool_result"):
        known = {key: block[key] for key in _KEYS[kind] if key in block}
        is_list = kind == "tool_result" and isinstance(block.get("content"), list)
        return {**known, "content": _result_content(block["content"])} if is_list else known
    return block


def _result_content(content: Any) -> Any:
    if not isinstance(content, list):
        return as_text(content)
    return [made for part in content if (made := _as_anthropic(part)) is not None]


# Anthropic's messages.


_ROLES = ("user", "assistant", *SYSTEMS)
#: What the blocks have that are read here.
_NEEDED: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "thinking": ("thinking",),
    "tool_use": ("id", "name"),
    "tool_result": ("tool_use_id",),
}


def _read(talk: Talk, item: Json) -> None:
    role = role_of(item, _ROLES)
    keys = ("role", "content", "id", "type", "model", "stop_reason", "stop_sequence", "usage")
    content = talk.taken(item, keys).get("content")
    if not isinstance(content, str | None):
        for block in objects_in(content, "`content`"):
            kind = text_in(block.get("type"), "the type of a block of it")
            for key in _NEEDED.get(kind, ()):
                text_in(block.get(key), f"`{key}` of a {kind} in it")
            _objects_in(block)
    if role in SYSTEMS:
        return talk.instruct(text_of(content))
    told = {key: item[key] for key in ("usage", "stop_reason") if item.get(key)}
    message = from_anthropic({"role": role, "content": content})
    blocks = message["content"]
    if isinstance(blocks, str):
        talk.take(message)
    elif role == "user":
        # What comes with results stands behind them as a message of its own.
        others = [block for block in blocks if block["type"] != "tool_result"]
        for block in blocks:
            if block["type"] == "tool_result":
                talk.take({"role": "user", "content": [block]})
        if others or not blocks:
            talk.take({"role": "user", "content": alone(others)})
    else:
        model = item["model"] if isinstance(item.get("model"), str) else None
        talk.take(message, opaque=any(block["type"] not in COMMON for block in blocks), model=model)
    if told:
        talk.mark(told)
    return None


def _objects_in(block: Json) -> None:
    if block["type"] == "tool_use" and not isinstance(block.get("input"), dict):
        raise TransferError("the input of its call is no object")
    if block["type"] == "tool_result" and not isinstance(block.get("content"), str | None):
        for part in objects_in(block["content"], "the content of a result in it"):
            text_in(part.get("type"), "the type of a block of a result in it")


def _write(page: Page, role: str, blocks: list[Json], message: Json) -> None:
    known = [block for block in blocks if not is_foreign(block)]
    for block in blocks:
        if is_foreign(block):
            page.drop(role, block)
        elif block["type"] in _KEYS:
            page.only(block, _KEYS[block["type"]])
        elif block["type"] == "image":
            page.only(block, ("type", "base64", "media_type", "url", "cache_control"))
    if known:
        made = to_anthropic({"role": role, "content": alone(known)})
        with_results(page, made, "content", lambda block: block.get("type") == "tool_result")


ANTHROPIC = Family(
    "messages",
    "anthropic",
    _ROLES,
    _read,
    _write,
    lambda text: {"role": "user", "content": text},
    "system",
)
