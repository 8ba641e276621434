"""A model on 127.0.0.1 that speaks chat completions: what it says follows from what it is asked, and it
counts.
"""

from __future__ import annotations

import json
import re
import threading
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]

#: What begins a conversation: `[loop 1] …`. The model answers the last one of these, and counts from there.
_LABEL = re.compile(r"\[(\w+) (\d+)( \w)?\]")
#: The tools that it calls in turn, before it says something.
_PLANS = {
    "loop": "write_note read_note weigh charge ask_expert write_note read_note charge weigh".split(),
    "expert": ["look", "look"],
}
#: The pieces of a streamed reply.
PIECES = [f"piece {number} of the answer " for number in range(6)]
#: Seconds between them, and by which the first of two parallel calls is answered later than the second.
APART, LATER = 0.01, 0.08


class Model:
    """Answers after ``delay`` seconds. ``asked``: each request's label; ``traffic``: bytes of all bodies."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.asked: list[str] = []
        self.traffic = 0
        self._counting = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                self._answer(json.loads(raw), len(raw))

            def _answer(self, body: Body, size: int) -> None:
                kind, number, rest, messages = _conversation(body)
                model.note(f"{kind} {number}{rest}", size)
                time.sleep(model.delay + LATER * (rest == " a"))
                said = reply(kind, number, rest, messages, _digest(body))
                if body.get("stream"):
                    self._stream(said)
                    return
                data = json.dumps(_whole(said)).encode()
                model.note(None, len(data))
                self._send(f"content-type: application/json\r\ncontent-length: {len(data)}", data)

            def _stream(self, said: Body) -> None:
                self._send("content-type: text/event-stream\r\ntransfer-encoding: chunked", b"")
                for event in [*_chunks(said), "[DONE]"]:
                    data = f"data: {event}\n\n".encode()
                    model.note(None, len(data))
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
                    time.sleep(APART)
                self.wfile.write(b"0\r\n\r\n")

            def _send(self, headers: str, data: bytes) -> None:
                self.wfile.write(f"HTTP/1.1 200 OK\r\n{headers}\r\n\r\n".encode() + data)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def note(self, label: str | None, size: int) -> None:
        with self._counting:
            self.traffic += size
            if label is not None:
                self.asked.append(label)

    def forget(self) -> None:
        self.asked, self.traffic = [], 0

    def __enter__(self) -> Model:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _conversation(body: Body) -> tuple[str, int, str, list[Body]]:
    """Return the last label that a user wrote, and the messages behind it."""
    messages: list[Body] = body["messages"]
    for index in range(len(messages) - 1, -1, -1):
        found = _LABEL.search(str(messages[index]["content"])) if messages[index]["role"] == "user" else None
        if found:
            return found[1], int(found[2]), found[3] or "", messages[index + 1 :]
    raise ValueError(f"no label in {messages}")


def _digest(body: Body) -> str:
    return f"{zlib.crc32(json.dumps(body['messages']).encode()):08x}"


def reply(kind: str, number: int, rest: str, messages: list[Body], digest: str) -> Body:
    """Return the message: a tool's call while the plan goes on, then words; no two requests have the same."""
    done = sum(message["role"] == "tool" for message in messages)
    plan = ["write_note"] * number if kind == "turns" else _PLANS.get(kind, [])
    if done < len(plan):
        name = plan[done]
        arguments = {"write_note": {"text": f"note {done}, eggs"}, "charge": {"cents": 1250}}.get(name, {})
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"index": 0, "id": f"call_{digest}", "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    text = "".join(PIECES) if kind == "stream" else f"The answer {digest} to {kind} {number}{rest}."
    return {"role": "assistant", "content": text}


_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
_HEAD = {"id": "c-1", "created": 1, "model": "m-1"}


def _whole(said: Body) -> Body:
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if "tool_calls" in said else "stop"}
    return {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def _chunks(said: Body) -> Iterator[str]:
    deltas = [said] if "tool_calls" in said else [{"role": "assistant", "content": piece} for piece in PIECES]
    if said["content"] and said["content"] != "".join(PIECES):
        deltas = [said]
    for delta in deltas:
        yield _chunk([{"index": 0, "delta": delta, "finish_reason": None}])
    reason = "tool_calls" if "tool_calls" in said else "stop"
    yield _chunk([{"index": 0, "delta": {}, "finish_reason": reason}])
    yield _chunk([], usage=_USAGE)


def _chunk(choices: list[Body], **more: Any) -> str:
    return json.dumps({**_HEAD, "object": "chat.completion.chunk", "choices": choices, **more})
