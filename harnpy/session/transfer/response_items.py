"""Items of OpenAI's Responses API, as sessions have them, and back. Spec: 07 §1.19; 10 §C17."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harnpy.formats.json import without_nulls
from harnpy.formats.media import TEXTS
from harnpy.session.errors import TransferError
from harnpy.session.transfer.blocks import (
    alone,
    arguments_of,
    arguments_text,
    as_text,
    blocks_of,
    call_block,
    image_url,
    media,
    text_block,
    text_of,
)
from harnpy.session.transfer.message_formats import CALL, SYSTEMS, TEXT, Family, objects_in, role_of, text_in

if TYPE_CHECKING:
    from harnpy.session.transfer.message_formats import Page, Talk

    Json = dict[str, Any]


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
        id, name = item.get("call_id") or item.get("id"), item.get("name") or kind.removesuffix("_call")
        own = _own(item) | ({"type": kind} if kind != _FUNCTION else {})
        return [call_block(str(id or ""), str(name), _arguments(item), **({"item": own} if own else {}))]
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
    output = from_response_parts(output) if isinstance(output, list) else as_text(output)
    id, kind = item.get("call_id", item.get("id")), item["type"]
    own = {key: value for key, value in item.items() if key not in ("type", "output", "call_id")}
    own |= {"type": kind} if kind != OUTPUTS[0] else {}
    message = {"role": "tool", "tool_call_id": str(id or ""), "content": output}
    return {**message, "item": own} if own else message


def from_response_parts(parts: Any) -> Any:
    """Return the content of a message of the user's: a text, or blocks."""
    if not isinstance(parts, list):
        return "" if parts is None else str(parts)
    return alone([_input(part) for part in parts if isinstance(part, dict)])


#: The types of a call's result, by that of the call.
_FUNCTION, _CUSTOM, _SHELL = _CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = {kind: f"{kind}_output" for kind in _CALLS}
OUTPUTS = tuple(_OUTPUTS.values())
#: What of an item its block says.
_WRITTEN = frozenset({"type", "role", "content", "call_id", "name", "arguments", "input", "action"})


def _own(item: Json) -> Json:
    return {key: value for key, value in item.items() if key not in _WRITTEN}


def _arguments(item: Json) -> Any:
    if item["type"] == _CUSTOM:
        return {"input": item.get("input")}
    if item["type"] == _SHELL:
        return item.get("action")
    return arguments_of(str(item.get("arguments") or ""))


def _input(part: Json) -> Json:
    kind = part.get("type")
    if kind in TEXTS:
        return {"type": "text", "text": str(part.get("text", ""))}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        detail = part.get("detail")
        return {
            **media("image", None, url=part["image_url"]),
            **({"detail": detail} if detail not in (None, "auto") else {}),
        }
    return part


def to_response_items(message: Json, is_own: bool, written: dict[str, str]) -> list[Json]:
    """Return a message as items of the Responses API; ``is_own``: with what only that service understands.

    ``written`` are the types of the calls that have been written, by their ids: a result is of its call's.
    """
    items: list[Json] = []
    for block in blocks_of(message):
        kind = block.get("type")
        if kind == "text" and message["role"] == "assistant":
            told = _told(block, is_own)
            if told.get("id") and items and items[-1].get("id") == told["id"]:
                items[-1]["content"] += told["content"]  # several texts of one item
            else:
                items.append(told)
        elif kind == "tool_use":
            items.append(_call_item(block, is_own))
            written[block["id"]] = items[-1]["type"]
        elif kind == "tool_result":
            items.append(_result_item(block, written))
        elif kind in ("text", "image"):
            if not items or items[-1].get("role") != "user":
                items.append({"type": "message", "role": "user", "content": []})
            items[-1]["content"].append(_as_input(block))
        elif is_own:
            items.append(block)
    return items


def _call_item(block: Json, is_own: bool) -> Json:
    own, given = block.get("item", {}) if is_own else {}, block["input"]
    named = {"type": _FUNCTION, "call_id": block["id"], "name": block["name"]}
    if own.get("type") == _CUSTOM and isinstance(given, dict) and given.keys() == {"input"}:
        return {**named, **given, **own}
    if own.get("type") == _SHELL:
        return {"type": _SHELL, **_named(own, block["id"]), "action": given, **own}
    return {**named, "arguments": arguments_text(given), **own, "type": _FUNCTION}


