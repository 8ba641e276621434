"""UIMessages of Vercel's AI SDK: a JSON list, or a chat that has one as its `messages`.

Read by what version 6 of npm's `ai` writes. A model's message has the parts of several steps, and its calls
have their results in them: a step is a message here, and each result another one. Spec: 10 §C17.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session import events as kinds
from harnpy.session.errors import TransferError
from harnpy.session.messages import is_feedback
from harnpy.session.prompt import SYSTEM
from harnpy.session.transfer import listed, originals
from harnpy.session.transfer.blocks import alone, arguments_of, as_text, file_of, kind_of, media, parts_of
from harnpy.session.transfer.listed import SIGNATURE, Listing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.log import Session
    from harnpy.session.prompt import HistoryEntry
    from harnpy.session.transfer.admission import Loss
    from harnpy.session.transfer.foreign import Conversation, Json

TOOL = "ai-sdk"
_STEP, _HARN = "step-start", "harn"
_ROLES = ("system", "user", "assistant")
#: An entry's id: its message's, its place there, its digest.
_OWN_ID = re.compile(r"(.+)\.\d+:[0-9a-f]{12}")


def is_chat(value: Any) -> bool:
    """Return whether a JSON value is a list of UIMessages, or a chat with one."""
    messages = value.get("messages") if isinstance(value, dict) else value
    first = messages[0] if isinstance(messages, list) and messages else None
    return (
        isinstance(first, dict)
        and first.get("role") in _ROLES
        and isinstance(first.get("id"), str)
        and isinstance(first.get("parts"), list)
    )


def conversation(text: str) -> Conversation:
    """Return the conversation of a list of UIMessages. Raises `TransferError`."""
    listing = Listing(TOOL)
    value = listed.read_document(text, listing)
    chat = value if isinstance(value, dict) else {"messages": value}
    for number, message in enumerate(listed.objects_of(chat.get("messages"), "the UIMessages"), 1):
        parts = listed.objects_of(message.get("parts"), f"the parts of message {number}")
        time = listed.time_of(message.get("createdAt"))
        id = str(message.get("id") or number)
        given = message.get("metadata")
        told = given if isinstance(given, dict) else {}
        if message.get("role") == "system":
            texts = (str(part.get("text") or "") for part in parts if part.get("type") == "text")
            listing.instruct("".join(texts), f"{id}.0", time, at=id)
            listing.lose("metadata of system messages", int(bool(told)))
            listing.lose("parts of system messages", sum(part.get("type") != "text" for part in parts))
        elif message.get("role") == "user":
            blocks = [block for part in parts if (block := _block(listing, part, None)) is not None]
            metadata = {"metadata": told} if told else None
            listing.say({"role": "user", "content": alone(blocks)}, f"{id}.0", time, metadata)
        elif message.get("role") == "assistant":
            _answered(listing, parts, told, id, time)
        else:
            raise TransferError(f"message {number} has role '{message.get('role')}': UIMessages have none")
    return listing.conversation(chat.get("id"))


def _answered(listing: Listing, parts: list[Json], told: Json, id: str, time: int) -> None:
    """Take in a model's message, step by step."""
    steps: list[list[Json]] = [[]]
    for part in parts:
        if part.get("type") == _STEP:
            steps.append([])
        else:
            steps[-1].append(part)
    own = told.get(_HARN)
    origins = own["origins"] if isinstance(own, dict) and isinstance(own.get("origins"), list) else []
    metadata = {key: value for key, value in told.items() if key != _HARN}
    at = 0
    for number, step in enumerate(filter(None, steps)):
        origin = listed.origin_in(origins[number]) if number < len(origins) else _origin(step, told)
        blocks = [block for part in step if (block := _block(listing, part, origin)) is not None]
        thoughts = [block["thinking"] for block in blocks if _is_unsigned(block)]
        blocks = [block for block in blocks if not _is_unsigned(block)]
        if blocks or thoughts:
            said = listed.answer(blocks, thoughts, origin)
            listing.say(said, f"{id}.{at}", time, {"metadata": metadata} if metadata and at == 0 else None)
            at += 1
        for part in step:
            result = _result(part) if _is_tool(part) else None
            if result is not None:
                listing.say(result, f"{id}.{at}", time)
                at += 1


def _is_unsigned(block: Json) -> bool:
    return block["type"] == "thinking" and not block.keys() & {"signature", SIGNATURE}


def _is_tool(part: Json) -> bool:
    kind = str(part.get("type"))
    return kind == "dynamic-tool" or kind.startswith("tool-")


def _origin(step: list[Json], told: Json) -> Json | None:
    """Return who wrote a step: the service that its parts tell of, and the model that the message does."""
    for part in step:
        for service in _told(part):
            origin = listed.origin_of(service, told.get("model") or told.get("modelId"))
            if origin is not None:
                return origin
    return None


def _told(part: Json) -> Json:
    """Return what a part says to services, by their names."""
    given = part.get("callProviderMetadata") or part.get("providerMetadata")
    return {key: v for key, v in given.items() if isinstance(v, dict)} if isinstance(given, dict) else {}


