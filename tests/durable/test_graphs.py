"""A graph of six stages, killed at every step and at every append. Spec: 10 §C12.1 g, §C19.1."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.durable import graphs
from harnpy.llm.errors import CallError
from harnpy.llm.reply import Reply
from harnpy.session import SessionRuntime
from harnpy.storage.errors import StoreUnreachable
from harnpy.workflow.engines.contract import GRAPH, Job, Step
from harnpy.workflow.engines.errors import RunCancelled, RunError
from tests.counts import COUNT
from tests.durable.processes import URL, Model, Record, Shelf, empty, job, process, six_stages, timeless
from tests.support import ended, happens

Dict = dict[str, Any]

#: Every how many appends one is killed at.
EVERY = 1 if COUNT.campaign else 7


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("hello")


def whole() -> tuple[Any, int, list[Step]]:
    """The record of the run that nobody interrupts, how often the model was asked, and the steps."""
    steps: list[Step] = []
    model = Model()
    return timeless(process(empty(), Record(steps), job(), model)), len(model.asked), steps


def test_killed_at_every_step() -> None:
    expected, asked, steps = whole()
    assert [step.key for step in steps] == [
        "begin", "stage:look:1", "stage:draft:2", "stage:each:3", "stage:good:4", "stage:check:5",
        "stage:all:6",
    ]  # fmt: skip
    for number in range(len(steps)):
        before, after = {"dies_before": number}, {"dies_after": number}
        for dies in (before, after) if COUNT.campaign or not number else (after,):
            store, model, left = empty(), Model(), list[Step]()
            assert process(store, Record(left, **dies), job(), model) is None
            done = len(left)
            record = Record(left)
            assert timeless(process(store, record, job(), model)) == expected
            assert record.ran == [step.key for step in steps[done:]]
            assert len(model.asked) == asked


def test_killed_at_every_append() -> None:
    expected, asked, _ = whole()
    lives, counts = 0, set()
    while True:
        store, model, left = empty(), Model(), list[Step]()
        if process(store, Record(left), job(), model, lives) is not None:
            break
        assert timeless(process(store, Record(left), job(), model)) == expected
        assert process(store, Record(left), job(), model) is not None  # a run that is over, taken up again
        counts.add(len(model.asked) - asked)
        for info in SessionRuntime(store).list().items:
            session = SessionRuntime(store).get(info.id)
            started = [event for event in session.events() if event.type == "turn_started"]
            assert (len(started), session.view.open_turns) == (1, {})
        lives += EVERY
    assert lives > 24
    assert counts <= {0, 1}  # one more where the reply had come and was not recorded


def test_a_step_refers_to_its_transcript() -> None:
    _, _, steps = whole()
    output = steps[1].output
    place = output["stage"]["transcript"]["$transcript"]
    assert (place["session_id"], place["turn"], place["state"]) == ("workflow_stage_run-1_look", 2, "active")
    assert output["stage"]["artifacts"][0]["data"]["transcript"] == output["stage"]["transcript"]
    assert '"messages"' not in str(output).replace("'", '"').replace("deferred_user_messages", "")


def test_stages_with_one_session_and_another_visibility() -> None:
    graph = {
        "entry": "a",
        "nodes": {
            "a": {"model_policy": {"session_id": "shared"}},
            "b": {"model_policy": {"session_id": "shared"}, "output_visibility": "public"},
            "c": {
                "kind": "verify", "model_policy": {"session_id": "shared"},
                "input_contract": {"require_transcript": True},
            },
        },
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}],
    }  # fmt: skip
    model, steps = Model(), list[Step]()
    expected = timeless(process(empty(), Record(steps), job(graph), model))
    assert [stage["branch"] for stage in expected["stages"]] == ["success", "success", "passed"]
    assert len(expected["stages"][1]["transcript"]["messages"]) == 4
    for number in range(1, len(steps)):
        store, left = empty(), list[Step]()
        process(store, Record(left, dies_before=number), job(graph), Model())
        found = timeless(process(store, Record(left), job(graph), Model()))
        assert found == expected


def test_a_node_that_is_visited_again_goes_on_in_its_session() -> None:
    graph = {
        "id": "loop",
        "entry": "a",
        "nodes": {"a": {"mode": "agent", "done_sentinel": "##DONE##"}, "b": {"system": "x"}},
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}],
    }
    given = job(graph, options={"max_steps": 5})
    expected = timeless(process(empty(), Record([]), given, Model(said)))
    assert expected["status"] == "paused"
    assert [stage["node_id"] for stage in expected["stages"]] == ["a", "b", "a", "b", "a"]
    assert [len(stage["transcript"]["messages"]) for stage in expected["stages"]] == [2, 2, 4, 2, 6]
    for number in range(1, 6):
        store, left = empty(), list[Step]()
        process(store, Record(left, dies_before=number), given, Model(said))
        assert timeless(process(store, Record(left), given, Model(said))) == expected


def said(text: str, count: int) -> Dict:
    return {"text": "well ##DONE##"}


def test_a_fork_goes_on_in_sessions_of_its_own() -> None:
    graph = {
        "id": "loop",
        "entry": "a",
        "nodes": {"a": {"mode": "agent", "done_sentinel": "##DONE##"}, "b": {"system": "x"}},
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}],
    }
    given, store, steps = job(graph, options={"max_steps": 4}), empty(), list[Step]()
    former = process(store, Record(steps), given, Model(said))
    fork = Record(steps[:3])
    fork.run_id = "run-2"
    model = Model(said)
    found = process(store, fork, given, model)
    assert fork.ran == ["stage:a:3", "stage:b:4"]
    assert (found["id"], len(model.asked)) == ("run-2", 2)
    assert [len(stage["transcript"]["messages"]) for stage in found["stages"]] == [2, 2, 4, 2]
    assert found["stages"][:2] == former["stages"][:2]
    with SessionRuntime(store) as runtime:
        assert runtime.get("workflow_stage_run-2_a").info.parent_id == "workflow_stage_run-1_a"
        said_before = runtime.get("workflow_stage_run-1_a").messages()
        assert len(said_before) == 4
        assert runtime.get("workflow_stage_run-2_a").messages()[:2] == said_before[:2]


def test_a_worker_and_an_error_branch() -> None:
    graph = {
        "id": "helped",
        "entry": "sub",
        "nodes": {"sub": {"kind": "subagent"}, "bad": {"system": "fail"}, "after": {"kind": "escalation"}},
        "edges": [
            {"from": "sub", "to": "bad"}, {"from": "bad", "to": "after", "branch": "error"},
        ],
    }  # fmt: skip

    def answer(text: str, count: int) -> Any:
        return (
            {"text": "helped"}
            if "worker" not in text and "helped" not in text
            else CallError("auth", "no key")
        )

    expected, asked = timeless(process(empty(), Record([]), job(graph), Model(answer))), 2
    assert [stage["branch"] for stage in expected["stages"]] == ["success", "error", "escalated"]
    for lives in range(8):
        store, left, model = empty(), list[Step](), Model(answer)
        process(store, Record(left), job(graph), model, lives)
        found = timeless(process(store, Record(left), job(graph), model))
        assert [stage["branch"] for stage in found["stages"]] == ["success", "error", "escalated"]
        assert len(model.asked) <= asked + 1


class Gone(Shelf):
    """A store that is gone for one append, number ``lives``, and back for the next one."""

    def stream(self, *args: Any) -> Any:
        return GoneStream(self._store.stream(*args), self)


class GoneStream:
    def __init__(self, stream: Any, store: Gone) -> None:
        self._stream = stream
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def append(self, *args: Any, **options: Any) -> Any:
        self._store.lives -= 1
        if not self._store.lives:
            raise StoreUnreachable("memory:", "the server is gone")
        return self._stream.append(*args, **options)


def test_a_store_that_is_gone_fails_the_run_and_no_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, asked, _ = whole()
    monkeypatch.setattr("tests.durable.processes.Shelf", Gone)
    for lives in range(1, 26, 1 if COUNT.campaign else 7):
        store, model, left = empty(), Model(), list[Step]()
        with pytest.raises(StoreUnreachable):
            process(store, Record(left), job(), model, lives)
        assert timeless(process(store, Record(left), job(), model)) == expected
        assert len(model.asked) <= asked + 2


class Slow:
    """A model that takes its time."""

    def __init__(self) -> None:
        self.began = threading.Event()

    async def complete(self, request: Any) -> Reply:
        import asyncio

        self.began.set()
        await asyncio.sleep(60)
        raise AssertionError("nobody cancelled the call")


class Cancelled(Record):
    def check(self) -> None:
        raise RunCancelled(self.run_id, "enough")


def test_cancel_reaches_a_model_call() -> None:
    store, model = empty(), Slow()
    record = Cancelled([])
    graph = {
        "entry": "m",
        "nodes": {"m": {"kind": "map", "mode": "agent", "map_policy": {"items": ["a", "b"]}}},
    }

    def make_vm() -> Vm:
        vm = Vm()
        vm.provide("model", model)
        vm.sessions.stores._open[URL] = Shelf(store, 1000)  # type: ignore[assignment]
        return vm

    cancelled = []

    def cancel() -> None:
        happens(model.began)
        cancelled.append(time.monotonic())
        for call in record.ends:
            call()

    thread = threading.Thread(target=cancel, daemon=True)
    thread.start()
    with pytest.raises(RunCancelled, match="enough"):
        graphs.run(job(graph), record, make_vm)
    assert time.monotonic() - cancelled[0] < 1.0
    ended(thread)
    with SessionRuntime(store) as runtime:
        infos = runtime.list().items
        assert len(infos) == 2
        for info in infos:
            session = runtime.get(info.id)
            ends = [event.data for event in session.events() if event.type == "turn_completed"]
            assert [end["turn_stop_reason"] for end in ends] == ["cancelled"]
            assert not session.view.open_turns


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"options": {"resume_path": "x.json"}}, "option `resume_path` isn't one of a durable run"),
        ({"options": {"replay_mode": "deterministic"}}, "option `replay_mode` isn't"),
    ],
)
def test_options_that_are_the_engines(more: Dict, message: str) -> None:
    with pytest.raises(RunError, match=message):
        process(empty(), Record([]), job(**more), Model())


def test_a_tool_that_is_a_function_is_refused_by_name() -> None:
    tools = {"_type": "tool_registry", "tools": [{"name": "post", "description": "", "parameters": {}}]}
    with pytest.raises(RunError, match="tool 'post' of node 'a' is a function"):
        process(empty(), Record([]), job({"nodes": {"a": {"tools": tools}}}), Model())
    graph = six_stages()
    graph["nodes"]["look"]["tools"] = {
        "_type": "tool_registry",
        "tools": [{"name": "read_file", "handler": print}],
    }
    with pytest.raises(RunError, match="tool 'read_file' of node 'look' is a function"):
        process(empty(), Record([]), Job(GRAPH, "six", {"graph": graph}, URL), Model())


def test_branches_that_share_a_session_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnpy.builtins.sessions.service.WAIT", 0.05)

    class Thinking(Model):
        async def complete(self, request: Any) -> Reply:  # type: ignore[override]
            import asyncio

            await asyncio.sleep(0.2)
            return super().complete(request)

    node = {"kind": "map", "map_policy": {"items": ["a", "b", "c"]}, "model_policy": {"session_id": "one"}}
    store = empty()
    found = process(store, Record([]), job({"nodes": {"m": node}}), Thinking(said))
    assert found["stages"][0]["branch"] == "mapped"
    assert len(found["artifacts"]) == 3
    assert len(SessionRuntime(store).get("one").messages()) == 6
