"""Definitions in their loop: what it asks, what the log has of it, how its turns end (10 §C7.1, §C16)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harnpy import AgentDef, LoopFactory, Tool, tool
from harnpy.agent.loop.transcript_entries import request_of
from harnpy.cli import session_views
from harnpy.faults import MisuseError, OptionError
from harnpy.llm.errors import CallError
from harnpy.session import (
    ApprovalGate,
    Budget,
    EventDraft,
    InputGate,
    SessionConflict,
    SessionRuntime,
    actions,
)
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.guards import ApprovalRequest
from harnpy.session.live import LiveSession
from harnpy.session.stored import StoredSession
from harnpy.storage import Store
from harnpy.world import World
from harnpy.world.host import People
from tests.storage.conftest import opened, store, url

from .agents import HELPER, Provider, call, loops_with, runtime_with, said, texts, types, weather

__all__ = ["opened", "store", "url"]

TURN = [
    "turn_started", "message_added",
    "register_set", "register_set", "register_set", "step_started",
    "step_completed", "message_added", "tool_started", "tool_completed", "message_added",
    "step_started", "step_completed", "message_added",
    "turn_completed", "action_executed",
]  # fmt: skip


class TestLog:
    def test_a_turn_with_a_tool(self, store: Store) -> None:
        loops = loops_with(call("weather", city="Rome"), {"text": "Sunny."})
        with SessionRuntime(store, agents=loops) as runtime:
            runtime.create(HELPER, id="s", seed={"content": "Hello"})
            result = runtime.send("s", "Weather?")
            assert (result.status, result.stop_reason, result.text) == ("completed", "completed", "Sunny.")
            assert (result.steps, result.usage, result.cost) == (2, {
                "input_tokens": 137, "output_tokens": 60, "total_tokens": 197,
            }, 0)  # fmt: skip
            assert [message["role"] for message in result.messages] == ["assistant", "tool", "assistant"]
            session = runtime.get("s")
            assert (session.revision, session.execution_status) == (2, "completed")
            events = session.events()
            assert [event.type for event in events[2:]] == TURN
            assert {event.data["agent_id"] for event in events if "agent_id" in (event.data or {})} == {
                "helper"
            }
            asked = loops.mock.calls()
            assert asked[0]["system"] == "Be brief."
            assert asked[0]["messages"] == [
                {"role": "user", "content": "Hello"},
                {"role": "user", "content": "Weather?"},
            ]
            shown = [event.data for event in events]
            messages = session.messages()
        with SessionRuntime(store, agents=loops) as runtime:
            again = runtime.get("s")
            assert [event.data for event in again.events()] == shown
            assert again.messages() == messages
            request = request_of(again, 2)
            assert (request["system"], request["tools"]) == (asked[1]["system"], asked[1]["tools"])
            assert request["messages"] == asked[1]["messages"]

    def test_the_prefix_of_requests_stands_from_turn_to_turn(self) -> None:
        with runtime_with({"text": "one"}, {"text": "two"}) as runtime:
            runtime.send("s", "first")
            runtime.send("s", "second")
            first, second = runtime.agents.mock.calls()
            assert second["messages"][:1] == first["messages"]
            assert (second["system"], second["tools"]) == (first["system"], first["tools"])
            sets = [event for event in runtime.get("s").events() if event.type == "register_set"]
            assert len(sets) == 3  # nothing has changed since the first turn

    def test_a_step_of_a_function_is_a_step_too(self) -> None:
        with runtime_with({"text": "two"}) as runtime:
            runtime.send("s", "first", agent=lambda messages: "one")
            runtime.send("s", "second")
            session = runtime.get("s")
            first, second = request_of(session, 1), request_of(session, 2)
            assert (first["provider"], first["model"], first["system"]) == (None, None, None)
            assert [message["content"] for message in first["messages"]] == ["first"]
            assert (second["provider"], len(second["messages"])) == ("mock", 3)
            assert session_views.request_lines(first).startswith("step 1 (event 4): a function\n")

    def test_the_mock_without_replies_answers_in_text_and_costs_nothing(self) -> None:
        with runtime_with() as runtime:
            result = runtime.send("s", "How many bolts?")
            assert (result.status, result.steps, result.cost) == ("completed", 1, 0)
            assert result.text.startswith(
                "Mock response to 3-word prompt: How many bolts? (nothing is queued"
            )
            steps = [event for event in runtime.get("s").events() if event.type == "step_started"]
            assert [event.data["model"] for event in steps] == ["mock"]

    def test_a_key_is_asked_once(self) -> None:
        with runtime_with({"text": "one"}, {"text": "two"}) as runtime:
            first = runtime.send("s", "go", idempotency_key="k")
            again = runtime.send("s", "go", idempotency_key="k")
            assert (again.text, again.turn_id, again.usage) == ("one", first.turn_id, first.usage)
            assert len(runtime.agents.mock.calls()) == 1

    def test_text_format_shows_people_no_markup(self) -> None:
        agent = replace(HELPER, options={"tool_format": "text"})
        with runtime_with({"text": "<user_response>It is 7.</user_response>"}, agent=agent) as runtime:
            chunks = list(runtime.stream("s", "go", idempotency_key="k"))
            assert [event.text for event in chunks[:-1]] == ["It is 7."]
            assert runtime.send("s", "go", idempotency_key="k").text == "It is 7."
            assert "user_response" in runtime.get("s").messages()[-1]["content"]
            assert "## Tool Calling Contract" in runtime.agents.mock.calls()[0]["system"]


class TestRequest:
    def test_registers_come_before_the_definition(self) -> None:
        with runtime_with(*[{"text": "ok"}] * 4) as runtime:
            ask = runtime.agents.mock.calls
            runtime.send("s", "go")
            assert runtime.get("s").get("system_prompt") is None
            runtime.execute("s", actions.ChangeSystemPrompt("Be long."))
            runtime.execute("s", actions.ChangeModel({"provider_id": "mock", "model": "claude-opus-4"}))
            runtime.execute("s", lambda session: session.set("thinking", "enabled"))
            runtime.execute("s", lambda session: session.set("tools", []))
            runtime.send("s", "go")
            runtime.execute("s", actions.ChangeModel(None))
            runtime.execute("s", actions.ChangeSystemPrompt(None))
            runtime.send("s", "go", agent=replace(HELPER, system_prompt="Be a pirate."))
            assert [each["system"] for each in ask()] == ["Be brief.", "Be long.", "Be a pirate."]
            assert [each["thinking"]["mode"] for each in ask()] == ["disabled", "enabled", "enabled"]
            assert [bool(each["tools"]) for each in ask()] == [True, False, False]
            steps = [
                event.data["model"] for event in runtime.get("s").events() if event.type == "step_started"
            ]
            assert steps == ["mock", "claude-opus-4", "mock"]

    def test_tools_and_what_is_denied(self) -> None:
        tools = [weather, Tool("clock", "", {}, lambda arguments: "12")]
        agent = replace(HELPER, tools=("weather", "clock"), denied_tools=("weather",))
        with runtime_with(call("weather", city="Rome"), {"text": "ok"}, tools=tools, agent=agent) as runtime:
            runtime.send("s", "go")
            offered = runtime.agents.mock.calls()[0]["tools"]
            assert [each["function"]["name"] for each in offered] == ["clock"]
            assert "is not available" in texts(runtime)[2]

    def test_capabilities_add_tools_instructions_and_options(self) -> None:
        def polite(build: Any) -> None:
            build.add_system("Say please.")
            build.add_tool(Tool("thank", "", {}, lambda arguments: ""))
            build.set_option("temperature", 0.1)
            build.set_option("max_tokens", 5)

        seen: list[Any] = []

        def answer(request: Any) -> Any:
            seen.append(request)
            return said(request, "ok")

        loops = LoopFactory(providers={"mine": Provider(answer)})
        loops.capabilities.register("polite", polite)
        agent = AgentDef(
            "a",
            system_prompt="Hi.",
            model="mine/m",
            capabilities=("polite",),
            options={"max_tokens": 9},
        )
        with SessionRuntime("memory:", agents=loops) as runtime:
            runtime.create(agent, id="s")
            runtime.send("s", "go")
            runtime.send("s", "go")
        assert [request.system for request in seen] == ["Hi.\n\nSay please."] * 2
        assert (seen[0].model, seen[0].max_tokens, seen[0].sampling) == ("m", 9, {"temperature": 0.1})

    def test_skills_of_files(self, tmp_path: Path) -> None:
        from tests.worlds import world_with

        folder = tmp_path / ".harn/skills/tidy"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            "---\nname: tidy\nshort: tidy up\ndescription: tidy up\n---\nAlways tidy up.\n"
        )
        world = world_with(cwd=lambda: str(tmp_path), get={}.get)
        agent = replace(HELPER, skills=("tidy",))
        with runtime_with({"text": "ok"}, agent=agent, host=world) as runtime:
            runtime.send("s", "Please tidy up")
            assert "Always tidy up." in runtime.agents.mock.calls()[0]["system"]

    def test_agent_events_are_told(self) -> None:
        told: list[str] = []
        with runtime_with({"text": "ok"}, events=lambda event: told.append(event["type"])) as runtime:
            runtime.send("s", "go")
        assert told == ["turn_start", "iteration_start", "iteration_end"]


def test_a_conversation_that_is_compacted(store: Store) -> None:
    """The loop's own compaction is a cut of the turn; the log says everything."""
    agent = replace(HELPER, options={"compact_threshold": 400, "compact_keep_last": 2})
    replies = {"text": "They talked."}, call("weather", city="Rome"), {"text": "done"}, {"text": "more"}
    loops = loops_with(*replies)
    spoken = {"user": "question " * 30, "assistant": "answer " * 30}
    seed = [{"role": role, "content": text} for role, text in spoken.items()] * 6
    with SessionRuntime(store, agents=loops) as runtime:
        runtime.create(agent, id="s", seed=seed)
        runtime.send("s", "go")
        runtime.send("s", "on")
        session = runtime.get("s")
        assert types(runtime)[15:19] == [
            "compaction_started",
            "step_started",
            "step_completed",
            "compaction_triggered",
        ]
        assert len(session.history()) == 12 + 6
        assert "They talked." in loops.mock.calls()[1]["messages"][0]["content"]
        shown, messages = [event.data for event in session.events()], session.messages()
        for number, asked in enumerate(loops.mock.calls()[1:], 1):
            assert request_of(session, number)["messages"] == asked["messages"]
    with SessionRuntime(store, agents=loops) as runtime:
        assert [event.data for event in runtime.get("s").events()] == shown
        assert runtime.get("s").messages() == messages


