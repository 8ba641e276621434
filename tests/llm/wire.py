"""A model service on loopback that speaks the protocols of services and fails in every way that services do.

    with Wire(OPENAI, Say("hi"), Fail(429, after="7")) as wire:
        …                       # answers in this order; the last one is repeated
        wire.requests[0].body

A real HTTP server, so that what is tested is what runs: the SDKs, their sockets, their timeouts.
"""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from zlib import crc32

OPENAI, ANTHROPIC, RESPONSES, GEMINI = "openai", "anthropic", "responses", "gemini"
MISTRAL, DEEPSEEK, OLLAMA = "mistral", "deepseek", "ollama"

#: What an event is called that is a line of JSON, and no event.
LINE = "line"

#: The key that tests use. Nothing that a run writes may hold it.
KEY = "sk-harnpy-test-3f9d1c7ab2"


@dataclass(frozen=True)
class Call:
    """A tool call; ``arguments`` is the JSON text as the model writes it."""

    name: str
    arguments: str = "{}"
    id: str = "call_a"


@dataclass(frozen=True)
class Say:
    """An answer. ``piece``: the characters of a chunk; ``bytes_a_write``: how finely the bytes are cut;
    ``pause``: seconds before each event; ``cut_after``: the events after which the connection breaks, or
    ``error_after`` is said; ``meet``: no answer before so many requests wait for one.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    input_tokens: int = 11
    output_tokens: int = 7
    cache_read: int = 0
    cache_write: int = 0
    stop: str | None = None
    piece: int = 4
    bytes_a_write: int = 0
    pause: float = 0.0
    cut_after: int | None = None
    meet: int = 0
    error_after: dict[str, Any] | None = None


@dataclass(frozen=True)
class Fail:
    """An error answer. ``{key}`` in the message is the key that the request came with."""

    status: int
    message: str = "no"
    type: str = "some_error"
    code: Any = None
    after: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Raw:
    """A body as it is."""

    body: bytes
    content_type: str = "application/json"
    encoding: str = "identity"
    status: int = 200


@dataclass(frozen=True)
class Played:
    """Bytes as they came, written in pieces that end at these places; after ``cut`` of them the connection
    breaks."""

    body: bytes
    ends: tuple[int, ...] = ()
    cut: int | None = None


@dataclass(frozen=True)
class Silence:
    """No answer, until the client has enough."""


@dataclass(frozen=True)
class Endless:
    """``piece`` again and again, until the client goes away."""

    piece: bytes
    status: int = 200
    content_type: str = "text/event-stream"


Answer = Say | Fail | Raw | Played | Silence | Endless


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes


class Wire:
    """``asked``: a request has come; ``hung_up``: a client went away while it waited; ``closed``: a
    connection came to its end. A stream is framed as Amazon's are where the path is one of theirs.
    """

    def __init__(self, protocol: str, *answers: Answer) -> None:
        self.protocol, self.answers = protocol, list(answers)
        self.requests: list[Received] = []
        self.connections = 0
        self.asked, self.hung_up, self.closed = threading.Event(), threading.Event(), threading.Event()
        self._waiting: list[asyncio.Event] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Wire:
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _stop(self) -> None:
        self._server.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up.set()
        finally:
            self.closed.set()
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether the connection goes on."""
        line = await reader.readline()
        if not line:
            return False
        headers = {}
        while (row := (await reader.readline()).strip()) != b"":
            name, _, value = row.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append(Received(line.decode().split()[1], headers, json.loads(raw or b"{}"), raw))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.asked.set()
        if isinstance(answer, Say) and len(self.requests) >= answer.meet:
            for event in self._waiting:
                event.set()
        return await self._answer(answer, self.requests[-1], reader, writer)

    async def _answer(
        self, answer: Answer, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        match answer:
            case Silence():
                await reader.read()
                self.hung_up.set()
                return False
            case Raw(body, content_type, encoding, status):
                return await self._whole(writer, status, body, content_type, {"content-encoding": encoding})
            case Played():
                return await _play(writer, answer)
            case Endless():
                headers = {"content-type": answer.content_type, "transfer-encoding": "chunked"}
                await _send(writer, _head(answer.status, headers))
                while True:
                    await _send(writer, b"%x\r\n%s\r\n" % (len(answer.piece), answer.piece))
            case Fail():
                extra = {**({"retry-after": answer.after} if answer.after else {}), **dict(answer.headers)}
                text = json.dumps(self._error(answer, request), ensure_ascii=False)
                return await self._whole(writer, answer.status, text.encode(), extra=extra)
            case Say(meet=meet) if len(self.requests) < meet:
                self._waiting.append(asyncio.Event())
                await self._waiting[-1].wait()
        match answer:
            case Say() if request.body.get("stream") or _by_amazon(request) or "alt=sse" in request.path:
                return await self._stream(writer, answer, request)
            case Say():
                await asyncio.sleep(answer.pause)
                said = _BODIES[self.protocol](answer)
                return await self._whole(writer, 200, json.dumps(said, ensure_ascii=False).encode())
        raise AssertionError(answer)

    def _error(self, fail: Fail, request: Received) -> dict[str, Any]:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        key = key or request.headers.get("x-api-key", "")
        error: dict[str, Any] = {"type": fail.type, "message": fail.message.replace("{key}", key)}
        if self.protocol == ANTHROPIC:
            return {"type": "error", "error": error}
        if self.protocol == OLLAMA:
            return {"error": error["message"]}
        return {"error": {**error, "code": fail.code, "param": None}}

    async def _whole(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        body: bytes,
        content_type: str = "application/json",
        extra: dict[str, str] | None = None,
    ) -> bool:
        headers = {"content-type": content_type, "content-length": str(len(body)), **(extra or {})}
        await _send(writer, _head(status, headers) + body)
        return True

    async def _stream(self, writer: asyncio.StreamWriter, say: Say, request: Received) -> bool:
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        await _send(writer, _head(200, headers))
        events = list(_EVENTS[self.protocol](say, request))
        for number, (name, data) in enumerate(events):
            if number == say.cut_after:
                if say.error_after is None:
                    return False
                name, data = "error", json.dumps(say.error_after)
            await asyncio.sleep(say.pause)
            label = f"event: {name}\n" if name else ""
            raw = f"{data}\n".encode() if name == LINE else f"{label}data: {data}\n\n".encode()
            if _by_amazon(request):
                raw = amazon_event(json.loads(data), failed=name == "error")
            size = say.bytes_a_write or len(raw)
            for start in range(0, len(raw), size):
                part = raw[start : start + size]
                await _send(writer, b"%x\r\n%s\r\n" % (len(part), part))
            if name == "error":
                break
        await _send(writer, b"0\r\n\r\n")
        return True


async def _play(writer: asyncio.StreamWriter, played: Played) -> bool:
    await _send(writer, _head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))
    body = played.body[: played.cut]
    for start, end in pairwise([0, *(at for at in played.ends if at < len(body)), len(body)]):
        if start < end:
            await _send(writer, b"%x\r\n%s\r\n" % (end - start, body[start:end]))
    if played.cut is None:
        await _send(writer, b"0\r\n\r\n")
    return played.cut is None


