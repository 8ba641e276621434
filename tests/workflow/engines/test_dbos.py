"""What is DBOS's alone: what it does that nobody would guess, and how the engine answers. Spec: 10 §C19.3."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from threading import enumerate as enumerate_threads
from typing import Any

import pytest
from msgspec import to_builtins

from harnpy.storage.errors import LeaseHeld, LeaseLost
from harnpy.version import install_command
from harnpy.workflow.engines import open_engine
from harnpy.workflow.engines.contract import (
    CANCELLED,
    DEAD,
    FAILED,
    QUEUED,
    Job,
    Json,
    RunContext,
    RunQuery,
    Step,
)
from harnpy.workflow.engines.dbos_database import require_sqlite
from harnpy.workflow.engines.errors import RunCancelled, RunError, RunFailed
from tests.forked import Forks
from tests.support import PATIENCE, ROOT, Popen, ended, happens, wait_until
from tests.workflow.engines.bodies import BODIES, Journal, job, overlaps
from tests.workflow.engines.conftest import Anchor, forget_runs, needs_sqlite
from tests.workflow.engines.test_engines import as_text, said, worked

Fact = Callable[..., Any]


@pytest.fixture
def facts(postgres: str, dbos_forks: Callable[[], Forks]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a process that shows what DBOS does by itself; see `dbos_itself`."""
    started: list[subprocess.Popen[str]] = []

    def one_more(name: str, *arguments: object) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-m",
            "tests.workflow.engines.dbos_itself",
            name,
            postgres,
            *map(str, arguments),
        ]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(dbos_forks().popen(command, cwd=ROOT, text=True, **pipes))
        return started[-1]

    forget_runs(postgres, "dbos_itself")
    yield one_more
    for each in started:
        each.kill()
        each.communicate(timeout=PATIENCE)


@pytest.fixture
def fact(facts: Callable[..., subprocess.Popen[str]]) -> Fact:
    """Return what a fact is."""

    def found(name: str, *arguments: object) -> Any:
        return json.loads(said(facts(name, *arguments)))

    return found


class TestDbosItself:
    def test_its_version_of_the_code_ignores_steps_and_changes_with_a_comment(
        self, fact: Fact, tmp_path: Path
    ) -> None:
        """So the engine gives it a version, and a run's own text is compared by whoever does the job."""
        versions = []
        for n, (result, comment) in enumerate([("1", ""), ("2", ""), ("1", "  # a comment")]):
            directory = tmp_path / str(n)
            directory.mkdir()
            versions.append(fact("version", directory, result, comment))
        assert versions[0] == versions[1]
        assert versions[0] != versions[2]

    def test_a_second_process_of_an_executor_repeats_the_step_that_the_first_one_runs(
        self, facts: Callable[..., subprocess.Popen[str]], tmp_path: Path
    ) -> None:
        """So each process that launches it is an executor of its own."""
        journal = tmp_path / "journal"
        first = facts("twin", journal, 600)
        assert json.loads(said(first)) == "ready"
        wait_until(lambda: journal.exists() and journal.read_text())
        second = facts("twin", journal, 0)
        wait_until(lambda: len(journal.read_text().splitlines()) == 2)
        assert first.poll() is None  # one of them does it again, while it is being done
        assert second.poll() is None

    def test_a_worker_that_is_gone_keeps_its_slot(
        self, facts: Callable[..., subprocess.Popen[str]], postgres: str
    ) -> None:
        """So each has a lease, and whoever sees that it is free hands the runs on."""
        from dbos import DBOSClient

        first = facts("slot", "gone")
        assert json.loads(said(first)) == "ready"
        client = DBOSClient(system_database_url=postgres, dbos_system_schema="dbos_itself")
        options: Any = {"workflow_name": "hang", "queue_name": "one at a time", "app_version": "1"}
        client.enqueue(options)
        assert json.loads(said(first)) == "begins"
        first.kill()
        first.wait(PATIENCE)
        behind = client.enqueue(options)
        second = facts("slot", "other")
        assert json.loads(said(second)) == "ready"
        time.sleep(0.5)
        assert [row.status for row in client.list_workflows()] == ["PENDING", "ENQUEUED"]
        assert behind.get_status().status == "ENQUEUED"
        client.destroy()

    def test_cancelling_and_resuming_runs_the_running_step_twice(self, fact: Fact) -> None:
        """So a step asks its own record first; one of the two is written."""
        assert fact("twice") == {"began": 2, "result": 1, "steps": 1}

    def test_a_time_limit_around_a_step_is_not_recorded(self, fact: Fact) -> None:
        """A run that goes on waits again, and may come to something else. So it belongs into the step."""
        assert fact("time_limit") == {"run": ["late", []], "other": ["late", ["late"]]}

    def test_what_nobody_does_or_takes_waits_in_silence(self, fact: Fact) -> None:
        """And holds up the queue. So jobs and queues are looked up before a run is enqueued."""
        assert fact("silence") == [["ENQUEUED", None], ["PENDING", None], ["ENQUEUED", None]]

    def test_variables_of_the_context_follow_into_asynchronous_runs_only(self, fact: Fact) -> None:
        """So what a body needs is in its job."""
        assert fact("context") == ["something", "nothing", "something"]

    def test_another_one_is_the_one_that_there_is(self, fact: Fact) -> None:
        """Whatever database it is told. So a second engine on another one is refused."""
        assert fact("one") == "first"


