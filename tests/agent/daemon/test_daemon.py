"""Daemon loops on a clock of our own: resting, waking, snapshots, resuming, the daemons a program keeps
(07 §12)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm, VmError
from tests.clock import SimulatedClock
from tests.worlds import OwnWorld

KEYS = (
    "_type saved_at daemon_state visible_messages recorded_messages transcript_summary transcript_events "
    "total_text last_iteration_text all_tools_used rejected_tools deferred_user_messages total_iterations "
    "idle_backoff_ms last_run_exit_code watch_state"
).split()


class Clock(SimulatedClock):
    """Time passes only while everybody sleeps; ``at`` says what happens when."""

    def __init__(self) -> None:
        super().__init__(1_000_000.0, tick=0)
        self._plans: list[tuple[float, Callable[[], object]]] = []

    def sleep(self, seconds: float | None) -> None:
        before = self.passed
        super().sleep(seconds)
        end = self.passed
        due = [plan for plan in self._plans if plan[0] <= end]
        self._plans = [plan for plan in self._plans if plan[0] > end]
        for when, act in sorted(due, key=lambda plan: plan[0]):
            self.passed = max(before, when)
            act()
        self.passed = end

    def naps(self) -> list[float]:
        return [round(seconds, 3) for seconds in self.slept]

    def at(self, seconds: float, act: Callable[[], object]) -> None:
        self._plans.append((seconds, act))


class Program:
    """Harn on a `Clock`; ``dir`` in the source is the test's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.printed: list[str] = []
        self.clock = Clock()
        self.host = OwnWorld(self.printed.append, lambda text: None, clock=self.clock)
        self.vm = Vm(self.host)

    def run(self, source: str) -> Any:
        return self.vm.run_source(f"let dir = {json.dumps(str(self.directory))}\n{source}")

    def lines(self) -> list[str]:
        return "".join(self.printed).splitlines()

    def state(self, name: str = "daemon.json") -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.directory / name).read_text(encoding="utf-8"))
        return state

    def write(self, name: str, ns: int) -> None:
        """A file that was written at that time."""
        path = self.directory / name
        path.write_text("x", encoding="utf-8")
        os.utime(path, ns=(ns, ns))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def contents(messages: list[dict[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages]


def wake(kind: str, text: str) -> str:
    return f'<runtime_feedback kind="{kind}">\n{text}\n</runtime_feedback>'


TIMER = wake("timer", "Daemon timer wake fired.")


# Resting.


def test_a_timer_fires_at_a_fixed_interval(program: Program) -> None:
    program.run(
        'agent_loop("go", nil, {provider: "mock", daemon: true, wake_interval_ms: 250, max_iterations: 4})'
    )
    assert program.clock.naps() == [0.25] * 4


def test_without_a_timer_the_rests_grow_and_the_watchdog_counts_them(program: Program) -> None:
    program.run("""
        agent_subscribe("s", { e -> if e.type == "daemon_watchdog_tripped" { println(e) } })
        let options = {provider: "mock", session_id: "s", daemon: true, watch_paths: [dir]}
        agent_loop("go", nil, options + {idle_watchdog_attempts: 6})
    """)
    assert program.clock.naps() == [0.1, 0.5, 1.0, 2.0, 2.0, 2.0]
    assert program.lines() == [
        "{attempts: 6, elapsed_ms: 7600, session_id: s, type: daemon_watchdog_tripped}"
    ]


def test_after_a_wake_the_rests_and_the_attempts_begin_anew(program: Program) -> None:
    program.write("a", 1)
    program.clock.at(1.0, lambda: program.write("a", 2))
    result = program.run("""
        let options = {provider: "mock", daemon: true, watch_paths: ["${dir}/a"]}
        return agent_loop("go", nil, options + {idle_watchdog_attempts: 4})
    """)
    assert program.clock.naps() == [0.1, 0.5, 1.0, 0.1, 0.5, 1.0, 2.0]
    assert (result["status"], result["llm"]["iterations"]) == ("watchdog", 2)


def test_a_changed_file_wakes_and_one_that_comes_or_goes_does_not(program: Program) -> None:
    for name in ("a", "b", "gone"):
        program.write(name, 1)
    clock = program.clock
    clock.at(0.05, lambda: (program.directory / "gone").unlink())
    clock.at(0.05, lambda: program.write("new", 5))
    clock.at(0.3, lambda: [program.write(name, 2) for name in ("b", "a")])
    clock.at(0.7, lambda: program.write("new", 6))
    result = program.run("""
        let paths = ["a", "b", "gone", "new", "a"].map({ name -> "${dir}/${name}" })
        let options = {provider: "mock", daemon: true, watch_paths: paths, idle_watchdog_attempts: 2}
        return agent_loop("go", nil, options)
    """)
    a, b, new = (program.directory / name for name in ("a", "b", "new"))
    messages = contents(result["transcript"]["messages"])
    assert messages[2] == wake("watch", f"Daemon wake: watched paths changed: {a}, {b}.")
    assert messages[4] == wake("watch", f"Daemon wake: watched paths changed: {new}.")
    assert len(messages) == 6
    wakes = [event["metadata"] for event in result["transcript"]["events"] if event["kind"] == "daemon_wake"]
    assert wakes == [
        {"reason": "watch", "watch_paths": [str(a), str(b)], "resumed": False},
        {"reason": "watch", "watch_paths": [str(new)], "resumed": False},
    ]


def test_a_change_during_a_turn_is_not_missed(program: Program) -> None:
    program.write("a", 1)
    program.vm.register("touch() -> nil", lambda: program.write("a", 2))
    result = program.run("""
        let reg = tool_define(tool_registry(), "t", "t", {parameters: {}, handler: { args -> touch() }})
        llm_mock({tool_calls: [{name: "t", arguments: {}}]})
        let options = {provider: "mock", daemon: true, watch_paths: ["${dir}/a"], idle_watchdog_attempts: 1}
        return agent_loop("go", nil, options + {tools: reg})
    """)
    assert (result["status"], result["llm"]["iterations"]) == ("watchdog", 3)


def test_a_file_comes_before_the_timer(program: Program) -> None:
    program.write("a", 1)
    program.clock.at(0.1, lambda: program.write("a", 2))
    result = program.run("""
        let options = {provider: "mock", daemon: true, watch_paths: ["${dir}/a"], max_iterations: 2}
        return agent_loop("go", nil, options + {wake_interval_ms: 1000})
    """)
    assert program.clock.naps() == [1.0, 1.0]
    messages = contents(result["transcript"]["messages"])
    assert "watched paths changed" in messages[2]
    assert messages[4] == TIMER


def test_other_tasks_run_while_a_daemon_rests(program: Program) -> None:
    program.run("""
        let ticking = spawn { for i in 0 to 3 { sleep(100ms); println("tick") } }
        agent_loop("go", nil, {provider: "mock", daemon: true, wake_interval_ms: 1000, max_iterations: 1})
        println("over")
        await(ticking)
    """)
    assert program.clock.now() == 1_000_001.0
    assert program.lines()[0] == "over"
    assert set(program.lines()[1:]) == {"tick"}


# Snapshots.


def test_the_file_left_behind_is_what_the_result_says(program: Program) -> None:
    result = program.run("""
        let handler = { args -> "exit_code=3" }
        let reg = tool_define(tool_registry(), "run", "r", {parameters: {}, handler: handler})
        llm_mock({text: "a", tool_calls: [{name: "run", arguments: {}}]})
        llm_mock({text: "", tool_calls: [{name: "other", arguments: {}}]})
        llm_mock({text: "b"})
        let options = {provider: "mock", tools: reg, tool_format: "native"}
        return agent_loop("go", nil, options + {
          daemon: true, persist_path: "${dir}/deep/daemon.json", wake_interval_ms: 100, max_iterations: 3,
        })
    """)
    state = program.state("deep/daemon.json")
    assert sorted(state) == sorted(KEYS)
    messages = result["transcript"]["messages"]
    assert state["visible_messages"] == messages == state["recorded_messages"]
    assert state["transcript_events"] == [
        event | {"id": there["id"]}
        for event, there in zip(result["transcript"]["events"], state["transcript_events"], strict=True)
    ]
    expected = {
        "_type": "daemon_snapshot",
        "saved_at": "1970-01-12T13:46:40.100Z",
        "daemon_state": result["status"],
        "transcript_summary": None,
        "total_text": result["text"],
        "last_iteration_text": "b",
        "all_tools_used": result["tools"]["calls"],
        "rejected_tools": ["other"],
        "deferred_user_messages": [],
        "total_iterations": result["llm"]["iterations"],
        "idle_backoff_ms": 100,
        "last_run_exit_code": 3,
        "watch_state": {},
    }
    assert {key: state[key] for key in expected} == expected
    assert (result["status"], result["daemon_state"]) == ("budget_exhausted", "budget_exhausted")
    assert result["daemon_snapshot_path"] == str(program.directory / "deep/daemon.json")
    assert os.listdir(program.directory / "deep") == ["daemon.json"]


def test_a_resting_daemon_has_written_that_it_rests(program: Program) -> None:
    program.write("a", 7)
    states: list[dict[str, Any]] = []
    program.clock.at(0.05, lambda: states.append(program.state()))
    program.run("""
        agent_loop("go", nil, {
          provider: "mock", daemon: true, persist_path: "${dir}/daemon.json",
          watch_paths: ["${dir}/a", "${dir}/b"], idle_watchdog_attempts: 2,
        })
    """)
    a, b = str(program.directory / "a"), str(program.directory / "b")
    assert (states[0]["daemon_state"], states[0]["total_iterations"]) == ("idle", 1)
    assert states[0]["watch_state"] == {a: 7, b: None}
    assert (program.state()["daemon_state"], program.state()["idle_backoff_ms"]) == ("watchdog", 1000)


def test_recorded_messages_outlive_a_compaction(program: Program) -> None:
    program.run("""
        let history = ["a", "b", "c"].map({ text -> {role: "user", content: text} })
        llm_mock({text: "d"})
        agent_loop("", nil, {
          provider: "mock", messages: history, daemon: true, consolidate_on_idle: true,
          persist_path: "${dir}/daemon.json", compaction: {strategy: "truncate", keep_last: 1},
        })
    """)
    state = program.state()
    summary = "[auto-compacted 2 older messages via truncate strategy]\n[user] a\n[user] b"
    assert contents(state["visible_messages"]) == [summary, "c", "d"]
    assert contents(state["recorded_messages"]) == ["a", "b", "c", "d", summary]
    assert state["transcript_summary"] == summary


def test_a_loop_that_throws_leaves_the_state_of_its_last_rest(program: Program) -> None:
    error = program.run("""
        llm_mock({text: "one"})
        llm_mock({error: {category: "auth", message: "no"}})
        return try {
          agent_loop("go", nil, {
            provider: "mock", daemon: true, persist_path: "${dir}/daemon.json", wake_interval_ms: 1,
          })
        } catch (e) { e }
    """)
    assert error == "Error [auth]: no"
    assert (program.state()["daemon_state"], program.state()["total_iterations"]) == ("idle", 1)


@pytest.mark.parametrize("failing", ["write", "replace"])
def test_a_crash_while_writing_leaves_the_old_state(
    program: Program, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    run = """
        agent_loop("go", nil, {provider: "mock", daemon: true, persist_path: "${dir}/daemon.json"})
    """
    program.run(run)
    before = program.state()

    class Crash(BaseException):
        pass

    def crash(*args: Any, **rest: Any) -> None:
        raise Crash

    monkeypatch.setattr(os, "fsync" if failing == "write" else "replace", crash)
    program.clock.passed += 5
    with pytest.raises(Crash):
        Program(program.directory).run(run)
    monkeypatch.undo()
    assert program.state() == before
    program.run(run)
    assert program.state() != before
    assert os.listdir(program.directory) == ["daemon.json"]


# Going on.

FIRST = """
    let reg = tool_define(tool_registry(), "look", "l", {parameters: {}, handler: { args -> "x" }})
    llm_mock({text: "a", tool_calls: [{name: "look", arguments: {}}]})
    llm_mock({text: "b"})
    agent_loop("go", nil, {provider: "mock", tools: reg, daemon: true, persist_path: "${dir}/daemon.json"})
"""


def test_a_run_goes_on_from_a_snapshot(program: Program) -> None:
    program.run(FIRST)
    former = program.state()
    result = Program(program.directory).run("""
        llm_mock({text: "c"})
        return agent_loop("more", nil, {provider: "mock", daemon: true, resume_path: "${dir}/daemon.json"})
    """)
    state = program.state()
    assert contents(result["transcript"]["messages"]) == [
        *contents(former["visible_messages"]), "more", "c"
    ]  # fmt: skip
    assert (result["status"], result["llm"]["iterations"], result["text"]) == ("idle", 3, "abc")
    assert result["tools"]["calls"] == ["look"]
    assert result["daemon_snapshot_path"] == str(program.directory / "daemon.json")
    assert (state["total_iterations"], state["total_text"], state["last_iteration_text"]) == (3, "abc", "c")
    assert state["recorded_messages"] == result["transcript"]["messages"]
    kinds = [event["kind"] for event in state["transcript_events"]]
    assert kinds.count("provider_payload") == 3
    assert kinds.count("tool_execution") == 1
    assert kinds.count("message") == len(state["visible_messages"])


def test_the_resumed_state_may_be_kept_elsewhere(program: Program) -> None:
    program.run(FIRST)
    before = program.state()
    result = program.run("""
        let paths = {resume_path: "${dir}/daemon.json", persist_path: "${dir}/other.json"}
        return agent_loop("more", nil, {provider: "mock", daemon: true} + paths)
    """)
    assert program.state() == before
    assert program.state("other.json")["total_iterations"] == 3
    assert result["daemon_snapshot_path"] == str(program.directory / "other.json")


def test_without_anything_new_to_say_a_resumed_daemon_rests_first(program: Program) -> None:
    program.run(FIRST)
    program.vm = Vm(program.host)
    result = program.run("""
        let options = {provider: "mock", daemon: true, resume_path: "${dir}/daemon.json"}
        let quiet = agent_loop(" ", nil, options)
        println([quiet.status, quiet.llm.iterations, quiet.text, len(llm_mock_calls())])
        return agent_loop("", nil, options + {wake_interval_ms: 1, max_iterations: 1})
    """)
    assert program.lines() == ["[idle, 2, ab, 0]"]
    messages = contents(result["transcript"]["messages"])
    assert messages[-3] == TIMER
    assert result["llm"]["iterations"] == 3


def test_a_change_while_nobody_watched_wakes_the_resumed_daemon(program: Program) -> None:
    program.write("a", 1)
    options = '{provider: "mock", daemon: true, watch_paths: ["${dir}/a"], idle_watchdog_attempts: 1'
    program.run(f'agent_loop("go", nil, {options}, persist_path: "${{dir}}/daemon.json"}})')
    program.write("a", 2)
    result = program.run(f'return agent_loop("", nil, {options}, resume_path: "${{dir}}/daemon.json"}})')
    assert "watched paths changed" in contents(result["transcript"]["messages"])[2]


def test_what_was_deferred_is_said_after_a_resume(program: Program) -> None:
    program.run("""
        agent_subscribe("s", { e ->
          if e.type == "iteration_end" { agent_session_inject("s", {role: "user", content: "and now?"}) }
        })
        llm_mock({text: "a"})
        let options = {provider: "mock", session_id: "s", daemon: true}
        agent_loop("go", nil, options + {persist_path: "${dir}/daemon.json"})
    """)
    assert program.state()["deferred_user_messages"] == ["and now?"]
    result = Program(program.directory).run("""
        llm_mock({text: "b"})
        return agent_loop("", nil, {provider: "mock", daemon: true, resume_path: "${dir}/daemon.json"})
    """)
    assert contents(result["transcript"]["messages"]) == ["go", "a", "and now?", "b"]
    assert program.state()["deferred_user_messages"] == []


def test_a_new_session_holds_what_the_snapshot_has(program: Program) -> None:
    program.run(FIRST)
    former = program.state()
    texts = Program(program.directory).run("""
        llm_mock({text: "c"})
        let options = {provider: "mock", daemon: true, session_id: "s", resume_path: "${dir}/daemon.json"}
        agent_loop("more", nil, options)
        let session = agent_session_snapshot("s")
        println(len(session.events.filter({ e -> e.kind == "tool_execution" })))
        return session.messages
    """)
    assert contents(texts) == [*contents(former["visible_messages"]), "more", "c"]


def test_a_session_with_messages_knows_better_than_the_snapshot(program: Program) -> None:
    result = program.run("""
        llm_mock({text: "a"})
        llm_mock({text: "b"})
        let options = {provider: "mock", daemon: true, session_id: "s"}
        agent_loop("go", nil, options + {persist_path: "${dir}/daemon.json"})
        agent_session_inject("s", {role: "user", content: "while you were away"})
        return agent_loop("", nil, options + {resume_path: "${dir}/daemon.json"})
    """)
    expected = ["go", "a", "while you were away", "b"]
    assert contents(result["transcript"]["messages"]) == expected
    assert contents(program.state()["visible_messages"]) == expected
    assert contents(program.state()["recorded_messages"]) == expected
    assert program.state()["total_iterations"] == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "is no daemon snapshot: `_type` must be daemon_snapshot"),
        ('{"_type": "worker_snapshot"}', "is no daemon snapshot: `_type` must be daemon_snapshot"),
        ('{"_type": "daemon_snapshot"}', "is no daemon snapshot: missing saved_at, daemon_state, total_text"),
    ],
)
def test_a_file_that_is_no_snapshot(program: Program, text: str, problem: str) -> None:
    (program.directory / "daemon.json").write_text(text, encoding="utf-8")
    with pytest.raises(VmError) as caught:
        program.run(
            'agent_loop("", nil, {provider: "mock", daemon: true, resume_path: "${dir}/daemon.json"})'
        )
    assert f"agent_loop: '{program.directory}/daemon.json' {problem}" in caught.value.text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("visible_messages", ["go"]),
        ("transcript_events", {}),
        ("total_text", None),
        ("total_iterations", -1),
        ("watch_state", {"a": "b"}),
        ("last_run_exit_code", "0"),
    ],
)
def test_a_damaged_snapshot(program: Program, key: str, value: Any) -> None:
    program.run(FIRST)
    state = program.state() | {key: value}
    (program.directory / "daemon.json").write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(VmError) as caught:
        program.run(
            'agent_loop("", nil, {provider: "mock", daemon: true, resume_path: "${dir}/daemon.json"})'
        )
    assert f"is no daemon snapshot: `{key}` has the wrong type" in caught.value.text


