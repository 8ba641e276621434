"""A reply that the log has is a reply again (10 §C16.5)."""

from __future__ import annotations

from harnpy.agent.loop.transcript_entries import completed_step, recorded_reply
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request


def test_a_recalled_reply_is_recorded_as_it_was() -> None:
    request = Request(provider="p", model="q", messages=[], system=None)
    bare = Reply("x", "m", "p", "q", 3, 2)
    thought = Reply(
        "x", "m", "p", "q", 3, 2, 1, 2, [{"id": "1", "name": "t", "arguments": {}}], "hm", "h", "end",
        parts=[{"type": "thinking"}], more={"k": 1}, origin={"dialect": "d", "base_url": "b", "model": "q"},
    )  # fmt: skip
    for reply in (bare, thought):
        assert recorded_reply(completed_step(reply, 4), request) == reply


def test_thinking_that_an_older_build_has_recorded_comes_first() -> None:
    request = Request(provider="p", model="q", messages=[], system=None)
    calls = [{"id": "1", "type": "tool_call", "name": "t", "arguments": {"n": 1}}]
    step = completed_step(Reply("x", "m", "p", "q", 3, 2, tool_calls=calls), 0)
    step["reply"]["thinking_blocks"] = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    assert recorded_reply(step, request).parts == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "x"},
        {"type": "tool_use", "id": "1", "name": "t", "input": {"n": 1}},
    ]
