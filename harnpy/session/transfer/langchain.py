"""Messages of LangChain: what `messages_to_dict` and `dumps` write, and as LangGraph's threads hold them.

Read by what langchain-core 1.8 writes. A message is `{type, data}`, `{lc, type: constructor, id, kwargs}`, or
flat, as LangGraph's server shows it. Spec: 10 §C17.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import as_dicts
from harnpy.session import events as kinds
from harnpy.session.errors import TransferError
from harnpy.session.prompt import SYSTEM
from harnpy.session.transfer import listed
from harnpy.session.transfer.blocks import alone, arguments_of, as_text, file_of, kind_of, media, parts_of
from harnpy.session.transfer.listed import SIGNATURE, Listing

if TYPE_CHECKING:
    from harnpy.session.log import Session
    from harnpy.session.prompt import HistoryEntry
    from harnpy.session.transfer.admission import Loss
    from harnpy.session.transfer.foreign import Conversation, Json

TOOL = "langchain"
_TYPES = ("human", "ai", "tool", "system", "developer", "function", "chat", "remove")
#: A class of messages; pieces of a stream that were put together are of the same sort.
_CLASS = re.compile(r"([A-Za-z]+?)(Message)?(Chunk)?")
_HARN = "harn"
#: Where the signatures of Gemini's calls stand, by the calls' ids.
_SIGNED = "__gemini_function_call_thought_signatures__"
#: What of a message its event's metadata says.
_TOLD = ("response_metadata", "additional_kwargs", "artifact")
#: Blocks that say a call again.
_CALLS = ("tool_use", "tool_call", "function_call", "invalid_tool_call")
_FILES = ("image", "file", "audio", "video", "document", "text-plain")
_OWN_ID = re.compile(r"(.+):[0-9a-f]{12}")


def is_dump(value: Any) -> bool:
    """Return whether a JSON value is a list of LangChain's messages, or an object with one."""
    messages = value.get("messages") if isinstance(value, dict) else value
    first = messages[0] if isinstance(messages, list) and messages else None
    return isinstance(first, dict) and fields_of(first) is not None


def conversation(text: str) -> Conversation:
    """Return the conversation of a dump. Raises `TransferError`."""
    listing = Listing(TOOL)
    value = listed.read_document(text, listing)
    messages = value.get("messages") if isinstance(value, dict) else value
    for number, message in enumerate(listed.objects_of(messages, "the messages of LangChain"), 1):
        take(listing, message, f"message {number}")
    return listing.conversation()


def fields_of(message: Json) -> tuple[str, Json] | None:
    """Return the type and the fields of a message; None for what is none of LangChain's."""
    if message.get("type") == "constructor":
        names, data = message.get("id"), message.get("kwargs")
        name = names[-1] if isinstance(names, list) and names else None
    else:
        name, data = message.get("type"), message.get("data", message if "content" in message else None)
    known = _CLASS.fullmatch(name) if isinstance(name, str) else None
    if known is None or not isinstance(data, dict) or known[1].lower() not in _TYPES:
        return None
    return known[1].lower(), data


def take(listing: Listing, message: Json, where: str, time: int = 0) -> None:
    """Take in a message. Raises `TransferError` for what is none; ``where`` says which."""
    known = fields_of(message)
    if known is None:
        raise TransferError(
            f"{where} is none of LangChain's: it has type {message.get('type')!r}, or no fields of one"
        )
    sort, data = known
    id, content = data.get("id"), data.get("content")
    told = {key: data[key] for key in _TOLD if data.get(key)}
    if sort == "chat":
        sort = {"user": "human", "assistant": "ai"}.get(str(data.get("role")), "system")
    if sort == "ai":
        _answered(listing, data, told, time)
    elif sort in ("tool", "function"):
        named = {"tool_call_id": str(data.get("tool_call_id") or ""), "name": str(data.get("name") or "")}
        failed = {"is_error": True} if data.get("status") == "error" else {}
        said = {"role": "tool", **named, "content": _content(listing, _readable(content)), **failed}
        listing.say(said, id, time, told or None)
    elif sort == "human":
        told |= {"name": data["name"]} if data.get("name") else {}
        listing.say({"role": "user", "content": _content(listing, content)}, id, time, told or None)
    elif sort == "remove":
        listing.lose("remove messages")
    else:
        given = _content(listing, content)
        text = listed.text_of(given)
        listing.lose("additional_kwargs of system messages", int(bool(told)))
        listing.instruct(text, id, time, at=id if isinstance(id, str) else None)


