"""Turns of definitions that are cancelled or fail, at every point (10 §C7, §C12.1 a, §C16.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from harnpy import Tool
from harnpy.formats.tool_messages import calls_of, results_of
from harnpy.llm.request import Request
from harnpy.session import AgentDef, SessionRuntime
from harnpy.session.calling import LoopCaller, ThreadCaller
from harnpy.session.live import LiveSession
from harnpy.storage.errors import StorageError

from .agents import Provider, loops_with, said

AGENT = AgentDef("a", system_prompt="Be brief.", model="mine/m")


async def slow(arguments: Any) -> str:
    await asyncio.sleep(0)
    return "slow"


def broken(arguments: Any) -> str:
    raise ValueError("broken")


TOOLS = [
    Tool("fast", "", {}, lambda arguments: "fast", read_only=True),
    Tool("look", "", {}, lambda arguments: "looked", read_only=True),
    Tool("slow", "", {}, slow),
    Tool("broken", "", {}, broken),
]


async def answer(request: Request) -> Any:
    """Call tools in two steps, then answer."""
    await asyncio.sleep(0)
    asked = sum(message["role"] == "assistant" for message in request.messages)
    if request.messages[-1] == {"role": "user", "content": "again"} or asked > 1:
        return said(request, "done")
    names = ["fast", "look", "slow", "broken"] if asked == 0 else ["slow"]
    calls = [{"id": f"c{asked}{n}", "name": name, "arguments": {}} for n, name in enumerate(names)]
    return said(request, tool_calls=calls)


def new_runtime() -> SessionRuntime:
    runtime = SessionRuntime("memory:", agents=loops_with(tools=TOOLS, providers={"mine": Provider(answer)}))
    runtime.create(AGENT, id="s")
    return runtime


class Trip(LoopCaller):
    """Nobody wants the answer any more from look number ``at`` on."""

    def __init__(self, at: int) -> None:
        self._calls = ThreadCaller()
        super().__init__(self._calls.loop)
        self.left = at

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise asyncio.CancelledError

    def close(self) -> None:
        self._calls.close()


def check(runtime: SessionRuntime, reason: str) -> None:
    """The turn has an end, if it began; every call has one result; the next request is as it should be."""
    session = runtime.get("s")
    events = session.events()
    began = [event.seq for event in events if event.type == "turn_started"]
    ends = [event for event in events if event.type == "turn_completed"]
    assert len(began) == len(ends)
    if ends:
        assert ends[-1].data["turn_stop_reason"] == reason
        assert ends[-1].seq == events[-1].seq
    started = [event.data["id"] for event in events if event.type == "tool_started"]
    ended = [event.data["id"] for event in events if event.type == "tool_completed"]
    assert set(started) <= set(ended)
    assert len(ended) == len(set(ended))
    assert session.messages() == session.window()  # nothing to repair
    waiting: list[Any] = []
    for message in session.messages():
        answered = results_of(message)
        if answered is None:
            assert waiting == []
            waiting = [call.id for call in calls_of(message)]
        for id in answered or ():
            waiting.remove(id)
    assert waiting == []
    assert runtime.send("s", "again").text == "done"


def test_cancelled_at_every_look() -> None:
    at = 0
    while True:
        caller = Trip(at)
        with new_runtime() as runtime:
            try:
                result = runtime.send("s", "go", caller=caller)
            except asyncio.CancelledError:
                check(runtime, "cancelled")
            else:
                assert (result.text, result.steps) == ("done", 3)
                break
            finally:
                caller.close()
        at += 1
    assert at > 8


@pytest.mark.parametrize("kind", [StorageError, asyncio.CancelledError, KeyboardInterrupt])
def test_failing_at_every_append(kind: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    commit: Callable[..., None] = LiveSession.commit
    at = 0
    while True:
        left = at

        def failing(session: LiveSession, *args: Any) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                raise kind("no space")
            commit(session, *args)

        with new_runtime() as runtime, monkeypatch.context() as patched:
            patched.setattr(LiveSession, "commit", failing)
            try:
                runtime.send("s", "go")
            except kind:
                check(runtime, "failed" if kind is StorageError else "cancelled")
            else:
                break
        at += 1
    assert at > 8
