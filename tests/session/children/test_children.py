"""Children: agents in sessions of their own, and what their parent's log says of them (10 §A1.15, §C10)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harnpy.session import (
    AgentDef,
    AgentFactory,
    ChildError,
    ChildNotFound,
    ChildResult,
    ChildSpec,
    ChildTimeout,
    InvalidArgument,
    Reply,
    Session,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    SessionRuntime,
    Turn,
    Waiting,
    child_runs,
)
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.artifacts import Artifact
from harnpy.storage import Store
from tests.session.conftest import opened, store, url

__all__ = ["opened", "store", "url"]

CHILD = "child_"


@pytest.fixture
def runtime() -> Iterator[SessionRuntime]:
    with SessionRuntime("memory:") as runtime:
        runtime.create("boss", id="p", seed={"content": "before"})
        yield runtime


def told(session: Session) -> list[str]:
    """What the log says of children."""
    kinds = (event.type for event in session.events())
    return [kind.removeprefix(CHILD) for kind in kinds if kind.startswith((CHILD, "artifact"))]


def echo(messages: Any) -> str:
    return "/".join(message["content"] for message in messages)


class Gate:
    """An agent that waits until it is let through. ``entered`` counts who has come."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()

    def __call__(self, messages: Any, turn: Turn) -> str:
        self.entered.release()
        while not self.open.wait(0.005):
            turn.check()
        return "through"