def test_a_window_that_is_resized_before_a_call(store: Store) -> None:
    """What the session's policy says holds for loops, too, with every step (10 §C8)."""
    agent = replace(HELPER, settings={"max_length": 400}, options={"compaction": False})
    tools = [Tool("page", "", {}, lambda arguments: "text " * 30)]
    loops = loops_with(call("page"), call("page", n=2), {"text": "done"}, tools=tools)
    with SessionRuntime(store, agents=loops) as runtime:
        told: list[str] = []
        runtime.events.on("session_resized", lambda name, data: told.append(data["strategy"]))
        runtime.create(agent, id="s", seed={"content": "once " * 60})
        runtime.send("s", "go")
        assert told
        sent = [len(str(asked["messages"])) for asked in loops.mock.calls()]
        session = runtime.get("s")
        assert len(session.history()) == 7
        assert len(session.messages()) < 7
        for number, asked in enumerate(loops.mock.calls(), 1):
            assert request_of(session, number)["messages"] == asked["messages"]
        assert max(sent) < 700
    with SessionRuntime(store, agents=loops) as runtime:
        assert runtime.get("s").messages() == session.messages()


class TestApproval:
    AGENT = replace(HELPER, options={"approval_policy": {"require_approval": ["weather"]}})

    def runtime(self, ask: Any) -> SessionRuntime:
        host = World(people=People(ask))
        return runtime_with(call("weather", city="Rome"), {"text": "ok"}, agent=self.AGENT, host=host)

    async def _later(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"approved": True, "reviewer": "ann"}

    def test_granted(self) -> None:
        with self.runtime(self._later) as runtime:
            runtime.send("s", "go")
            kinds = types(runtime)
            assert (
                kinds.index("approval_requested")
                < kinds.index("approval_resolved")
                < kinds.index("tool_started")
            )
            assert texts(runtime)[2] == "sunny in Rome, 1"

    @pytest.mark.parametrize(
        ("ask", "reason"),
        [
            (None, "approval required but no host bridge is available"),
            (lambda request: None, "nobody answered"),
            (lambda request: {"approved": False, "reason": "not today"}, "not today"),
        ],
    )
    def test_denied(self, ask: Any, reason: str) -> None:
        with self.runtime(ask) as runtime:
            assert runtime.send("s", "go").status == "completed"
            assert reason in texts(runtime)[2]
            assert "tool_started" not in types(runtime)


