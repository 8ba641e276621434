"""How replies end that don't end well: each has one outcome, and none runs a call that isn't whole.

Spec: 07 §1.8, §1.17.
"""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harnpy.llm.errors import CallError
from harnpy.llm.reply import Reply
from tests.counts import COUNT
from tests.llm.providers.test_providers import ask, failure, request
from tests.llm.test_real_calls import program
from tests.llm.wire import ANTHROPIC, GEMINI, OLLAMA, OPENAI, RESPONSES, Fail, Played, Raw, Say, Wire
from tests.wire.exchanges import Case, cases

WHOLE_CHAT = {"choices": [{"message": {"content": "Fine."}, "finish_reason": "stop"}]}
WHOLE_MESSAGE = {"content": [{"type": "text", "text": "Fine."}], "stop_reason": "end_turn"}
WHOLE_REPLY = {"message": {"content": "Fine."}, "done": True, "done_reason": "stop"}
EACH = pytest.mark.parametrize(
    ("protocol", "whole"), [(OPENAI, WHOLE_CHAT), (ANTHROPIC, WHOLE_MESSAGE), (OLLAMA, WHOLE_REPLY)]
)

#: Exchanges with text, thinking and several calls, which are cut at every byte.
LONG = (
    *("chat_reasoning_details", "chat_fragments_in_turns", "message_interleaved_thinking"),
    *("ollama_text", "ollama_thinking_call"),
)


@EACH
@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "text/plain", "text/html", ""])
def test_json_is_read_whatever_it_is_called(protocol: str, whole: Any, kind: str) -> None:
    with Wire(protocol, Raw(json.dumps(whole).encode(), content_type=kind)) as wire:
        assert ask(wire, request(stream=False)).text == "Fine."


@EACH
@pytest.mark.parametrize("coding", ["gzip", "x-gzip"])
def test_a_body_in_several_members(protocol: str, whole: Any, coding: str) -> None:
    body = json.dumps(whole).encode()
    packed = gzip.compress(body[:7]) + gzip.compress(body[7:])
    with Wire(protocol, Raw(packed, encoding=coding)) as wire:
        assert ask(wire, request(stream=False)).text == "Fine."


@EACH
def test_a_packed_body_that_ends_too_early_is_no_reply(protocol: str, whole: Any) -> None:
    with Wire(protocol, Raw(gzip.compress(json.dumps(whole).encode())[:-6], encoding="gzip")) as wire:
        assert failure(wire, request(stream=False)).category == "transient_network"


@EACH
def test_what_is_no_json_is_no_reply(protocol: str, whole: Any) -> None:
    with Wire(protocol, Raw(b"<html>Bad gateway</html>", content_type="text/html")) as wire:
        assert "malformed response" in failure(wire, request(stream=False)).message


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        (OPENAI, {"error": {"type": "overloaded_error", "message": "Busy."}}),
        (ANTHROPIC, {"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}}),
        (OLLAMA, {"error": "Busy."}),
    ],
)
def test_an_error_with_status_200(protocol: str, body: Any) -> None:
    with Wire(protocol, Raw(json.dumps(body).encode())) as wire:
        found = failure(wire, request(stream=False))
    assert found.category == ("server_error" if protocol == OLLAMA else "overloaded")
    assert "Busy." in found.message


def test_what_is_cached_for_an_hour_is_told_apart() -> None:
    written = {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 7}
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 9, "cache_creation": written}
    body = json.dumps({**WHOLE_MESSAGE, "usage": usage}).encode()
    with Wire(ANTHROPIC, Raw(body)) as wire:
        reply = ask(wire, request(stream=False))
    assert (reply.cache_write_tokens, reply.cache_hour_tokens) == (9, 7)


def _events(*data: Any) -> bytes:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in data]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def _lines(*data: Any) -> bytes:
    return "".join(f"{json.dumps(each)}\n" for each in data).encode()


#: A line of Ollama's, in the middle of a reply.
_FI = {"model": "m", "message": {"role": "assistant", "content": "Fi"}, "done": False}


def _chunk(content: str, reason: str | None = None) -> Any:
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": reason}]}