class TestRunning:
    def test_the_whole_story_on_every_store(self, opened: Callable[..., Store]) -> None:
        def helper(messages: Any, turn: Turn) -> Reply:
            turn.session.record_artifact(Artifact(id="a1", kind="text", label="draft"))
            turn.session.record_artifact(Artifact(id="a1", kind="text", label="final"))
            turn.session.record_artifact(Artifact(id="w", kind="workspace_file_ref"))
            return Reply("done: " + echo(messages), usage={"total_tokens": 3})

        store = opened()
        with SessionRuntime(store) as runtime:
            parent = runtime.create(id="p")
            spec = ChildSpec(
                task="look", context="in the cellar", agent=helper, metadata={"n": 1}, child_id="c"
            )
            ref = runtime.spawn("p", spec)
            assert (ref.child_id, ref.session_id, ref.parent_id) == ("c", "c", "p")
            result = runtime.wait("c")
            assert result == ChildResult(
                "c", "c", "completed", "done: Task: look\nContext: in the cellar",
                usage={"total_tokens": 3}, artifacts=result.artifacts, result=result.result,
            )  # fmt: skip
            assert [(made.id, made.label, made.producer_session_id) for made in result.artifacts] == [
                ("a1", "final", "c")
            ]
            marks = {"agent_id": "helper", "n": 1}
            assert all(event.metadata == marks for event in runtime.get("c").events())
            assert told(parent) == ["requested", "started", "artifact_recorded", "completed"]
            asked, started, recorded, ended = parent.events(after=1)
            assert {key: asked.data[key] for key in ("mode", "task", "context", "agent_id")} == {
                "mode": "handoff", "task": "look", "context": "in the cellar", "agent_id": "helper",
            }  # fmt: skip
            assert (recorded.more, recorded.data["child_id"]) == (1, "c")
            assert ended.data["artifact_ids"] == ["a1"]
            assert all(event.data["metadata"] == {"n": 1} for event in (asked, started, ended))
            with pytest.raises(ChildNotFound, match=r'^wait child "c": not found$'):
                runtime.wait("c")
            merged = runtime.merge_child("p", "c", note="used")
            assert merged.status == "merged"
        again = SessionRuntime(store if store.url.startswith("memory:") else opened())
        (run,) = child_runs(again.get("p"))
        assert run == merged
        assert run.data() == {
            "child_id": "c", "session_id": "c", "agent_id": "helper", "mode": "handoff", "status": "merged",
            "task": "look", "context": "in the cellar", "summary": result.summary, "note": "used",
            "usage": {"total_tokens": 3}, "artifacts": [result.artifacts[0].data()], "metadata": {"n": 1},
        }  # fmt: skip
        assert again.get("p").open_children == {}
        assert again.get("c").messages()[-1]["content"] == result.summary

    def test_how_a_child_begins(self, runtime: SessionRuntime) -> None:
        one = {"role": "user", "content": "one"}

        def run(**spec: Any) -> str:
            return runtime.run_child("p", ChildSpec(agent=echo, **spec)).summary

        assert run(task="t") == "Task: t"
        assert run(task="t", messages=[one]) == "one"
        assert run(mode="fork", task="t") == "before"
        assert run(mode="fork", messages=[one]) == "before/one"
        assert run(mode="fresh", task="t") == ""
        assert run(mode="fresh", messages=[one]) == "one"
        fork = child_runs(runtime.get("p"))[2]
        assert runtime.info(fork.session_id).parent_id == "p"
        assert child_runs(runtime.get(fork.session_id)) == []

    def test_what_cannot_be_spawned(self, runtime: SessionRuntime) -> None:
        for spec, told in (
            (ChildSpec("clone", agent=echo), r'^spawn child: unsupported mode "clone"$'),
            (ChildSpec(), "^spawn child: nil agent$"),
            (ChildSpec(agent=3), "an agent is a function or has a method `run`, got int"),
        ):
            with pytest.raises(InvalidArgument, match=told):
                runtime.spawn("p", spec)
        with pytest.raises(SessionNotFound):
            runtime.spawn("nobody", ChildSpec(agent=echo))
        with pytest.raises(SessionExists):
            runtime.spawn("p", ChildSpec(agent=echo, child_id="p"))
        gate = Gate()
        runtime.spawn("p", ChildSpec(agent=gate, child_id="c"))
        with pytest.raises(InvalidArgument, match=r'^spawn child: there is a child "c" already$'):
            runtime.spawn("p", ChildSpec(agent=echo, child_id="c"))
        with pytest.raises(InvalidArgument, match="`child_limit` must be an int >= 1, not 0"):
            SessionRuntime("memory:", child_limit=0)
        gate.open.set()
        assert runtime.wait("c").summary == "through"
        assert told_of(runtime) == {"c": "completed"}

    def test_how_a_child_ends(self, runtime: SessionRuntime) -> None:
        def fails(messages: Any) -> str:
            raise KeyError("no key")

        def waits(messages: Any) -> str:
            raise Waiting("approval", "order-7")

        def waits_for_something(messages: Any) -> str:
            raise Waiting("")

        def stops(messages: Any) -> Reply:
            return Reply("enough", stop_reason="budget_exhausted")

        results = {
            agent.__name__: runtime.run_child("p", ChildSpec(agent=agent, child_id=agent.__name__))
            for agent in (fails, waits, waits_for_something, stops)
        }
        failed, blocked = results["fails"], results["waits"]
        assert (failed.status, failed.error) == ("failed", "'no key'")
        assert isinstance(failed.cause, KeyError)
        assert (blocked.status, blocked.reason, blocked.external_id) == ("blocked", "approval", "order-7")
        assert results["waits_for_something"].reason == "waiting"
        assert (results["stops"].status, results["stops"].summary) == ("completed", "enough")
        runs = {run.child_id: run for run in child_runs(runtime.get("p"))}
        assert (runs["fails"].status, runs["fails"].error) == ("failed", "'no key'")
        assert (runs["waits"].reason, runs["waits"].metadata) == ("approval", {"external_id": "order-7"})

    def test_artifacts_without_an_id_are_recorded_too(self, runtime: SessionRuntime) -> None:
        def agent(messages: Any, turn: Turn) -> None:
            for label in "ab":
                turn.session.record_artifact(Artifact(label=label))

        result = runtime.run_child("p", ChildSpec(agent=agent, child_id="c"))
        assert [artifact.label for artifact in result.artifacts] == ["a", "b"]
        assert runtime.merge_child("p", "c").artifacts == result.artifacts

    def test_progress_and_merge(self, runtime: SessionRuntime) -> None:
        gate = Gate()
        runtime.spawn("p", ChildSpec(agent=gate, child_id="c"))
        gate.entered.acquire()
        run = runtime.progress_child("p", "c", "half way", metadata={"done": 0.5})
        assert (run.status, run.progress, run.metadata) == ("running", "half way", {"done": 0.5})
        with pytest.raises(ChildError, match=r'^merge child "c": it is running$'):
            runtime.merge_child("p", "c")
        for call, verb in ((runtime.merge_child, "merge"), (runtime.progress_child, "progress")):
            with pytest.raises(ChildNotFound, match=f'^{verb} child "x": not found$'):
                call("p", "x")
        gate.open.set()
        runtime.wait("c")
        assert runtime.merge_child("p", "c", artifact_ids=["a"]).status == "merged"
        with pytest.raises(ChildError, match=r'^merge child "c": it is merged$'):
            runtime.merge_child("p", "c")

    def test_waiting_takes_no_longer_than_it_may(self, runtime: SessionRuntime) -> None:
        gate = Gate()
        runtime.spawn("p", ChildSpec(agent=gate, child_id="c"))
        with pytest.raises(ChildTimeout, match=r'^wait child "c": timed out after 0s$') as raised:
            runtime.wait("c", timeout=0)
        assert isinstance(raised.value, TimeoutError)
        gate.open.set()
        assert runtime.wait("c", timeout=60).status == "completed"