class TestGates:
    """What is plugged into `send` (10 §C7) holds in loops, too."""

    def test_a_gate_decides_on_each_call(self) -> None:
        asked: list[str] = []

        async def policy(request: ApprovalRequest) -> Any:
            asked.append(f"{request.tool} {request.args}")
            return ("deny", "too far") if "Oslo" in request.args else "allow"

        calls = {
            "tool_calls": [
                {"name": "weather", "arguments": {"city": "Rome"}},
                {"name": "weather", "arguments": {"city": "Oslo"}},
            ]
        }
        with runtime_with(calls, {"text": "ok"}) as runtime:
            assert runtime.send("s", "go", approvals=ApprovalGate(policy)).text == "ok"
            assert asked == ['weather {"city":"Rome"}', 'weather {"city":"Oslo"}']
            assert texts(runtime)[2] == "sunny in Rome, 1"
            assert '"reason": "approval denied: too far"' in texts(runtime)[3]
            kinds = types(runtime)
            assert (kinds.count("approval_requested"), kinds.count("approval_resolved")) == (2, 2)
            assert kinds.count("tool_started") == 1

    def test_cancelled_while_a_person_thinks(self) -> None:
        async def main() -> None:
            gate = ApprovalGate()
            async with AsyncSessionRuntime(runtime_with(call("weather", city="Rome"))) as face:
                task = asyncio.create_task(face.send("s", "go", approvals=gate))
                while not gate.pending:
                    await asyncio.sleep(0.001)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert gate.pending == []
                events = face.runtime.get("s").events()
                kinds = [event.type for event in events]
                assert kinds.count("approval_canceled") == 1
                assert texts(face.runtime)[-1] == "Error: not run: cancelled"
                assert events[-1].data["turn_stop_reason"] == "cancelled"

        asyncio.run(main())

    def test_the_model_may_ask_a_person(self) -> None:
        gate = InputGate(lambda prompt: f"{prompt} Friday.")
        with runtime_with(call("request_human_input", prompt="When?"), {"text": "ok"}, tools=()) as runtime:
            runtime.send("s", "go", inputs=gate)
            assert texts(runtime)[2] == "When? Friday."
            assert types(runtime).count("external_input") == 2
            offered = runtime.agents.mock.calls()[0]["tools"]
            assert [each["function"]["name"] for each in offered] == ["request_human_input"]

    def test_its_own_tool_of_that_name_stays(self) -> None:
        own = Tool("request_human_input", "", {}, lambda arguments: "mine")
        with runtime_with(call("request_human_input"), {"text": "ok"}, tools=[own]) as runtime:
            runtime.send("s", "go", inputs=InputGate(lambda prompt: "never"))
            assert texts(runtime)[2] == "mine"

    def test_a_budget_takes_the_place_of_its_own(self) -> None:
        agent = replace(HELPER, budget=Budget(max_steps=9))
        with runtime_with(call("weather", city="Rome"), agent=agent) as runtime:
            assert runtime.send("s", "go", budget=Budget(max_steps=1)).stop_reason == "max_turns_hit"


