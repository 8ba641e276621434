"""Logs of Inspect AI: a zip of JSON, in which each sample of an evaluation is a conversation.

Read by what version 0.3.285 writes, whose members are packed with zstd. A sample has its messages; what is
long in them stands among its attachments, and its events say when a model answered. Spec: 10 §C17.
"""

from __future__ import annotations

import re
import struct
import zlib
from io import BytesIO
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

from harnpy.formats.compression import zstd_decompressed
from harnpy.session.errors import TransferError
from harnpy.session.transfer import listed
from harnpy.session.transfer.blocks import alone, arguments_of, media, parts_of
from harnpy.session.transfer.listed import Listing, Thread
from harnpy.world.unpacking import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.session.transfer.foreign import Conversation, Json
    from harnpy.world import World

TOOL = "inspect"
SUFFIX = ".eval"
_SAMPLES = "samples/"
_START = "_journal/start.json"
_ATTACHED = re.compile(r"attachment://([0-9a-f]{32})")
#: How a member is packed that Python reads from 3.14 on.
_ZSTD = 93
_HEAD = struct.Struct("<26xHH")
_BAD_ZIP = (BadZipFile, zlib.error, EOFError, RuntimeError, struct.error, OSError, ValueError)
_FILES = ("image", "audio", "video", "document")


def threads(path: str, world: World) -> Iterator[Thread]:
    """Yield the samples of a log. Raises `TransferError` for a file that is none."""
    data = world.files.read_bytes(path)
    try:
        log = ZipFile(BytesIO(data))
    except _BAD_ZIP:
        raise TransferError("this is no log of Inspect AI: it is no zip file") from None
    members = [member for member in log.infolist() if member.filename.startswith(_SAMPLES)]
    if not members:
        raise TransferError(
            "this is no log of Inspect AI, or none of its samples is done: there are no samples"
        )
    known = {member.filename: member for member in log.infolist()}
    start = _read(log, data, known[_START]) if _START in known else {}
    task = start.get("eval") if isinstance(start, dict) else None
    for member in members:
        name = member.filename.removeprefix(_SAMPLES).removesuffix(".json")
        yield Thread(name, lambda member=member: _sample(_read(log, data, member), task or {}))  # type: ignore[misc]


def _read(log: ZipFile, data: bytes, member: ZipInfo) -> Any:
    try:
        text = log.read(member)
    except NotImplementedError:
        text = _unpacked(data, member)
    except _BAD_ZIP:
        raise TransferError(f"{member.filename} of the log is damaged") from None
    return listed.read_document(text.decode("utf-8", "replace"))


def _unpacked(data: bytes, member: ZipInfo) -> bytes:
    """Return a member that Python's own module can't unpack."""
    if member.compress_type != _ZSTD:
        raise TransferError(f"{member.filename} of the log is packed in an unknown way")
    try:
        start = member.header_offset + _HEAD.size + sum(_HEAD.unpack_from(data, member.header_offset))
        packed = data[start : start + member.compress_size]
        text = b"".join(zstd_decompressed([packed]))
    except (DataError, struct.error):
        raise TransferError(f"{member.filename} of the log is damaged") from None
    return text


def _sample(sample: Any, task: Json) -> Conversation:
    """Return the conversation of a sample."""
    listing = Listing(TOOL)
    attachments = sample.get("attachments") or {}
    messages = listed.objects_of(_attached(sample.get("messages"), attachments), "the messages of the sample")
    answers = {
        choice["message"].get("id"): event
        for event in sample.get("events") or ()
        if isinstance(event, dict) and event.get("event") == "model"
        for choice in (event.get("output") or {}).get("choices") or ()
    }
    model = str(sample.get("model") or task.get("model") or "")
    time = listed.time_of(sample.get("started_at"))
    for number, message in enumerate(messages, 1):
        time = _take(listing, message, answers.get(message.get("id")), model, time, number)
    scores = sample.get("scores")
    told = {
        "task": task.get("task"),
        "model": model or None,
        "sample": sample.get("id"),
        "epoch": sample.get("epoch"),
        "scores": {name: score.get("value") for name, score in (scores or {}).items()} or None,
    }
    id = sample.get("uuid") or f"{task.get('eval_id')}-{sample.get('id')}-{sample.get('epoch')}"
    return listing.conversation(id, {key: value for key, value in told.items() if value is not None})