def told_of(runtime: SessionRuntime) -> dict[str, str]:
    return {run.child_id: run.status for run in child_runs(runtime.get("p"))}


class TestInTurns:
    def test_a_turn_has_children_and_they_have_some(self, runtime: SessionRuntime) -> None:
        def helper(messages: Any, turn: Turn) -> str:
            if turn.session.id == "deep":
                return "bottom"
            inner = ChildSpec(agent=helper, child_id="deep")
            return "over " + runtime.run_child(turn.session.id, inner).summary

        def boss(messages: Any, turn: Turn) -> str:
            return runtime.run_child("p", ChildSpec(agent=helper, child_id="c")).summary

        result = runtime.send("p", "go", agent=boss)
        assert result.text == "over bottom"
        parent = runtime.get("p")
        assert {event.turn_id for event in parent.events() if event.type.startswith(CHILD)} == {
            result.turn_id
        }
        assert parent.revision == 2
        assert told_of(runtime) == {"c": "completed"}
        assert [run.child_id for run in child_runs(runtime.get("c"))] == ["deep"]

    def test_atomic_actions_have_none(self, runtime: SessionRuntime) -> None:
        with pytest.raises(SessionBusy, match="session 'p' is busy: an atomic action can't have children"):
            runtime.execute("p", lambda session: runtime.spawn("p", ChildSpec(agent=echo)))
        assert child_runs(runtime.get("p")) == []

    @pytest.mark.parametrize("is_async", [False, True])
    def test_a_failed_turn_takes_its_children_along(self, runtime: SessionRuntime, is_async: bool) -> None:
        gate = Gate()

        async def forever(messages: Any) -> str:
            gate.entered.release()
            await asyncio.Event().wait()
            return ""

        def boss(messages: Any, turn: Turn) -> None:
            runtime.spawn("p", ChildSpec(agent=forever if is_async else gate, child_id="c"))
            runtime.spawn("p", ChildSpec(agent=gate, child_id="d", detached=True))
            for _ in range(2):
                gate.entered.acquire()
            raise ZeroDivisionError("oh")

        with pytest.raises(ZeroDivisionError):
            runtime.send("p", "go", agent=boss)
        assert runtime.wait("c").status == "canceled"
        gate.open.set()
        assert runtime.wait("d").status == "completed"
        assert told_of(runtime) == {"c": "canceled", "d": "completed"}
        assert told(runtime.get("p")).count("canceled") == 1
        assert runtime.get("c").execution_status == "failed"
        end = [event for event in runtime.get("c").events() if event.type == "turn_completed"]
        assert [event.data["turn_stop_reason"] for event in end] == ["cancelled"]

    @pytest.mark.parametrize("streams", [False, True])
    def test_a_cancelled_turn_that_waits_takes_its_children_along(
        self, runtime: SessionRuntime, streams: bool
    ) -> None:
        gate = Gate()

        def boss(messages: Any) -> str:
            return runtime.run_child("p", ChildSpec(agent=middle, child_id="c")).summary

        def middle(messages: Any) -> str:
            return runtime.run_child("c", ChildSpec(agent=gate, child_id="deep")).summary

        async def read(face: AsyncSessionRuntime) -> None:
            async for _ in face.stream("p", "go", agent=boss):
                pass

        async def run() -> None:
            face = AsyncSessionRuntime(runtime)
            task = asyncio.create_task(read(face) if streams else face.send("p", "go", agent=boss))
            await asyncio.to_thread(gate.entered.acquire)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(run())
        assert told_of(runtime) == {"c": "canceled"}
        assert [run.status for run in child_runs(runtime.get("c"))] == ["canceled"]

    def test_whoever_is_stopped_while_it_waits_stops_waiting(self, runtime: SessionRuntime) -> None:
        gate = Gate()

        def boss(messages: Any, turn: Turn) -> None:
            stopping = threading.Thread(target=lambda: (gate.entered.acquire(), turn.session.caller.stop()))
            stopping.start()
            runtime.run_child("p", ChildSpec(agent=gate, child_id="c"))

        with pytest.raises(asyncio.CancelledError):
            runtime.send("p", "go", agent=boss)
        assert told_of(runtime) == {"c": "canceled"}

    def test_an_async_agent_cannot_block_the_loop_of_the_sync_runtime(self, runtime: SessionRuntime) -> None:
        async def boss(messages: Any) -> str:
            with pytest.raises(SessionBusy, match=r"use harnpy\.session\.aio inside it"):
                runtime.run_child("p", ChildSpec(agent=echo, child_id="c"))
            return (await AsyncSessionRuntime(runtime).run_child("p", ChildSpec(agent=boss2))).summary

        async def boss2(messages: Any) -> str:
            return "inside"

        assert runtime.send("p", "go", agent=boss).text == "inside"

    def test_a_turn_may_cut_behind_what_is_said_of_its_children(self, runtime: SessionRuntime) -> None:
        def boss(messages: Any, turn: Turn) -> str:
            session, spec = turn.session, ChildSpec(agent=echo)
            for cut in (
                lambda: session.trim(1),
                lambda: session.set_history({"content": "anew"}),
                session.clean_window,
                session.reset,
            ):
                runtime.run_child("p", spec)
                cut()
            runtime.run_child("p", spec)
            session.refresh()
            assert len(child_runs(session)) == 5
            return "cut"

        assert runtime.send("p", "go", agent=boss).text == "cut"
        assert [message["content"] for message in runtime.get("p").messages()] == ["cut"]
        assert [run.status for run in child_runs(runtime.get("p"))] == ["completed"] * 5

    def test_a_resize_at_the_end_that_somebody_overtakes_is_left_for_the_next_change(self) -> None:
        def overtake(stage: str, session: Any) -> None:
            if stage == "before_save" and child_runs(session):
                runtime.progress_child("p", "c", "right now")

        told: list[str] = []
        with SessionRuntime("memory:", settings={"max_length": 60}) as runtime:
            runtime.create(id="p")
            runtime.run_child("p", ChildSpec(agent=echo, child_id="c"))
            runtime.events.on("session_resized", lambda name, data: told.append(data["strategy"]))
            hooked = SessionRuntime(runtime.store, hooks=overtake, settings={"max_length": 60})
            hooked.events.on("session_resized", lambda name, data: told.append(data["strategy"]))
            assert hooked.send("p", "go", agent=lambda messages: "x" * 50).text == "x" * 50
            assert (told, len(hooked.get("p").messages())) == ([], 2)
            assert child_runs(hooked.get("p"))[0].progress == "right now"
            runtime.send("p", None, agent=lambda messages: None)
            assert (told, len(runtime.get("p").messages())) == (["simple_cut"], 1)

    def test_a_child_that_takes_too_long_is_cancelled(self, runtime: SessionRuntime) -> None:
        gate = Gate()

        def waits(messages: Any) -> str:
            return runtime.run_child("c", ChildSpec(agent=gate, child_id="deep")).summary

        result = runtime.run_child("p", ChildSpec(agent=waits, child_id="c", timeout=0.05))
        assert (result.status, result.reason) == ("canceled", "agent execution timed out after 0.05s")
        assert all(run.status == "canceled" for run in child_runs(runtime.get("c")))

    def test_a_child_may_write_to_its_parent_once_that_has_ended(self, runtime: SessionRuntime) -> None:
        gate = Gate()

        def helper(messages: Any, turn: Turn) -> str:
            with pytest.raises(SessionBusy):
                runtime.execute("p", lambda session: session.set_memo("too early"))
            gate(messages, turn)
            runtime.execute("p", lambda session: session.set_memo("now"))
            return "written"

        def boss(messages: Any) -> str:
            runtime.spawn("p", ChildSpec(agent=helper, child_id="c"))
            gate.entered.acquire()
            return "ended"

        runtime.send("p", "go", agent=boss)
        gate.open.set()
        assert runtime.wait("c").summary == "written"
        assert runtime.get("p").memo == "now"


