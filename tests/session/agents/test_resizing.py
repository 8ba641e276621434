"""Windows are made smaller before an agent is called, and after a model has refused one (10 §A1.17, §C8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harnpy.session import ContextOverflow, InvalidArgument, SessionConflict, SessionRuntime, Turn
from harnpy.session.resize_policy import ResizePolicy

TALK = [{"content": f"question {number}"} for number in range(6)]


def runtime_with(policy: ResizePolicy | None = None, **settings: Any) -> SessionRuntime:
    """One with a session ``s`` that is longer than it should be."""
    runtime = SessionRuntime("memory:", resize=policy)
    runtime.create(id="s", seed=TALK)
    runtime.settings.update(settings)
    return runtime


def types(runtime: SessionRuntime) -> list[str]:
    """Of the last turn's events."""
    found = [event.type for event in runtime.get("s").events()]
    return found[found.index("turn_started") :]


def test_an_agent_is_asked_with_the_smaller_window() -> None:
    runtime = runtime_with(max_length=100)
    told: list[str] = []
    runtime.events.on("*", lambda name, data: told.append(name))
    asked: list[list[str]] = []

    def agent(messages: Any) -> str:
        asked.append([message["content"] for message in messages])
        return "ok"

    runtime.send("s", "question 6", agent=agent)
    assert asked == [["question 5", "question 6"]]
    assert types(runtime) == [
        *["turn_started", "message_added", "compaction_started", "compaction_triggered"],
        *["step_started", "step_completed", "message_added", "turn_completed"],
        *["compaction_started", "compaction_triggered", "action_executed"],
    ]
    assert told.index("session_resized") < told.index("session_saved")
    assert runtime.get("s").revision == 2
    assert [message["content"] for message in runtime.get("s").messages()] == ["question 6", "ok"]


def test_what_was_of_no_use_is_not_tried_again_in_that_turn() -> None:
    tries: list[int] = []

    def useless(full: Any, window: list[Any], memo: Any, settings: Any) -> tuple[None, None, None]:
        tries.append(len(window))
        return None, None, None

    policy = ResizePolicy().on_analyze(lambda *_: "useless").strategy("useless", useless)
    runtime = runtime_with(policy)
    for _ in range(2):
        runtime.send("s", "go", agent=lambda messages: "ok")
    assert tries == [7, 9]


def test_a_cut_by_somebody_else_meanwhile_ends_the_turn() -> None:
    def newest(full: Any, window: list[Any], memo: Any, settings: Any) -> tuple[Any, Any, Any]:
        runtime.get("s").trim(1)
        return None, window[-2:], None

    runtime = runtime_with(ResizePolicy().on_analyze(lambda *_: "newest").strategy("newest", newest))
    with pytest.raises(SessionConflict):
        runtime.send("s", "go", agent=lambda messages: "ok")
    assert runtime.get("s").execution_status == "failed"


class TestOverflow:
    @pytest.fixture
    def runtime(self) -> Iterator[SessionRuntime]:
        with runtime_with(ResizePolicy(keep_last=2)) as runtime:
            yield runtime

    def test_the_agent_is_called_again_with_less(self, runtime: SessionRuntime) -> None:
        asked: list[int] = []

        def agent(messages: Any, turn: Turn) -> str:
            asked.append(len(messages))
            with turn.step(model="m"):
                if len(messages) > 3:
                    raise ContextOverflow("8k is all I take")
            return "ok"

        result = runtime.send("s", "go", agent=agent)
        assert (result.status, result.text, asked) == ("completed", "ok", [7, 3])
        assert types(runtime) == [
            *["turn_started", "message_added", "step_started", "step_completed", "escalation_retried"],
            *["compaction_started", "compaction_triggered", "step_started", "step_completed"],
            *["message_added", "turn_completed", "action_executed"],
        ]
        retry = next(event.data for event in runtime.get("s").events() if event.type == "escalation_retried")
        assert retry == {
            "agent_id": "agent",
            "scope": "overflow_recovery",
            "attempt": 1,
            "error": "8k is all I take",
        }

    @pytest.mark.parametrize(("retries", "calls"), [(0, 1), (1, 2), (5, 2)])
    def test_it_is_called_so_often_and_as_long_as_that_is_of_use(
        self, runtime: SessionRuntime, retries: int, calls: int
    ) -> None:
        asked: list[int] = []

        def agent(messages: Any) -> str:
            asked.append(len(messages))
            raise ContextOverflow("no")

        with pytest.raises(ContextOverflow):
            runtime.send("s", "go", agent=agent, overflow_retries=retries)
        assert len(asked) == calls
        assert runtime.get("s").execution_status == "failed"

    def test_not_once_something_was_answered(self, runtime: SessionRuntime) -> None:
        def agent(messages: Any) -> Iterator[str]:
            yield "It is"
            raise ContextOverflow("no")

        with pytest.raises(ContextOverflow):
            runtime.send("s", "go", agent=agent)
        assert "escalation_retried" not in types(runtime)

    def test_not_where_nothing_is_resized_by_itself(self, runtime: SessionRuntime) -> None:
        runtime.settings["auto_resize"] = False

        def agent(messages: Any) -> str:
            raise ContextOverflow("no")

        with pytest.raises(ContextOverflow):
            runtime.send("s", "go", agent=agent)
        assert runtime.get("s").length == 7

    def test_how_often_is_a_number(self, runtime: SessionRuntime) -> None:
        with pytest.raises(InvalidArgument, match="send: overflow_retries must be an int >= 0, got '1'"):
            runtime.send("s", "go", agent=str, overflow_retries="1")


def test_the_strategy_is_one_that_there_are_means_for() -> None:
    def ask(prompt: str) -> str:
        return "short"

    class Store:
        def put(self, descriptor: dict[str, Any], body: bytes) -> dict[str, Any]:
            return descriptor

    found = [
        ResizePolicy(),
        ResizePolicy(hard_limit_strategy="observation_mask"),
        ResizePolicy(summarize=ask),
        ResizePolicy(summarize=ask, artifacts=Store()),
        ResizePolicy(summarize=ask, compact_strategy="trim"),
    ]
    names = ["truncate", "observation_mask", "llm", "summarize", "trim"]
    assert [policy.overflow_strategy for policy in found] == names
