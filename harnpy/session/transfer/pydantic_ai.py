"""Message histories of pydantic-ai: the JSON of its `ModelMessagesTypeAdapter`.

Read by what version 2.68 writes, and its forerunners. A request has parts of its own for prompts and for
results, each of which is an entry; a response is one. Spec: 10 §C17.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.errors import TransferError
from harnpy.session.events import MICROS, stamp
from harnpy.session.transfer import listed, originals
from harnpy.session.transfer.blocks import alone, arguments_of, as_text, file_of, kind_of, media, parts_of
from harnpy.session.transfer.listed import SIGNATURE, Listing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.log import Session
    from harnpy.session.prompt import HistoryEntry
    from harnpy.session.transfer.admission import Loss
    from harnpy.session.transfer.foreign import Conversation, Json

TOOL = "pydantic-ai"
#: Of a response, what its event's metadata says.
_TOLD = ("run_id", "provider_response_id", "provider_details", "metadata")
#: What says nothing of the conversation, or is said otherwise.
_SILENT = frozenset({"instruction", "instruction-delta", "instruction-digest", "instruction-baseline"})
#: How a tool's call may have gone wrong.
_FAILED = ("failed", "denied", "interrupted", "retried")
_HARN = "harn"
#: The key of a request that has the system prompt.
_INSTRUCTIONS = "instructions"


def is_history(value: Any) -> bool:
    """Return whether a JSON value is a list of pydantic-ai's messages."""
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and value[0].get("kind") in ("request", "response")
        and isinstance(value[0].get("parts"), list)
    )


def conversation(text: str) -> Conversation:
    """Return the conversation of a message history. Raises `TransferError`."""
    listing = Listing(TOOL)
    messages = listed.objects_of(listed.read_document(text, listing), "the messages of pydantic-ai")
    id = None
    said = [each["instructions"] for each in messages if isinstance(each.get("instructions"), str)]
    if said:
        listing.instruct(said[-1], at=_INSTRUCTIONS)
        listing.lose("earlier instructions", len({*said}) - 1)
    for number, message in enumerate(messages, 1):
        id = id or message.get("conversation_id") or message.get("run_id")
        parts = message.get("parts")
        if message.get("kind") not in ("request", "response"):
            raise TransferError(
                f"message {number} has kind '{message.get('kind')}': this isn't pydantic-ai's"
            )
        parts = listed.objects_of(parts, f"the parts of message {number}")
        if message["kind"] == "request":
            listing.lose("metadata of requests", int(bool(message.get("metadata"))))
            for part in parts:
                _asked(listing, part, message)
        else:
            _answered(listing, parts, message)
    return listing.conversation(id)


def _asked(listing: Listing, part: Json, request: Json) -> None:
    """Take in a part of a request."""
    kind, content = part.get("part_kind"), part.get("content")
    time = listed.time_of(part.get("timestamp") or request.get("timestamp"))
    told = {"run_id": request["run_id"]} if request.get("run_id") else None
    if kind == "system-prompt":
        listing.instruct(as_text(content), None, time)
    elif kind == "user-prompt":
        listing.say({"role": "user", "content": _content(listing, content)}, None, time, told)
    elif kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name")):
        outcome = "retried" if kind == "retry-prompt" else part.get("outcome", "success")
        message = {
            "role": "tool",
            "tool_call_id": str(part.get("tool_call_id") or ""),
            "name": str(part.get("tool_name") or ""),
            "content": _returned(listing, content),
        }
        if outcome in _FAILED:
            message["is_error"] = True
            told = {**(told or {}), "outcome": outcome}
        if part.get("metadata") is not None:
            told = {**(told or {}), "metadata": part["metadata"]}
        listing.say(message, None, time, told)
    elif kind in ("retry-prompt", "retry-feedback"):
        listing.say({"role": "user", "content": as_text(content)}, None, time, told)
    elif kind not in _SILENT:
        listing.lose(f"{kind} parts")