# Daemons that a program keeps.

SPAWN = 'let h = daemon_spawn({task: "go", persist_path: dir, provider: "mock", name: "watcher"})\n'


def test_a_spawned_daemon_has_rested_when_its_handle_comes(program: Program) -> None:
    h = program.run(SPAWN + "return h")
    assert h["id"].startswith("daemon_")
    expected = {
        "id": h["id"],
        "name": "watcher",
        "status": "running",
        "session_id": h["session_id"],
        "persist_path": str(program.directory),
        "snapshot_path": str(program.directory / "daemon.json"),
        "pending_event_count": 0,
        "queued_event_count": 0,
        "event_queue_capacity": 1024,
        "daemon_state": "idle",
        "saved_at": "1970-01-12T13:46:40.000Z",
    }
    assert h == expected
    assert sorted(os.listdir(program.directory)) == ["daemon.json", "daemon.meta.json"]
    assert program.clock.naps() == []


def test_triggered_events_are_read_one_at_a_time_in_order(program: Program) -> None:
    messages = program.run(
        SPAWN
        + """
        daemon_trigger(h, "text as it is")
        daemon_trigger(h.id, {b: [1, 2], a: nil})
        daemon_trigger(h, 5)
        let s = daemon_snapshot(h)
        println([s.total_iterations, s._type, s.pending_events, s.inflight_event, s.queued_event_count])
        return s.recorded_messages
    """
    )
    users = [message["content"] for message in messages if message["role"] == "user"]
    assert users == ["go", "text as it is", '{"a":null,"b":[1,2]}', "5"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 4
    assert program.lines() == ["[4, daemon_snapshot, [], nil, 0]"]
    inputs = [event for event in program.state()["transcript_events"] if event["kind"] == "host_input"]
    assert [(event["role"], event["visibility"], event["text"]) for event in inputs] == [
        ("user", "public", text) for text in users[1:]
    ]
    assert inputs[0]["metadata"] == {"delivery": "idle"}


SLOW = """
    let handler = { args -> sleep(10s); "x" }
    let reg = tool_define(tool_registry(), "wait", "w", {parameters: {}, handler: handler})
    llm_mock({tool_calls: [{name: "wait", arguments: {}}]})
    let config = {prompt: "go", state_dir: dir, event_queue_capacity: 2}
    let h = daemon_spawn(config + {provider: "mock", tools: reg})
"""


def test_nobody_waits_longer_than_half_a_second_for_a_rest(program: Program) -> None:
    program.run(SLOW + "println(h.daemon_state)")
    assert program.clock.now() == 1_000_000.5
    assert program.lines() == ["nil"]


def test_a_daemon_that_works_takes_events_up_to_its_capacity(program: Program) -> None:
    h = program.run(
        SLOW
        + """
        daemon_trigger(h, 1)
        let two = daemon_trigger(h, 2)
        println([two.pending_event_count, two.queued_event_count, two.event_queue_capacity])
        println(try { daemon_trigger(h, 3) } catch (e) { e })
        println(daemon_snapshot(h).daemon_state)
        println(daemon_snapshot(h).pending_events)
        sleep(12s)
        println(daemon_snapshot(h).pending_events)
        let users = daemon_snapshot(h).visible_messages.filter({ m -> m.role == "user" })
        println(users.map({ m -> m.content }).slice(2))
        return h
    """
    )
    full = f"Runtime error: Daemon queue full: daemon '{h['id']}' reached its event_queue_capacity of 2"
    assert program.lines() == ["[2, 2, 2]", full, "active", "[1, 2]", "[]", "[1, 2]"]


def test_a_stopped_daemon_keeps_what_it_was_about(program: Program) -> None:
    stopped = program.run(
        SPAWN.replace("name:", 'tools: reg, tool_format: "native", name:').join(
            [
                """
                let handler = { args -> sleep(10s); "x" }
                let reg = tool_define(tool_registry(), "wait", "w", {parameters: {}, handler: handler})
                llm_mock({text: "ready"})
                llm_mock({tool_calls: [{name: "wait", arguments: {}}]})
                """,
                """
                daemon_trigger(h, "one")
                println(daemon_trigger(h, {two: 2}).inflight_event)
                println(daemon_snapshot(h).queued_event_count)
                let stopped = daemon_stop(h)
                println(try { daemon_trigger(h, "late") } catch (e) { e })
                sleep(20s)
                return stopped
                """,
            ]
        )
    )
    assert (stopped["status"], stopped["inflight_event"], stopped["pending_event_count"]) == (
        "stopped",
        "one",
        1,
    )
    not_running = f"Runtime error: daemon_trigger: daemon {stopped['id']} is not running"
    assert program.lines() == ["one", "2", not_running]
    meta = program.state("daemon.meta.json")
    assert (meta["status"], meta["inflight_event"], meta["pending_events"]) == (
        "stopped",
        "one",
        [{"two": 2}],
    )
    assert contents(program.state()["visible_messages"]) == ["go", "ready"]


def test_a_resumed_daemon_goes_on_with_its_events_in_another_program(program: Program) -> None:
    program.run(SPAWN + 'daemon_trigger(h, "one")\ndaemon_stop(h)')
    meta = program.state("daemon.meta.json") | {
        "inflight_event": "two",
        "pending_events": [{"three": 3}, "four"],
    }
    (program.directory / "daemon.meta.json").write_text(json.dumps(meta), encoding="utf-8")
    again = Program(program.directory)
    h = again.run("""
        let h = daemon_resume(dir)
        sleep(1s)
        daemon_trigger(h, "five")
        return daemon_snapshot(h) + {handle: h}
    """)
    users = [message["content"] for message in h["recorded_messages"] if message["role"] == "user"]
    assert users == ["go", "one", "two", '{"three":3}', "four", "five"]
    assert h["total_iterations"] == 6
    assert (h["handle"]["id"], h["handle"]["name"], h["handle"]["status"]) == (
        meta["id"],
        "watcher",
        "running",
    )


def test_a_daemon_resumed_in_the_same_program_has_its_tools_and_reads_nothing_twice(program: Program) -> None:
    messages = program.run("""
        let handler = { args -> sleep(10s); "x" }
        let reg = tool_define(tool_registry(), "wait", "w", {parameters: {}, handler: handler})
        llm_mock({text: "ready"})
        llm_mock({tool_calls: [{name: "wait", arguments: {}}]})
        llm_mock({tool_calls: [{name: "wait", arguments: {}}]})
        llm_mock({text: "done"})
        let h = daemon_spawn({task: "go", persist_path: dir, provider: "mock", tools: reg})
        daemon_trigger(h, "one")
        daemon_stop(h)
        let again = daemon_resume(dir)
        sleep(11s)
        return daemon_snapshot(again).visible_messages
    """)
    users = [message["content"] for message in messages if message["role"] == "user"]
    assert users.count("one") == 1
    assert messages[-1]["content"] == "done"


def test_a_daemon_that_never_rested_begins_with_its_task_again(program: Program) -> None:
    program.run(SLOW + "daemon_stop(h)")
    assert os.listdir(program.directory) == ["daemon.meta.json"]
    state = program.state("daemon.meta.json")
    state["options"]["tools"] = None
    (program.directory / "daemon.meta.json").write_text(json.dumps(state), encoding="utf-8")
    Program(program.directory).run("daemon_resume(dir)")
    assert contents(program.state()["visible_messages"])[0] == "go"
    assert program.state()["total_iterations"] == 1


def test_one_daemon_runs_in_a_directory(program: Program) -> None:
    program.run(
        SPAWN
        + """
        let same = {task: "go", persist_path: "${dir}/x/..", provider: "mock"}
        println(try { daemon_spawn(same) } catch (e) { e })
        println(try { daemon_resume(dir) } catch (e) { e })
        daemon_stop(h)
        println(daemon_resume(dir).id == h.id)
        daemon_stop(h)
        println(daemon_spawn({task: "go", persist_path: dir, provider: "mock"}).id == h.id)
    """
    )
    directory = program.directory
    assert program.lines() == [
        f"Runtime error: daemon_spawn: a daemon is already running for '{directory}/x/..'",
        f"Runtime error: daemon_resume: a daemon is already running for '{directory}'",
        "true",
        "false",
    ]


def test_a_daemon_whose_loop_returns_is_completed(program: Program) -> None:
    program.run("""
        let h = daemon_spawn({task: "go", persist_path: dir, provider: "mock", max_iterations: 1})
        daemon_trigger(h, "one")
        sleep(1s)
        println(try { daemon_trigger(h, "two") } catch (e) { e } .ends_with("is not running"))
        println(daemon_snapshot(h).daemon_state)
        let stopped = daemon_stop(h)
        println([stopped.status, stopped.result.status, stopped.result.llm.iterations])
    """)
    assert program.lines() == ["true", "budget_exhausted", "[stopped, budget_exhausted, 1]"]
    again = Program(program.directory)
    again.run("""
        let h = daemon_resume(dir)
        println(daemon_snapshot(h).visible_messages.map({ m -> m.content }).slice(2, 3))
        println(daemon_snapshot(h).total_iterations)
    """)
    assert again.lines() == ["[one]", "2"]


def test_a_daemon_whose_loop_throws_has_failed(program: Program) -> None:
    h = program.run("""
        llm_mock({error: {category: "auth", message: "no key"}})
        return daemon_spawn({task: "go", persist_path: dir, provider: "mock"})
    """)
    assert h["status"] == "failed"
    assert "no key" in h["error"]
    assert program.state("daemon.meta.json")["status"] == "failed"
    assert program.clock.naps() == []


def test_a_daemon_may_stop_itself(program: Program) -> None:
    result = program.run("""
        let ids = channel("ids", 1)
        let quit = { args -> daemon_stop(receive(ids)) }
        let reg = tool_define(tool_registry(), "quit", "q", {parameters: {}, handler: quit})
        llm_mock({text: "ready"})
        llm_mock({tool_calls: [{name: "quit", arguments: {}}]})
        let h = daemon_spawn({task: "go", persist_path: dir, provider: "mock", tools: reg})
        send(ids, h.id)
        return daemon_trigger(h, "leave")
    """)
    assert (result["status"], result["inflight_event"]) == ("stopped", "leave")


def test_what_a_daemon_prints_shows_where_it_is_looked_after(program: Program) -> None:
    program.run("""
        let handler = { args -> println("hello") }
        let reg = tool_define(tool_registry(), "say", "s", {parameters: {}, handler: handler})
        llm_mock({tool_calls: [{name: "say", arguments: {}}]})
        let h = daemon_spawn({task: "go", persist_path: dir, provider: "mock", tools: reg})
        println("spawned")
    """)
    assert program.lines() == ["hello", "spawned"]


def test_a_daemon_outlives_the_task_that_started_it_and_ends_with_the_program(program: Program) -> None:
    program.run("""
        let config = {task: "go", persist_path: dir, provider: "mock", wake_interval_ms: 100}
        let h = await(spawn { daemon_spawn(config) })
        sleep(1050ms)
        println(daemon_snapshot(h).total_iterations)
    """)
    assert program.lines() == ["11"]
    assert program.state("daemon.meta.json")["status"] == "running"


def test_events_must_not_be_nil_and_meta_files_must_be_meta_files(program: Program) -> None:
    program.run(SPAWN + "println(try { daemon_trigger(h, nil) } catch (e) { e })\ndaemon_stop(h)")
    assert program.lines() == ["Runtime error: daemon_trigger: event must not be nil"]
    (program.directory / "daemon.meta.json").write_text("{}", encoding="utf-8")
    with pytest.raises(VmError) as caught:
        program.run("daemon_resume(dir)")
    assert "daemon.meta.json' is no daemon meta: `_type` must be daemon_meta" in caught.value.text


def test_the_spawners_policy_holds_in_its_daemons(program: Program) -> None:
    program.run("""
        fn only(name, handler) {
          return tool_define(tool_registry(), name, name, {parameters: {}, handler: handler})
        }
        let inner = only("exec", { args -> println("ran") })
        let start = { args ->
          llm_mock({tool_calls: [{name: "exec", arguments: {}}]})
          return daemon_spawn({task: "go", persist_path: dir, provider: "mock", tools: inner}).status
        }
        llm_mock({tool_calls: [{name: "start", arguments: {}}]})
        let policy = {tools: ["start"]}
        agent_loop("go", nil, {provider: "mock", tools: only("start", start), policy: policy})
    """)
    assert program.lines() == []
    assert program.state()["rejected_tools"] == ["exec"]