@pytest.fixture
def url(postgres: str, anchor: Anchor) -> str:
    """The URL of an empty store, on which DBOS is at work."""
    forget_runs(postgres)
    anchor.open(postgres)
    return postgres


@pytest.fixture
def engine(url: str) -> Iterator[Any]:
    engine = open_engine("dbos", url, bodies={**BODIES, **OTHERS}, ttl=0.5, poll=0.05)
    yield engine
    engine.close()


def loop(job: Job, run: RunContext) -> Json:
    """Record from within an event loop."""

    async def main() -> Json:
        run.record(Step("a", 1), Step("b", 2))
        return run.step("c", lambda: 3)

    return asyncio.run(main())


def nest(job: Job, run: RunContext) -> Json:
    """Start another run."""
    return run.step("start", lambda: NEST[0].start(Job("loop", "inner", {})).id)


def surrogate(job: Job, run: RunContext) -> Json:
    return run.step("a", lambda: ["\ud800", "\0"])


def gap(job: Job, run: RunContext) -> Json:
    """Go on after a step that was no JSON."""
    run.step("a", lambda: 1)
    try:
        run.step("b", lambda: float("nan"))
    except RunError:
        run.step("c", lambda: run.attempt)
    if run.attempt == 1:
        raise ValueError("not today")
    return run.step("d", lambda: run.attempt)


NEST: list[Any] = []
OTHERS = {"loop": loop, "nest": nest, "surrogate": surrogate, "gap": gap}


