"""The session's policy shrinks a loop's window: before each model call, and on overflow (10 §A1.17, §C8)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.agent.loop.transcript_entries import request_of
from harnpy.llm.errors import CallError
from harnpy.session import SessionRuntime
from harnpy.session.resize_policy import ResizePolicy

from .agents import HELPER, call, loops_with, types

TOO_LONG = {"error": {"category": "generic", "message": "maximum context length"}}
TALK = [{"content": f"question {number}"} for number in range(6)]


def runtime_with(*replies: dict[str, Any], policy: ResizePolicy, **settings: Any) -> SessionRuntime:
    runtime = SessionRuntime("memory:", agents=loops_with(*replies), resize=policy, settings=settings)
    runtime.create(HELPER, id="s", seed=TALK)
    return runtime


def test_before_each_model_call() -> None:
    replies = [call("weather", city="Rome"), {"text": "Sunny."}]
    with runtime_with(*replies, policy=ResizePolicy().on_analyze(due).strategy("newest", newest)) as runtime:
        assert runtime.send("s", "Weather?").text == "Sunny."
        session = runtime.get("s")
        asked = runtime.agents.mock.calls()  # type: ignore[union-attr]
        assert [len(each["messages"]) for each in asked] == [3, 3]
        for number, each in enumerate(asked, 1):
            assert request_of(session, number)["messages"] == each["messages"]
    turn = types(runtime)[7:]
    assert turn[turn.index("tool_completed") :] == [
        *["tool_completed", "message_added", "compaction_started", "compaction_triggered", "step_started"],
        *["step_completed", "message_added", "turn_completed", "action_executed"],
    ]


def due(full: Any, window: list[Any], memo: Any, settings: Any) -> str | None:
    return "newest" if len(window) > 4 else None


def newest(full: Any, window: list[Any], memo: Any, settings: Any) -> tuple[Any, Any, Any]:
    return None, window[-3:], None


def test_after_an_overflow() -> None:
    with runtime_with(TOO_LONG, {"text": "ok"}, policy=ResizePolicy(keep_last=2)) as runtime:
        assert runtime.send("s", "go").text == "ok"
        asked = runtime.agents.mock.calls()  # type: ignore[union-attr]
    assert [len(each["messages"]) for each in asked] == [7, 3]
    turn = types(runtime)[7:]
    begun = turn.index("step_started")
    assert turn[begun:] == [
        *[
            "step_started",
            "step_completed",
            "escalation_retried",
            "compaction_started",
            "compaction_triggered",
        ],
        *["step_started", "step_completed", "message_added", "turn_completed", "action_executed"],
    ]


def test_an_overflow_that_nothing_helps_against() -> None:
    with runtime_with(TOO_LONG, policy=ResizePolicy(keep_last=20)) as runtime:
        with pytest.raises(CallError, match="maximum context length"):
            runtime.send("s", "go")
        assert runtime.get("s").execution_status == "failed"
