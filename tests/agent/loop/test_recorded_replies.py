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
        thinking_blocks=[{"type": "thinking"}],
    )  # fmt: skip
    for reply in (bare, thought):
        assert recorded_reply(completed_step(reply, 4), request) == reply