class TestDbosEngine:
    def test_what_it_lacks_is_said(self, popen: Popen) -> None:
        code = """
import sys
sys.modules["dbos"] = None
from harnpy.workflow.engines import open_engine
try:
    open_engine("dbos", "memory:", bodies={})
except Exception as error:
    print(type(error).__name__, error)
"""
        process = popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert (
            process.communicate(timeout=PATIENCE)[0]
            == f"RunError engine 'dbos' needs: {install_command('dbos')}\n"
        )

    def test_nothing_else_imports_it(self) -> None:
        code = """
import sys
import harnpy
from harnpy.workflow.engines import open_engine
open_engine("local", "memory:").close()
print([name for name in sys.modules if name.split(".")[0] in ("dbos", "sqlalchemy")])
"""
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
        assert found.stdout == "[]\n", found.stderr

    @pytest.mark.parametrize("store", ["memory:", "jsonl:{tmp_path}", "sqlite::memory:"])
    def test_a_store_that_it_can_t_serve(self, store: str, tmp_path: Path) -> None:
        with pytest.raises(
            RunError, match="engine 'dbos' keeps its runs in PostgreSQL or, to try it out, in SQL"
        ):
            open_engine("dbos", store.format(tmp_path=tmp_path), bodies=BODIES)

    @needs_sqlite
    def test_a_process_serves_one_database(self, engine: Any, tmp_path: Path) -> None:
        with pytest.raises(
            RunError, match=r"DBOS serves one database a process, and here that is postgresql:"
        ):
            open_engine("dbos", f"sqlite:{tmp_path}/other.db", bodies=BODIES)

    @needs_sqlite
    def test_sqlite_serves_one_process(
        self, anchor: Anchor, tmp_path: Path, dbos_forks: Callable[[], Forks]
    ) -> None:
        anchor.close()
        url = f"sqlite:{tmp_path}/runs.db"
        first = open_engine("dbos", url, bodies=BODIES)
        try:
            first.start(job("record", count=1)).status()
            code = f"""
from harnpy.workflow.engines import open_engine
from tests.workflow.engines.bodies import BODIES, job
engine = open_engine("dbos", {url!r}, bodies=BODIES)
print(len(engine.runs()))
try:
    engine.start(job("record", count=1))
except Exception as error:
    print(type(error).__name__, str(error).split()[0])
engine.close()
"""
            process = dbos_forks().popen(
                [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT
            )
            assert process.communicate(timeout=PATIENCE)[0] == "1\nLeaseHeld worker:dbos\n"
            assert (tmp_path / "runs.db.dbos").stat().st_mode & 0o077 == 0
        finally:
            first.close()

    def test_a_body_may_run_an_event_loop(self, engine: Any) -> None:
        handle = engine.start(Job("loop", "loop", {}))
        assert handle.result(PATIENCE) == 3
        assert [step.key for step in engine.steps(handle.id)] == ["a", "b", "c"]

    def test_a_run_that_a_body_starts_is_one_like_any_other(self, engine: Any) -> None:
        NEST[:] = [engine]
        outer = engine.start(Job("nest", "nest", {}))
        inner = outer.result(PATIENCE)
        assert engine.get(inner).status in ("running", "completed")
        assert [step.key for step in engine.steps(outer.id)] == ["start"]
        assert engine._database.row(inner).parent_workflow_id is None

    def test_a_fork_takes_along_a_part_of_what_was_recorded_at_once(self, engine: Any) -> None:
        source = engine.start(job("record", count=4)).id
        wait_until(lambda: engine.get(source).status == FAILED)
        for at in (1, 3, 5):
            fork = engine.fork(source, at)
            with pytest.raises(RunFailed):
                fork.result(PATIENCE)  # at the first attempt
            assert [step.output for step in engine.steps(fork.id)] == [0, 1, 2, 3]
            assert engine.resume(fork.id).result(PATIENCE) == [0, 1, 2, 3]

    def test_a_run_goes_on_behind_a_gap_in_its_steps(self, engine: Any) -> None:
        """DBOS has given a number to the step that it could not record."""
        handle = engine.start(Job("gap", "gap", {}))
        with pytest.raises(RunFailed):
            handle.result(PATIENCE)
        assert engine.resume(handle.id).result(PATIENCE) == 2
        assert [step.key for step in engine.steps(handle.id)] == ["a", "c", "d"]
        fork = engine.fork(handle.id, 3)
        with pytest.raises(RunFailed):
            fork.result(PATIENCE)  # at the first attempt
        assert engine.resume(fork.id).result(PATIENCE) == 2

    def test_text_that_is_no_text_is_kept(self, engine: Any) -> None:
        handle = engine.start(Job("surrogate", "\ud800", {"\0": "\ud800"}))
        assert handle.result(PATIENCE) == ["\ud800", "\0"]
        assert engine.steps(handle.id)[0][1:3] == ("a", ["\ud800", "\0"])

    def test_a_run_that_loses_its_worker_too_often_is_dead(self, engine: Any, journal: Journal) -> None:
        engine.queue("q")
        handle = engine.start(job("steps", journal), queue="q")
        engine._database.note(handle.id, {"harn.lost": 19})
        engine._database.hand_on(engine._database.row(handle.id))
        assert handle.status() == DEAD
        assert [info.id for info in engine.runs(RunQuery(frozenset([DEAD])))] == [handle.id]
        assert engine.runs(RunQuery(frozenset([CANCELLED]))) == []
        with pytest.raises(RunFailed, match="its worker was lost 20 times"):
            handle.result(PATIENCE)
        assert len(engine.resume(handle.id).result(PATIENCE)) == 3

    def test_a_run_that_is_handed_on_keeps_its_deadline(self, engine: Any, journal: Journal) -> None:
        handle = engine.start(job("hang", journal), timeout=60)
        wait_until(journal.lines)
        row = engine._database.row(handle.id)
        engine._database.hand_on(row)
        known = engine._database.row(handle.id).attributes
        assert known["harn.deadline"] == row.workflow_deadline_epoch_ms / 1000
        engine._database.note(handle.id, {"harn.deadline": time.time() - 1})
        worked(engine, lambda: handle.status() == CANCELLED)
        with pytest.raises(RunCancelled, match="it took longer than 60 s"):
            handle.result(PATIENCE)

    def test_who_has_lost_a_run_does_not_wait_for_it(
        self, engine: Any, journal: Journal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("harnpy.workflow.engines.dbos.GLANCE", 0.05)
        handle = engine.start(job("hang", journal))
        wait_until(journal.lines)
        engine._database.hand_on(engine._database.row(handle.id))  # as who takes us for gone
        with pytest.raises(LeaseLost, match=f"lease on run:{handle.id} was lost"):
            handle.result(PATIENCE)
        with pytest.raises(LeaseLost):
            list(handle.events())
        assert engine.get(handle.id).status == QUEUED
        engine.cancel(handle.id)

    def test_a_process_that_stood_still_goes_on_with_its_own_queue(
        self, engine: Any, journal: Journal
    ) -> None:
        """Whoever has handed its runs on has deleted it."""
        from harnpy.workflow.engines.dbos_process import PROCESS

        source = engine.start(job("steps", journal))
        source.result(PATIENCE)
        with PROCESS._keeping:
            PROCESS._leases[0].release()
            gone = engine.store.lease(PROCESS._leases[0].key, ttl=PATIENCE)
        with gone:
            engine._database.delete_queue(PROCESS.here)
            fork = engine.fork(source.id, 2)
        assert len(fork.result(PATIENCE)) == 3

    def test_a_run_of_another_version_waits_for_its_own(self, engine: Any) -> None:
        engine.queue("q")
        engine._database.client.enqueue(
            {
                "workflow_name": "harn.steps",
                "queue_name": "q",
                "workflow_id": "old",
                "app_version": "harnpy-0",
            },
            {},
        )
        for call in (engine.resume, lambda id: engine.fork(id, 1)):
            with pytest.raises(
                RunError, match="run 'old' is of the engine's version harnpy-0, this is harnpy-1"
            ):
                call("old")
        assert engine.get("old").status == QUEUED

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda engine: engine.queue("harn.any"), "queues that begin with harn. are the engine's own"),
            (
                lambda engine: engine.start(job("nan"), attributes={"harn.x": ""}),
                "`attributes` that begin with harn. are the engine's own: rename 'harn.x'",
            ),
            (lambda engine: engine.start(job("nan"), priority=2**30), "`priority` must be an int between"),
            (
                lambda engine: engine.start(job("nan"), queue="nigth"),
                "unknown queue 'nigth': `harnpy worker --engine dbos --queue nigth` makes it",
            ),
            (
                lambda engine: engine.work(queues=["harn.any"]),
                "queues that begin with harn. are the engine's",
            ),
            (lambda engine: engine.work(concurrency=0), "`concurrency` must be an int >= 1, got 0"),
        ],
    )
    def test_what_can_t_be_asked_for(self, engine: Any, call: Callable[[Any], Any], message: str) -> None:
        with pytest.raises(RunError, match=message.replace("?", r"\?")):
            call(engine)

    def test_a_worker_makes_its_queues_and_leaves_their_limits(self, engine: Any) -> None:
        engine.queue("limited", concurrency=1)
        stop = Event()
        stop.set()
        engine.work(queues=["new", "limited"], stop=stop)
        found = {queue.name: queue for queue in engine._database.client.list_queues()}
        assert "new" in found
        assert found["limited"].concurrency == 1

    def test_a_run_that_is_at_work_is_not_resumed(self, engine: Any, journal: Journal) -> None:
        handle = engine.start(job("hang", journal))
        wait_until(journal.lines)
        with pytest.raises(LeaseHeld, match=f"run:{handle.id} is held by"):
            engine.resume(handle.id)
        engine.cancel(handle.id)

    def test_a_schedule_starts_each_run_once_whoever_works(
        self, engine: Any, journal: Journal, url: str
    ) -> None:
        engine.schedule("often", "* * * * *", job("counted", journal))
        assert engine.unschedule("often")
        # Five fields go by minutes; DBOS knows seconds, too.
        engine._database.client.apply_schedules(
            [
                {
                    "schedule_name": "often",
                    "workflow_name": "harn.counted",
                    "schedule": "* * * * * *",
                    "context": to_builtins(job("counted", journal)),
                    "queue_name": "harn.any",
                }
            ]
        )
        worked(engine, lambda: len(journal.lines()) >= 4)
        _, _, began = overlaps([line for line in journal.lines() if line.startswith("begins")])
        assert len(began) == len(set(began))
        assert all(run.startswith("sched-often-") for run in began)
        assert engine.get(began[0]).name == "often"

    def test_it_says_nothing_on_stderr(
        self, url: str, dbos_forks: Callable[[], Forks], journal: Journal, anchor: Anchor
    ) -> None:
        """Not even of a run that fails, which DBOS logs with a traceback."""
        command = [
            sys.executable,
            "-m",
            "tests.workflow.engines.processes",
            "start",
            "dbos-postgres",
            url,
            "one",
        ]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = dbos_forks().popen(
            [*command, as_text(job("fail", journal, times=1))], cwd=ROOT, text=True, **pipes
        )
        assert said(process) == "ready"
        assert process.communicate("\n") == ("RunFailed\n", "")

    def test_an_application_with_a_dbos_of_its_own_takes_the_engine_in(
        self, facts: Callable[..., subprocess.Popen[str]]
    ) -> None:
        process = facts("attached")
        assert json.loads(said(process)) == "this process has a DBOS of its own"
        assert json.loads(said(process)) == [[0, 1], "theirs", [0, 1], "its own"]


