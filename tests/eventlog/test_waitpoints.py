"""Waitpoints on every store. Spec: 10 §C18, 06 §28."""

from __future__ import annotations

import asyncio
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from harnpy.eventlog import LogEvent, MemoryEventLog, StoreEventLog, TopicMoved
from harnpy.eventlog.waitpoints import UnknownWaitpoint, WaitpointError, Waitpoints
from harnpy.storage import Store, open_store
from tests.counts import COUNT
from tests.storage.conftest import url_of
from tests.support import ROOT, Popen

Opened = Callable[..., Store]
WAITERS = "tests.eventlog.waiters"
#: How many processes have waiters in the test that kills them, and how many runs of it there are.
PROCESSES, RUNS = COUNT.waiter_processes, COUNT.seeds(COUNT.waiter_runs)
SHARED = ["jsonl", "sqlite", "postgres"] if COUNT.campaign else ["sqlite", "postgres"]


class Clock:
    """Epoch seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def points(opened: Opened, clock: Clock) -> Waitpoints:
    """Those of an empty store, with ids that count."""
    ids = iter(range(1, 1000))
    return Waitpoints(StoreEventLog(opened()), now=clock, new_id=lambda: str(next(ids)))


def kinds(points: Waitpoints, topic: str) -> list[str]:
    return [event.kind for _, event in points.log.read_range(topic)]


def test_a_waitpoint_is_what_its_topic_says(points: Waitpoints, clock: Clock) -> None:
    begin = "2023-11-14T22:13:20.000Z"
    made = points.create("a", {"for": ["ada"]})
    assert made.to_dict() == {
        "id": "a", "status": "open", "created_at": begin, "completed_at": None, "cancelled_at": None,
        "completed_by": None, "cancelled_by": None, "value": None, "reason": None,
        "metadata": {"for": ["ada"]},
    }  # fmt: skip
    clock.time += 1.5
    assert points.create("a", {"other": 1}) == made
    done, changed = points.complete("a", {"n": 1}, by="ada")
    assert changed
    assert done == points.get("a")
    assert done == made._replace(
        status="completed", completed_at="2023-11-14T22:13:21.500Z", completed_by="ada", value={"n": 1}
    )
    for again in (points.complete("a", 2, by="bob"), points.cancel("a", reason="late")):
        assert again == (done, False)
    assert kinds(points, "waitpoint.a") == ["created", "completed"]
    assert points.create().id == "wp_1"
    assert points.cancel("wp_1", reason="no more", by="bob").waitpoint.to_dict() == {
        **points.create("x").to_dict(), "id": "wp_1", "status": "cancelled", "reason": "no more",
        "cancelled_by": "bob", "cancelled_at": "2023-11-14T22:13:21.500Z",
    }  # fmt: skip
    assert points.complete("wp_1").changed is False
    assert [point.id for point in points.list()] == ["a", "wp_1", "x"]
    assert [point.id for point in points.list("open")] == ["x"]
    assert points.get("unknown") is None


def test_what_is_refused_writes_nothing(points: Waitpoints) -> None:
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: points.create("  "), "`id` must be a non-empty string"),
        (lambda: points.create("a", [1]), "`metadata` must be a dict"),  # type: ignore[arg-type]
        (lambda: points.complete("a", {1}), "`value` must be JSON-serializable"),
        (lambda: points.complete("a", float("nan"), create=True), "`value` must be JSON-serializable"),
        (lambda: points.complete("a"), "waitpoint.complete: unknown waitpoint 'a'"),
        (lambda: points.cancel("a"), "waitpoint.cancel: unknown waitpoint 'a'"),
        (lambda: points.wait([]), "there is nothing to wait for: name a waitpoint, or several"),
        (lambda: points.wait("a", timeout=-1), "`timeout` must not be negative or endless, got -1"),
        (lambda: points.wait(["a", ""]), "`id` must be a non-empty string"),
        (lambda: points.wait("a", wait_id=" "), "`wait_id` must be a non-empty string"),
    ]
    for call, message in refused:
        with pytest.raises(WaitpointError) as failed:
            call()
        assert str(failed.value) == message
        again = pickle.loads(pickle.dumps(failed.value))
        assert (type(again), str(again)) == (type(failed.value), message)
    assert points.log.topics() == []
    points.create("b")
    with pytest.raises(WaitpointError, match="`by` must be a string, got int"):
        points.complete("b", by=1)  # type: ignore[arg-type]
    assert kinds(points, "waitpoint.b") == ["created"]


def test_any_text_is_an_id(points: Waitpoints) -> None:
    ids = ["order 7", "Ä", "a/../b", "x" * 500, "~", "."]
    for id in ids:
        assert points.complete(id, id, create=True).changed
        assert points.wait(id).waitpoints[0].value == id
    assert sorted(point.id for point in points.list()) == sorted(ids)
    topics = [topic for topic in points.log.topics() if topic != "waitpoint.."]
    assert len(topics) == 5
    assert all(topic.startswith("waitpoint-") and len(topic) == 42 for topic in topics)


def test_a_wait_for_what_has_happened_is_over_at_once(points: Waitpoints) -> None:
    points.complete("a", 1, create=True)
    points.create("b")
    points.cancel("b", reason="rain")
    done = points.wait("a", wait_id="w")
    assert (done.status, done.waitpoint_ids, done.deadline_at) == ("completed", ("a",), None)
    assert kinds(points, "waitpoint.a")[2:] == ["wait_started", "wait_resolved"]
    assert points.wait("a", wait_id="w") == done
    assert len(kinds(points, "waitpoint.a")) == 4
    off = points.wait(["c", "a", "b", "a"])
    assert (off.status, [point.id for point in off.waitpoints]) == ("cancelled", ["c", "a", "b"])
    assert points.wait(["b", "c", "a"], all=False).status == "completed"
    assert points.wait(["b", "c"], all=False, timeout=0).status == "timed_out"
    assert points.wait("b", all=False).status == "cancelled"


def test_a_wait_keeps_its_deadline_and_its_end(points: Waitpoints, opened: Opened, clock: Clock) -> None:
    first = points.enter(["b", "a"], wait_id="w", timeout=60)
    assert (first.look(), first.seconds_left()) == (None, 60)
    log = points.log if "memory:" in repr(points.log) else StoreEventLog(opened())
    later = Waitpoints(log, now=clock)
    clock.time += 50
    again = later.enter(["a", "b"], wait_id="w", timeout=9999)
    assert (again.look(), again.seconds_left()) == (None, 10)
    assert first.interrupted().status == "interrupted"
    points.complete("a", 1)
    clock.time += 20  # while nobody runs
    ended = later.wait(["a", "b"], wait_id="w")
    assert ended.to_dict() == {
        "wait_id": "w", "waitpoint_ids": ["a", "b"], "status": "timed_out",
        "started_at": "2023-11-14T22:13:20.000Z", "deadline_at": "2023-11-14T22:14:20.000Z",
        "resolved_at": "2023-11-14T22:14:30.000Z",
        "waitpoints": [points.create("a").to_dict(), points.create("b").to_dict()],
    }  # fmt: skip
    points.complete("b", 2)
    clock.time += 1
    result = first.look()
    assert result is not None
    assert (result.status, result.resolved_at) == ("timed_out", ended.resolved_at)
    assert first.interrupted() == result
    for topic in ("waitpoint.a", "waitpoint.b"):
        assert [kinds(points, topic).count(kind) for kind in ("wait_started", "wait_resolved")] == [1, 1]
    for others in ("a", ["a", "c"]):
        with pytest.raises(WaitpointError, match=r"^wait 'w' is for b, a: it can't be entered for others$"):
            points.wait(others, wait_id="w")


def test_a_crash_between_two_topics_is_mended(points: Waitpoints, clock: Clock) -> None:
    at, log = "2023-11-14T22:13:20.000Z", points.log
    started = {"wait_id": "w", "waitpoint_ids": ["b", "a"], "at": at, "deadline_at": None}
    points.create("a")
    points.create("b")
    log.append("waitpoint.a", LogEvent("wait_started", started))
    log.append("waitpoint.a", LogEvent("wait_resolved", {"wait_id": "w", "status": "completed", "at": at}))
    clock.time += 5
    assert points.wait(["b", "a"], wait_id="w", timeout=1).resolved_at == at
    kind, payload, *_ = log.read_range("waitpoint.b")[-1][1]
    assert (kind, payload) == ("wait_resolved", {"wait_id": "w", "status": "completed", "at": at})


def test_whose_wait_it_is_stands_in_the_topic(points: Waitpoints) -> None:
    points.enter("a", session_id="s", run_id="r")
    payload = points.log.read_range("waitpoint.a")[-1][1].payload
    assert (payload["session_id"], payload["run_id"]) == ("s", "r")


def test_events_of_others_in_a_topic(points: Waitpoints) -> None:
    points.log.append("waitpoint.a", LogEvent("remark", "whatever"))
    assert points.complete("a", 1, create=True).changed
    points.log.append("waitpoint.a", LogEvent("wait_started", []))
    with pytest.raises(WaitpointError, match=r"^event 4 of topic 'waitpoint\.a' tells of no waitpoint: "):
        points.get("a")


def test_an_append_behind_what_was_read(opened: Opened) -> None:
    log = StoreEventLog(opened())
    assert log.append("t", LogEvent("k"), 0) == 1
    other = log if "memory:" in repr(log) else StoreEventLog(opened())
    assert other.append("t", LogEvent("k"), 1) == 2
    assert log.append("t", LogEvent("k"), 2) == 3
    for expected in (0, 2, 4):
        message = rf"^topic 't' has moved on: its last event is 3, not {expected}$"
        with pytest.raises(TopicMoved, match=message) as failed:
            other.append("t", LogEvent("k"), expected)
        assert pickle.loads(pickle.dumps(failed.value)).found == 3
    assert (log.latest("t"), log.verify_topic("t")) == (3, [])


def test_of_many_completions_one_is_the_first(points: Waitpoints, url: str, opened: Opened) -> None:
    own = [points, points] if url == "memory:" else [points, Waitpoints(StoreEventLog(opened()))]
    start = Barrier(len(own))
    said: list[Any] = []

    def complete(by: Waitpoints, number: int) -> None:
        for n in range(5):
            start.wait()
            done, changed = by.complete(f"p{n}", number, create=True)
            said.append((n, done.value, changed and number))

    threads = [Thread(target=complete, args=(each, number)) for number, each in enumerate(own, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(5):
        values = {value for point, value, _ in said if point == n}
        winners = {winner for point, _, winner in said if point == n and winner}
        assert len(values) == 1
        assert values == winners == {points.create(f"p{n}").value}


def test_a_waiting_thread_and_a_waiting_task_go_on(opened: Opened) -> None:
    points = Waitpoints(StoreEventLog(opened()))
    got: list[Any] = []
    thread = Thread(target=lambda: got.append(points.wait(["a", "b"], timeout=600)))
    thread.start()

    async def use() -> None:
        waiting = asyncio.create_task(points.await_("c", timeout=600, wait_id="w"))
        given_up = asyncio.create_task(points.await_("d", wait_id="x"))
        await points.acreate("c", {"n": 1})
        await asyncio.sleep(0)
        for id in ("a", "b", "c"):
            assert (await points.acomplete(id, id, by="me", create=True)).changed
        result = await waiting
        assert (result.status, result.waitpoints[0].value) == ("completed", "c")
        await points.acreate("d")
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await points.acancel("d", reason="r")).waitpoint == await points.aget("d")
        assert [point.id for point in await points.alist()] == ["a", "b", "c", "d"]

    asyncio.run(use())
    thread.join()
    assert [point.value for point in got[0].waitpoints] == ["a", "b"]


def test_a_wait_that_another_thread_has_seen_end_does_not_rest(points: Waitpoints) -> None:
    """The points of a process are shared: somebody else may read between a look and the rest."""
    waiting = points.enter("a", timeout=600)
    assert waiting.look() is None
    points.complete("a")
    waiting.rest()
    result = waiting.look()
    assert result is not None
    assert result.status == "completed"


COMPLETES = """
import sys
from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.storage import open_store
points = Waitpoints(StoreEventLog(open_store(sys.argv[1])))
print("ready", flush=True)
sys.stdin.readline()
print(*(n for n in range(20) if points.complete(f"p{n}", sys.argv[2], create=True).changed))
"""


@pytest.mark.parametrize("name", SHARED)
def test_of_two_processes_that_complete_at_once_one_is_the_first(
    request: pytest.FixtureRequest, popen: Popen, tmp_path: Path, name: str
) -> None:
    url = url_of(name, request, tmp_path)
    log = StoreEventLog(open_store(url))
    pipe = subprocess.PIPE
    processes = {
        by: popen([sys.executable, "-c", COMPLETES, url, by], stdin=pipe, stdout=pipe, text=True)
        for by in ("one", "other")
    }
    for process in processes.values():
        assert process.stdout
        process.stdout.readline()
    for process in processes.values():
        assert process.stdin
        print(file=process.stdin, flush=True)
    changed = {(int(n), by) for by, process in processes.items() for n in process.communicate()[0].split()}
    values = {(n, point.value) for n in range(20) if (point := Waitpoints(log).get(f"p{n}"))}
    assert len(changed) == len(values) == 20
    assert changed == values
    log.close()


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("seed", RUNS)
def test_waiters_that_are_killed_and_come_back_miss_nothing(
    request: pytest.FixtureRequest, popen: Popen, tmp_path: Path, name: str, seed: int
) -> None:
    """Each sees the one value of its point, and the topic has one beginning and one end of each wait."""
    url = url_of(name, request, tmp_path)
    each, points = 52 // PROCESSES, 10
    chance, seen = random.Random(seed), tmp_path / "seen"

    def run(process: int) -> subprocess.Popen[bytes]:
        given = ["-m", WAITERS, url, str(points), str(seen), str(process * each), str(each)]
        started = popen([sys.executable, *given], cwd=ROOT, stdout=subprocess.PIPE)
        assert started.stdout
        started.stdout.readline()
        return started

    waiting = [run(process) for process in range(PROCESSES)]
    waitpoints = Waitpoints(StoreEventLog(open_store(url)))
    order = [f"p{n}" for n in range(points)]
    chance.shuffle(order)
    victims = set(chance.sample(order, COUNT.killed_waiters))
    for id in order:
        waitpoints.complete(id, f"value of {id}", create=True)
        if id in victims:
            process = chance.randrange(PROCESSES)
            waiting[process].kill()
            waiting[process].communicate()
            waiting[process] = run(process)
    for process_ in waiting:
        process_.communicate()
        assert process_.returncode == 0
    lines = set(seen.read_text().splitlines())
    assert lines == {f"{n} completed value of p{n % points}" for n in range(each * PROCESSES)}
    for id in order:
        events = waitpoints.log.read_range(f"waitpoint.{id}")
        for kind in ("wait_started", "wait_resolved"):
            waits = [event.payload["wait_id"] for _, event in events if event.kind == kind]
            assert sorted(waits) == sorted(f"w{n}" for n in range(each * PROCESSES) if id == f"p{n % points}")
    waitpoints.log.close()


def test_in_memory_they_are_of_one_log() -> None:
    one, other = Waitpoints(MemoryEventLog()), Waitpoints(MemoryEventLog())
    one.create("a")
    assert other.get("a") is None
    with pytest.raises(UnknownWaitpoint) as failed:
        other.cancel("a")
    assert (failed.value.verb, failed.value.id) == ("cancel", "a")
