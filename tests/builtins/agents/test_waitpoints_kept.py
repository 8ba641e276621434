"""Waitpoints and monitors of programs on a kept log, and in sessions. Spec: 10 §C18."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from harnpy import HostError, Vm, VmError
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.eventlog import MemoryEventLog, SqliteEventLog, install_event_log
from harnpy.eventlog.contract import Numbered
from harnpy.eventlog.waitpoints import Waitpoints

WAITS = 'import { wait } from "std/waitpoint"\nreturn wait("a", {wait_id: "w", timeout: 1h}).value'
MONITOR = """
import { wait_for } from "std/monitors"
return wait_for({
  wait_id: "m", timeout: 1h, poll_interval: 1ms, source: {poll: { ctx -> poll() }}, condition: { n -> n > 2 },
})
"""
EVERYTHING = ["read", "list", "write", "delete", "process", "environment", "model", "person"]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("BACKEND", "DIR", "SQLITE_PATH", "QUEUE_DEPTH"):
        monkeypatch.delenv(f"HARN_EVENT_LOG_{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harn.toml").write_text('[event_log]\nstore = "sqlite:events.db"')
    return tmp_path


@pytest.fixture
def points(project: Path) -> Iterator[Waitpoints]:
    """Those of the project, as another process sees them."""
    with closing(SqliteEventLog(project / "events.db")) as log:
        yield Waitpoints(log)


def test_another_process_completes_what_a_program_waits_for(points: Waitpoints) -> None:
    vm, other = Vm(), Thread(target=points.complete, args=("a", {"n": 1}))
    vm.register("other() -> nil", other.start)
    points.create("a")
    assert vm.run_source(f"spawn {{ other() }}\n{WAITS}") == {"n": 1}
    other.join()
    assert Vm().run_source(WAITS) == {"n": 1}  # a later run, which enters the wait again
    kinds = [event.kind for _, event in points.log.read_range("waitpoint.a")]
    assert sorted(kinds) == ["completed", "created", "wait_resolved", "wait_started"]


class Counting(MemoryEventLog):
    """``read`` is how many events have been read."""

    read = 0

    def read_range(self, topic: str, from_id: int | None = None, limit: int | None = None) -> list[Numbered]:
        found = super().read_range(topic, from_id, limit)
        self.read += len(found)
        return found


def test_a_thousand_tasks_that_wait_read_the_topic_together() -> None:
    program = """
let tasks = range(1000).map({ n -> spawn { waitpoint_wait("a").status } }).to_list()
sleep(1ms)
waitpoint_complete("a", 1)
return len(tasks.map({ task -> await(task) }).filter({ status -> status == "completed" }))
"""

    def use() -> tuple[object, Counting]:
        log = Counting()
        install_event_log(log)
        return Vm().run_source(program), log

    done, log = contextvars.Context().run(use)
    assert (done, log.latest("waitpoint.a")) == (1000, 2002)
    assert log.read < 3 * 2002


def test_a_run_that_was_ended_goes_on_in_the_next_one(points: Waitpoints) -> None:
    class Died(BaseException):
        pass

    def die() -> None:
        raise Died

    vm = Vm()
    vm.register("die() -> nil", die)
    with pytest.raises(Died):
        vm.run_source(f"spawn {{ sleep(1ms)\n die() }}\n{WAITS}")
    points.complete("a", "value")
    assert Vm().run_source(WAITS) == "value"
    assert [event.kind for _, event in points.log.read_range("waitpoint.a")].count("wait_started") == 1


def test_a_monitor_is_kept(points: Waitpoints) -> None:
    polls = iter([0, 0, 1, ValueError("no network"), 1, 3])

    def poll() -> int:
        found = next(polls)
        if isinstance(found, ValueError):
            raise found
        return found

    def run() -> object:
        vm = Vm()
        vm.register("poll() -> int", poll)
        return vm.run_source(MONITOR)

    with pytest.raises(HostError, match="no network"):
        run()
    found = run()
    assert isinstance(found, dict)
    assert (found["status"], found["state"], found["poll_count"]) == ("matched", 3, 5)
    assert run() == {**found, "replay_of_event_id": 5}
    events = [event for _, event in points.log.read_range("monitor.m")]
    assert [event.kind for event in events] == ["started", "polled", "polled", "polled", "resolved"]
    assert [event.payload["n"] for event in events[1:4]] == [1, 3, 5]


def test_a_session_waits_meanwhile(points: Waitpoints) -> None:
    vm = Vm()
    seen: list[object] = []

    def look() -> None:
        session = sessions_of(vm).session("s")
        assert session is not None
        seen.append(session.is_waiting)
        if session.is_waiting:
            points.complete("a", 7)
            points.cancel("b")

    vm.register("look() -> nil", look)
    vm.run_source("""
import { wait_for } from "std/monitors"
let tools = tool_define(tool_registry(), "ask", "Ask.", {parameters: {}, handler: { args ->
  look()
  let t = spawn { sleep(1ms)
    look() }
  let found = waitpoint_wait(["a", "b"], {wait_id: "w"})
  let source = {poll: { ctx -> ctx.poll_count }}
  wait_for({wait_id: "m", timeout: 1h, poll_interval: 1ms, source: source, condition: { n -> n > 1 }})
  waitpoint_wait("a")
  return await(t)
}})
llm_mock({text: "", tool_calls: [{name: "ask", arguments: {}}]})
llm_mock({text: "done ##DONE##"})
agent_loop("go", nil, {provider: "mock", tools: tools, session_id: "s", tool_format: "native"})
""")
    assert seen == [False, True]
    session = sessions_of(vm).session("s")
    assert session is not None
    waits = [event for event in session.events() if event.type.startswith("wait_")]
    assert [(event.type, event.data) for event in waits] == [
        ("wait_started", {"reason": "waitpoint", "external_id": "w", "waitpoint_ids": ["a", "b"]}),
        ("wait_resolved", {"reason": "cancelled", "external_id": "w"}),
        ("wait_started", {"reason": "monitor", "external_id": "m"}),
        ("wait_resolved", {"reason": "matched", "external_id": "m"}),
    ]
    assert not session.is_waiting
    started = points.log.read_range("waitpoint.b")[1][1].payload
    assert started["session_id"] == "s"


CALLS = [
    'waitpoint_create("a")',
    'waitpoint_complete("a", 1, {create: true})',
    'waitpoint_cancel("a")',
    'waitpoint_wait("a", {timeout: 0})',
    'import { wait_for } from "std/monitors"\n'
    "wait_for({timeout: 0, source: {poll: { ctx -> 1 }}, condition: { n -> true }})",
]


@pytest.mark.parametrize("call", CALLS)
def test_what_is_kept_needs_the_effect(project: Path, call: str) -> None:
    with pytest.raises(VmError, match=r"keeping '.*events\.db' is not permitted"):
        Vm(capabilities=[*EVERYTHING, "network"]).run_source(call)
    with closing(SqliteEventLog(project / "events.db")) as log:
        assert log.topics() == []


@pytest.mark.usefixtures("trusted")
def test_on_a_server_it_needs_the_network(project: Path, postgres: str) -> None:
    (project / "harn.toml").write_text(f'[event_log]\nstore = "{postgres}"')
    for call in CALLS:
        with pytest.raises(VmError, match=r"is not permitted"):
            Vm(capabilities=[*EVERYTHING, "state"]).run_source(call)
    assert Vm().run_source('return waitpoint_create("a").status') == "open"
