"""What a store promises to several processes, and to those that come after one was killed. Spec: 10 §C12."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from harnpy.storage import Store
from tests.counts import COUNT
from tests.storage.conftest import STORES
from tests.storage.notes import NOTES
from tests.storage.workers import BATCH
from tests.support import ROOT, Popen

Opened = Callable[..., Store]
Start = Callable[..., "subprocess.Popen[str]"]

WRITERS, ROUNDS = COUNT.store_writers, COUNT.store_rounds
HOLDERS, TURNS = COUNT.lease_holders, COUNT.lease_turns

#: Where a writer is killed, before and after: the calls on the way of an append, store by store.
POINTS = {
    "sqlite": ["harnpy.storage.sqlite.records:insert", "harnpy.storage.sqlite.database:Commits.commit"],
    "jsonl": ["os:write"],
    "postgresql": [
        "harnpy.storage.postgres.store:_Append._write",
        "harnpy.storage.postgres.database:Database.state",
    ],
}


#: What the workers' connections to a server are called.
WORKER = "worker"

#: Every store that other processes see, too.
pytestmark = pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)


@pytest.fixture
def start(url: str, popen: Popen) -> Iterator[Start]:
    """Start a process that works on the store of the test."""
    started: list[subprocess.Popen[str]] = []

    def one_more(work: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.storage.workers", work, url, *map(str, arguments)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = {**os.environ, "PGAPPNAME": WORKER}
        started.append(popen(command, cwd=ROOT, env=env, text=True, **pipes))
        return started[-1]

    yield one_more
    for process in started:
        process.kill()
        process.communicate()


def all_end_well(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")


def test_processes_that_read_append_and_retry_lose_and_double_nothing(opened: Opened, start: Start) -> None:
    all_end_well([start("increment", me, ROUNDS) for me in range(WRITERS)])
    records = list(opened().stream("session", "s", NOTES).read())
    assert [note.seq for note in records] == list(range(1, WRITERS * ROUNDS + 1))
    for me in range(WRITERS):
        mine = [note.text for note in records if note.text.startswith(f"{me} ")]
        assert mine == [f"{me} {number}" for number in range(ROUNDS)]


def test_one_process_at_a_time_has_the_lease(opened: Opened, start: Start) -> None:
    all_end_well([start("take_turns", me, TURNS) for me in range(HOLDERS)])
    words = [note.text.split() for note in opened().stream("session", "s", NOTES).read()]
    turns = list(zip(words[::2], words[1::2], strict=True))
    assert [(came[0], went[0]) for came, went in turns] == [("in", "out")] * (HOLDERS * TURNS)
    assert all(came[1:] == went[1:] for came, went in turns)
    tokens = [int(came[2]) for came, _ in turns]
    assert tokens == sorted(set(tokens))


def test_an_owner_stopped_past_its_time_has_lost_the_lease(opened: Opened, start: Start) -> None:
    store = opened()
    owner = start("hold", 0.2)
    assert owner.stdin is not None
    assert owner.stdout is not None
    assert owner.stdout.readline() == "held\n"
    owner.send_signal(signal.SIGSTOP)
    with store.lease("session:s", wait=60) as lease:
        owner.send_signal(signal.SIGCONT)
        owner.stdin.write("\n")
        owner.stdin.flush()
        assert owner.stdout.readline() == "LeaseLost\n"
        lease.renew()
    assert store.stream("session", "s", NOTES).version == 0


def test_a_killed_owner_keeps_nobody_waiting(opened: Opened, start: Start) -> None:
    owner = start("hold", 3600)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "held\n"
    owner.kill()
    owner.wait()
    opened().lease("session:s").release()


def acknowledged(process: subprocess.Popen[str], enough: int | None = None) -> int:
    """The last number that a writer has printed: the ``enough``-th one, or the one before its death."""
    assert process.stdout is not None
    last = 0
    assert process.stdout.readline() == "writes\n"
    for count, line in enumerate(process.stdout, 1):
        last = int(line)
        if count == enough:
            break
    return last


def wait_for_the_dead(url: str) -> None:
    """Wait until the server has noticed who is gone: it may still make what it was sent."""
    if url.startswith("postgresql:"):
        import psycopg

        alive = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
        with psycopg.connect(url, autocommit=True) as connection:
            while connection.execute(alive, [WORKER]).fetchone():
                time.sleep(0.01)


def check_what_is_left(store: Store, last: int) -> None:
    """All that was acknowledged is there, of what was attempted all or nothing; and the next append works."""
    stream = store.stream("session", "s", NOTES)
    records = list(stream.read())
    assert [note.seq for note in records] == list(range(1, stream.version + 1))
    assert stream.version in (last, last + BATCH)
    assert store.fsck().clean
    begin = [note._replace(seq=stream.version + 1) for note in records[:1]]
    stream.append(begin, stream.version)


def test_a_writer_killed_at_any_time_leaves_whole_appends(opened: Opened, start: Start, url: str) -> None:
    chance = random.Random(url.partition(":")[0])
    store = opened()
    for _ in range(COUNT.killed_writers):
        store.delete("session", "s")
        writer = start("write")
        acknowledged(writer, chance.randrange(1, 40))
        writer.kill()
        assert writer.stdout is not None
        rest = writer.stdout.read().split()
        wait_for_the_dead(url)
        stream = store.stream("session", "s", NOTES)
        check_what_is_left(store, int(rest[-1]) if rest else stream.version)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_writer_killed_at_every_point_of_an_append_leaves_whole_appends(
    opened: Opened, start: Start, url: str, when: str
) -> None:
    for point in POINTS[url.partition(":")[0]]:
        store = opened()
        store.delete("session", "s")
        writer = start("write", point, when, 5)
        last = acknowledged(writer)
        assert writer.wait() == -signal.SIGKILL
        wait_for_the_dead(url)
        check_what_is_left(store, last)