def _content(listing: Listing, content: Any) -> Any:
    """Return the content of a user's message."""
    if not isinstance(content, list):
        return "" if content is None else as_text(content)
    return alone([block for item in content if (block := _item(listing, item)) is not None])


def _item(listing: Listing, item: Any) -> Json | None:
    if not isinstance(item, dict):
        return {"type": "text", "text": as_text(item)}
    kind = item.get("kind")
    if kind in ("text-content", "structured-content"):
        if item.get("metadata") is not None:
            listing.lose("metadata of texts")
        return {"type": "text", "text": str(item.get("content") or as_text(item.get("value")))}
    if _is_file(item):
        return _file(item)
    listing.lose(f"{kind} items")
    return None


def _is_file(item: Any) -> bool:
    return isinstance(item, dict) and (
        (item.get("kind") == "binary" and isinstance(item.get("data"), str))
        or (str(item.get("kind")).endswith("-url") and isinstance(item.get("url"), str))
    )


def _file(item: Json) -> Json:
    media_type = item.get("media_type")
    if item["kind"] == "binary":
        data = item["data"].replace("-", "+").replace("_", "/")
        return media(kind_of(media_type), media_type, data)
    return media(item["kind"].removesuffix("-url"), media_type, url=item["url"])


def _returned(listing: Listing, content: Any) -> Any:
    """Return the content of a result: blocks, if there is a file in it, else a text."""
    items = content if isinstance(content, list) else [content]
    if not any(map(_is_file, items)):
        return as_text(content)
    return [_file(item) if _is_file(item) else {"type": "text", "text": as_text(item)} for item in items]


def _answered(listing: Listing, parts: list[Json], response: Json) -> None:
    """Take in a response."""
    blocks: list[Json] = []
    thoughts: list[str] = []
    origin = listed.origin_of(response.get("provider_name") or _wrote(parts), response.get("model_name"))
    metadata = response.get("metadata")
    if origin is None and response.get("model_name"):
        listing.lose("names of models")  # of a service whose own blocks aren't known
    if isinstance(metadata, dict) and isinstance(metadata.get(_HARN), dict):
        origin = metadata[_HARN].get("origin", origin)
        response = {**response, "metadata": {k: v for k, v in metadata.items() if k != _HARN} or None}
    for part in parts:
        block = _block(listing, part, origin)
        if block is None:
            continue
        if block["type"] == "thinking" and not block.keys() & {"signature", SIGNATURE}:
            thoughts.append(block["thinking"])
        else:
            blocks.append(block)
    told = {key: response[key] for key in _TOLD if response.get(key)}
    usage = response.get("usage")
    counted = {key: n for key, n in usage.items() if n} if isinstance(usage, dict) else {}
    if counted:
        told["usage"] = counted
    if response.get("finish_reason"):
        told["stop_reason"] = response["finish_reason"]
    time = listed.time_of(response.get("timestamp"))
    if blocks or thoughts:
        listing.say(listed.answer(blocks, thoughts, origin), None, time, told or None)
    elif parts:
        listing.lose("empty answers")


def _wrote(parts: list[Json]) -> Any:
    """Return the service that the parts of a response say."""
    return next((part["provider_name"] for part in parts if part.get("provider_name")), None)


def _block(listing: Listing, part: Json, origin: Json | None) -> Json | None:
    kind, content = part.get("part_kind"), part.get("content")
    details = part.get("provider_details")
    signed = {}
    if isinstance(details, dict) and isinstance(details.get(SIGNATURE), str) and origin is not None:
        signed = {SIGNATURE: details[SIGNATURE]}
    elif details:
        listing.lose("provider_details of parts")
    if kind == "text":
        if part.get("citations"):
            listing.lose("citations")
        return {"type": "text", "text": str(content or ""), **signed}
    if kind == "tool-call":
        id, name = str(part.get("tool_call_id") or ""), str(part.get("tool_name") or "")
        input = arguments_of(part.get("args"))
        return {"type": "tool_use", "id": id, "name": name, "input": input, **signed}
    if kind == "thinking":
        return _thought(listing, part, origin, signed)
    if kind == "file" and isinstance(content, dict) and _is_file(content):
        return _file(content)
    if kind == "speech" and isinstance(part.get("transcript"), str):
        if part.get("audio"):
            listing.lose("recordings")
        return {"type": "text", "text": part["transcript"]}
    listing.lose(f"{kind} parts")
    return None


