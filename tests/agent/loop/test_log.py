"""What a loop writes into its session's log, and when. Spec: 10 §C16.1."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.agent.loop.loop import run_loop
from harnpy.agent.runtime import Runtime
from harnpy.agent.subagents import make_sub_agent
from harnpy.session import SessionRegistry
from tests.worlds import models_with


def registry(**handlers: Any) -> dict[str, Any]:
    """A registry of tools without parameters; those called ``read…`` only read."""
    tools = [
        {
            "name": name,
            "description": name,
            "handler": handler,
            "annotations": {
                "side_effect_level": "read_only" if name.startswith("read") else "workspace_write"
            },
        }
        for name, handler in handlers.items()
    ]
    return {"_type": "tool_registry", "tools": tools}


class Program:
    def __init__(self, *replies: Any) -> None:
        self.models = models_with({})
        self.sessions = SessionRegistry()
        for reply in replies:
            self.models.mock.add({"text": reply} if isinstance(reply, str) else reply)

    def loop(self, **options: Any) -> dict[str, Any]:
        given = {"provider": "mock", "session_id": "s", **options}
        return run_loop(Runtime(self.models, self.sessions), "go", "sys", given)

    def events(self) -> list[Any]:
        session = self.sessions.session("s")
        assert session
        return session.events()

    def types(self) -> list[str]:
        return [event.type for event in self.events()]


def calling(*names: str) -> dict[str, Any]:
    return {"text": "", "tool_calls": [{"id": f"c{n}", "name": name} for n, name in enumerate(names)]}


def test_every_moment_of_a_native_step_is_an_event() -> None:
    program = Program(calling("look"), "seen")
    program.loop(tools=registry(look=lambda _: "a tree"), tool_format="native")
    assert program.types() == [
        "session_created",
        "turn_started",
        "register_set",
        "register_set",
        "message_added",
        "register_set",
        "register_set",
        "step_started",
        "step_completed",
        "message_added",
        "tool_started",
        "tool_completed",
        "message_added",
        "step_started",
        "step_completed",
        "message_added",
        "turn_completed",
    ]
    events = program.events()
    assert [event.data["key"] for event in events[5:7]] == [
        "settings.request.contract",
        "settings.request.tools",
    ]
    events = events[:5] + events[7:]
    assert events[5].data.items() >= {"agent_id": "agent_loop", "iteration": 0, "provider": "mock"}.items()
    reply = events[6].data["reply"]
    assert reply["tool_calls"][0]["name"] == "look"
    key = events[8].data["idempotency_key"]
    assert key.startswith(f"s:{events[7].id}:look:0:")
    ended = {**events[9].data, "duration_ms": 0}
    assert ended == {"tool": "look", "id": events[8].data["id"], "output": "a tree", "duration_ms": 0}
    end = events[-1].data
    assert (end["steps"], end["turn_stop_reason"], end["usage"]["total_tokens"] > 0) == (2, "completed", True)
    assert {event.turn_id for event in events[4:]} == {events[1].id}


def test_a_part_of_the_request_is_in_the_log_once() -> None:
    program = Program("a", "b", "c", "d")
    tools = registry(look=lambda _: "a tree")
    for given in (tools, tools, registry(), tools):
        program.loop(tools=given, tool_format="native")
    parts = [event for event in program.events() if event.data.get("key", "").startswith("settings.request")]
    names = ["settings.request.contract", "settings.request.tools"]
    assert [event.data["key"] for event in parts] == names * 3
    assert [event.data["value"] is None for event in parts] == [False, False, True, True, False, False]
    assert len({event.turn_id for event in parts}) == 3


def test_what_follows_from_a_reply_is_one_append() -> None:
    program = Program({"text": "", "thinking": "hm", **calling("look")}, "seen")
    program.loop(tools=registry(look=lambda _: "a tree"), tool_format="native")
    following = next(event for event in program.events() if event.type == "step_completed")
    assert following.more == 3  # the thought, the assistant's message, and its call


def test_a_tool_sees_the_answer_that_calls_it() -> None:
    program = Program(calling("look"), "seen")
    seen: list[list[str]] = []

    def look(_: Any) -> str:
        seen.append(program.types()[-2:])
        return "a tree"

    program.loop(tools=registry(look=look), tool_format="native")
    assert seen == [["message_added", "tool_started"]]


def test_subscribers_hear_of_a_call_after_it_is_stored() -> None:
    program = Program(calling("look"), "seen")
    heard: dict[str, str] = {}

    def listen(event: dict[str, Any]) -> None:
        if event["type"] == "tool_call_update":
            heard[event["status"]] = program.types()[-1]

    program.sessions.open("s")
    program.sessions.subscribe("s", listen)
    program.loop(tools=registry(look=lambda _: "a tree"), tool_format="native")
    assert heard == {"in_progress": "tool_started", "completed": "message_added"}


def test_calls_that_only_read_start_together_and_transcripts_show_one_after_the_other() -> None:
    program = Program(calling("read_a", "read_b"), "seen")
    policy = {"tool_annotations": {name: {"kind": "read"} for name in ("read_a", "read_b")}}
    tools = registry(read_a=lambda _: "a", read_b=lambda _: "b")
    result = program.loop(tools=tools, tool_format="native", policy=policy)
    calls = [event.type for event in program.events() if event.type.startswith("tool_")]
    shown = [event["kind"] for event in result["transcript"]["events"] if event["kind"].startswith("tool_")]
    assert shown == ["tool_intent", "tool_execution"] * 2
    assert calls == ["tool_started"] * 2 + ["tool_completed"] * 2


def test_the_sessions_transcript_and_the_loops_result_show_the_same() -> None:
    program = Program(calling("look"), "seen")
    result = program.loop(tools=registry(look=lambda _: "a tree"), tool_format="native")
    assert (program.sessions.snapshot("s") or {})["events"] == result["transcript"]["events"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"max_iterations": 1}, "max_turns_hit"), ({"token_budget": 1}, "budget_exhausted")],
)
def test_a_turn_says_what_ended_it(options: dict[str, Any], reason: str) -> None:
    program = Program("a", "b")
    program.loop(persistent=True, **options)
    assert program.events()[-1].data["turn_stop_reason"] == reason


def test_a_model_that_fails_for_good_closes_the_turn() -> None:
    program = Program({"error": {"category": "auth", "message": "no key"}})
    with pytest.raises(Exception, match="no key"):
        program.loop()
    step, end = program.events()[-2:]
    assert (step.type, step.data["error"], step.more) == ("step_completed", end.data["error"], 1)
    assert end.data["turn_stop_reason"] == "failed"


def test_a_refused_call_has_an_end_and_no_beginning() -> None:
    program = Program(calling("look"), "well")
    program.loop(tools=registry(look=lambda _: "a tree"), tool_format="native", policy={"tools": ["other"]})
    calls = [event for event in program.events() if event.type.startswith("tool_")]
    assert [event.type for event in calls] == ["tool_completed"]
    assert (calls[0].data["rejected"], calls[0].data["error_category"]) == (True, "permission_denied")


def test_a_sub_agent_is_in_its_parents_log_and_the_transcript_shows_that() -> None:
    program = Program(
        calling("delegate"), "inner", calling("delegate"), {"error": {"category": "auth"}}, "outer"
    )
    runtime = Runtime(program.models, program.sessions)
    options = {"provider": "mock", "name": "helper", "tools": registry()}

    def delegate(_: Any) -> Any:
        return make_sub_agent(runtime, "sub", options).run()["summary"]

    given = {"provider": "mock", "session_id": "s", "tools": registry(delegate=delegate)}
    run_loop(runtime, "go", None, {**given, "tool_format": "native"})
    children = [event for event in program.events() if event.type.startswith("child_")]
    assert [event.type for event in children] == [
        "child_requested", "child_started", "child_completed", "child_merged",
        "child_requested", "child_started", "child_failed",
    ]  # fmt: skip
    assert (children[0].data["agent_id"], children[0].data["mode"]) == ("helper", "fork")
    assert children[2].data["summary"] == "inner"
    assert len({event.turn_id for event in children}) == 1
    shown = program.sessions.snapshot("s")["events"]
    assert [event["id"] for event in shown if event["kind"].startswith("sub_agent")] == [
        event.id for event in children if event.type not in ("child_started", "child_merged")
    ]


def test_a_sub_agent_that_is_called_off_is_canceled_in_its_parents_log() -> None:
    program = Program(calling("delegate"), calling("stop"))
    runtime = Runtime(program.models, program.sessions)

    def stop(_: Any) -> Any:
        raise KeyboardInterrupt

    def delegate(_: Any) -> Any:
        return make_sub_agent(runtime, "sub", {"provider": "mock", "tools": registry(stop=stop)}).run()

    given = {"provider": "mock", "session_id": "s", "tools": registry(delegate=delegate)}
    with pytest.raises(KeyboardInterrupt):
        run_loop(runtime, "go", None, {**given, "tool_format": "native"})
    children = [event.type for event in program.events() if event.type.startswith("child_")]
    assert children == ["child_requested", "child_started", "child_canceled"]
