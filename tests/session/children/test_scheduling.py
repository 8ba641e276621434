"""Children that begin at a time of their own (10 §A1.15)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from harnpy.session import ChildError, ChildSpec, InvalidArgument, SessionNotFound, SessionRuntime, child_runs
from harnpy.session.calling import ThreadCaller
from harnpy.storage.errors import StoreClosed

from .test_children import Gate

START = 1_000_000.0


class StoppedClock:
    """A clock that goes when the test says so."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float | None) -> None:
        raise AssertionError("nobody sleeps here")


def test_a_child_begins_when_it_is_due() -> None:
    clock, ran = StoppedClock(), []

    def agent(messages: Any) -> str:
        ran.append(messages[0]["content"])
        return "done"

    with SessionRuntime("memory:", clock=clock) as runtime:
        parent = runtime.create(id="p")
        later = [
            runtime.schedule_child("p", ChildSpec(task=str(minute), agent=agent, due_at=START + minute * 60))
            for minute in (3, 1, 2)
        ]
        assert [child.status for child in later] == ["scheduled"] * 3
        assert child_runs(parent) == []
        for number, child in ((1, later[1]), (2, later[2])):
            clock.at += 60
            runtime.wake()
            assert runtime.wait(child.child_id).status == "completed"
            assert ran == [f"Task: {minute + 1}" for minute in range(number)]
        assert later[0].status == "scheduled"
        past = runtime.schedule_child(
            "p", ChildSpec(task="now", agent=agent, due_at=datetime(1970, 1, 1, tzinfo=UTC))
        )
        assert runtime.wait(past.child_id).summary == "done"
        assert [run.task for run in child_runs(parent)] == ["1", "2", "now"]
    assert later[0].status == "canceled"
    with pytest.raises(ChildError, match=r"^scheduler closed$"):
        runtime.schedule_child("p", ChildSpec(agent=agent, due_at=0))
    with pytest.raises(StoreClosed):
        runtime.spawn("p", ChildSpec(agent=agent))


def test_cancelling() -> None:
    gate = Gate()
    with SessionRuntime("memory:", clock=StoppedClock()) as runtime:
        parent = runtime.create(id="p")
        early = runtime.schedule_child("p", ChildSpec(agent=gate, due_at=START + 60))
        early.cancel()
        assert early.status == "canceled"
        assert runtime.wait(early.child_id).status == "canceled"
        assert child_runs(parent) == []
        begun = runtime.schedule_child("p", ChildSpec(agent=gate, due_at=START))
        gate.entered.acquire()
        assert begun.status == "running"
        with pytest.raises(ChildError, match=r"^scheduled task already started$"):
            begun.cancel()
        assert runtime.wait(begun.child_id).status == "canceled"
        for ended in (early, begun):
            with pytest.raises(ChildError, match=r"^scheduled task already completed$"):
                ended.cancel()
        assert [run.status for run in child_runs(parent)] == ["canceled"]


def test_what_cannot_be_scheduled() -> None:
    clock = StoppedClock()
    with SessionRuntime("memory:", clock=clock) as runtime:
        runtime.create(id="p")
        for given in (None, "soon", True):
            with pytest.raises(InvalidArgument, match="schedule child: `due_at` must be seconds since 1970"):
                runtime.schedule_child("p", ChildSpec(agent=str, due_at=given))  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="nil agent"):
            runtime.schedule_child("p", ChildSpec(due_at=0))
        with pytest.raises(SessionNotFound):
            runtime.schedule_child("nobody", ChildSpec(agent=str, due_at=0))
        late = runtime.schedule_child("nobody", ChildSpec(agent=str, due_at=START + 1))
        clock.at += 1
        runtime.wake()
        result = runtime.wait(late.child_id)
        assert (result.status, result.error) == ("failed", "Session not found: 'nobody'")


def test_others_begin_behind_one_that_nobody_wants_any_more() -> None:
    clock = StoppedClock()
    with SessionRuntime("memory:", clock=clock) as runtime:
        runtime.create(id="p")
        caller = ThreadCaller().one()
        spec = ChildSpec(agent=lambda messages: "done", due_at=START + 1)
        unwanted = runtime.schedule_child("p", spec, caller=caller)
        wanted = runtime.schedule_child("p", spec)
        caller.stop()
        clock.at += 1
        runtime.wake()
        result = runtime.wait(unwanted.child_id)
        assert (result.status, result.reason) == ("canceled", "cancelled")
        assert runtime.wait(wanted.child_id).status == "completed"


def test_one_that_is_cancelled_while_it_is_asked_for_waits_for_no_slot() -> None:
    clock, gate = StoppedClock(), Gate()

    def cancel_the_second(stage: str, session: Any) -> None:
        if stage == "before_create" and session.id == "second":
            with pytest.raises(ChildError, match="already started"):
                second.cancel()

    with SessionRuntime("memory:", clock=clock, hooks=cancel_the_second, child_limit=1) as runtime:
        parent = runtime.create(id="p")
        first = runtime.spawn("p", ChildSpec(agent=gate))
        gate.entered.acquire()
        second = runtime.schedule_child("p", ChildSpec(child_id="second", agent=str, due_at=START + 1))
        clock.at += 1
        runtime.wake()
        assert runtime.wait("second").status == "canceled"
        assert [run.status for run in child_runs(parent)] == ["running", "canceled"]
        gate.open.set()
        assert runtime.wait(first.child_id).status == "completed"
