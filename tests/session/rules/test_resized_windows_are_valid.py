"""Whatever a session went through, what is left of it is valid for each service. Spec: 10 §C5, §C8."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.agent.loop.transcript_entries import calls_message
from harnpy.llm.reply import Reply
from harnpy.session import EventDraft, RewindError, Session
from harnpy.session import events as kinds
from harnpy.session.resize import SUMMARIZE
from harnpy.session.strategies import BUILT_IN
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.counts import COUNT
from tests.llm.wire import ANTHROPIC, GEMINI, OPENAI, RESPONSES
from tests.session.resize.test_resize_on_stores import Artifacts
from tests.session.rules.provider_rules import MODEL, assert_accepted, written

Message = dict[str, Any]

TEXTS = st.sampled_from(["yes", "a question?", "x" * 1200, "line\n" * 30 + "end"])
#: How many calls a step makes, how many of them are answered, and whether something is said behind.
STEPS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans(), TEXTS)
TURNS = st.tuples(st.sampled_from(["turn", "free", "context", "pin"]), TEXTS, st.lists(STEPS, max_size=2))


class Talk:
    """A session in which a style's calls get ids of their own."""

    def __init__(self, style: str) -> None:
        self.session = Session.create("s", MemoryStore(), World())
        self.style = style
        self.numbers = count()

    def play(self, kind: str, text: str, steps: list[Any]) -> None:
        session = self.session
        if kind == "context":
            session.append(EventDraft(kinds.CONTEXT_ADDED, {"content": text, "kind": "harness"}))
        elif kind == "pin" and session.history():
            entries = session.view.window.history()
            session.pin(entries[len(entries) // 2].id)
        turn = session.record(kinds.TURN_STARTED, {"agent_id": "a"}) if kind == "turn" else None
        self.add({"role": "user", "content": text}, turn)
        for step in steps:
            self.step(turn, *step)
        if turn is not None:
            end = {"agent_id": "a", "steps": len(steps), "turn_stop_reason": "completed"}
            session.record(kinds.TURN_COMPLETED, end, turn)

    def step(self, turn: Any, calls: int, answered: int, says: bool, text: str) -> None:
        made = [{"id": "", "name": "f", "arguments": {"path": "/x"}}] * calls
        reply = written(Reply(text, MODEL, self.style, MODEL, 0, 0, tool_calls=made), self.style)
        reply.identify(lambda: str(next(self.numbers)))
        self.add(calls_message(reply, text, reply.tool_calls, self.style), turn)
        done = [call["id"] for call in reply.tool_calls[:answered]]
        if self.style != ANTHROPIC:
            for id in done:
                self.add({"role": "tool", "tool_call_id": id, "content": text}, turn)
        elif done:
            results = [{"type": "tool_result", "tool_use_id": id, "content": text} for id in done]
            self.add({"role": "user", "content": results}, turn)
        if says:
            self.add({"role": "assistant", "content": "done"}, turn)

    def add(self, message: Message, turn: Any) -> None:
        self.session.record(kinds.MESSAGE_ADDED, message, turn)


def prompt(session: Session) -> list[Message]:
    """Return the window as prompts have it: a user begins, as strict role order asks for."""
    window = session.window()
    begins = not window or window[0]["role"] == "user"
    return window if begins else [{"role": "user", "content": "[CHAT HISTORY]"}, *window]


OPTIONS: dict[str, Any] = {
    "summarize": lambda prompt: "what was said",
    "custom_compactor": lambda archived: "what was said",
    "compact_strategy": "trim",
}
#: A strategy of the user's that shows no consideration at all.
EVERY_SECOND = "every second message"
#: What else may become of a session: it is taken up from one of its events, or its last turn is taken back.
FORK, REWIND = "fork", "rewind"


@pytest.mark.parametrize("style", [OPENAI, ANTHROPIC, RESPONSES, GEMINI])
def test_after_every_strategy_the_window_is_accepted(style: str) -> None:
    @settings(max_examples=COUNT.examples(12), deadline=None)
    @given(
        st.lists(TURNS, min_size=1, max_size=6),
        st.lists(st.sampled_from([*BUILT_IN, EVERY_SECOND, FORK, REWIND]), min_size=1, max_size=3),
        st.integers(1, 3000),
        st.integers(0, 6),
    )
    def check(turns: list[Any], strategies: list[str], max_length: int, keep: int) -> None:
        talk = Talk(style)
        for turn in turns:
            talk.play(*turn)
        limits = {"max_length": max_length, "keep_last": keep, "min_keep_turns": keep % 4}
        for name in strategies:
            session = talk.session
            before = session.history()
            if name == FORK:
                talk.session = session.fork(at=1 + max_length % session.version)
            elif name == REWIND:
                with suppress(RewindError):  # there may be no turn
                    session.rewind()
            else:
                session.policy.strategy(EVERY_SECOND, lambda full, window, *_: (None, window[::2], None))
                artifacts = Artifacts() if name in ("offload", SUMMARIZE) else None
                session.resize(name, artifacts=artifacts, **limits, **OPTIONS)
                assert session.history() == before, "only the window changes"
            assert_accepted(prompt(talk.session), style)
            talk.play("turn", "go on", [(1, 1, True, "yes")])
            assert_accepted(prompt(talk.session), style)

    check()
