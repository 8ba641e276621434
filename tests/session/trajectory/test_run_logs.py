"""Run logs: what a model was given and said, answer by answer, from the log alone (10 §A1.16, §C10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harnpy.session import (
    Episode,
    EventDraft,
    Reply,
    Session,
    SessionNotFound,
    SessionRuntime,
    Turn,
    Waiting,
    distill,
    export_run,
    export_run_tree,
)
from harnpy.session.artifacts import Artifact
from harnpy.session.info import Child

CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}


def add(session: Session, type: str, cost: float = 0.0, **data: Any) -> str:
    return session.append(EventDraft(type, data, cost=cost))[0].id


def said(session: Session, role: str, content: Any, cost: float = 0.0, **more: Any) -> str:
    return add(session, "message_added", cost, role=role, content=content, **more)


class TestExport:
    def test_a_turn_is_an_answer_and_what_was_added_before_it(self) -> None:
        session = Session("s")
        session.set("metadata.team", "ops")
        said(session, "tool", "nobody asked", tool_call_id="c0")
        context = add(session, "context_added", kind="bootstrap", content="cwd: /")
        said(session, "system", "be brief", cache_control={"type": "ephemeral"})
        question = said(session, "user", "1 + 2?")
        first = said(session, "assistant", "", cost=0.5, tool_calls=[CALL])
        result = said(session, "tool", "3", tool_call_id="c1")
        second = said(session, "assistant", "It is 3.", cost=0.25)
        said(session, "user", "thanks")
        run = export_run(session)
        assert (run.session_id, run.agent_id, run.metadata, run.total_cost) == (
            "s",
            "",
            {"team": "ops"},
            0.75,
        )
        events = session.events()
        assert (run.start_time, run.end_time) == (events[0].timestamp, events[-1].timestamp)
        assert [(turn.turn_id, turn.cost, turn.metrics) for turn in run.turns] == [
            (first, 0.5, None), (second, 0.25, None),
        ]  # fmt: skip
        assert run.turns[0].input == [
            {"role": "user", "content": "cwd: /"},
            {"role": "user", "content": "be brief"},
            {"role": "user", "content": "1 + 2?"},
        ]
        entries = run.turns[0].input_entries
        assert (entries[0]["context_kind"], entries[0]["placement"]) == ("bootstrap", "prefix")
        assert [entries[0]["event_id"], entries[2]["event_id"]] == [context, question]
        told = {"role": "tool", "tool_id": "c1", "content": "3"}
        assert (run.turns[0].tool_calls, run.turns[0].tool_results) == ([CALL], [told])
        assert run.turns[1].input == [{"role": "tool", "tool_call_id": "c1", "content": "3"}]
        assert run.turns[1].input_entries[0]["event_id"] == result
        assert run.data()["turns"][1] == {
            "turn_id": second,
            "timestamp": run.turns[1].timestamp,
            "input": run.turns[1].input,
            "input_entries": run.turns[1].input_entries,
            "output": {"role": "assistant", "content": "It is 3."},
            "cost": 0.25,
        }

    def test_calls_of_every_shape(self) -> None:
        session = Session()
        said(session, "assistant", [{"type": "tool_use", "id": "x", "name": "f", "input": {"n": 1}}])
        said(session, "user", [{"type": "tool_result", "tool_use_id": "x", "content": "one"}])
        said(session, "assistant", "in text")
        begun = {"tool": "g", "id": "call_1", "args": "{}", "idempotency_key": "k"}
        add(session, "tool_started", **begun)
        add(session, "tool_completed", tool="g", id="call_1", error="Error: no")
        said(session, "user", "<runtime_feedback kind=…>")
        episode = distill(export_run(session))
        assert episode.calls == [{"tool": "f", "args": '{"n": 1}', "result": "one"}]

    def test_what_was_taken_back_is_left_out_and_what_was_cut_is_not(self) -> None:
        session = Session()
        with SessionRuntime("memory:") as runtime:
            session = runtime.create(id="s")
            for text in ("one", "two"):
                runtime.send("s", text, agent=lambda messages: messages[-1]["content"].upper())
            session.rewind()
            runtime.send("s", "three", agent=lambda messages: "THREE")
            session.trim(1)
            outputs = [turn.output["content"] for turn in export_run(session).turns]
        assert outputs == ["ONE", "THREE"]

    def test_tokens_and_cost_stand_with_the_answer_of_their_step(self) -> None:
        def agent(messages: Any, turn: Turn) -> Iterator[Any]:
            with turn.step(model="m") as step:
                step.usage, step.cost = {"input_tokens": 1}, 0.5
            yield {"role": "assistant", "content": "first"}
            with turn.step(model="m") as step:
                yield {"role": "assistant", "content": "second"}
                step.usage = {"input_tokens": 2}
            with turn.step(model="m") as step:
                step.usage, step.cost = {"input_tokens": 4}, 8.0

        with SessionRuntime("memory:") as runtime:
            session = runtime.create("helper", id="s")
            runtime.send("s", "go", agent=agent)
            runtime.send("s", "on", agent=lambda messages: Reply("third", usage={"input_tokens": 16}))
            run = export_run(session)
        assert [(turn.metrics, turn.cost) for turn in run.turns] == [
            ({"input_tokens": 1}, 0.5), ({"input_tokens": 2}, 0.0), ({"input_tokens": 16}, 0.0),
        ]  # fmt: skip
        assert (run.agent_id, run.total_cost) == ("helper", 8.5)

    def test_an_empty_run(self) -> None:
        run = export_run(Session("s"))
        assert (run.turns, run.agent_id, distill(run).conclusion) == ([], "", "")


def told(session: Session, *facts: tuple[str, dict[str, Any]]) -> None:
    session.append(*(EventDraft(type, data) for type, data in facts))


class TestTree:
    def test_children_by_id_and_theirs(self) -> None:
        sessions = {id: Session(id) for id in ("top", "b1", "a1")}
        top, inner = Child("b", "b1"), Child("a", "a1")
        told(
            sessions["top"],
            top.requested("helper", "handoff", "look", metadata={"n": 1}),
            top.started("helper"),
            ("artifact_recorded", {"child_id": "b", "artifact": {"id": "r", "kind": "text"}}),
            top.completed("found", ["r"]),
            Child("a").requested("graph", "fresh", "no session"),
            Child("c", "gone").requested("x", "fork", ""),
        )
        said(sessions["b1"], "assistant", "found")
        told(sessions["b1"], inner.requested("t", "fork", ""), Child("up", "top").requested("t", "fork", ""))

        def load(id: str) -> Session | None:
            if id == "gone":
                raise SessionNotFound(id)
            return sessions.get(id)

        tree = export_run_tree(sessions["top"], load)
        assert tree.child_runs is not None
        graph, helper, gone = tree.child_runs
        assert (graph.child_id, graph.session_id, graph.run) == ("a", "", None)
        assert (gone.status, gone.run) == ("requested", None)
        assert (helper.status, helper.summary, helper.metadata) == ("completed", "found", {"n": 1})
        assert helper.artifacts == [Artifact(id="r", kind="text")]
        assert helper.run is not None
        assert [turn.output["content"] for turn in helper.run.turns] == ["found"]
        again = {child.child_id: child.run for child in helper.run.child_runs or ()}
        assert again["up"] is None
        assert again["a"] is not None
        shown = tree.data()["child_runs"]
        assert [child["child_id"] for child in shown] == ["a", "b", "c"]
        assert shown[1]["run"]["child_runs"][0]["run"]["session_id"] == "a1"
        assert "summary" not in shown[2]


class TestDistill:
    def test_the_conclusion_is_the_last_text_without_calls(self) -> None:
        session = Session("s")
        said(session, "assistant", "I think so.")
        said(session, "assistant", "I look it up.", tool_calls=[CALL, {**CALL, "id": "c2"}])
        said(session, "tool", "3", tool_call_id="c1")
        said(session, "assistant", "  ")
        episode = distill(export_run(session))
        assert episode.conclusion == "I think so."
        assert episode.calls == [{"tool": "add", "args": '{"a":1}', "result": "3"}]
        assert episode.text == "I think so. add"
        assert Episode.of(episode.data()) == episode
        assert distill(export_run(session)).id != episode.id

    def test_a_waiting_turn_is_a_turn(self) -> None:
        def agent(messages: Any) -> Iterator[str]:
            yield "asked"
            raise Waiting("input")

        with SessionRuntime("memory:") as runtime:
            session = runtime.create(id="s")
            runtime.send("s", "go", agent=agent)
            assert distill(export_run(session)).conclusion == "asked"


def test_a_fork_onto_a_session_brings_its_answers() -> None:
    source, session = Session("source"), Session("s")
    said(source, "user", "q")
    said(source, "assistant", "a")
    session.become_fork_of(source, source.view)
    assert [turn.output["content"] for turn in export_run(session).turns] == ["a"]


@pytest.mark.parametrize("at", [1, 3])
def test_a_fork_has_its_past(at: int) -> None:
    session = Session("s")
    said(session, "user", "q")
    said(session, "assistant", "a")
    assert len(export_run(session.fork("f", at=at)).turns) == at // 3


def test_an_episode_has_the_calls_that_succeeded() -> None:
    session = Session("s")
    calls = [
        {**CALL, "id": id} for id in ("works", "fails", "fails with its message first", "says so", "lost")
    ]
    said(session, "assistant", "", tool_calls=calls)
    add(session, "tool_completed", tool="add", id="works", output="3")
    said(session, "tool", "3", tool_call_id="works")
    add(session, "tool_completed", tool="add", id="fails", error="no")
    said(session, "tool", "no", tool_call_id="fails")
    said(session, "tool", "no", tool_call_id="fails with its message first")
    add(session, "tool_completed", tool="add", id="fails with its message first", error="no")
    block = {"type": "tool_result", "tool_use_id": "says so", "content": "no", "is_error": True}
    said(session, "user", [block])
    run = export_run(session)
    assert len(run.turns[0].tool_results) == 4
    assert distill(run).calls == [{"tool": "add", "args": '{"a":1}', "result": "3"}]