def _by_amazon(request: Received) -> bool:
    return request.path.endswith("-response-stream")


def amazon_event(data: dict[str, Any], failed: bool = False) -> bytes:
    """An event as Amazon frames it: lengths, headers, a payload, and sums of both (vnd.amazon.eventstream).

    One that ``failed`` is an exception, called as ``data["type"]``.
    """
    if failed:
        fields = {":exception-type": data["type"], ":message-type": "exception"}
        payload = json.dumps({"message": data["message"]}).encode()
    else:
        fields = {":event-type": "chunk", ":message-type": "event"}
        payload = json.dumps({"bytes": b64encode(json.dumps(data).encode()).decode()}).encode()
    fields[":content-type"] = "application/json"
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()
        for name, value in fields.items()
    )
    length = 12 + len(headers) + len(payload) + 4
    prelude = length.to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    message = prelude + crc32(prelude).to_bytes(4, "big") + headers + payload
    return message + crc32(message).to_bytes(4, "big")


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


def _head(status: int, headers: dict[str, str]) -> bytes:
    rows = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} X\r\n{rows}\r\n".encode("latin-1")


def _pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _openai_usage(say: Say) -> dict[str, Any]:
    details = {"cached_tokens": say.cache_read, "cache_write_tokens": say.cache_write}
    return {
        "prompt_tokens": say.input_tokens,
        "completion_tokens": say.output_tokens,
        "total_tokens": say.input_tokens + say.output_tokens,
        "prompt_tokens_details": details,
    }


