"""What every engine promises: one class for all of them. Spec: 10 §C19, §C19.4."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import msgspec
import pytest

from harnpy.eventlog.topics import StoreEventLog
from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.storage import open_store
from harnpy.storage.errors import LeaseHeld
from harnpy.workflow.engines.contract import (
    CANCELLED,
    COMPLETED,
    DELAYED,
    ENDED,
    FAILED,
    QUEUED,
    RUNNING,
    WAITING,
    Engine,
    Job,
    RunQuery,
)
from harnpy.workflow.engines.errors import RunCancelled, RunError, RunExists, RunFailed, RunNotFound
from tests.counts import COUNT
from tests.support import PATIENCE, ended, happens, patience, wait_until
from tests.workflow.engines.bodies import BODIES, Journal, Stoppable, job, overlaps
from tests.workflow.engines.conftest import Open, Start


def as_text(job: Job) -> str:
    return json.dumps(msgspec.to_builtins(job))


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    with patience(process):
        line = process.stdout.readline().strip()
        if not line and process.poll() is None:
            process.wait(PATIENCE)
        return line or (process.stderr.read() if process.stderr is not None else "")


def go_on(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: SQLite serves one process of DBOS
            process.stdin.write("\n")
            process.stdin.flush()


def worked(engine: Engine, done: Callable[[], object], queues: Sequence[str] | None = None) -> None:
    """Work in this process until ``done()``."""
    stop = Event()
    thread = Thread(target=engine.work, kwargs={"queues": queues, "stop": stop}, daemon=True)
    thread.start()
    try:
        wait_until(done)
    finally:
        stop.set()
        ended(thread)


def begun(engine: Engine, body: Stoppable) -> tuple[Thread, Event]:
    """Have a worker begin the run ``one``; return its thread, and what it stops at."""
    stop = Event()
    engine.queue("q")
    engine.start(Job("stoppable", "j", {}), id="one", queue="q")
    worker = Thread(target=engine.work, kwargs={"stop": stop}, daemon=True)
    worker.start()
    happens(body.begun)
    return worker, stop


def is_leaving(engine: Any, id: str) -> bool:
    """Return whether the worker wants to give the run back."""
    if engine.name == "local":
        return bool(engine._attempts[id].leaving)
    from harnpy.workflow.engines.dbos_process import PROCESS

    return PROCESS._runs[id][-1].leaving


def status(engine: Engine, id: str) -> str:
    info = engine.get(id)
    assert info is not None
    return info.status


def outputs(count: int) -> list[Any]:
    return [{"n": n, "text": f"step {n} — ü"} for n in range(count)]


def complete(url: str, id: str, value: Any) -> None:
    store = open_store(url)
    Waitpoints(StoreEventLog(store)).complete(id, value, create=True)
    store.close()


class TestEngine:
    # Starting a run.

    def test_a_run_is_its_steps_and_what_its_body_returns(self, engine: Engine, journal: Journal) -> None:
        handle = engine.start(job("steps", journal), attributes={"team": "a"})
        assert handle.result(PATIENCE) == outputs(3)
        assert handle.status() == COMPLETED
        assert [(step.n, step.key, step.output) for step in engine.steps(handle.id)] == [
            (n + 1, f"step:{n}", output) for n, output in enumerate(outputs(3))
        ]
        info = engine.get(handle.id)
        assert info is not None
        assert (info.kind, info.name, info.status) == ("steps", "a job of steps", COMPLETED)
        assert (info.engine, info.queue, info.attempt) == (engine.name, None, 1)
        assert info.attributes == {"team": "a"}
        assert info.started is not None
        assert info.finished is not None
        assert info.created <= info.started <= info.finished
        assert engine.job(handle.id) == job("steps", journal)

    def test_an_id_that_exists_is_that_run(self, engine: Engine, journal: Journal) -> None:
        for pair in ((1, 2), [1, 2]):
            assert engine.start(job("steps", journal, pair=pair), id="one").result(PATIENCE) == outputs(3)
        assert len(journal.lines()) == 3
        with pytest.raises(RunExists, match="run 'one' exists already, and is of another job"):
            engine.start(job("steps", journal, count=4), id="one")

    def test_its_events_are_its_steps(self, engine: Engine, journal: Journal) -> None:
        handle = engine.start(job("steps", journal))
        assert [step.key for step in handle.events()] == ["step:0", "step:1", "step:2"]

    def test_what_a_body_raises_is_the_run_s_failure(self, engine: Engine, journal: Journal) -> None:
        handle = engine.start(job("fail", journal, times=1))
        with pytest.raises(RunFailed, match=f"run '{handle.id}' failed: ValueError: not today"):
            handle.result(PATIENCE)
        info = engine.get(handle.id)
        assert info is not None
        assert (info.status, info.error) == (FAILED, "ValueError: not today")

    def test_a_wait_for_the_result_may_end_before_it(self, engine: Engine, journal: Journal) -> None:
        handle = engine.start(job("hang", journal))
        with pytest.raises(TimeoutError):
            handle.result(timeout=0.01)
        engine.cancel(handle.id)

    def test_a_step_that_is_no_json_fails(self, engine: Engine) -> None:
        handle = engine.start(job("nan"))
        with pytest.raises(RunFailed, match="can only keep JSON, and step 'nan' came to something else"):
            handle.result(PATIENCE)
        assert engine.steps(handle.id) == []

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"id": " "}, "the name of a run must be a non-empty string, got ' '"),
            ({"delay": -1}, "`delay` must be a number of seconds, got -1"),
            ({"timeout": "1s"}, "`timeout` must be a number of seconds, got '1s'"),
            ({"priority": 1.5}, "`priority` must be an int, got 1.5"),
            ({"attributes": {"a": 1}}, "`attributes` must be strings by strings, got 'a': 1"),
            ({"queue": "nigth"}, "unknown queue 'nigth': did you mean `night`?"),
        ],
    )
    def test_what_can_t_be_asked_for_starts_nothing(
        self, engine: Engine, journal: Journal, options: dict[str, Any], message: str
    ) -> None:
        engine.queue("night")
        with pytest.raises(RunError, match=message.replace("?", r"\?")):
            engine.start(job("steps", journal), **options)
        assert engine.runs() == []

    def test_a_job_that_nobody_does_starts_nothing(self, engine: Engine) -> None:
        for start in (engine.start, lambda it: engine.schedule("s", "* * * * *", it)):
            with pytest.raises(RunError, match="no body does jobs of kind 'step': did you mean `steps`"):
                start(job("step"))
        assert engine.runs() == []

    def test_a_run_that_is_unknown(self, engine: Engine) -> None:
        assert engine.get("nobody") is None
        for call in (engine.job, engine.steps, engine.resume, engine.cancel, lambda id: engine.fork(id, 1)):
            with pytest.raises(RunNotFound, match="unknown run 'nobody': `harnpy runs list` shows"):
                call("nobody")

    # Going on.

    def test_a_run_that_failed_goes_on_behind_its_steps(self, engine: Engine, journal: Journal) -> None:
        id = engine.start(job("fail", journal, times=2)).id
        for _ in range(2):
            wait_until(lambda: status(engine, id) == FAILED)
            handle = engine.resume(id)
        assert handle.result(PATIENCE) == 3
        assert journal.lines() == ["did first"]
        assert engine.resume(id).result(PATIENCE) == 3

    def test_a_run_goes_on_as_another_job(self, engine: Engine, journal: Journal) -> None:
        id = engine.start(job("fail", journal, times=9)).id
        wait_until(lambda: status(engine, id) == FAILED)
        assert engine.resume(id, job=job("fail", journal, times=0)).result(PATIENCE) == 2
        assert engine.job(id).body["times"] == 0
        assert engine.start(job("fail", journal, times=9), id=id).result(PATIENCE) == 2

    def test_recorded_steps_come_back(self, engine: Engine) -> None:
        id = engine.start(job("record", count=5)).id
        wait_until(lambda: status(engine, id) == FAILED)
        assert engine.resume(id).result(PATIENCE) == [0, 1, 2, 3, 4]
        assert [step.n for step in engine.steps(id)] == [1, 2, 3, 4, 5]

    def test_a_body_that_does_something_else_diverges(self, engine: Engine) -> None:
        id = engine.start(job("change")).id
        wait_until(lambda: status(engine, id) == FAILED)
        with pytest.raises(
            RunFailed, match=f"run '{id}' asked for attempt 2, its record has attempt 1 at step 1"
        ):
            engine.resume(id).result(PATIENCE)

    def test_a_fork_goes_on_from_a_step(self, engine: Engine, journal: Journal) -> None:
        source = engine.start(job("steps", journal)).id
        wait_until(lambda: status(engine, source) == COMPLETED)
        done = len(journal.lines())
        for n in range(4):
            fork = engine.fork(source, n + 1 if n % 2 else f"step:{n}" if n < 3 else 4, new_id=f"fork {n}")
            assert fork.result(PATIENCE) == outputs(3)
            done += 3 - n
            assert len(journal.lines()) == done
            info = engine.get(f"fork {n}")
            assert info is not None
            assert info.forked_from == source
            assert len(engine.steps(f"fork {n}")) == 3
        assert len(engine.steps(source)) == 3
        with pytest.raises(RunExists):
            engine.fork(source, 1, new_id="fork 0")

    @pytest.mark.parametrize(
        ("step", "message"),
        [
            (0, "has 3 steps: it can't be forked at step 0"),
            (5, "has 3 steps: it can't be forked at step 5"),
            ("step:7", "has no step 'step:7': did you mean `step:0`"),
        ],
    )
    def test_a_step_that_is_unknown_is_no_place_for_a_fork(
        self, engine: Engine, journal: Journal, step: int | str, message: str
    ) -> None:
        source = engine.start(job("steps", journal), id="one")
        source.result(PATIENCE)
        with pytest.raises(RunError, match=message):
            engine.fork("one", step)

    # Ending early.

    def test_cancelling_reaches_what_is_running(
        self, engine: Engine, engines: Open, journal: Journal
    ) -> None:
        handle = engine.start(job("hang", journal))
        wait_until(journal.lines)
        assert engines().cancel(handle.id, reason="enough")
        with pytest.raises(RunCancelled, match=f"run '{handle.id}' was cancelled: enough"):
            handle.result(PATIENCE)
        info = engine.get(handle.id)
        assert info is not None
        assert (info.status, info.error) == (CANCELLED, "enough")
        assert engine.steps(handle.id) == []
        assert not engine.cancel(handle.id)

    def test_cancelling_reaches_what_waits(self, engine: Engine) -> None:
        handle = engine.start(job("wait", waitpoints=["never"]))
        wait_until(lambda: handle.status() == WAITING)
        assert engine.cancel(handle.id)
        with pytest.raises(RunCancelled):
            handle.result(PATIENCE)

    def test_cancelling_reaches_what_is_queued(self, engine: Engine, journal: Journal) -> None:
        engine.queue("q")
        for delay in (None, 3600):
            handle = engine.start(job("steps", journal), queue="q", delay=delay)
            assert engine.cancel(handle.id)
            with pytest.raises(RunCancelled):
                handle.result(PATIENCE)
        assert journal.lines() == []

    def test_a_run_that_has_ended_can_be_deleted(self, engine: Engine, journal: Journal) -> None:
        waiting = engine.start(job("wait", waitpoints=["later"]))
        wait_until(lambda: waiting.status() == WAITING)
        with pytest.raises(RunError, match=f"run '{waiting.id}' hasn't ended: `harnpy runs cancel"):
            engine.delete(waiting.id)
        engine.cancel(waiting.id)
        with pytest.raises(RunCancelled):
            waiting.result(PATIENCE)
        done = engine.start(job("steps", journal), id="done")
        assert done.result(PATIENCE)
        fork = engine.fork("done", 2)
        fork.result(PATIENCE)
        engine.delete("done")
        assert engine.get("done") is None
        assert len(engine.steps(fork.id)) > 1
        with pytest.raises(RunNotFound):
            engine.delete("done")
        assert engine.start(job("steps", journal), id="done").result(PATIENCE)  # it is a new one

    def test_a_cancelled_run_can_go_on(self, engine: Engine, url: str) -> None:
        handle = engine.start(job("wait", waitpoints=["later"]))
        wait_until(lambda: handle.status() == WAITING)
        engine.cancel(handle.id)
        wait_until(lambda: handle.status() == CANCELLED)
        complete(url, "later", 7)
        assert engine.resume(handle.id).result(PATIENCE) == ["began", COMPLETED, None, [7]]

    def test_a_run_that_takes_too_long_is_cancelled(self, engine: Engine, journal: Journal) -> None:
        handle = engine.start(job("hang", journal), timeout=0.05)
        with pytest.raises(RunCancelled, match=r"it took longer than 0\.05 s"):
            handle.result(PATIENCE)

    # Waiting.

    def test_a_wait_returns_what_was_said(self, engine: Engine, url: str) -> None:
        handle = engine.start(job("wait", waitpoints=["here", "there"]))
        wait_until(lambda: handle.status() == WAITING)
        complete(url, "there", {"b": 2})
        complete(url, "here", [1])
        assert handle.result(PATIENCE) == ["began", COMPLETED, None, [[1], {"b": 2}]]

    def test_a_wait_keeps_its_first_deadline(self, engine: Engine, url: str, process: Start) -> None:
        """It is killed twice meanwhile."""
        request = job("wait", waitpoints=["there"], timeout=3600)
        deadlines = []

        def waits_again(attempt: int) -> bool:
            info = engine.get("one")
            return info is not None and (info.attempt, info.status) == (attempt, WAITING)

        for attempt in (1, 2):
            waits = process("start", "one", as_text(request))
            go_on(waits)
            wait_until(lambda attempt=attempt: waits_again(attempt))  # type: ignore[misc]
            waits.kill()
            waits.wait(PATIENCE)
            store = open_store(url)
            events = StoreEventLog(store).read_range("waitpoint.there")
            deadlines = [event.payload["deadline_at"] for _, event in events if event.kind == "wait_started"]
            store.close()
        handle = engine.resume("one")
        complete(url, "there", 1)
        assert handle.result(PATIENCE) == ["began", COMPLETED, *deadlines, [1]]

    # Queues.

    def test_a_queue_keeps_its_limits(self, engine: Engine, process: Start, journal: Journal) -> None:
        engine.queue("q", concurrency=4, worker_concurrency=2)
        runs = [
            engine.start(job("counted", journal, seconds=0.005), queue="q") for _ in range(COUNT.queued_runs)
        ]
        workers = [process("work", "q") for _ in range(3)]
        for run in runs:
            assert run.result(PATIENCE) == run.id
        go_on(*workers)
        for worker in workers:
            assert said(worker) == "ready"
            worker.wait(PATIENCE)
        most, by_process, began = overlaps(journal.lines())
        assert most <= 4
        assert max(by_process.values()) <= 2
        assert sorted(began) == sorted(run.id for run in runs)

    def test_the_smaller_priority_goes_first_then_the_older(self, engine: Engine, journal: Journal) -> None:
        engine.queue("q", concurrency=1)
        ids = [
            engine.start(job("counted", journal), queue="q", priority=priority).id
            for priority in (5, 0, 5, -1, 0)
        ]
        worked(engine, lambda: len(journal.lines()) == 10)
        assert overlaps(journal.lines())[2] == [ids[n] for n in (3, 1, 4, 0, 2)]

    def test_a_delayed_run_waits_for_its_time(self, engine: Engine, journal: Journal) -> None:
        engine.queue("q", concurrency=1)
        late = engine.start(job("counted", journal), queue="q", delay=0.3)
        never = engine.start(job("counted", journal), queue="q", delay=3600)
        # It goes first also where the worker has begun so late that both are due.
        soon = engine.start(job("counted", journal), queue="q", priority=-1)
        assert [never.status(), soon.status()] == [DELAYED, QUEUED]
        worked(engine, lambda: late.status() == COMPLETED)
        assert overlaps(journal.lines())[2] == [soon.id, late.id]
        assert never.status() == DELAYED
        info = engine.get(late.id)
        assert info is not None
        assert info.due is not None
        assert info.started is not None
        assert info.due <= info.started

    def test_a_delayed_run_without_a_queue_starts_here(self, engine: Engine, journal: Journal) -> None:
        handle = engine.start(job("steps", journal), delay=0.01)
        assert handle.result(PATIENCE) == outputs(3)

    def test_a_rate_bounds_the_starts(self, engine: Engine, journal: Journal) -> None:
        engine.queue("q", rate=(2, 3600.0))
        for _ in range(4):
            engine.start(job("counted", journal), queue="q")
        worked(engine, lambda: len(engine.runs(RunQuery(frozenset([COMPLETED])))) == 2)
        assert len(engine.runs(RunQuery(frozenset([QUEUED])))) == 2
        engine.queue("q")
        worked(engine, lambda: len(engine.runs(RunQuery(frozenset([COMPLETED])))) == 4)

    @pytest.mark.parametrize(
        "limits", [{"concurrency": 0}, {"worker_concurrency": 1.5}, {"rate": 3}, {"rate": (1, 0)}]
    )
    def test_a_limit_that_no_queue_has(self, engine: Engine, limits: dict[str, Any]) -> None:
        with pytest.raises(RunError, match=f"queue 'q': `{next(iter(limits))}` must be"):
            engine.queue("q", **limits)

    def test_a_worker_leaves_other_queues_alone(self, engine: Engine, journal: Journal) -> None:
        for name in ("a", "b"):
            engine.queue(name)
        theirs = engine.start(job("steps", journal), queue="b")
        mine = engine.start(job("steps", journal), queue="a")
        worked(engine, lambda: mine.status() == COMPLETED, ["a"])
        assert theirs.status() == QUEUED

    def test_a_worker_that_stops_gives_back_what_waits(self, engine: Engine, url: str) -> None:
        engine.queue("q")
        handle = engine.start(job("wait", waitpoints=["there"]), queue="q")
        worked(engine, lambda: handle.status() == WAITING)
        assert handle.status() == QUEUED
        complete(url, "there", 1)
        worked(engine, lambda: handle.status() == COMPLETED)
        info = engine.get(handle.id)
        assert info is not None
        assert info.attempt == 2

    def test_a_running_step_ends_before_its_worker(self, engines: Open) -> None:
        body = Stoppable()
        engine = engines(bodies={**BODIES, "stoppable": body})
        worker, stop = begun(engine, body)
        stop.set()
        wait_until(lambda: is_leaving(engine, "one"))
        assert not body.asked.is_set()
        body.end.set()
        ended(worker)
        assert (body.done, status(engine, "one")) == ([1], QUEUED)
        assert [step.key for step in engine.steps("one")] == ["first"]
        assert engine.resume("one").result(PATIENCE) == 2
        assert body.done == [1, 2]

    def test_a_step_that_takes_too_long_is_another_worker_s(self, engines: Open) -> None:
        body = Stoppable()
        engine = engines(bodies={**BODIES, "stoppable": body}, grace=0.0)
        worker, stop = begun(engine, body)
        stop.set()
        ended(worker)
        assert status(engine, "one") == QUEUED
        happens(body.over)
        body.asked.set()
        if engine.name == "local":
            handle = engine.resume("one")
            body.end.set()
        else:
            body.end.set()  # it is resumed when it has ended here
            handle = engine.resume("one")
        assert handle.result(PATIENCE) == 2
        # What the first attempt was about to record is nowhere.
        assert [step.key for step in engine.steps("one")] == ["first", "second"]

    def test_a_run_that_is_left_is_another_worker_s(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def left(id: str) -> None:
            with pytest.raises(ValueError, match="nobody may do it here"):
                engine.start(job("leave"), id=id).result(PATIENCE)

        left("later")
        [info] = engine.runs(RunQuery(frozenset([DELAYED])))
        assert (info.id, info.attempt, info.error) == ("later", 1, None)
        assert info.due is not None
        assert info.due > info.created
        assert engine.resume("later").result(PATIENCE) == 2
        module = "attempt" if engine.name == "local" else "dbos_database"
        monkeypatch.setattr(f"harnpy.workflow.engines.{module}.LEFT", 0.0)
        left("now")
        worked(engine, lambda: status(engine, "now") == COMPLETED)

    # Schedules.

    def test_a_schedule_starts_one_run_at_a_time(
        self, engine: Engine, engines: Open, journal: Journal
    ) -> None:
        engine.queue("q")
        engine.schedule("nightly", "30 2 * * *", job("steps", journal), queue="q", timezone="Europe/Berlin")
        [found] = engine.schedules()
        assert (found.name, found.cron, found.queue, found.timezone) == (
            "nightly",
            "30 2 * * *",
            "q",
            "Europe/Berlin",
        )
        assert found.job == job("steps", journal)
        assert found.next is not None
        assert engine.runs() == []
        assert engine.unschedule("nightly")
        assert not engine.unschedule("nightly")
        assert engine.schedules() == []

    @pytest.mark.parametrize(
        ("cron", "timezone", "message"),
        [
            ("30 2 * *", "UTC", "schedule 's': '30 2 [*] [*]' is no cron expression of five fields"),
            ("0 30 2 * * *", "UTC", "is no cron expression of five fields"),
            ("61 * * * *", "UTC", "is no cron expression of five fields"),
            ("* * * * *", "Mars/Base", "schedule 's': unknown timezone 'Mars/Base'"),
        ],
    )
    def test_a_schedule_that_can_t_be_read(
        self, engine: Engine, journal: Journal, cron: str, timezone: str, message: str
    ) -> None:
        with pytest.raises(RunError, match=message):
            engine.schedule("s", cron, job("steps", journal), timezone=timezone)
        assert engine.schedules() == []

    # Lists.

    def test_lists_are_filtered(self, engine: Engine, journal: Journal) -> None:
        engine.queue("q")
        engine.start(job("steps", journal), id="a1", attributes={"team": "x", "size": "s"}).result(PATIENCE)
        engine.start(job("counted", journal), id="a2", attributes={"team": "y"}).result(PATIENCE)
        engine.start(job("steps", journal), id="b1", queue="q", attributes={"team": "x"})

        def listed(**query: Any) -> list[str]:
            return [info.id for info in engine.runs(RunQuery(**query))]

        assert listed() == ["b1", "a2", "a1"]
        assert listed(limit=2) == ["b1", "a2"]
        assert listed(statuses=frozenset([QUEUED])) == ["b1"]
        assert listed(statuses=ENDED) == ["a2", "a1"]
        assert listed(queue="q") == ["b1"]
        assert listed(kind="steps") == ["b1", "a1"]
        assert listed(prefix="a") == ["a2", "a1"]
        assert listed(attributes={"team": "x"}) == ["b1", "a1"]
        assert listed(attributes={"team": "x", "size": "s"}, prefix="a") == ["a1"]
        assert listed(attributes={"team": "z"}) == []

    # Several processes. Spec: 10 §C12.1 e, g.

    @pytest.mark.parametrize("how", ["kill", "stop"])
    def test_another_worker_goes_on_at_each_step(
        self, engines: Open, process: Start, journal: Journal, how: str
    ) -> None:
        """The one that was stopped, and is woken, writes nothing."""
        engine = engines(hasty=True)
        engine.queue("q")
        first = process("work_hastily", "q")
        assert said(first) == "ready"
        for at in range(0, 3 + 1, 1 if COUNT.campaign else 3):
            handle = engine.start(job("steps", journal, at=at, signal=how), queue="q")
            wait_until(lambda at=at: f"at {at}" in journal.lines())  # type: ignore[misc]
            second = process("work_hastily", "q")
            assert handle.result(PATIENCE) == outputs(3)
            steps = engine.steps(handle.id)
            info = engine.get(handle.id)
            if how == "stop":
                first.send_signal(signal.SIGCONT)
                go_on(first)
                said(first)
            assert engine.steps(handle.id) == steps
            assert [step.key for step in steps] == ["step:0", "step:1", "step:2"]
            assert engine.get(handle.id) == info
            assert info is not None
            assert info.attempt == 2
            first.wait(PATIENCE)
            mine = [line for line in journal.lines() if line.startswith(f"did {handle.id} ")]
            assert sorted({*mine}) == [f"did {handle.id} {n}" for n in range(3)]
            # What the stopped one was about to do, it may have done before it knew.
            assert len(mine) <= 3 + (how == "stop")
            first = second
            assert said(first) == "ready"

    def test_of_those_who_resume_one_wins(self, engine: Engine, process: Start) -> None:
        handle = engine.start(job("wait", waitpoints=["there"]), id="one")
        wait_until(lambda: handle.status() == WAITING)
        engine.cancel("one")
        wait_until(lambda: handle.status() == CANCELLED)
        rivals = [process("resume", "one") for _ in range(COUNT.rivals)]
        for rival in rivals:
            assert said(rival) == "ready"
        go_on(*rivals)
        wait_until(lambda: sum(rival.poll() is not None for rival in rivals) == len(rivals) - 1)
        [winner] = [rival for rival in rivals if rival.poll() is None]
        assert {said(rival) for rival in rivals if rival is not winner} == {LeaseHeld.__name__}
        wait_until(lambda: status(engine, "one") == WAITING)
        engine.cancel("one")
        assert said(winner) == RunCancelled.__name__

    def test_an_engine_that_is_closed_has_given_its_runs_back(self, engines: Open, url: str) -> None:
        first = engines()
        handle = first.start(job("wait", waitpoints=["there"]), id="one")
        wait_until(lambda: handle.status() == WAITING)
        first.close()
        with pytest.raises(RunError, match="the engine is closed"):
            handle.status()
        complete(url, "there", 1)
        assert engines().resume("one").result(PATIENCE) == ["began", COMPLETED, None, [1]]

    def test_a_killed_run_goes_on_under_its_id(
        self, engine: Engine, process: Start, journal: Journal
    ) -> None:
        request = job("steps", journal, at=2, signal="kill")
        first = process("start", "one", as_text(request))
        go_on(first)
        first.wait(PATIENCE)
        assert status(engine, "one") == RUNNING
        assert engine.start(request, id="one").result(PATIENCE) == outputs(3)
        assert len([line for line in journal.lines() if line.startswith("did")]) == 3