def _attached(value: Any, attachments: Json) -> Any:
    """Return a value with what stands among the attachments."""
    if isinstance(value, str):
        return _ATTACHED.sub(lambda name: str(attachments.get(name[1], name[0])), value)
    if isinstance(value, list):
        return [_attached(each, attachments) for each in value]
    if isinstance(value, dict):
        return {key: _attached(each, attachments) for key, each in value.items()}
    return value


def _take(listing: Listing, message: Json, event: Any, model: str, time: int, number: int) -> int:
    """Take in a message; return its time. ``event`` is that of the call whose answer it is."""
    role, id = message.get("role"), message.get("id")
    if role == "system":
        content = _content(listing, message.get("content"))
        listing.instruct(listed.text_of(content), id, time)
    elif role == "user":
        listing.say({"role": "user", "content": _content(listing, message.get("content"))}, id, time)
    elif role == "tool":
        error = message.get("error")
        content = _content(listing, message.get("content"))
        if isinstance(error, dict) and not content:
            content = str(error.get("message") or "")
        failed = {"is_error": True} if error else {}
        named = {
            "tool_call_id": str(message.get("tool_call_id") or ""),
            "name": message.get("function") or "",
        }
        listing.say({"role": "tool", **named, "content": content, **failed}, id, time)
    elif role == "assistant":
        told: Json = {}
        if isinstance(event, dict):
            time = max(time, listed.time_of(event.get("completed")))
            output = event.get("output") or {}
            told = {"usage": output["usage"]} if output.get("usage") else {}
            reason = next((each.get("stop_reason") for each in output.get("choices") or ()), None)
            told |= {"stop_reason": reason} if reason else {}
        _answered(listing, message, model, time, told)
    else:
        raise TransferError(f"message {number} has role {role!r}: Inspect AI has none")
    return time


def _answered(listing: Listing, message: Json, model: str, time: int, told: Json) -> None:
    provider, _, name = model.partition("/")
    origin = listed.origin_of(provider, str(message.get("model") or name).removeprefix(f"{provider}/"))
    blocks, thoughts = [], []
    for part in parts_of(message.get("content")):
        is_thought = part.get("type") == "reasoning"
        block = _thought(listing, part, origin) if is_thought else _block(listing, part)
        if block is not None and block["type"] == "thinking" and "signature" not in block:
            thoughts.append(block["thinking"])
        elif block is not None:
            blocks.append(block)
    for call in message.get("tool_calls") or ():
        named = {"id": str(call.get("id") or ""), "name": str(call.get("function") or "")}
        blocks.append({"type": "tool_use", **named, "input": arguments_of(call.get("arguments"))})
    blocks = [block for block in blocks if block != {"type": "text", "text": ""}]
    if blocks or thoughts:
        listing.say(listed.answer(blocks, thoughts, origin), message.get("id"), time, told or None)
    else:
        listing.lose("empty answers")


def _content(listing: Listing, content: Any) -> Any:
    blocks = [block for part in parts_of(content) if (block := _block(listing, part)) is not None]
    return alone(blocks) if blocks else ""


def _block(listing: Listing, part: Json) -> Json | None:
    kind = part.get("type")
    if kind == "text":
        if part.get("citations"):
            listing.lose("citations")
        return {"type": "text", "text": str(part.get("text") or "")}
    if kind in _FILES and str(part.get(kind)).startswith(("data:", "http://", "https://")):
        return media(kind, part.get("mime_type") or None, url=part[kind])
    listing.lose("files beside the log" if kind in _FILES else f"{kind} parts")
    return None


def _thought(listing: Listing, part: Json, origin: Json | None) -> Json | None:
    text, signature = str(part.get("reasoning") or ""), part.get("signature")
    summary = str(part.get("summary") or "")
    dialect = None if origin is None else origin["dialect"]
    if dialect == "anthropic" and part.get("redacted"):
        return {"type": "redacted_thinking", "data": text}
    if dialect == "anthropic" and signature:
        return {"type": "thinking", "thinking": text, "signature": signature}
    if dialect == "responses" and part.get("redacted") and text:
        return listed.reasoning(summary, signature, text)
    if part.get("redacted"):
        listing.lose("reasoning of a model that isn't told")
        text = ""
    return {"type": "thinking", "thinking": summary or text} if summary or text else None