def _thought(listing: Listing, part: Json, origin: Json | None, signed: Json) -> Json | None:
    text, signature = str(part.get("content") or ""), part.get("signature")
    dialect = None if origin is None else origin.get("dialect")
    if isinstance(signature, str) and signature:
        if part.get("id") == "redacted_thinking":
            return {"type": "redacted_thinking", "data": signature}
        if dialect == "responses":
            return listed.reasoning(text, part.get("id"), signature)
        if dialect == "anthropic" or part.get("provider_name") == "anthropic":
            return {"type": "thinking", "thinking": text, "signature": signature}
        listing.lose("signatures of unknown services")
    return {"type": "thinking", "thinking": text, **signed} if text or signed else None


# Writing.


_USAGE = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_FINISHED = ("stop", "length", "content_filter", "tool_call", "error")
_KINDS = {"image": "image-url", "audio": "audio-url", "video": "video-url", "document": "document-url"}


def dumps(session: Session) -> str:
    """Return what a model is shown of a session, as a message history that pydantic-ai takes."""
    return listed.written(session, _messages)


def lost(session: Session) -> list[Loss]:
    """Return what of a session its message history doesn't hold."""
    return listed.losses(session, _messages)


def _messages(session: Session, left_out: Counter[str]) -> list[Json]:
    found = messages_of(session, session.entries(), left_out)
    system, stood = listed.prompt_of(session, TOOL)
    if system and stood != _INSTRUCTIONS:
        at = stamp(round(session.event(1).moment * MICROS))
        if not found or found[0]["kind"] == "response":
            found.insert(0, {"kind": "request", "timestamp": at, "parts": []})
        found[0] = {**found[0], "timestamp": at, "parts": [_system(system, at), *found[0]["parts"]]}
    return found


def messages_of(session: Session, entries: Iterable[HistoryEntry], left_out: Counter[str]) -> list[Json]:
    """Return entries of a session as messages; those that came from pydantic-ai (C20) as they were."""
    found: list[Json] = []
    names: dict[str, str] = {}
    system, stood = listed.prompt_of(session, TOOL)
    asked: Json = {"kind": "request", "instructions": system if stood == _INSTRUCTIONS else None}
    asked["conversation_id"] = session.id.removeprefix(f"{TOOL}-")
    is_open = False
    for original, group in originals.grouped(TOOL, entries):
        for entry in group:
            blocks = listed.all_blocks_of(entry.message)
            if entry.message["role"] == "assistant":
                names |= {block["id"]: block["name"] for block in blocks if block.get("type") == "tool_use"}
            if original is not None:
                continue
            time = session.moment if entry.event is None else entry.event.moment
            at = stamp(round(time * MICROS))
            listed.count_own(blocks, left_out)
            if entry.message["role"] == "assistant":
                found.append(_response(session, entry, blocks, at, left_out))
                is_open = False
                continue
            if not is_open:
                found.append({**asked, "timestamp": at, "parts": []})
                is_open = True
            found[-1]["parts"] += _parts(entry, blocks, names, at, left_out)
        if original is not None:
            found.append(original)
            is_open = False
    return found


