"""Random lives of a session with a definition: what was asked is in the log, and the prefix stands
(10 §C1, §C12.1 f, §C16.2)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy import Tool
from harnpy.agent.loop.transcript_entries import request_of
from harnpy.llm.errors import CallError
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.session import AgentDef, SessionRuntime, actions
from tests.counts import COUNT

from .agents import Provider, loops_with, said

AGENT = AgentDef("a", system_prompt="Be brief.", model="mine/m", options={"compaction": False})

#: What a turn's calls of the model give, one after the other; what follows is a text.
REPLIES = st.lists(st.sampled_from(["call", "two calls", "fail", "unknown"]), max_size=3)
OTHERS = ["inject", "memo", "prompt", "model", "trim", "reopen", "function"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), REPLIES),
        st.tuples(
            st.sampled_from(["inject", "memo", "prompt", "model", "trim", "reopen", "function"]), st.none()
        ),
    ),
    min_size=2,
    max_size=10,
)


class Life:
    """A session on a store, and all that its model was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.script: list[str] = []
        self.asked: list[Request] = []
        self.count = 0
        tools = [
            Tool("look", "", {}, lambda arguments: f"seen {self.next()}"),
            Tool("note", "", {}, self.note),
        ]
        self.loops = loops_with(tools=tools, providers={"mine": Provider(self.answer)})
        self.runtime = SessionRuntime(url, agents=self.loops)
        self.runtime.create(AGENT, id="s")
        #: Numbers of requests that need not begin as the one before.
        self.breaks: set[int] = {0}

    def next(self) -> int:
        self.count += 1
        return self.count

    def note(self, arguments: Any) -> str:
        """A tool during which somebody else writes."""
        SessionRuntime(self.runtime.store).get("s").add_history({"content": f"others {self.next()}"})
        return "noted"

    def answer(self, request: Request) -> Reply:
        self.asked.append(replace(request, messages=[dict(message) for message in request.messages]))
        what = self.script.pop(0) if self.script else "text"
        if what == "fail":
            raise CallError("auth", "no")
        if what == "text":
            return said(request, f"answer {self.next()}")
        names = {"call": ["look"], "two calls": ["note", "look"], "unknown": ["gone"]}[what]
        calls = [{"id": f"c{self.next()}", "name": name, "arguments": {"n": self.next()}} for name in names]
        return said(request, tool_calls=calls)

    def act(self, what: str, replies: list[str] | None) -> None:
        runtime, session = self.runtime, self.runtime.get("s")
        if what == "send":
            self.script = list(replies or [])
            try:
                runtime.send("s", f"prompt {self.next()}")
            except CallError:
                assert session.execution_status == "failed"
        elif what == "function":
            runtime.send("s", "to a function", agent=lambda messages: f"{len(messages)} messages")
        elif what == "inject":
            session.add_history({"role": "user", "content": f"injected {self.next()}"})
        elif what == "memo":
            session.set_memo({"n": self.next()})
        elif what == "prompt":
            runtime.execute("s", actions.ChangeSystemPrompt(f"Be {self.next()}."))
            self.breaks.add(len(self.asked))
        elif what == "model":
            runtime.execute("s", actions.ChangeModel(f"mine/m{self.next()}"))
            self.breaks.add(len(self.asked))
        elif what == "trim":
            session.trim(3)
            self.breaks.add(len(self.asked))
        elif what == "reopen":
            runtime.close()
            self.runtime = SessionRuntime(self.url, agents=self.loops)

    def check(self) -> None:
        session = self.runtime.get("s")
        assert len([event for event in session.events() if event.type == "step_started"]) >= len(self.asked)
        before: list[Any] = []
        for number, asked in enumerate(self.asked):
            made = request_of(session, self.steps[number])
            assert made["messages"] + made["tail"] == asked.messages
            assert (made["system"], made["tools"]) == (asked.system, asked.tools)
            stable = _without_memo(asked.messages)
            if number not in self.breaks:
                assert stable[: len(before)] == before
            before = stable

    @property
    def steps(self) -> list[int]:
        """The numbers of the steps that were a loop's; those of functions have no provider."""
        started = [event for event in self.runtime.get("s").events() if event.type == "step_started"]
        return [number for number, event in enumerate(started, 1) if "provider" in event.data]


def _without_memo(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in messages if '<runtime_injection kind="memo">' not in str(each["content"])]


@given(STEPS)
@settings(max_examples=COUNT.examples(8), deadline=None)
def test_what_was_asked_is_in_the_log_and_the_prefix_stands(steps: list[tuple[str, Any]]) -> None:
    with TemporaryDirectory() as directory:
        life = Life(f"sqlite:{Path(directory)}/s.db?durability=relaxed")
        for step in steps:
            life.act(*step)
        life.check()
        shown = [event.data for event in life.runtime.get("s").events()]
        life.act("reopen", None)
        assert [event.data for event in life.runtime.get("s").events()] == shown
        life.check()
        life.runtime.close()
