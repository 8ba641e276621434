"""Budgets, approvals and questions to people (10 §A1.17, §A1.18, §C7)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harnpy.session import (
    ApprovalDenied,
    ApprovalGate,
    Budget,
    BudgetExceeded,
    InputGate,
    InvalidArgument,
    Session,
    SessionBusy,
    SessionRuntime,
    Turn,
)
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.errors import ApprovalError
from harnpy.storage import Store

UNDECIDED = r"^invalid approval decision .* \(expected one of: allow, deny\)$"


def spends(cost: float, tokens: int) -> Callable[[Any, Turn], str]:
    def agent(messages: Any, turn: Turn) -> str:
        for _ in range(3):
            with turn.step() as step:
                step.cost, step.usage = cost, {"input_tokens": tokens, "output_tokens": 0}
        return "done"

    return agent


class TestBudget:
    @pytest.mark.parametrize(
        ("budget", "problem", "steps"),
        [
            (Budget(max_cost=0.5), "budget exceeded: 0.5000 >= 0.5000", 2),
            (Budget(max_cost=0.0), "budget exceeded: 0.0000 >= 0.0000", 0),
            (Budget(max_tokens=15), "token budget exceeded: 20 > 15", 2),
            (Budget(max_tokens=20), None, 3),
            (Budget(max_steps=1), "step budget exceeded: 1 >= 1", 1),
            (Budget(max_seconds=0), "time budget exceeded: ", 0),
            (Budget(deadline="2026-01-01T00:00:00Z"), "time budget exceeded: the deadline was 2026-01-01", 0),
            (Budget(deadline="9999-01-01T00:00:00Z"), None, 3),
            (Budget(max_cost=0.8, max_tokens=30, max_steps=3, max_seconds=600), None, 3),
        ],
    )
    def test_a_turn_ends_before_the_step_that_it_can_not_have(
        self, budget: Budget, problem: str | None, steps: int
    ) -> None:
        with SessionRuntime("memory:") as runtime:
            session = runtime.create(id="s")
            if problem is None:
                assert runtime.send("s", "a", agent=spends(0.25, 10), budget=budget).text == "done"
            else:
                with pytest.raises(BudgetExceeded) as caught:
                    runtime.send("s", "a", agent=spends(0.25, 10), budget=budget)
                assert str(caught.value).startswith(problem)
                assert session.turns()[-1].error == str(caught.value)
            assert len(session.events(types=["step_started"])) == steps
            assert runtime.send("s", "b", agent=spends(0.25, 10)).text == "done"


def caller(sync: bool, found: list[Any]) -> Any:
    """Return an agent that calls a tool, and keeps what comes of it."""

    def call(messages: Any, turn: Turn) -> str:
        try:
            found.append(turn.tool("rm", {"path": "/"}, lambda args: "gone"))
        except ApprovalDenied as denied:
            found.append(str(denied))
        return "done"

    async def call_later(messages: Any, turn: Turn) -> str:
        try:
            found.append(await turn.tool("rm", {"path": "/"}, lambda args: "gone"))
        except ApprovalDenied as denied:
            found.append(str(denied))
        return "done"

    return call if sync else call_later


def kinds(session: Session) -> list[str]:
    wanted = (
        "approval_requested",
        "approval_resolved",
        "approval_canceled",
        "tool_started",
        "tool_completed",
    )
    return [event.type for event in session.events(types=wanted)]


class TestApprovals:
    @pytest.mark.parametrize("sync", [True, False])
    def test_a_policy_decides(self, store: Store, sync: bool) -> None:
        audited: list[str] = []
        answers: list[Any] = ["allow", ("deny", "never"), "deny"]
        gate = ApprovalGate(
            lambda request: answers.pop(0), threshold=0, audit=lambda kind, data: audited.append(kind)
        )
        with SessionRuntime(store) as runtime:
            session = runtime.create(id="s")
            found: list[Any] = []
            for _ in range(3):
                runtime.send("s", "a", agent=caller(sync, found), approvals=gate)
            assert found == ["gone", "approval denied: never", "approval denied"]
            asked = ["approval_requested", "approval_resolved"]
            assert kinds(session) == [
                *asked, "tool_started", "tool_completed", *asked, "tool_completed", *asked, "tool_completed",
            ]  # fmt: skip
            request, resolved = session.events(types=asked)[:2]
            assert request.data == {
                "id": request.data["id"], "session_id": "s", "tool": "rm", "args": '{"path":"/"}',
            }  # fmt: skip
            assert resolved.data == {
                "id": request.data["id"], "decision": "allow", "reason": "", "automated": True,
            }  # fmt: skip
            assert session.events(types=["tool_completed"])[1].data["rejected"] is True
            assert {event.turn_id is None for event in session.events(types=asked)} == {False}
        told = ["approval.requested", "approval.resolved", "tool.allowed"]
        assert audited[:3] == [f"security.{kind}" for kind in told]
        assert audited[-1] == "security.tool.denied"

    @pytest.mark.parametrize("sync", [True, False])
    def test_a_person_decides(self, sync: bool) -> None:
        asked = threading.Semaphore(0)
        gate = ApprovalGate(audit=lambda kind, data: asked.release() if kind.endswith("requested") else None)
        found: list[Any] = []
        with SessionRuntime("memory:") as runtime:
            session = runtime.create(id="s")
            work = threading.Thread(
                target=lambda: runtime.send("s", "a", agent=caller(sync, found), approvals=gate)
            )
            work.start()
            asked.acquire()
            while not gate.pending:
                threading.Event().wait(0.001)
            assert session.is_waiting
            (request,) = gate.pending
            with pytest.raises(InvalidArgument, match=UNDECIDED):
                gate.resolve(request.id, "perhaps")
            with pytest.raises(ApprovalError, match=r"^approval request not found$"):
                gate.resolve("no", "allow")
            gate.resolve(request.id, "allow", "fine")
            work.join()
            assert (found, gate.pending, session.is_waiting) == (["gone"], [], False)
            assert session.events(types=["approval_resolved"])[0].data["reason"] == "fine"

    def test_denials_in_a_row_call_for_a_person(self) -> None:
        answers = ["deny", "allow", "deny", "deny", "deny", "allow"]
        gate = ApprovalGate(lambda request: answers.pop(0), threshold=2)

        async def run() -> None:
            session = Session("s")
            decisions = [(await gate.request(session, "t")).decision for _ in range(4)]
            assert decisions == ["deny", "allow", "deny", "deny"]
            for answer, automated in (("deny", False), ("allow", False), (None, True)):
                waiting = asyncio.create_task(gate.request(session, "t"))
                await asyncio.sleep(0)
                if answer is not None:
                    gate.resolve(gate.pending[0].id, answer)
                assert (await waiting).automated is automated
            assert (await gate.request(session, "t")).decision == "allow"
            assert answers == []

        asyncio.run(run())

    def test_a_policy_that_fails_and_a_cancelled_request_are_called_off(self) -> None:
        def fails(request: Any) -> str:
            raise ValueError("no idea")

        async def run() -> None:
            session = Session("s")
            with pytest.raises(ValueError, match="no idea"):
                await ApprovalGate(fails).request(session, "t", metadata={"k": 1})
            with pytest.raises(InvalidArgument, match=UNDECIDED):
                await ApprovalGate(lambda request: "maybe").request(session, "t")
            gate = ApprovalGate()
            waiting = asyncio.create_task(gate.request(session, "t"))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            reasons = [event.data["reason"] for event in session.events(types=["approval_canceled"])]
            assert [reasons[0], reasons[2]] == ["no idea", "cancelled"]
            assert reasons[1] == "invalid approval decision 'maybe' (expected one of: allow, deny)"
            assert (gate.pending, session.is_waiting) == ([], False)

        asyncio.run(run())

    def test_a_turn_that_is_cancelled_waits_no_longer(self) -> None:
        async def run() -> None:
            gate = ApprovalGate()
            async with AsyncSessionRuntime("memory:") as runtime:
                session = await runtime.create(id="s")
                turn = asyncio.create_task(runtime.send("s", "a", agent=caller(False, []), approvals=gate))
                while not gate.pending:
                    await asyncio.sleep(0.001)
                turn.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await turn
                assert kinds(session.session) == ["approval_requested", "approval_canceled"]
                assert (session.is_waiting, (await session.turns())[-1].stop_reason) == (False, "cancelled")

        asyncio.run(run())


class TestInputs:
    @pytest.mark.parametrize("sync", [True, False])
    def test_a_turn_asks_a_person(self, store: Store, sync: bool) -> None:
        def asks(messages: Any, turn: Turn) -> str:
            return f"{turn.ask('Which day?')}!"

        async def asks_later(messages: Any, turn: Turn) -> str:
            return f"{await turn.ask('Which day?')}!"

        with SessionRuntime(store) as runtime:
            session = runtime.create(id="s")
            agent = asks if sync else asks_later
            result = runtime.send("s", "a", agent=agent, inputs=InputGate(lambda prompt: "Monday"))
            assert result.text == "Monday!"
            pending, received = session.events(types=["external_input"])
            assert pending.data == {"prompt": "Which day?", "status": "pending"}
            assert received.data == {"prompt": "Which day?", "status": "received", "input": "Monday"}
            with pytest.raises(InvalidArgument, match="sent without `inputs`"):
                runtime.send("s", "a", agent=agent)

    def test_one_question_at_a_time(self) -> None:
        gate = InputGate()
        assert gate.tool["name"] == "request_human_input"
        with pytest.raises(InvalidArgument, match="no input is asked for"):
            gate.provide("x")

        async def run() -> None:
            session = Session("s")
            waiting = asyncio.create_task(gate.request(session, "first?"))
            await asyncio.sleep(0)
            assert gate.pending == "first?"
            with pytest.raises(SessionBusy, match=r"an input is asked for already: first\?"):
                await gate.request(session, "second?")
            gate.provide("yes")
            assert (await waiting, gate.pending) == ("yes", None)
            waiting = asyncio.create_task(gate.request(session, "third?"))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert gate.pending is None

            async def answer(prompt: str) -> str:
                return prompt.upper()

            assert await InputGate(answer).request(session, "a") == "A"

        asyncio.run(run())
