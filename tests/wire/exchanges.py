"""Recorded exchanges as data: what a service sent, what it means, and what it must get back.

A case is a file of `cases/`: its ``kind``, one of README.md's, its ``dialect``, the ``events`` of a stream,
the ``whole`` reply where the service sends one, and what becomes of it: ``text``, ``calls`` that are run,
``unrun`` ones with a word of why, the ``finish_reason``, the ``tokens`` in and out, read from the cache and
written to it, and the assistant's message that ``goes_back`` with the results.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.llm import wire
from tests.llm.wire import Answer, Played, Raw

DIRECTORY = Path(__file__).parent / "cases"


class Case(NamedTuple):
    name: str
    dialect: str
    stream: bytes
    whole: bytes | None
    expected: dict[str, Any]

    def answer(self, *, streamed: bool) -> Answer:
        if streamed:
            return Played(self.stream)
        assert self.whole is not None
        return Raw(self.whole)


def cases() -> list[Case]:
    return [_read(path) for path in sorted(DIRECTORY.glob("*.json"))]


def forms() -> list[Any]:
    """Every case streamed, and whole where it has that form; with what tests are called."""
    import pytest

    return [
        pytest.param(case, streamed, id=f"{case.name}-{'streamed' if streamed else 'whole'}")
        for case in cases()
        for streamed in (True, False)
        if streamed or case.whole is not None
    ]


def _read(path: Path) -> Case:
    data = json.loads(path.read_text(encoding="utf-8"))
    dialect = data["dialect"]
    write = {
        **dict.fromkeys((wire.OPENAI, wire.MISTRAL, wire.DEEPSEEK), _chat_stream),
        wire.OLLAMA: _lines,
        wire.ANTHROPIC: _message_stream,
        wire.RESPONSES: _response_stream,
        wire.GEMINI: _generated_stream,
    }[dialect]
    whole = data.get("whole")
    if whole is not None:
        whole = json.dumps(whole, ensure_ascii=False).encode()
    return Case(path.stem, dialect, write(data["events"]), whole, data)


def _chat_stream(deltas: list[Any]) -> bytes:
    """A stream of chat completions: deltas, finish reasons, chunks with ``choices``, and comments (":")."""
    lines = []
    for delta in deltas:
        if isinstance(delta, str) and delta.startswith(":"):
            lines.append(delta)
            continue
        if isinstance(delta, str):
            chunk = {"choices": [{"index": 0, "delta": {}, "finish_reason": delta}]}
        elif "choices" in delta or "error" in delta:
            chunk = delta
        else:
            chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        lines.append("data: " + json.dumps(chunk, ensure_ascii=False))
    return "\n\n".join([*lines, "data: [DONE]", ""]).encode()


def _message_stream(events: list[Any]) -> bytes:
    """A stream of Anthropic's messages: blocks as [block, deltas …], last the stop reason, or what the last
    delta has, or what its whole event says."""
    *blocks, stop = events
    said: list[dict[str, Any]] = [{"type": "message_start", "message": {"model": "m", "content": []}}]
    for index, (block, *deltas) in enumerate(blocks):
        said.append({"type": "content_block_start", "index": index, "content_block": block})
        said += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        said.append({"type": "content_block_stop", "index": index})
    delta = stop if isinstance(stop, dict) else {"stop_reason": stop}
    end = delta if "delta" in delta else {"delta": delta, "usage": {"output_tokens": 3}}
    said.append({"type": "message_delta", **end})
    said.append({"type": "message_stop"})
    rows = [f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in said]
    return "".join(rows).encode()


def _response_stream(events: list[Any]) -> bytes:
    """A stream of the Responses API: its events; a dict without a type is the response at the end."""
    said = [
        event if "type" in event else {"type": f"response.{event['status']}", "response": event}
        for event in events
    ]
    rows = [f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in said]
    return "".join(rows).encode()


def _generated_stream(chunks: list[Any]) -> bytes:
    """A stream of Gemini's: the parts of each chunk, last the reason why it ends, or the last chunk."""
    *parts, reason = chunks
    said: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": each}}]} for each in parts
    ]
    last = reason if isinstance(reason, dict) else {"candidates": [{"finishReason": reason}]}
    said.append({"usageMetadata": {"promptTokenCount": 4}, **last})
    return "".join(f"data: {json.dumps(each, ensure_ascii=False)}\r\n\r\n" for each in said).encode()


def _lines(messages: list[Any]) -> bytes:
    """A stream of Ollama's: messages, the reason why it ends, and whole lines: those with a ``model``."""
    said: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, str):
            empty = {"role": "assistant", "content": ""}
            counts = {"prompt_eval_count": 4, "eval_count": 3}
            said.append({"model": "m", "message": empty, "done": True, "done_reason": message, **counts})
        elif "model" in message:
            said.append(message)
        else:
            told = {"role": "assistant", "content": "", **message}
            said.append({"model": "m", "message": told, "done": False})
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in said).encode()