def _parts(
    entry: HistoryEntry, blocks: list[Json], names: dict[str, str], at: str, left_out: Counter[str]
) -> list[Json]:
    """Return a message that goes to a model, as parts of a request."""
    if entry.event_type == kinds.CONTEXT_ADDED:
        return [_system(listed.text_of(blocks), at)]
    told = {} if entry.event is None else entry.event.metadata
    parts: list[Json] = []
    items: list[Any] = []
    for block in blocks:
        if block.get("type") == "tool_result":
            id = str(block.get("tool_use_id") or "")
            part: Json = {
                "part_kind": "tool-return",
                "tool_name": names.get(id, "unknown"),
                "tool_call_id": id,
            }
            content = block.get("content")
            given = [_as_item(each) for each in parts_of(content)]
            plain = all(isinstance(item, str) for item in given)
            part["content"] = "\n".join(given) if plain else given
            part |= {"timestamp": at, "outcome": "success"}
            if block.get("is_error"):
                part["outcome"] = told.get("outcome", "failed")
            if told.get("metadata") is not None:
                part["metadata"] = told["metadata"]
            parts.append(part)
        elif block.get("type") == "text" or file_of(block) is not None:
            items.append(_as_item(block))
        else:
            left_out[f"{block.get('type')} blocks"] += 1
    if items or not parts:
        content = items[0] if len(items) == 1 and isinstance(items[0], str) else items
        parts.append({"part_kind": "user-prompt", "content": content or "", "timestamp": at})
    return parts


def _system(text: str, at: str) -> Json:
    return {"part_kind": "system-prompt", "content": text, "timestamp": at}


def _as_item(block: Json) -> Any:
    file = file_of(block)
    if file is None:
        return listed.text_of([block])
    media_type, data, url = file
    if url is not None:
        typed = {} if media_type is None else {"media_type": media_type}
        return {"kind": _KINDS[block["type"]], "url": url, **typed}
    safe = str(data).replace("+", "-").replace("/", "_")
    return {"kind": "binary", "media_type": media_type or "application/octet-stream", "data": safe}


def _response(
    session: Session, entry: HistoryEntry, blocks: list[Json], at: str, left_out: Counter[str]
) -> Json:
    told = {} if entry.event is None else entry.event.metadata
    origin = entry.message.get("origin")
    provider = listed.provider_of(origin)
    given = [_as_part(block, provider, left_out) for block in blocks]
    response: Json = {
        "kind": "response",
        "parts": [part for part in given if part is not None],
        "timestamp": at,
        "conversation_id": session.id.removeprefix(f"{TOOL}-"),
        **{key: told[key] for key in _TOLD if told.get(key) is not None},
    }
    usage = told.get("usage")
    if isinstance(usage, dict):
        response["usage"] = {key: usage[key] for key in _USAGE if type(usage.get(key)) is int}
    if told.get("stop_reason") in _FINISHED:
        response["finish_reason"] = told["stop_reason"]
    if origin:
        response |= {"model_name": origin.get("model"), "provider_name": provider}
        if listed.origin_of(provider, origin.get("model")) != origin:
            response["metadata"] = {**(response.get("metadata") or {}), _HARN: {"origin": origin}}
    return response


def _as_part(block: Json, provider: str | None, left_out: Counter[str]) -> Json | None:
    kind = block.get("type")
    signed: Json = {}
    if isinstance(block.get(SIGNATURE), str):
        signed = {"provider_name": provider, "provider_details": {SIGNATURE: block[SIGNATURE]}}
    if kind == "text":
        return {"part_kind": "text", "content": str(block.get("text", "")), **signed}
    if kind == "tool_use":
        call = {"tool_name": block["name"], "args": block.get("input") or {}, "tool_call_id": block["id"]}
        return {"part_kind": "tool-call", **call, **signed}
    if kind in listed.THOUGHTS:
        part = {"part_kind": "thinking", "content": listed.summary_of(block), "provider_name": provider}
        if kind == "redacted_thinking":
            part |= {"id": "redacted_thinking", "signature": block.get("data")}
        elif kind == "reasoning":
            part |= {"id": block.get("id"), "signature": block.get("encrypted_content")}
        elif block.get("signature"):
            part |= {"signature": block["signature"], "provider_name": provider or "anthropic"}
        return {**part, **signed}
    item = _as_item(block)
    if isinstance(item, dict) and item["kind"] == "binary":
        return {"part_kind": "file", "content": item}
    left_out[f"{kind} blocks"] += 1
    return None