def _openai_stop(say: Say) -> str:
    return say.stop or ("tool_calls" if say.calls else "stop")


def _openai_body(say: Say) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": say.text or None}
    if say.thinking:
        message["reasoning_content"] = say.thinking
    if say.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in say.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _openai_stop(say)}
    return {"id": "c1", "model": "wire-1", "choices": [choice], "usage": _openai_usage(say)}


def _openai_events(say: Say, request: Received) -> Iterator[tuple[str, str]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, str]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return "", json.dumps({"id": "c1", "model": "wire-1", "choices": [choice]}, ensure_ascii=False)

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(say.thinking, say.piece):
        yield chunk({"reasoning_content": piece})
    for piece in _pieces(say.text, say.piece):
        yield chunk({"content": piece})
    for i, call in enumerate(say.calls):
        begin = {"index": i, "id": call.id, "type": "function", "function": {"name": call.name}}
        yield chunk({"tool_calls": [begin]})
    # Fragments of several calls may come in turns.
    fragments = [list(_pieces(call.arguments, say.piece)) for call in say.calls]
    for n in range(max(map(len, fragments), default=0)):
        for i, parts in enumerate(fragments):
            if n < len(parts):
                yield chunk({"tool_calls": [{"index": i, "function": {"arguments": parts[n]}}]})
    yield chunk({}, _openai_stop(say))
    if (request.body.get("stream_options") or {}).get("include_usage"):
        yield "", json.dumps({"model": "wire-1", "choices": [], "usage": _openai_usage(say)})
    yield "", "[DONE]"


def _anthropic_usage(say: Say) -> dict[str, Any]:
    return {
        "input_tokens": say.input_tokens,
        "output_tokens": say.output_tokens,
        "cache_read_input_tokens": say.cache_read,
        "cache_creation_input_tokens": say.cache_write,
    }


def _anthropic_stop(say: Say) -> str:
    return say.stop or ("tool_use" if say.calls else "end_turn")


def _anthropic_blocks(say: Say) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if say.thinking:
        blocks.append({"type": "thinking", "thinking": say.thinking, "signature": "sig"})
    if say.text:
        blocks.append({"type": "text", "text": say.text})
    return blocks


def _anthropic_body(say: Say) -> dict[str, Any]:
    calls = [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)} for c in say.calls
    ]
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "wire-1",
        "content": _anthropic_blocks(say) + calls,
        "stop_reason": _anthropic_stop(say),
        "usage": _anthropic_usage(say),
    }


def _anthropic_events(say: Say, request: Received) -> Iterator[tuple[str, str]]:
    def event(type: str, **fields: Any) -> tuple[str, str]:
        return type, json.dumps({"type": type, **fields}, ensure_ascii=False)

    usage = {**_anthropic_usage(say), "output_tokens": 1}
    yield event("message_start", message={"model": "wire-1", "content": [], "usage": usage})
    yield event("ping")
    index = 0
    for block in _anthropic_blocks(say):
        kind = block["type"]
        yield event("content_block_start", index=index, content_block={"type": kind, kind: ""})
        for piece in _pieces(block[kind], say.piece):
            delta = {"type": f"{kind}_delta", kind: piece}
            yield event("content_block_delta", index=index, delta=delta)
        if kind == "thinking":
            delta = {"type": "signature_delta", "signature": "sig"}
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
        index += 1
    for call in say.calls:
        begin = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield event("content_block_start", index=index, content_block=begin)
        for piece in _pieces(call.arguments, say.piece):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
        index += 1
    delta = {"stop_reason": _anthropic_stop(say), "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": say.output_tokens})
    yield event("message_stop")


