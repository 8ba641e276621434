"""What the engine `local` promises beyond the contract. Spec: 10 §C19.2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import msgspec
import pytest

from harnpy.storage import open_store
from harnpy.storage.contract import HeadQuery, Page, Store
from harnpy.storage.errors import LeaseHeld, LeaseLost, NoStore, StoreBusy
from harnpy.storage.leases import Machine
from harnpy.workflow.engines import open_engine
from harnpy.workflow.engines.attempt import Attempt
from harnpy.workflow.engines.contract import (
    COMPLETED,
    DEAD,
    MOST_ATTEMPTS,
    RUNNING,
    Engine,
    Job,
    RunQuery,
)
from harnpy.workflow.engines.errors import RunError, RunFailed
from harnpy.workflow.engines.local import LocalEngine
from harnpy.workflow.engines.queues import STALE
from harnpy.workflow.engines.run_log import KIND, RunHead, RunLog
from harnpy.world.clock import RealClock
from tests.support import PATIENCE, ended, happens, wait_until
from tests.workflow.engines.bodies import BODIES, Journal, Stoppable, job
from tests.workflow.engines.conftest import Open
from tests.workflow.engines.kinds import KINDS
from tests.workflow.engines.test_engines import worked

#: Every store that engines are tested on.
pytestmark = pytest.mark.parametrize(
    "kind", [name for name in KINDS if name.startswith("local")], indirect=True
)


class Time:
    """The time that an engine sees. It stands still unless the test moves it."""

    def __init__(self, text: str) -> None:
        self.seconds = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture(autouse=True)
def glances(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a run looks often."""
    monkeypatch.setattr("harnpy.workflow.engines.local.GLANCE", 0.05)


@pytest.fixture
def working() -> Iterator[Callable[..., None]]:
    """Have an engine work in a thread, until the test ends."""
    stop, threads = Event(), list[Thread]()

    def work(engine: LocalEngine, **options: Any) -> None:
        threads.append(Thread(target=engine.work, kwargs={"stop": stop, **options}, daemon=True))
        threads[-1].start()

    yield work
    stop.set()
    ended(*threads)


def once(engine: LocalEngine, **options: Any) -> None:
    """Have an engine work until it has looked around once."""
    stop = Event()
    queues = engine._queues.names

    def names() -> list[str]:
        stop.set()
        return queues()

    engine._queues.names = names  # type: ignore[method-assign]
    engine.work(stop=stop, **options)


class ElsewhereMachine(Machine):
    host = "elsewhere"  # type: ignore[assignment]


# Schedules.


def test_three_workers_start_a_schedule_s_run_once(
    engines: Open, working: Callable[..., None], journal: Journal
) -> None:
    now = Time("2026-03-01T12:00:00")
    workers = [engines(now=now) for _ in range(3)]
    workers[0].queue("q")
    workers[0].schedule("hourly", "15 * * * *", job("counted", journal), queue="q")
    for worker in workers:
        working(worker)
    for hour in (12, 13):
        now.seconds = Time(f"2026-03-01T{hour}:15:00")()
        id = f"hourly@2026-03-01T{hour}:15:00Z"
        wait_until(lambda id=id: getattr(workers[0].get(id), "status", "") == COMPLETED)  # type: ignore[misc]
    assert [run.id for run in workers[0].runs()] == [
        "hourly@2026-03-01T13:15:00Z",
        "hourly@2026-03-01T12:15:00Z",
    ]
    assert len(journal.lines()) == 4
    wait_until(lambda: workers[0].schedules()[0].next == Time("2026-03-01T14:15:00")())


def test_of_times_that_have_passed_the_last_one_starts_a_run(
    engines: Open, working: Callable[..., None], journal: Journal
) -> None:
    now = Time("2026-03-28T12:00:00")
    engine = engines(now=now)
    # The clocks in Berlin go forward in the night of the 29th.
    engine.schedule("nightly", "30 4 * * *", job("steps", journal), timezone="Europe/Berlin")
    assert engine.schedules()[0].next == Time("2026-03-29T02:30:00")()
    now.seconds = Time("2026-04-01T12:00:00")()
    working(engine)
    wait_until(lambda: len(engine.runs(RunQuery(frozenset([COMPLETED])))) == 1)
    assert [run.id for run in engine.runs()] == ["nightly@2026-04-01T02:30:00Z"]
    wait_until(lambda: engine.schedules()[0].next == Time("2026-04-02T02:30:00")())