class TestEnds:
    @pytest.mark.parametrize(
        ("budget", "reason", "steps"),
        [
            (Budget(max_steps=2), "max_turns_hit", 2),
            (Budget(max_tokens=1), "budget_exhausted", 1),
            (Budget(max_cost=0.0), "budget_exhausted", 0),
            (Budget(max_seconds=0), "budget_exhausted", 0),
            (Budget(deadline="2026-01-01T00:00:00Z"), "budget_exhausted", 0),
            (Budget(max_seconds=60, deadline="9999-01-01T00:00:00+01:00", max_steps=1), "max_turns_hit", 1),
        ],
    )
    def test_a_budget(self, budget: Budget, reason: str, steps: int) -> None:
        replies = [call("weather", city=name) for name in ("Rome", "Oslo", "Bonn")]
        agent = replace(HELPER, budget=budget, model="mock/claude-sonnet-4-20250514")  # which has a price
        with runtime_with(*replies, agent=agent) as runtime:
            result = runtime.send("s", "go")
            assert (result.status, result.stop_reason, result.steps) == ("stopped", reason, steps)
            assert runtime.get("s").execution_status == "stopped"
            assert types(runtime).count("step_started") == steps

    def test_a_budget_of_money_needs_a_price(self) -> None:
        agent = replace(HELPER, model={"provider": "openai", "model": "gpt-of-tomorrow"})
        with runtime_with({"text": "kept"}, agent=agent) as runtime:
            with pytest.raises(OptionError, match=r"set \[llm.models.gpt-of-tomorrow\] pricing"):
                runtime.send("s", "go", budget=Budget(max_cost=1.0))
            assert runtime.agents.mock.calls() == []
            assert runtime.send("s", "again", budget=Budget(max_tokens=1000)).text == "kept"

    def test_a_model_that_fails(self) -> None:
        with runtime_with({"error": {"category": "auth", "message": "bad key"}}) as runtime:
            with pytest.raises(CallError, match="bad key"):
                runtime.send("s", "go")
            end = runtime.get("s").events()[-1]
            assert (end.type, end.data["turn_stop_reason"]) == ("turn_completed", "failed")
            assert types(runtime)[-2] == "step_completed"
            runtime.agents.mock.add({"text": "fine"})
            assert runtime.send("s", "again").text == "fine"

    @pytest.mark.parametrize("is_async", [False, True])
    def test_a_provider_that_gives_no_reply(self, is_async: bool) -> None:
        async def later(request: Any) -> Any:
            return "hello"

        wrong = Provider(later if is_async else lambda request: "hello")
        loops = LoopFactory(providers={"wrong": wrong})
        with SessionRuntime("memory:", agents=loops) as runtime:
            runtime.create(AgentDef("a", model="wrong/x"), id="s")
            with pytest.raises(MisuseError, match="a provider returned str: expected harnpy"):
                runtime.send("s", "go")

    def test_cancelled_in_a_model_call(self) -> None:
        async def main() -> None:
            begun = asyncio.Event()

            async def answer(request: Any) -> Any:
                begun.set()
                await asyncio.Event().wait()

            loops = LoopFactory(providers={"slow": Provider(answer)})
            async with AsyncSessionRuntime("memory:", agents=loops) as face:
                await face.create(AgentDef("a", model="slow/x"), id="s")
                task = asyncio.create_task(face.send("s", "go"))
                await begun.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                self.check_cancelled(face.runtime, ["step_completed", "turn_completed"])

        asyncio.run(main())

    def test_cancelled_in_a_tool(self) -> None:
        async def main() -> None:
            begun = asyncio.Event()

            async def wait(arguments: Any) -> str:
                begun.set()
                await asyncio.Event().wait()
                return "never"

            tools = [Tool("wait", "", {}, wait), weather]
            calls = {
                "tool_calls": [
                    {"name": "wait", "arguments": {}},
                    {"name": "weather", "arguments": {"city": "x"}},
                ]
            }
            async with AsyncSessionRuntime(runtime_with(calls, tools=tools)) as face:
                task = asyncio.create_task(face.send("s", "go"))
                await begun.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                ends = [
                    "tool_completed",
                    "message_added",
                    "tool_completed",
                    "message_added",
                    "turn_completed",
                ]
                self.check_cancelled(face.runtime, ends)
                assert texts(face.runtime)[2:4] == [
                    "Error: cancelled before it finished",
                    "Error: not run: cancelled",
                ]

        asyncio.run(main())

    def check_cancelled(self, runtime: SessionRuntime, ends: list[str]) -> None:
        events = runtime.get("s").events()
        assert [event.type for event in events[-len(ends) :]] == ends
        assert events[-1].data["turn_stop_reason"] == "cancelled"
        assert (
            events[-1].data["agent_id"]
            == events[2 if events[1].type != "turn_started" else 1].data["agent_id"]
        )
        # The next request is one that services accept.
        assert runtime.send("s", "again", agent=lambda messages: f"{len(messages)}").status == "completed"

    def test_closing_a_stream_cancels_before_the_next_call(self) -> None:
        with runtime_with(
            {"text": "Let me see.", **call("weather", city="Rome")}, {"text": "Sunny."}
        ) as runtime:
            stream = runtime.stream("s", "go")
            assert next(stream).text == "Let me see."
            stream.close()  # type: ignore[attr-defined]
            end = runtime.get("s").events()[-1]
            assert (end.type, end.data["turn_stop_reason"]) == ("turn_completed", "cancelled")
            assert len(runtime.agents.mock.calls()) == 1

    def test_streams_in_both_faces(self) -> None:
        async def main() -> list[str]:
            async with AsyncSessionRuntime(runtime_with({"text": "one"}, {"text": "two"})) as face:
                pieces: list[str] = []
                result = await face.send("s", "go", stream=pieces.append)
                assert result.text == "one"
                return pieces + [
                    event.text async for event in face.stream("s", "go") if event.kind == "chunk"
                ]

        assert asyncio.run(main()) == ["one", "two"]