class TestLimit:
    def test_children_wait_for_a_slot_before_they_start(self) -> None:
        gate = Gate()
        with SessionRuntime("memory:", child_limit=1) as runtime:
            runtime.create(id="p")
            runtime.spawn("p", ChildSpec(agent=gate, child_id="a"))
            gate.entered.acquire()
            for id in "bc":
                runtime.spawn("p", ChildSpec(agent=gate, child_id=id))
            assert told_of(runtime) == {"a": "running", "b": "requested", "c": "requested"}
            runtime._children.end("b")
            gate.open.set()
            assert [runtime.wait(id).status for id in "ac"] == ["completed", "completed"]
            assert told(runtime.get("p")).count("started") == 2

    def test_first_come_first_served_and_who_waits_costs_no_thread(self) -> None:
        gate, ran = Gate(), []

        def agent(messages: Any, turn: Turn) -> None:
            ran.append(int(turn.session.id))

        with SessionRuntime("memory:", child_limit=2) as runtime:
            runtime.create(id="p")
            runtime.spawn("p", ChildSpec(agent=gate, child_id="first"))
            runtime.spawn("p", ChildSpec(agent=gate, child_id="second"))
            for _ in range(2):
                gate.entered.acquire()
            before = threading.active_count()
            for number in range(30):
                runtime.spawn("p", ChildSpec(agent=agent, child_id=str(number)))
            assert threading.active_count() == before
            runtime._children.end("first")
            for number in range(30):
                runtime.wait(str(number))
            assert ran == list(range(30))
            gate.open.set()
            runtime.wait("second")

    def test_a_child_that_waits_for_its_own_gives_its_slot(self) -> None:
        with SessionRuntime("memory:", child_limit=1) as runtime:
            runtime.create(id="p")

            def nested(messages: Any, turn: Turn) -> str:
                depth = int(turn.session.id.removeprefix("c"))
                if depth == 3:
                    return "3"
                inner = ChildSpec(agent=nested, child_id=f"c{depth + 1}")
                return f"{depth} {runtime.run_child(turn.session.id, inner).summary}"

            assert runtime.run_child("p", ChildSpec(agent=nested, child_id="c0")).summary == "0 1 2 3"
            assert runtime.run_child("p", ChildSpec(agent=echo, task="x")).status == "completed"