def _block(listing: Listing, part: Json, origin: Json | None) -> Json | None:
    kind, told = part.get("type"), _told(part)
    if kind == "reasoning":
        return _thought(listing, part, told, origin)
    signed: Json = {}
    sign = told.get("google", {}).get("thoughtSignature")
    if isinstance(sign, str) and origin is not None and origin.get("dialect") == "gemini":
        signed = {SIGNATURE: sign}
    elif told:
        listing.lose("providerMetadata of parts")
    if kind == "text":
        return {"type": "text", "text": str(part.get("text") or ""), **signed}
    if kind == "file" and isinstance(part.get("url"), str):
        if part.get("filename"):
            listing.lose("names of files")
        media_type = part.get("mediaType")
        sort = kind_of(media_type)
        return media(sort, None if str(media_type).endswith("/*") else media_type, url=part["url"])
    if _is_tool(part):
        if part.get("providerExecuted"):
            listing.lose("marks of a service's own tools")
        for key in ("title", "preliminary"):
            listing.lose("keys of calls", int(bool(part.get(key))), key)
        name = part.get("toolName") if kind == "dynamic-tool" else str(kind).removeprefix("tool-")
        given = part.get("input", part.get("rawInput"))
        call = {"id": str(part.get("toolCallId") or ""), "name": str(name or "")}
        return {"type": "tool_use", **call, "input": arguments_of(given), **signed}
    listing.lose(f"{kind} parts")
    return None


def _thought(listing: Listing, part: Json, told: Json, origin: Json | None) -> Json | None:
    text = str(part.get("text") or "")
    anthropic, openai, google = (told.get(name, {}) for name in ("anthropic", "openai", "google"))
    if isinstance(anthropic.get("redactedData"), str):
        return {"type": "redacted_thinking", "data": anthropic["redactedData"]}
    if isinstance(anthropic.get("signature"), str):
        return {"type": "thinking", "thinking": text, "signature": anthropic["signature"]}
    if origin is not None and isinstance(openai.get("reasoningEncryptedContent"), str):
        return listed.reasoning(text, openai.get("itemId"), openai["reasoningEncryptedContent"])
    if origin is not None and isinstance(google.get("thoughtSignature"), str):
        return {"type": "thinking", "thinking": text, SIGNATURE: google["thoughtSignature"]}
    if any(told.values()):
        listing.lose("reasoning of a model that isn't told")
    return {"type": "thinking", "thinking": text} if text else None


def _result(part: Json) -> Json | None:
    """Return the result that a call has; None for one that is open."""
    state = part.get("state")
    name = part.get("toolName") or str(part.get("type")).removeprefix("tool-")
    message = {"role": "tool", "tool_call_id": str(part.get("toolCallId") or ""), "name": str(name)}
    if state == "output-available":
        output = part.get("output")
        return {**message, "content": output if _has_image(output) else as_text(output)}
    if state == "output-error":
        return {**message, "content": str(part.get("errorText") or ""), "is_error": True}
    if state == "output-denied":
        approval = part.get("approval")
        reason = approval.get("reason") if isinstance(approval, dict) else None
        return {**message, "content": str(reason or "The call was denied."), "is_error": True}
    return None


def _has_image(output: Any) -> bool:
    """Return whether an output is a list of blocks with an image, as harnpy writes it."""
    if not isinstance(output, list) or not all(isinstance(block, dict) for block in output):
        return False
    files = [file_of(block) is not None for block in output]
    texts = [block.get("type") == "text" and isinstance(block.get("text"), str) for block in output]
    return any(files) and all(file or text for file, text in zip(files, texts, strict=True))


# Writing.


def dumps(session: Session) -> str:
    """Return what a model is shown of a session, as a list of UIMessages."""
    return listed.written(session, _messages)


def lost(session: Session) -> list[Loss]:
    """Return what of a session its UIMessages don't hold."""
    return listed.losses(session, _messages)


def _messages(session: Session, left_out: Counter[str]) -> list[Json]:
    system, stood = listed.prompt_of(session, TOOL)
    parts = [{"type": "text", "text": system}]
    before = [{"id": stood or SYSTEM, "role": "system", "parts": parts}] if system else []
    return before + [written.message for written in messages_of(session.entries(), left_out)]


class Written(NamedTuple):
    """A UIMessage, and the entries of a session that it is; ``is_own``: it came from the AI SDK (C20)."""

    message: Json
    entries: list[HistoryEntry]
    is_own: bool