class TestServerGone:
    def test_it_is_said_at_once(self, postgres: str, anchor: Anchor, journal: Journal) -> None:
        """DBOS itself would wait for the server, in silence."""
        anchor.close()
        with Gate(postgres) as gate:
            engine = open_engine("dbos", gate.url, bodies=BODIES, ttl=60)
            handle = engine.start(job("hang", journal))
            wait_until(journal.lines)
            gate.shut()
            for call in (
                handle.status,
                lambda: handle.result(PATIENCE),
                engine.runs,
                lambda: engine.start(job("steps", journal)),
                lambda: engine.queue("q"),
                lambda: engine.cancel(handle.id),
            ):
                began = time.monotonic()
                with pytest.raises(RunError, match=r"engine 'dbos' can't reach postgresql://\S*: ") as error:
                    call()
                assert "hunter2" not in str(error.value)
                assert time.monotonic() - began < 20
            gate.open()
            assert engine.cancel(handle.id)
            with pytest.raises(RunCancelled):
                handle.result(PATIENCE)
            engine.close()

    def test_it_keeps_no_process_from_its_end(self, postgres: str, anchor: Anchor) -> None:
        """Threads that wait for the server in DBOS's pool would."""
        anchor.close()
        began, goes_on = Event(), Event()

        def body(job: Job, run: RunContext) -> Json:
            return run.step("step", lambda: began.set() or happens(goes_on))

        with Gate(postgres) as gate:
            engine = open_engine("dbos", gate.url, bodies={"step": body})
            engine.start(Job("step", "step", {}))
            happens(began)
            gate.shut()
            goes_on.set()
            engine.close()
            wait_until(lambda: not any("dbos-executor" in each.name for each in enumerate_threads()))
            gate.open()