class TestClosing:
    def test_closing_the_runtime_ends_its_children(self) -> None:
        gate = Gate()
        with SessionRuntime("memory:") as runtime:
            session = runtime.create(id="p")
            runtime.spawn("p", ChildSpec(agent=gate, detached=True))
            gate.entered.acquire()
        (run,) = child_runs(session)
        assert (run.status, run.reason) == ("canceled", "the runtime was closed")


class TestLoops:
    def test_the_same_on_a_loop(self) -> None:
        async def run() -> None:
            async with AsyncSessionRuntime("memory:") as face:
                await face.create(id="p")
                loop = asyncio.get_running_loop()

                async def agent(messages: Any) -> str:
                    assert asyncio.get_running_loop() is loop
                    return "here"

                ref = await face.spawn("p", ChildSpec(agent=agent, child_id="c"))
                result = await face.wait(ref.child_id, timeout=60)
                assert result.summary == "here"
                assert result.result is not None
                assert await result.result.session.messages() == [{"role": "assistant", "content": "here"}]
                assert (await face.progress_child("p", "c", "over")).progress == "over"
                assert (await face.merge_child("p", "c")).status == "merged"
                both = await asyncio.gather(*(face.run_child("p", ChildSpec(agent=echo)) for _ in range(2)))
                assert [one.status for one in both] == ["completed"] * 2

        asyncio.run(run())

    def test_cancelling_whoever_runs_a_child_cancels_it_but_not_whoever_waits(self) -> None:
        async def run() -> None:
            async with AsyncSessionRuntime("memory:") as face:
                session = await face.create(id="p")
                begun = asyncio.Semaphore(0)

                async def forever(messages: Any) -> None:
                    begun.release()
                    await asyncio.Event().wait()

                task = asyncio.create_task(face.run_child("p", ChildSpec(agent=forever, child_id="c")))
                await begun.acquire()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await face.spawn("p", ChildSpec(agent=forever, child_id="d"))
                await begun.acquire()
                task = asyncio.create_task(face.wait("d"))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert [run.status for run in child_runs(session.session)] == ["canceled", "running"]

        asyncio.run(run())


def test_a_definition_is_an_agent_too() -> None:
    class Loop(AgentFactory):
        def __call__(self, definition: AgentDef, session: Any) -> Any:
            return lambda messages: f"{definition.name}: {messages[-1]['content']}"

        def check(self, definition: AgentDef) -> None: ...

        def close(self, call: Any) -> None: ...

    with SessionRuntime("memory:", agents=Loop()) as runtime:
        runtime.create(id="p")
        result = runtime.run_child("p", ChildSpec(task="t", agent=AgentDef("helper"), child_id="c"))
        assert result.summary == "helper: Task: t"
        assert runtime.info("c").agent_name == "helper"