def elsewhere(store: Store) -> StoredSession:
    """Return the session as another process has it."""
    session = StoredSession.load("s", store, World())
    assert session is not None
    return session


class TestOthers:
    """Others write while the loop runs."""

    def run(self, store: Store, act: Any, *more: dict[str, Any]) -> SessionRuntime:
        @tool
        def look() -> str:
            other = SessionRuntime(store)
            act(other.get("s"))
            return "seen"

        loops = loops_with(call("look"), {"text": "done"}, *more, tools=[look])
        runtime = SessionRuntime(store, agents=loops)
        runtime.create(HELPER, id="s")
        return runtime

    def test_a_message_joins_at_the_next_step(self, store: Store) -> None:
        runtime = self.run(store, lambda session: session.add_history({"content": "and me!"}))
        runtime.send("s", "go")
        asked = runtime.agents.mock.calls()[1]["messages"]
        assert [message["content"] for message in asked] == ["go", "", "seen", "and me!"]
        assert texts(runtime) == ["go", "", "seen", "and me!", "done"]

    def test_a_register_is_no_matter(self, store: Store) -> None:
        runtime = self.run(store, lambda session: session.set_memo("x"))
        runtime.send("s", "go")
        asked = runtime.agents.mock.calls()[1]["messages"]
        assert asked[-1]["content"] == '<runtime_injection kind="memo">\nx\n</runtime_injection>'

    def test_a_cut_ends_the_turn(self, store: Store) -> None:
        runtime = self.run(store, lambda session: session.set_history([]))
        with pytest.raises(SessionConflict):
            runtime.send("s", "go")
        end = runtime.get("s").events()[-1]
        assert (end.type, end.data["turn_stop_reason"]) == ("turn_completed", "failed")
        assert runtime.send("s", "again", agent=lambda messages: f"{len(messages)}").status == "completed"

    def test_a_message_that_comes_while_a_request_is_made(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The step's append clashes, so the request is made again (10 §C16.2). The first is the turn's."""
        commit = LiveSession.commit
        texts = ["wait", "and me!"]

        def overtaken(session: LiveSession, events: Any, *given: Any) -> None:
            if texts and any(event.type == "step_started" for event in events):
                elsewhere(store).add_history({"content": texts.pop(0)})
            commit(session, events, *given)

        loops = loops_with({"text": "done"})
        with SessionRuntime(store, agents=loops) as runtime:
            runtime.create(HELPER, id="s")
            monkeypatch.setattr(LiveSession, "commit", overtaken)
            runtime.send("s", "go")
            asked = [message["content"] for message in loops.mock.calls()[0]["messages"]]
            assert asked == ["wait", "go", "and me!"]
            steps = [event for event in runtime.get("s").events() if event.type == "step_started"]
            assert [step.data["prompt_cache"]["stable_messages"] for step in steps] == [3]
            assert request_of(runtime.get("s"), 1)["messages"] == loops.mock.calls()[0]["messages"]

    def test_a_cut_that_comes_while_a_request_is_made(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit = LiveSession.commit

        def overtaken(session: LiveSession, events: Any, *given: Any) -> None:
            if any(event.type == "step_started" for event in events):
                monkeypatch.setattr(LiveSession, "commit", commit)
                elsewhere(store).set_history([])
            commit(session, events, *given)

        with SessionRuntime(store, agents=loops_with()) as runtime:
            runtime.create(HELPER, id="s")
            monkeypatch.setattr(LiveSession, "commit", overtaken)
            with pytest.raises(SessionConflict):
                runtime.send("s", "go")
            assert types(runtime)[-1] == "turn_completed"
            assert runtime.agents.mock.calls() == []

    def test_a_tool_that_sends_to_its_own_session(self) -> None:
        def nested() -> str:
            runtime.send("s", "deeper", agent=lambda messages: "no")
            return "never"

        with runtime_with(call("nested"), {"text": "done"}, tools=[nested]) as runtime:
            assert runtime.send("s", "go").text == "done"
            assert texts(runtime)[2].startswith("Error: ")
            assert len(texts(runtime)) == 4

    def test_a_tool_that_writes_to_its_session(self) -> None:
        def capability(build: Any) -> None:
            def note(arguments: Any) -> str:
                build.session.append(EventDraft("message_added", {"role": "user", "content": "noted"}))
                return "ok"

            build.add_tool(Tool("note", "", {}, note))

        loops = loops_with(call("note"), {"text": "done"})
        loops.capabilities.register("notes", capability)
        with SessionRuntime("memory:", agents=loops) as runtime:
            runtime.create(replace(HELPER, capabilities=("notes",)), id="s")
            runtime.send("s", "go")
            asked = loops.mock.calls()[1]["messages"]
            assert [message["content"] for message in asked] == ["go", "", "ok", "noted"]