def _response(say: Say) -> dict[str, Any]:
    """A text and calls by the Responses API."""
    content = [{"type": "output_text", "text": say.text, "annotations": []}]
    text = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{c.id}",
            "call_id": c.id,
            "name": c.name,
            "arguments": c.arguments,
            "status": "completed",
        }
        for c in say.calls
    ]
    usage = {"input_tokens": say.input_tokens, "output_tokens": say.output_tokens}
    output = [*([text] if say.text or not calls else []), *calls]
    return {"id": "r1", "model": "wire-1", "status": "completed", "output": output, "usage": usage}


def _response_events(say: Say, request: Received) -> Iterator[tuple[str, str]]:
    said = "response.output_text.delta"
    for piece in _pieces(say.text, say.piece):
        yield said, json.dumps({"type": said, "output_index": 0, "content_index": 0, "delta": piece})
    yield "response.completed", json.dumps({"type": "response.completed", "response": _response(say)})


def _generated(say: Say) -> dict[str, Any]:
    """A text and calls by Gemini's API."""
    counts = {"promptTokenCount": say.input_tokens, "candidatesTokenCount": say.output_tokens}
    calls = [{"functionCall": {"name": c.name, "args": json.loads(c.arguments)}} for c in say.calls]
    content = {"role": "model", "parts": [*([{"text": say.text}] if say.text or not calls else []), *calls]}
    candidate = {"content": content, "finishReason": say.stop or "STOP"}
    return {"modelVersion": "wire-1", "candidates": [candidate], "usageMetadata": counts}


def _generated_events(say: Say, request: Received) -> Iterator[tuple[str, str]]:
    for piece in _pieces(say.text, say.piece):
        content = {"role": "model", "parts": [{"text": piece}]}
        yield "", json.dumps({"candidates": [{"content": content}]})
    yield "", json.dumps(_generated(replace(say, text="")))


def _chat_reply(say: Say) -> dict[str, Any]:
    """A reply by Ollama's API, whole."""
    message: dict[str, Any] = {"role": "assistant", "content": say.text}
    if say.thinking:
        message["thinking"] = say.thinking
    if say.calls:
        message["tool_calls"] = [
            {"id": c.id, "function": {"index": i, "name": c.name, "arguments": json.loads(c.arguments)}}
            for i, c in enumerate(say.calls)
        ]
    counts = {"prompt_eval_count": say.input_tokens, "eval_count": say.output_tokens}
    return {"model": "wire-1", "message": message, "done": True, "done_reason": say.stop or "stop", **counts}


def _chat_lines(say: Say, request: Received) -> Iterator[tuple[str, str]]:
    def line(**message: Any) -> tuple[str, str]:
        told = {"role": "assistant", "content": "", **message}
        return LINE, json.dumps({"model": "wire-1", "message": told, "done": False}, ensure_ascii=False)

    for piece in _pieces(say.thinking, say.piece):
        yield line(thinking=piece)
    for piece in _pieces(say.text, say.piece):
        yield line(content=piece)
    for call in _chat_reply(say)["message"].get("tool_calls", ()):
        yield line(tool_calls=[call])
    yield LINE, json.dumps(_chat_reply(replace(say, text="", thinking="", calls=())))


_BODIES = {
    OPENAI: _openai_body,
    MISTRAL: _openai_body,
    DEEPSEEK: _openai_body,
    OLLAMA: _chat_reply,
    ANTHROPIC: _anthropic_body,
    RESPONSES: _response,
    GEMINI: _generated,
}
_EVENTS = {
    OPENAI: _openai_events,
    MISTRAL: _openai_events,
    DEEPSEEK: _openai_events,
    OLLAMA: _chat_lines,
    ANTHROPIC: _anthropic_events,
    RESPONSES: _response_events,
    GEMINI: _generated_events,
}