def test_a_schedule_can_be_another_one(engines: Open, journal: Journal) -> None:
    engine = engines(now=Time("2026-03-01T12:00:00"))
    for cron in ("15 * * * *", "20 * * * *"):
        engine.schedule("s", cron, job("steps", journal, count=len(cron)))
    [found] = engine.schedules()
    assert (found.cron, found.next) == ("20 * * * *", Time("2026-03-01T12:20:00")())
    with pytest.raises(RunError, match="unknown queue 'q'"):
        engine.schedule("s", "15 * * * *", job("steps", journal), queue="q")


# One machine.


def test_a_queue_serves_one_machine(engines: Open, journal: Journal) -> None:
    now = Time("2026-03-01T12:00:00")
    here, elsewhere = engines(now=now), engines(now=now, machine=ElsewhereMachine())
    here.queue("night")
    once(here)
    with pytest.raises(
        RunError,
        match=f"queue 'night' is served by the machine {Machine().host}: the engine 'local' serves one "
        "machine; for many open 'dbos'",
    ):
        elsewhere.work(queues=["night"])
    now.seconds += STALE
    once(elsewhere)
    with pytest.raises(RunError, match="is served by the machine elsewhere"):
        here.work()


def test_runs_of_a_dead_worker_go_on_on_another_machine(
    engines: Open, url: str, journal: Journal, working: Callable[..., None]
) -> None:
    first, elsewhere = engines(hasty=True), engines(machine=ElsewhereMachine())
    first.queue("night")
    once(first)
    lose(url, "one", job("steps", journal))
    working(elsewhere, queues=[])
    wait_until(lambda: getattr(first.get("one"), "status", "") == COMPLETED)
    assert getattr(first.get("one"), "attempt", 0) == 2


# Lost workers.


def lose(url: str, id: str, request: Job, lost: int = 0) -> None:
    """Leave a run behind whose worker is gone, and has been so often before."""
    with_store(url, lambda store: _lose(store, id, request, lost))


def _lose(store: Store, id: str, request: Job, lost: int) -> None:
    head = RunHead(RUNNING, request.kind, request.name, worker="nobody", attempt=lost + 1, lost=lost)
    log = RunLog(store, id, RealClock.now)
    created = ("run_created", {"job": msgspec.to_builtins(request)})
    log.append(created, ("run_claimed", {"worker": "nobody", "attempt": 1}), head=head)


def with_store(url: str, work: Callable[[Store], object]) -> None:
    store = open_store(url)
    work(store)
    store.close()


def test_a_run_that_loses_its_worker_too_often_is_dead(
    engines: Open, url: str, journal: Journal, working: Callable[..., None]
) -> None:
    engine = engines()
    lose(url, "last chance", job("steps", journal), MOST_ATTEMPTS - 2)
    lose(url, "dead", job("steps", journal), MOST_ATTEMPTS - 1)
    working(engine)
    for id, status in (("last chance", COMPLETED), ("dead", DEAD)):
        wait_until(lambda: getattr(engine.get(id), "status", "") == status)  # noqa: B023
    info = engine.get("dead")
    assert info is not None
    assert info.error == f"its worker was lost {MOST_ATTEMPTS} times"
    with pytest.raises(RunFailed, match="its worker was lost"):
        engine.start(job("steps", journal), id="dead").result(PATIENCE)
    assert len(engine.resume("dead").result(PATIENCE)) == 3


def test_a_request_to_cancel_outlives_the_worker(engines: Open, url: str, journal: Journal) -> None:
    engine = engines()
    lose(url, "one", job("steps", journal))
    log = RunLog(engine.store, "one", RealClock.now)
    log.load()
    log.append(("run_cancel_requested", {"reason": "enough"}))
    worked(engine, lambda: getattr(engine.get("one"), "status", "") == "cancelled")
    assert journal.lines() == []
    assert len(engine.resume("one").result(PATIENCE)) == 3