ENDS = {
    "done-without-a-reason": (OPENAI, _events(_chunk("Fi"), "[DONE]"), "transient_network"),
    "no-end-at-all": (OPENAI, _events(_chunk("Fi")), "transient_network"),
    "finish-reason-error": (OPENAI, _events(_chunk("Fi"), _chunk("", "error"), "[DONE]"), "server_error"),
    "out-of-resources": (OPENAI, _events(_chunk("Fi", "insufficient_system_resource")), "server_error"),
    "response-failed": (
        RESPONSES,
        _events({"type": "response.failed", "response": {"status": "failed", "output": []}}),
        "server_error",
    ),
    "no-call-that-can-be-read": (
        GEMINI,
        _events(
            {
                "candidates": [
                    {"content": {"parts": [{"text": "Fi"}]}, "finishReason": "MALFORMED_FUNCTION_CALL"}
                ]
            }
        ),
        "server_error",
    ),
    "error-in-the-middle": (
        OPENAI,
        _events(_chunk("Fi"), {"error": {"type": "server_error", "message": "Broke."}}, "[DONE]"),
        "server_error",
    ),
    "error-beside-choices": (
        OPENAI,
        _events({**_chunk("Fi"), "error": {"code": "rate_limit_exceeded", "message": "Slow."}}, "[DONE]"),
        "rate_limit",
    ),
    "message-without-end": (
        ANTHROPIC,
        b"event: message_start\n" + _events({"type": "message_start", "message": {"model": "m"}}),
        "transient_network",
    ),
    "message-error": (
        ANTHROPIC,
        b"event: error\n" + _events({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
        "overloaded",
    ),
    "groq-error": (
        OPENAI,
        _events(_chunk("Fi"), {"choices": [], "x_groq": {"id": "r", "error": "Stopped early."}}, "[DONE]"),
        "server_error",
    ),
    "lines-with-an-error": (
        OLLAMA,
        _lines(_FI, {"error": "error parsing tool call: raw='{\"city\":', err=unexpected end of JSON input"}),
        "server_error",
    ),
    "lines-without-an-end": (OLLAMA, _lines(_FI), "transient_network"),
    "lines-that-are-no-json": (OLLAMA, _lines(_FI) + b"<html>\n", "server_error"),
    "lines-of-a-model-that-is-loaded": (
        OLLAMA,
        _lines({"model": "m", "message": {"content": ""}, "done": True, "done_reason": "load"}),
        "server_error",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_stream_that_ends_otherwise(name: str) -> None:
    protocol, body, category = ENDS[name]
    with Wire(protocol, Played(body)) as wire:
        assert failure(wire).category == category


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (404, "model 'qwen3' not found", "model_unavailable"),
        (400, '"llava" does not support tools', "invalid_request"),
        (400, "request (8889 tokens) exceeds the available context size (4096 tokens)", "context_overflow"),
        (503, "server busy, please try again.  maximum pending requests exceeded", "server_error"),
    ],
)
def test_what_ollama_refuses(status: int, message: str, reason: str) -> None:
    with Wire(OLLAMA, Fail(status, message)) as wire:
        found = failure(wire)
    assert found.reason == reason
    assert " ".join(message.split()) in found.message


@pytest.mark.parametrize(
    ("retries", "printed"),
    [(1, "done ok"), (0, "threw Error [server_error]: acme: error (server_error): it ended with 'error'")],
)
def test_no_call_of_a_reply_that_an_error_ended_is_run(
    retries: int, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = '[[capabilities.provider.acme]]\nmodel_match = "*"\nnative_tools = true\n'
    (tmp_path / "harn.toml").write_text(table, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    call = {"index": 0, "id": "c1", "function": {"name": "wipe", "arguments": "{}"}}
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "error"}]}
    source = f"""
    let tools = tool_define(tool_registry(), "wipe", "Wipes", {{handler: {{ _ -> println("wiped") }} }})
    let opts = {{tools: tools, tool_format: "native", llm_retries: {retries}, llm_backoff_ms: 0}}
    let r = try {{ agent_loop("Go.", nil, opts) }} catch (e) {{ {{status: "threw", text: e}} }}
    println("${{r.status}} ${{r.text}}")
    """
    with Wire(OPENAI, Played(_events(chunk)), Say("ok")) as wire:
        assert program(wire, tmp_path, source).strip() == printed
        assert len(wire.requests) == 1 + retries


def outcome(case: Case, played: Played) -> Reply | CallError:
    with Wire(case.dialect, played) as wire:
        try:
            return ask(wire)
        except CallError as error:
            return error


@pytest.mark.parametrize("case", [case for case in cases() if case.name in LONG], ids=lambda case: case.name)
def test_a_connection_that_breaks_at_any_byte(case: Case) -> None:
    whole = outcome(case, Played(case.stream))
    assert isinstance(whole, Reply)
    first = COUNT.seed % COUNT.wire_share
    for cut in range(first, len(case.stream), COUNT.wire_share):
        found = outcome(case, Played(case.stream, cut=cut))
        if isinstance(found, Reply):  # only what says nothing more is missing
            assert (found.text, found.tool_calls) == (whole.text, whole.tool_calls)
        else:
            assert found.category == "transient_network"


@pytest.mark.parametrize("case", [case for case in cases() if case.name in LONG], ids=lambda case: case.name)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_bytes_may_come_in_any_pieces(case: Case, size: int) -> None:
    whole = outcome(case, Played(case.stream))
    ends = tuple(end for _, end in pairwise(range(0, len(case.stream) + size, size)))
    found = outcome(case, Played(case.stream, ends=ends))
    assert isinstance(found, Reply)
    assert isinstance(whole, Reply)
    assert (found.text, found.tool_calls, found.parts, found.more) == (
        *(whole.text, whole.tool_calls, whole.parts, whole.more),
    )
