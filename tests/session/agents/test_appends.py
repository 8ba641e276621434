"""What a `send` with a definition stores together, and what before others look (10 §C16.1)."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any

import pytest

from harnpy import AgentDef, Capabilities, LoopFactory, tool
from harnpy.agent.factory import AgentBuild
from harnpy.session import AgentError, HookStack, SessionRuntime
from harnpy.session.agent_turn import Turn

HELPER = AgentDef("helper", model="mock", capabilities=("watched",))
BEGIN = "turn_started message_added step_started"
ANSWER = "step_completed message_added"
END = "turn_completed action_executed"


@tool
def look() -> str:
    """Look around."""
    return "a room"


def nothing(build: AgentBuild) -> None:
    """A capability that adds nothing."""


def desk(capability: Any = nothing, hooks: Any = None, **options: Any) -> SessionRuntime:
    loops = LoopFactory(Capabilities().register("watched", capability), tools=[look], **options)
    runtime = SessionRuntime("memory:", agents=loops, hooks=hooks)
    runtime.create(HELPER, id="s")
    loops.mock.add({"text": "hello"})
    runtime.send("s", "hello")  # which sets what the request is made of, once
    return runtime


def appends(runtime: SessionRuntime) -> list[str]:
    """The types of the events of the last turn, an append a line."""
    lines: list[list[str]] = [[]]
    for event in runtime.get("s").events():
        if event.type == "turn_started":
            lines = [[]]
        lines[-1].append(event.type)
        if not event.more:
            lines.append([])
    return [" ".join(line) for line in lines if line]


def sent(runtime: SessionRuntime, *replies: dict[str, Any], **options: Any) -> list[str]:
    for reply in replies:
        runtime.agents.mock.add(reply)
    with runtime:
        runtime.send("s", "go", **options)
        return appends(runtime)


CALL = {"tool_calls": [{"name": "look", "arguments": {}}]}
DONE = {"text": "done"}


def test_a_turn_is_two_appends() -> None:
    assert sent(desk(), DONE) == [BEGIN, f"{ANSWER} {END}"]


def test_a_call_begins_with_the_answer_that_makes_it() -> None:
    call = [f"{ANSWER} tool_started", "tool_completed message_added"]
    assert sent(desk(), CALL, DONE) == [BEGIN, *call, "step_started", f"{ANSWER} {END}"]


def test_an_answer_is_stored_before_hooks_of_the_runtime() -> None:
    seen: list[str] = []

    def hook(stage: str, session: Any) -> None:
        if stage == "after_action":
            seen.append(session.live.messages()[-1]["content"])

    assert sent(desk(hooks=HookStack(hook)), DONE) == [BEGIN, ANSWER, END]
    assert seen == ["hello", "done"]


def test_all_is_stored_before_a_resize_looks_at_it() -> None:
    with desk() as runtime:
        runtime.get("s").set("settings.max_length", 10_000)
        runtime.agents.mock.add(DONE)
        runtime.send("s", "go")
        assert appends(runtime) == ["turn_started message_added", "step_started", ANSWER, END]


def test_all_is_stored_before_hooks_of_the_agent() -> None:
    seen: list[Any] = []

    def watch(build: AgentBuild) -> None:
        def note(payload: Any) -> None:
            seen.append(build.session.live.messages()[-1].get("content"))

        for event in ("PreAgentTurn", "PreToolUse", "PostAgentTurn"):
            build.hooks.add(event, note)

    found = sent(desk(watch), CALL, DONE)
    assert found[0] == "turn_started message_added"
    assert found[2:4] == [ANSWER, "tool_started"]
    assert seen == ["hello", "hello", "go", "", "a room", "a room", "done"]


def test_all_is_stored_before_subscribers_hear_of_it() -> None:
    runtime: SessionRuntime
    seen: list[tuple[str, Any]] = []

    def hear(event: dict[str, Any]) -> None:
        if event["type"] in ("turn_start", "tool_call", "iteration_end"):
            seen.append((event["type"], runtime.get("s").messages()[-1].get("content")))

    runtime = desk(events=lambda event: None)
    runtime.close()
    loops = LoopFactory(tools=[look], events=hear)
    with SessionRuntime("memory:", agents=loops) as runtime:
        runtime.create(AgentDef("helper", model="mock"), id="s")
        loops.mock.add(CALL)
        loops.mock.add(DONE)
        runtime.send("s", "go")
    ends = [
        ("tool_call", ""),
        ("iteration_end", "a room"),
        ("turn_start", "a room"),
        ("iteration_end", "done"),
    ]
    assert seen == [("turn_start", "go"), *ends]


def test_what_a_client_sends_is_stored_at_once() -> None:
    with desk() as runtime:
        runtime.attach("s", "web", mode="controller")
        runtime.agents.mock.add(DONE)
        runtime.send("s", "go", client="web")
        assert appends(runtime)[0] == "turn_started message_added"


@pytest.mark.parametrize("reads", [False, True])
def test_a_loop_that_never_begins_leaves_its_prompt(reads: bool) -> None:
    class Broken:
        name, is_loop = "broken", True

        def run(self, turn: Turn) -> None:
            if reads:
                assert turn.turn_id == turn.session.live.events()[-2].id
                assert turn.prompt == [{"role": "user", "content": "go"}]
            raise AgentError("no")

    with desk() as runtime:
        with pytest.raises(AgentError):
            runtime.send("s", "go", agent=Broken())
        assert appends(runtime) == ["turn_started message_added", "turn_completed"]
        assert runtime.get("s").messages()[-1]["content"] == "go"


def test_an_answer_outlives_a_turn_that_is_cancelled_at_its_end() -> None:
    class Stopping:
        name, is_loop = "stopping", True

        def __init__(self, loops: LoopFactory) -> None:
            self.loops = loops

        def run(self, turn: Turn) -> None:
            self.loops(HELPER, turn.session).run(turn)
            turn.session.caller.stop()

    with desk() as runtime:
        runtime.agents.mock.add(DONE)
        with pytest.raises(CancelledError):
            runtime.send("s", "go", agent=Stopping(runtime.agents))
        assert appends(runtime) == [BEGIN, ANSWER, "turn_completed"]
        end = runtime.get("s").events()[-1].data
        assert end["turn_stop_reason"] == "cancelled"


def test_an_answer_outlives_a_save_that_is_cancelled() -> None:
    with desk() as runtime:
        caller = runtime._caller.one()
        runtime.events.on("session_action_executed", lambda name, data: caller.stop())
        runtime.agents.mock.add(DONE)
        with pytest.raises(CancelledError):
            runtime.send("s", "go", caller=caller)
        assert appends(runtime) == [BEGIN, ANSWER, "turn_completed"]
