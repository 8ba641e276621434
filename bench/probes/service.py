"""A service on 127.0.0.1 that speaks chat completions, Anthropic's messages and Gemini's API, and records
what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CHAT, ANTHROPIC, GEMINI = "chat", "anthropic", "gemini"
MODELS = {CHAT: "gpt-4o", ANTHROPIC: "claude-sonnet-4-5", GEMINI: "gemini-2.5-pro"}
DONE = "Done."

Body = dict[str, Any]


class Service:
    """Streams ``events`` until the assistant has spoken, then says that it is done; without any, at once."""

    def __init__(self) -> None:
        self.events: Sequence[Body] = ()
        self.requests: list[Body] = []
        #: Whether the last request was for a stream.
        self.streamed = False
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                """Describe a model, as Gemini's API does."""
                limits = {"inputTokenLimit": 1_000_000, "outputTokenLimit": 9_000}
                self._send("application/json", json.dumps({"name": self.path, **limits}).encode())

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                self._send(*service.reply(self.path, json.loads(raw)))

            def _send(self, kind: str, data: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Service:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reply(self, path: str, body: Body) -> tuple[str, bytes]:
        """Record a request; return the type and the bytes of what it gets."""
        if path.endswith("count_tokens"):
            return "application/json", b'{"input_tokens": 11}'
        self.requests.append(body)
        self.streamed = bool(body.get("stream")) or "streamGenerateContent" in path
        dialect = GEMINI if "enerateContent" in path else ANTHROPIC if "messages" in path else CHAT
        messages = body.get("contents") or body.get("messages") or []
        has_spoken = any(message["role"] in ("assistant", "model") for message in messages)
        if not self.streamed:
            return "application/json", json.dumps(_WHOLE[dialect]).encode()
        events = _STREAM[dialect] if has_spoken or not self.events else self.events
        return "text/event-stream", _stream(dialect, events)


def _stream(dialect: str, events: Sequence[Body]) -> bytes:
    rows = []
    for event in events:
        named = f"event: {event['type']}\n" if dialect == ANTHROPIC else ""
        rows.append(f"{named}data: {json.dumps(event)}\n\n")
    return "".join([*rows, "data: [DONE]\n\n" if dialect == CHAT else ""]).encode()


def delta(finish: str | None = None, /, **delta: Any) -> Body:
    """Return a chunk of a chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    known = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODELS[CHAT]}
    return {**known, "choices": [choice]}


def fragment(arguments: Any, /, name: str | None = None, **keys: Any) -> Body:
    """Return a chunk with a fragment of a tool call; ``keys`` are its number and its id."""
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return delta(tool_calls=[{**keys, "type": "function", "function": function}])


def chat_usage(prompt: int, completion: int) -> Body:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def message(*blocks: Sequence[Body], stop: str = "end_turn", tokens: int = 7) -> list[Body]:
    """Return the events of a message: of each block its start and its deltas."""
    usage = {"input_tokens": 11, "output_tokens": 1}
    begun = {"id": "m", "type": "message", "role": "assistant", "model": MODELS[ANTHROPIC], "content": []}
    events: list[Body] = [
        {
            "type": "message_start",
            "message": {**begun, "stop_reason": None, "stop_sequence": None, "usage": usage},
        }
    ]
    for index, (start, *deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": each} for each in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": tokens}})
    return [*events, {"type": "message_stop"}]


def text_block(text: str) -> Sequence[Body]:
    return {"type": "text", "text": ""}, {"type": "text_delta", "text": text}


def generated(*parts: Body, finish: str = "STOP", **usage: int) -> Body:
    """Return a chunk, or a whole reply, of Gemini's."""
    content = {"role": "model", "parts": list(parts)}
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": finish}],
        "usageMetadata": {
            "promptTokenCount": 11,
            "candidatesTokenCount": 7,
            "totalTokenCount": 18,
            **usage,
        },
        "modelVersion": MODELS[GEMINI],
    }


_STREAM: dict[str, list[Body]] = {
    CHAT: [
        delta(role="assistant", content=DONE),
        delta("stop"),
        {**delta(), "choices": [], "usage": chat_usage(11, 7)},
    ],
    ANTHROPIC: message(text_block(DONE)),
    GEMINI: [generated({"text": DONE})],
}
_WHOLE: dict[str, Body] = {
    CHAT: {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": MODELS[CHAT],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": DONE}, "finish_reason": "stop"}],
        "usage": chat_usage(11, 7),
    },
    ANTHROPIC: {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": MODELS[ANTHROPIC],
        "content": [{"type": "text", "text": DONE}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    },
    GEMINI: generated({"text": DONE}),
}