def _content(listing: Listing, content: Any) -> Any:
    blocks = [block for part in parts_of(content) if (block := _block(listing, part, None)) is not None]
    return alone(blocks) if blocks else ""


def _readable(content: Any) -> Any:
    """Return the content of a result, with objects of a tool's own as texts."""
    if not isinstance(content, list):
        return content
    known = ("text", "image_url", *_FILES)
    return [
        part if isinstance(part, dict) and part.get("type") in known else as_text(part) for part in content
    ]


def _answered(listing: Listing, data: Json, told: Json, time: int) -> None:
    """Take in a model's message. A call stands where a block says it, else at the end."""
    response = data.get("response_metadata")
    response = response if isinstance(response, dict) else {}
    more = data.get("additional_kwargs")
    more = more if isinstance(more, dict) else {}
    origin = _origin(response)
    calls = {str(call.get("id") or ""): call for call in _calls(data, more)}
    signed = more.get(_SIGNED) if origin is not None and origin["dialect"] == "gemini" else None
    signatures = signed if isinstance(signed, dict) else {}
    blocks: list[Json] = []
    thoughts = [more["reasoning_content"]] if isinstance(more.get("reasoning_content"), str) else []
    for part in parts_of(data.get("content")):
        if part.get("type") in _CALLS:
            known = calls.pop(str(part.get("call_id") or part.get("id") or ""), part)
            block: Json | None = _call(known, signatures)
        else:
            block = _block(listing, part, origin)
        if block is not None and _is_unsigned(block):
            thoughts.append(block["thinking"])
        elif block is not None:
            blocks.append(block)
    blocks += [_call(call, signatures) for call in calls.values()]
    kept = {key: value for key, value in more.items() if key not in _SAID}
    told = {key: value for key, value in told.items() if key != "additional_kwargs"}
    if kept:
        told["additional_kwargs"] = kept
    usage = data.get("usage_metadata")
    if isinstance(usage, dict):
        told["usage"] = usage
    if data.get("name"):
        told["name"] = data["name"]
    failed = sum(bool(each.get("error")) for each in as_dicts(data.get("invalid_tool_calls")))
    listing.lose("errors of calls that can't be read", failed)
    reason = response.get("stop_reason") or response.get("finish_reason")
    if reason:
        told["stop_reason"] = reason
    if not blocks and not thoughts:
        listing.lose("empty answers")
        return
    listing.say(listed.answer(blocks, thoughts, origin), data.get("id"), time, told or None)


#: What of a model's ``additional_kwargs`` its message says.
_SAID = ("tool_calls", "function_call", "reasoning_content")


def _calls(data: Json, more: Json) -> list[Json]:
    listed_calls = [*as_dicts(data.get("tool_calls")), *as_dicts(data.get("invalid_tool_calls"))]
    if listed_calls:
        return listed_calls
    function = more.get("function_call")
    older = [function] if isinstance(function, dict) else []
    return [*as_dicts(more.get("tool_calls")), *older]


def _call(call: Json, signatures: Json) -> Json:
    function = call.get("function")
    said = function if isinstance(function, dict) else call
    given = next((said[key] for key in ("args", "input", "arguments") if key in said), None)
    id = str(call.get("call_id") or call.get("id") or "")
    name = str(said.get("name") or "")
    sign = {SIGNATURE: signatures[id]} if isinstance(signatures.get(id), str) else {}
    return {"type": "tool_use", "id": id, "name": name, "input": arguments_of(given), **sign}


def _origin(response: Json) -> Json | None:
    """Return who wrote a message, as its ``response_metadata`` tells."""
    own = response.get(_HARN)
    if isinstance(own, dict) and isinstance(own.get("origin"), dict):
        return dict(own["origin"])
    model = response.get("model_name") or response.get("model")
    return listed.origin_of(response.get("model_provider"), model)