def messages_of(entries: Iterable[HistoryEntry], left_out: Counter[str]) -> list[Written]:
    """Return entries of a session as UIMessages; those that came from the AI SDK as they were."""
    found: list[Written] = []
    #: The part of each call, and the UIMessage that it stands in.
    calls: dict[str, tuple[Json, Written]] = {}
    for number, (original, group) in enumerate(originals.grouped(TOOL, entries)):
        if original is not None:
            found.append(Written(original, [*group], True))
            parts = original.get("parts")
            for part in parts if isinstance(parts, list) else []:
                if isinstance(part, dict) and part.get("state") == "input-available":
                    calls[str(part.get("toolCallId"))] = part, found[-1]
            continue
        [entry] = group
        blocks = listed.all_blocks_of(entry.message)
        listed.count_own(blocks, left_out)
        for block in blocks:
            if block.get("type") == "tool_result" and not _settle(block, entry, calls):
                left_out["results without a call"] += 1
        blocks = [block for block in blocks if block.get("type") != "tool_result"]
        if not blocks or is_feedback(entry.message):
            continue
        role = "system" if entry.event_type == kinds.CONTEXT_ADDED else entry.message["role"]
        own, last = _own_id(entry), found[-1] if found else None
        if (
            last is None
            or last.is_own
            or role != "assistant"
            or role != last.message["role"]
            or own not in (None, last.message["id"])
        ):
            metadata = entry.event.metadata.get("metadata") if entry.event is not None else None
            more = {"metadata": dict(metadata)} if isinstance(metadata, dict) else {}
            id = own or _turn_id(entry, role) or entry.event_id or str(number)
            found.append(Written({"id": id, "role": role, **more, "parts": []}, [], False))
        found[-1].entries.append(entry)
        _append(found[-1], entry, blocks, calls, left_out)
    return found


def _append(
    written: Written,
    entry: HistoryEntry,
    blocks: list[Json],
    calls: dict[str, tuple[Json, Written]],
    left_out: Counter[str],
) -> None:
    """Add an entry's parts to the UIMessage that it is of; a model's are a step."""
    message = written.message
    origin = entry.message.get("origin")
    if message["role"] == "assistant":
        steps = sum(part["type"] == _STEP for part in message["parts"])
        message["parts"].append({"type": _STEP})
        if origin is not None:
            own = message.setdefault("metadata", {}).setdefault(_HARN, {"origins": []})
            own["origins"] += [None] * (steps - len(own["origins"])) + [origin]
    for block in blocks:
        part = _part(block, listed.provider_of(origin))
        if part is None:
            left_out[f"{block.get('type')} blocks"] += 1
            continue
        message["parts"].append(part)
        if _is_tool(part):
            calls[part["toolCallId"]] = part, written


def _turn_id(entry: HistoryEntry, role: str) -> str | None:
    """Return the id of what a model says in a turn: the turn's, which is known before it is said."""
    event = entry.event
    return None if event is None or role != "assistant" else event.turn_id


def _own_id(entry: HistoryEntry) -> str | None:
    """Return the id of the UIMessage that an entry was imported from."""
    id = None if entry.event is None else entry.event.foreign_id
    known = _OWN_ID.match(id or "")
    return None if known is None else known[1]


#: Of a result's event metadata: what it was before it became a text.
OUTPUT = "output"


def _settle(block: Json, entry: HistoryEntry, calls: dict[str, tuple[Json, Written]]) -> bool:
    """Give a call its result; return whether there is one."""
    part, written = calls.get(str(block.get("tool_use_id")), (None, None))
    if part is None or written is None:
        return False
    written.entries.append(entry)
    told = {} if entry.event is None else entry.event.metadata
    parts = parts_of(block.get("content"))
    if block.get("is_error"):
        part |= {"state": "output-error", "errorText": listed.text_of(parts)}
    else:
        text = parts if _has_image(parts) else listed.text_of(parts)
        part |= {"state": "output-available", "output": told.get(OUTPUT, text)}
    return True


def _part(block: Json, provider: str | None) -> Json | None:
    kind = block.get("type")
    signed: Json = {"google": {"thoughtSignature": block[SIGNATURE]}} if SIGNATURE in block else {}
    if kind == "text":
        more = {"providerMetadata": signed} if signed else {}
        return {"type": "text", "text": str(block.get("text", "")), "state": "done", **more}
    if kind == "tool_use":
        call = {"toolCallId": str(block.get("id") or ""), "input": block.get("input") or {}}
        more = {"callProviderMetadata": signed} if signed else {}
        return {"type": f"tool-{block.get('name')}", "state": "input-available", **call, **more}
    if kind in listed.THOUGHTS:
        if kind == "redacted_thinking":
            signed = {"anthropic": {"redactedData": block.get("data")}}
        elif kind == "reasoning":
            sent = {"itemId": block.get("id"), "reasoningEncryptedContent": block.get("encrypted_content")}
            signed = {"openai": {key: value for key, value in sent.items() if value}}
        elif block.get("signature"):
            signed = {provider or "anthropic": {"signature": block["signature"]}}
        more = {"providerMetadata": signed} if signed else {}
        return {"type": "reasoning", "text": listed.summary_of(block), "state": "done", **more}
    file = file_of(block)
    if file is None:
        return None
    media_type, data, url = file
    sort = media_type or ("application/octet-stream" if kind == "document" else f"{kind}/*")
    return {"type": "file", "mediaType": sort, "url": url or f"data:{sort};base64,{data}"}