class Gate:
    """A way to a server that can be shut."""

    def __init__(self, url: str) -> None:
        from psycopg.conninfo import conninfo_to_dict

        known = conninfo_to_dict(url)
        self._socket = f"{known['host']}/.s.PGSQL.{known.get('port') or 5432}"
        self._database = known["dbname"]

    @property
    def url(self) -> str:
        return f"postgresql://postgres:hunter2@127.0.0.1:{self._port}/{self._database}"

    def __enter__(self) -> Gate:
        self._port = 0
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()

    def open(self) -> None:
        import socket

        self._server = socket.create_server(("127.0.0.1", self._port))
        self._port = self._server.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads: list[Thread] = []
        self._begin(self._serve, self._server)

    def _begin(self, work: Callable[..., None], *arguments: Any) -> None:
        self._threads.append(Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def shut(self) -> None:
        import socket

        for each in [self._server, *self._open]:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # somebody else was quicker
        while self._threads:
            ended(self._threads.pop())
        for each in [self._server, *self._open]:
            each.close()

    def _serve(self, server: Any) -> None:
        import socket

        while True:
            try:
                mine, _ = server.accept()
            except OSError:
                return
            theirs = socket.socket(socket.AF_UNIX)
            theirs.connect(self._socket)
            self._open += [mine, theirs]
            for source, target in ((mine, theirs), (theirs, mine)):
                self._begin(_pass_on, source, target)


def _pass_on(source: Any, target: Any) -> None:
    import socket

    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


@pytest.mark.parametrize(
    ("python", "sqlite"), [((3, 11), (3, 40, 1)), ((3, 12), (3, 42, 0)), ((3, 13), (3, 50, 0))]
)
def test_a_sqlite_that_dbos_can_use(python: tuple[int, int], sqlite: tuple[int, int, int]) -> None:
    require_sqlite(python, sqlite)


def test_a_sqlite_that_dbos_cannot_use_is_said() -> None:
    with pytest.raises(
        RunError, match=r"^DBOS needs SQLite 3\.42 or newer with Python 3\.12, and here is 3\.40\.1: "
    ):
        require_sqlite((3, 12), (3, 40, 1))