def _block(listing: Listing, part: Json, origin: Json | None) -> Json | None:
    kind = part.get("type")
    if kind == "text":
        if part.get("annotations") or part.get("citations"):
            listing.lose("citations")
        return {"type": "text", "text": str(part.get("text") or ""), **_signature(part, origin)}
    if kind in ("thinking", "redacted_thinking", "reasoning", "reasoning_content"):
        return _thought(listing, part, origin)
    if kind == "image_url":
        given = part.get("image_url")
        url = given.get("url") if isinstance(given, dict) else given
        return media("image", None, url=url) if isinstance(url, str) else _gone(listing, kind)
    if kind in _FILES:
        source = part.get("source")
        told = source if isinstance(source, dict) else part
        media_type = told.get("mime_type") or told.get("media_type")
        data, url = told.get("base64", told.get("data")), told.get("url")
        if isinstance(part.get("text"), str):
            return {"type": "text", "text": part["text"]}
        if not isinstance(data, str) and not isinstance(url, str):
            return _gone(listing, kind)
        sort = kind if kind in ("image", "audio", "video") else kind_of(media_type)
        return media(sort, media_type, data, url)
    # What only the service understands that wrote it goes back to it; without its name it goes nowhere.
    return part if origin is not None and isinstance(kind, str) else _gone(listing, kind)


def _signature(part: Json, origin: Json | None) -> Json:
    """Return Gemini's signature of a part."""
    extras = part.get("extras")
    sign = extras.get("signature") if isinstance(extras, dict) else None
    is_own = origin is not None and origin["dialect"] == "gemini"
    return {SIGNATURE: sign} if is_own and isinstance(sign, str) else {}


def _gone(listing: Listing, kind: Any) -> Json | None:
    listing.lose(f"{kind} blocks")
    return None


def _thought(listing: Listing, part: Json, origin: Json | None) -> Json | None:
    kind, extras = part["type"], part.get("extras")
    if kind == "redacted_thinking":
        return {"type": "redacted_thinking", "data": part.get("data")}
    if kind == "reasoning" and part.get("encrypted_content") and origin is not None:
        return {key: value for key, value in part.items() if key != "index"}
    given = part.get("reasoning_content")
    told = given if isinstance(given, dict) else part
    text = listed.summary_of(part) or str(told.get("text") or part.get("reasoning") or "")
    signature = told.get("signature") or (extras.get("signature") if isinstance(extras, dict) else None)
    signed = kind == "thinking" or (origin or {}).get("dialect") == "anthropic"
    if signature and signed:
        return {"type": "thinking", "thinking": text, "signature": signature}
    if (signature and not _signature(part, origin)) or part.get("encrypted_content"):
        listing.lose("signatures of unknown services")
    sign = _signature(part, origin)
    return {"type": "thinking", "thinking": text, **sign} if text or sign else None


# Writing.


def dumps(session: Session) -> str:
    """Return what a model is shown of a session, as `messages_from_dict` of LangChain reads it."""
    return listed.written(session, _messages)


def lost(session: Session) -> list[Loss]:
    """Return what of a session LangChain's messages don't hold."""
    return listed.losses(session, _messages)


def _messages(session: Session, left_out: Counter[str]) -> list[Json]:
    found: list[Json] = []
    system, stood = listed.prompt_of(session, TOOL)
    if system:
        found.append({"type": "system", "data": {"id": stood or SYSTEM, "content": system}})
    for number, entry in enumerate(session.entries()):
        foreign = None if entry.event is None else entry.event.foreign_id
        own = _OWN_ID.match(foreign or "")
        id = own[1] if own is not None else entry.event_id or str(number)
        told = {} if entry.event is None else entry.event.metadata
        more = {key: told[key] for key in _TOLD if told.get(key)}
        blocks = listed.all_blocks_of(entry.message)
        listed.count_own(blocks, left_out)
        if entry.message["role"] == "assistant":
            found.append({"type": "ai", "data": {"id": id, **more, **_answer(entry, blocks, told, left_out)}})
            continue
        results = [block for block in blocks if block.get("type") == "tool_result"]
        others = [block for block in blocks if block.get("type") != "tool_result"]
        for block in results:
            found.append({"type": "tool", "data": {"id": id, **more, **_result(block, left_out)}})
            if entry.message.get("name"):
                found[-1]["data"]["name"] = entry.message["name"]
        if entry.event_type == kinds.CONTEXT_ADDED:
            found.append({"type": "system", "data": {"id": id, "content": listed.text_of(others)}})
        elif others or not results:
            named = {"name": told["name"]} if told.get("name") else {}
            content = alone(_written(others, left_out)) or ""
            found.append({"type": "human", "data": {"id": id, **more, **named, "content": content}})
    return found