def _result_item(block: Json, written: dict[str, str]) -> Json:
    id, own, given = str(block.get("tool_use_id") or ""), block.get("item", {}), block.get("content")
    output = [_as_input(part) for part in given] if isinstance(given, list) else str(given or "")
    call = written.get(id, _FUNCTION)
    # Codex answers calls of the shell as those of functions.
    kind = own.get("type", OUTPUTS[0]) if call == _SHELL else _OUTPUTS[call]
    if kind != own.get("type", OUTPUTS[0]):
        own = {}
    named = _named(own, id) if kind == _OUTPUTS[_SHELL] else {"call_id": id}
    return {"type": kind, **named, "output": output, **own}


def _named(own: Json, id: str) -> Json:
    """Return the id of a call of the shell's, which may have the one of its item alone."""
    return {} if own.get("id") == id else {"call_id": id}


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


# OpenAI's Responses: items, of which those of a model in a row are a message.


_ROLES = (*SYSTEMS, "user", "assistant")
#: Kinds of blocks that harnpy writes itself.
_BLOCKS = ("text", "image", "tool_use", "tool_result", "thinking")


def _read(talk: Talk, item: Json) -> None:
    kind = item.get("type", "message")
    if not isinstance(kind, str):
        raise TransferError("its type is no text")
    if kind == "message":
        role, content = role_of(item, _ROLES), item.get("content")
        if not isinstance(content, str | None):
            for part in objects_in(content, "`content`"):
                text_in(part.get("type"), "the type of a part of it")
        if role == "assistant":
            return talk.tell(from_response_item(item))
        keys = ("type", "role", "content", "id", "status", "phase")
        said = from_response_parts(talk.taken(item, keys).get("content"))
        for part in content if isinstance(content, list) else []:
            known = ("text",) if part["type"] in TEXTS else ("image_url", "detail")
            if part["type"] in (*TEXTS, "input_image"):
                talk.lose_keys("keys of parts", without_nulls(part), ("type", *known))
        if role in SYSTEMS:
            return talk.instruct(text_of(said), at=role)
        return talk.take({"role": "user", "content": said})
    if kind in OUTPUTS:
        text_in(item.get("call_id", item.get("id")), "`call_id`")
        talk.flush()
        for part in item["output"] if isinstance(item.get("output"), list) else []:
            if not isinstance(part, dict) or not isinstance(part.get("type"), str):
                raise TransferError("`output` is no text, and no list of parts with a type")
        talk.answered(item.get("call_id", item.get("id")))
        return talk.take(from_response_output(item))
    if kind == "item_reference":
        talk.lose("items that the service has", name=kind)
        return None
    if kind in _BLOCKS:
        raise TransferError(f"its type is '{kind}', which no item has")
    blocks = from_response_item(item)
    for block in blocks:
        if block["type"] == "tool_use":
            block["id"] = talk.called(block["id"], block["name"])
    return talk.tell(blocks)


def _write(page: Page, role: str, blocks: list[Json], message: Json) -> None:
    is_own = "origin" in message
    for block in blocks:
        if block["type"] == "tool_result" and block.get("is_error"):
            page.lost["marks of failed calls"] += 1
        if block["type"] in ("text", "tool_use") and not is_own:
            page.only(block, TEXT if block["type"] == "text" else CALL)
        elif block["type"] not in ("text", "tool_use", "tool_result", "image") and not is_own:
            page.drop(role, block)
    items = to_response_items({"role": role, "content": blocks}, is_own, page.items)
    for item in items:
        if item.get("role") == "assistant" and not item.get("id"):
            item["content"] = "".join(part.get("text", "") for part in item["content"])
    before = page.messages[-1] if page.messages else {}
    if role == "assistant" and items and before.get("role") == "assistant":
        page.lost["borders between messages of a model"] += 1
    page.messages += items


RESPONSES = Family(
    "input",
    "responses",
    _ROLES,
    _read,
    _write,
    lambda text: {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": text}],
    },
    "instructions",
)