def test_a_step_that_the_store_does_not_take_ends_the_run_here_alone(
    engines: Open, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines()
    real = RunLog.append_steps

    def append(log: RunLog, steps: Any, **options: Any) -> None:
        if steps[0].key == "step:1":
            raise StoreBusy("the store", 5.0)
        real(log, steps, **options)

    monkeypatch.setattr(RunLog, "append_steps", append)
    handle = engine.start(job("steps", journal))
    with pytest.raises(StoreBusy, match="the store was locked for 5 s"):
        handle.result(PATIENCE)
    monkeypatch.undo()
    assert len(engine.steps(handle.id)) == 1
    assert handle.status() == RUNNING
    assert len(engine.resume(handle.id).result(PATIENCE)) == 3


# What a process has lost.


def test_who_has_lost_a_run_does_not_wait_for_it(engines: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    body, other = Stoppable(), Stoppable()
    engine = engines(bodies={**BODIES, "stoppable": body}, ttl=0.3)
    with monkeypatch.context() as still:
        still.setattr(Attempt, "look", lambda attempt: None)  # a process that stands still renews nothing
        handle = engine.start(Job("stoppable", "j", {}), id="one")
        happens(body.begun)
        second = engines(bodies={**BODIES, "stoppable": other}, grace=0.0)
        wait_until(lambda: taken(second))
        still.setattr("harnpy.workflow.engines.local._CLOSING", 0.0)
        second.close()
    with pytest.raises(LeaseLost, match="lease on run:one was lost"):
        handle.result(PATIENCE)
    with pytest.raises(LeaseLost):
        list(handle.events())
    body.end.set()
    other.end.set()


def taken(engine: Engine) -> bool:
    """Whether the run could be taken."""
    try:
        engine.resume("one")
    except LeaseHeld:
        return False
    return True


def test_a_store_that_was_deleted_is_noticed(tmp_path: Path, kind: str) -> None:
    if "sqlite" not in kind:
        pytest.skip("is about a file")
    body = Stoppable()
    engine = LocalEngine(f"sqlite:{tmp_path}/runs.db", {**BODIES, "stoppable": body}, ttl=0.3)
    handle = engine.start(Job("stoppable", "j", {}), id="one")
    happens(body.begun)
    (tmp_path / "runs.db").unlink()
    with pytest.raises(
        NoStore, match=r"runs\.db any more: its file was deleted or replaced while it was open"
    ):
        handle.result(PATIENCE)
    happens(body.over)
    body.end.set()
    engine.close()


# What it costs.


def test_a_step_is_one_append_and_no_look(
    engines: Open, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines(ttl=3600.0)
    asked: list[str] = []

    def counted(log: RunLog, name: str) -> Any:
        real = getattr(log._stream, name)

        def call(*args: Any, **options: Any) -> Any:
            if current_thread().name.startswith("run "):  # not the one that looks for requests to cancel
                asked.append(name if options.get("head") is None else f"{name} with head")
            return real(*args, **options)

        return call

    real = RunLog.append_steps

    def append(log: RunLog, steps: Any, **options: Any) -> None:
        for name in ("append", "read", "refresh", "last"):
            monkeypatch.setattr(log._stream, name, counted(log, name), raising=False)
        real(log, steps, **options)
        monkeypatch.undo()
        monkeypatch.setattr(RunLog, "append_steps", append)

    monkeypatch.setattr(RunLog, "append_steps", append)
    engine.start(job("steps", journal, count=20)).result(PATIENCE)
    assert asked == ["append"] * 20


def test_a_long_list_is_a_few_pages(engines: Open, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engines()
    for number in range(5):
        engine.start(job("steps", journal), id=f"run{number}").result(PATIENCE)
    monkeypatch.setattr("harnpy.workflow.engines.local.PAGE", 1)
    pages: list[int] = []
    real = engine.store.heads

    def heads(query: HeadQuery) -> Page:
        pages.append(query.limit)
        return real(query)

    monkeypatch.setattr(engine.store, "heads", heads)
    assert len(engine.runs(RunQuery(limit=5))) == 5
    assert pages == [5]


def test_an_engine_opens_its_store_and_closes_it(url: str, kind: str, journal: Journal) -> None:
    engine = open_engine("local", url, bodies=BODIES)
    assert engine.start(job("steps", journal), id="one").result(PATIENCE)
    engine.close()
    store = open_store(url)
    shared = open_engine("local", store, bodies=BODIES)
    shared.close()
    assert store.head(KIND, "one") is not None
    store.close()
    with pytest.raises(RunError, match="the engine is closed: open another one"):
        shared.runs()
    with pytest.raises(RunError, match="unknown engine 'locl': did you mean `local`"):
        open_engine("locl", url)