def _result(block: Json, left_out: Counter[str]) -> Json:
    content = alone(_written(parts_of(block.get("content")), left_out)) or ""
    status = "error" if block.get("is_error") else "success"
    return {"tool_call_id": str(block.get("tool_use_id") or ""), "status": status, "content": content}


def _answer(entry: HistoryEntry, blocks: list[Json], told: Json, left_out: Counter[str]) -> Json:
    """Return the fields of a model's message. A call is a block, too, when something stands behind it."""
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    thoughts = [listed.summary_of(block) for block in blocks if _is_unsigned(block)]
    blocks = [block for block in blocks if not _is_unsigned(block)]
    origin = entry.message.get("origin")
    if calls and blocks[-len(calls) :] == calls:
        blocks = blocks[: -len(calls)]
    content = alone(_written(blocks, left_out, origin is not None)) or ""
    data: Json = {"content": content, "tool_calls": [], "invalid_tool_calls": []}
    for call in calls:
        given = call.get("input") or {}
        said = {"name": call.get("name"), "id": call.get("id")}
        if isinstance(given, dict) and given.keys() == {"__unreadable"}:
            text = as_text(given["__unreadable"])
            data["invalid_tool_calls"].append({**said, "args": text, "error": None})
        else:
            data["tool_calls"].append({**said, "args": given})
    more = dict(told.get("additional_kwargs") or {})
    if thoughts:
        more["reasoning_content"] = "\n\n".join(thoughts)
    if signed := {call["id"]: call[SIGNATURE] for call in calls if SIGNATURE in call}:
        more[_SIGNED] = signed
    if more:
        data["additional_kwargs"] = more
    usage = told.get("usage")
    if isinstance(usage, dict):
        counts = {key: usage[key] for key in _USAGE if type(usage.get(key)) is int}
        if {"input_tokens", "output_tokens"} <= counts.keys():
            counts.setdefault("total_tokens", counts["input_tokens"] + counts["output_tokens"])
            details = {key: usage[key] for key in _DETAILS if isinstance(usage.get(key), dict)}
            data["usage_metadata"] = {**counts, **details}
    if origin:
        response = told.get("response_metadata") or {}
        response = {"model_name": origin.get("model"), **response}
        if listed.provider_of(origin):
            response.setdefault("model_provider", listed.provider_of(origin))
        if _origin(response) != origin:
            response[_HARN] = {"origin": origin}
        data["response_metadata"] = response
    return data


_USAGE = ("input_tokens", "output_tokens", "total_tokens")
_DETAILS = ("input_token_details", "output_token_details")


def _is_unsigned(block: Json) -> bool:
    return block.get("type") == "thinking" and not (block.get("signature") or block.get(SIGNATURE))


def _written(blocks: list[Json], left_out: Counter[str], is_told: bool = False) -> list[Json]:
    """Return blocks as LangChain has them; ``is_told``: a service's own, too."""
    found: list[Json] = []
    for block in blocks:
        kind, file = block.get("type"), file_of(block)
        if kind == "text":
            found.append({"type": "text", "text": str(block.get("text", "")), **_extras(block)})
        elif file is not None:
            media_type, data, url = file
            typed = {} if media_type is None else {"mime_type": media_type}
            sort = "file" if kind == "document" else kind
            found.append({"type": sort, **({"base64": data} if url is None else {"url": url}), **typed})
        elif kind == "thinking" and SIGNATURE in block:
            found.append({"type": "reasoning", "reasoning": block.get("thinking", ""), **_extras(block)})
        elif kind == "tool_use":
            found.append({key: value for key, value in block.items() if key != SIGNATURE})
        elif kind in listed.THOUGHTS or is_told:
            found.append(block)
        else:
            left_out[f"{kind} blocks"] += 1
    return found


def _extras(block: Json) -> Json:
    return {"extras": {"signature": block[SIGNATURE]}} if SIGNATURE in block else {}
