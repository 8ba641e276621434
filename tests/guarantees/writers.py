"""Processes that write to sessions of one store with all verbs, and are killed; others look what is left.

`python -m tests.guarantees.writers` reads an order a line, as JSON, and answers it with a line. For
``writers`` it forks one process each and kills them one after the other, at a moment that nobody chose; for
a ``look`` it forks one that opens the store and tells what it finds. Forked processes have the program
loaded already, so ten thousand of them take minutes. They have opened nothing before.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any
from zlib import crc32

from harnpy.formats.tool_messages import calls_of, results_of
from harnpy.session import EventDraft, SessionRuntime, metadata
from harnpy.session.actions import Fork
from harnpy.session.errors import SessionConflict
from harnpy.session.events import Event
from harnpy.session.info import SessionInfo
from harnpy.session.runtime import SessionQuery
from harnpy.session.view import replay
from harnpy.storage.errors import StorageError
from harnpy.world.clock import RealClock
from harnpy.world.ids import RealIds
from tests.storage.test_processes import WORKER

Dict = dict[str, Any]
Tell = Callable[..., None]

#: The sessions that all writers write to; each has one of its own, too, and forks.
SHARED = ("s0", "s1")
#: So far a writer's clock is put back, in seconds.
_BACK = (0.0005, 0.9, 3600.0, 86400.0)


def main() -> None:
    for name in ("jsonl", "sqlite", "postgres"):
        import_module(f"harnpy.storage.{name}.store")
    for line in sys.stdin:
        order = json.loads(line)
        answer = _found(order) if "look" in order else _killed(order)
        print(json.dumps(answer), flush=True)


# Lives that are ended.


def _killed(order: Dict) -> Dict:
    """Fork the writers, and kill one after the other; return what each told, and the signal that ended it."""
    ended: list[int] = []
    chance = random.Random(order["seed"])
    lives = [_Life(order, number, writer) for number, writer in enumerate(order["writers"])]
    left = list(lives)
    chance.shuffle(left)
    while left:
        told = sum(life.facts for life in lives) + chance.randrange(1, 7)
        is_served = order["postmaster"] not in ended
        while is_served and sum(life.facts for life in lives) < told and any(life.is_open for life in left):
            _listen(left)
        if order["postmaster"] and len(left) == 2:
            ended = _crash(order["postmaster"], chance)
        time.sleep(chance.random() * (0.002 if is_served else 0.02))  # moments have no order
        left.pop().kill()
    return {"lives": [{"told": life.told, "signal": life.signal} for life in lives], "ended": ended}


class _Life:
    """A writer in a process of its own."""

    def __init__(self, order: Dict, number: int, writer: Dict) -> None:
        self.told: list[Any] = []
        self.facts = 0
        self.signal = 0
        self.is_open = True
        self._rest = b""
        self.ear, mouth = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(self.ear)
            _run(lambda *words: _say(mouth, words), _Writer(order, number, writer).work)
        os.close(mouth)

    def hear(self) -> None:
        data = os.read(self.ear, 1 << 16)
        self.is_open = bool(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        heard = [json.loads(line) for line in lines]
        self.told += heard
        self.facts += sum(what in ("done", "idle") for what, *_ in heard)

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        while self.is_open:
            self.hear()
        _, status = os.waitpid(self._pid, 0)
        self.signal = os.WTERMSIG(status)
        os.close(self.ear)


def _listen(lives: list[_Life]) -> None:
    talking = {life.ear: life for life in lives if life.is_open}
    for ear in select.select(talking, [], [])[0]:
        talking[ear].hear()


def _say(mouth: int, words: Any) -> None:
    os.write(mouth, json.dumps(words).encode() + b"\n")  # one write: a line is told whole


def _run(tell: Tell, work: Callable[[Tell], None]) -> None:
    """Do the work of a forked process, and end it."""
    try:
        work(tell)
    except BaseException:
        tell("failed", traceback.format_exc())
    os._exit(0)


def _crash(postmaster: int, chance: random.Random) -> list[int]:
    """Crash a PostgreSQL server: it ends at once as with `pg_ctl stop -m immediate`, or one of its processes
    is killed, upon which it throws all others out and recovers. Return which processes end."""
    with open(f"/proc/{postmaster}/task/{postmaster}/children", encoding="ascii") as file:
        children = [int(pid) for pid in file.read().split()]
    if chance.random() < 0.5:
        os.kill(postmaster, signal.SIGQUIT)
        return [postmaster, *children]
    os.kill(chance.choice(children), signal.SIGKILL)
    return children


class _Jumping(RealClock):
    """A wall clock that is put back now and then."""

    def __init__(self) -> None:
        self.back = 0.0

    def now(self) -> float:
        return time.time() - self.back


class _JumpingIds(RealIds):
    """Ids by such a clock."""

    def __init__(self, clock: _Jumping) -> None:
        super().__init__()
        self._nanoseconds = lambda: int(clock.now() * 1e9)  # type: ignore[misc]


class _Writer:
    """Writes with a verb after the other, and tells of each before it and when it is done."""

    def __init__(self, order: Dict, number: int, writer: Dict) -> None:
        self._chance = random.Random(f"{order['seed']} {number}")
        self._url, self._epoch, self._given = order["url"], order["epoch"], writer
        self._name = f"{order['round']}.{number}"
        self._own = f"{self._epoch}-w{number}"
        self._clock = _Jumping()
        self._failures = 0

    def work(self, tell: Tell) -> None:
        self._tell = tell
        os.environ["PGAPPNAME"] = WORKER
        if self._given["calls"]:
            _die_after(self._given["calls"])
        self._runtime = SessionRuntime(
            self._url, wait_timeout=300, clock=self._clock, ids=_JumpingIds(self._clock)
        )
        for id, mark in self._given["again"]:
            self._do(self.act, id, mark)
        verbs = (self.append, self.act, self.act_twice, self.fork, self.send, self.compact)
        for number in range(1000):
            id = self._chance.choice([f"{self._epoch}-{name}" for name in SHARED] + [self._own])
            if self._given["back"] and self._chance.random() < 0.3:
                self._clock.back += self._chance.choice(_BACK)
            self._do(self._chance.choice(verbs), id, f"{self._name}.{number}")

    def _do(self, verb: Callable[[str, str], bool | None], id: str, mark: str) -> None:
        """Call a verb. What it wrote when its store fails, nobody knows; a conflict has written nothing."""
        self._tell("begun", verb.__name__, id, mark)
        try:
            self._runtime.open(id, create=True)
            wrote = verb(id, mark) is not False
        except SessionConflict as conflict:
            self._tell("refused", verb.__name__, id, mark, str(conflict))
        except StorageError as error:
            self._tell("unsure", verb.__name__, id, mark, f"{type(error).__name__}: {error}")
            self._failures += 1
            time.sleep(0.02)  # the server comes back
            if self._failures > 500:
                raise
        else:
            self._tell("done" if wrote else "idle", verb.__name__, id, mark)

    def append(self, id: str, mark: str) -> None:
        self._runtime.get(id).append(_note(mark), _note(f"{mark}+"))

    def act(self, id: str, mark: str) -> None:
        self._runtime.execute(
            id, lambda session: session.append(_note(mark)), idempotency_key=mark, retries=50
        )

    def act_twice(self, id: str, mark: str) -> None:
        self.act(id, mark)
        self.act(id, mark)

    def fork(self, id: str, mark: str) -> None:
        fork = f"{self._epoch}-f{mark}"
        self._runtime.execute(id, Fork(fork))
        self._runtime.get(fork).append(_note(mark))

    def send(self, id: str, mark: str) -> None:
        def agent(messages: Any, turn: Any) -> Iterator[Any]:
            calls = [{"id": f"{mark}{n}", "name": "look", "arguments": {}} for n in "ab"]
            yield {"role": "assistant", "content": "", "tool_calls": calls}
            for call in calls:
                found = turn.tool("look", {}, lambda _: "seen", call_id=call["id"])
                yield {"role": "tool", "tool_call_id": call["id"], "content": found}
            yield f"answer {mark}"

        self._runtime.send(id, mark, agent=agent, idempotency_key=mark)

    def compact(self, id: str, mark: str) -> bool:
        strategy = self._chance.choice(["simple_cut", "truncate"])
        with metadata(mark=mark):
            report = self._runtime.get(id).resize(strategy, max_length=400, keep_last=4)
        return bool(report and report.events)


def _note(mark: str) -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": mark})


def _die_after(calls: int) -> None:
    """Have this process killed at its call number ``calls`` from now on, Python's and C's."""

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls -= 1
        if not calls:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


# What is left.


def _found(order: Dict) -> Dict:
    """Fork a process that opens the store; return what it told."""
    ear, mouth = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ear)
        _run(lambda *words: _say(mouth, words), lambda tell: _look(order, tell))
    os.close(mouth)
    with os.fdopen(ear) as heard:
        told = dict(map(json.loads, heard.read().splitlines()))
    os.waitpid(pid, 0)
    return told


def _look(order: Dict, tell: Tell) -> None:
    """Tell of all sessions of an epoch, of each log what is new and a sum of what was there before."""
    with SessionRuntime(order["url"], wait_timeout=300) as runtime:
        fsck = runtime.store.fsck()
        tell("findings", [str(finding) for finding in fsck.findings])
        sessions = {}
        ids = []
        for info in _all(runtime, order["epoch"]):
            ids.append(info.id)
            before = order["look"].get(info.id, 0)
            if before == info.seq and not order["forget"]:
                continue
            session = runtime.get(info.id)
            if session.view.open_turns or info.id.endswith(SHARED):
                mark = f"look {order['round']}"
                runtime.execute(info.id, lambda session, mark=mark: session.append(_note(mark)))
            events = [_fact(event) for event in session.events()]
            source = runtime.get(info.parent_id) if info.parent_id else session
            shared = slice(1, session.origin.shared)  # each has a beginning of its own
            sessions[info.id] = {
                "open": list(session.view.open_turns),
                "is_paired": is_paired(session.messages()) and is_paired(session.window()),
                "is_replayed": replay(session.events()).window.messages() == session.view.window.messages(),
                "parent": info.parent_id,
                "is_shared": [_fact(event) for event in source.events()[shared]] == events[shared],
                "sums": [_sum(events[:each]) for each in (before, len(events))],
                "seqs": [seq for seq, *_ in events[before:]],
                "marks": [mark for *_, mark in events[before:] if mark],
                "version": session.version,
            }
        tell("ids", ids)
        tell("sessions", sessions)
        if order["forget"]:
            for id in ids:
                runtime.delete(id, hard=True)


def _all(runtime: SessionRuntime, epoch: str) -> list[SessionInfo]:
    query = SessionQuery(order="id", limit=10_000)
    return [info for info in runtime.list(query).items if info.id.startswith(f"{epoch}-")]


def _fact(event: Event) -> list[Any]:
    """Return what tells an event from others that could stand in its place; last its mark, "" without one.

    The data of a cut names ids, each of which would be a read.
    """
    data = event.data if event.type != "compaction_triggered" else None
    mark = event.metadata["mark"] if data is None and event.metadata else ""
    if event.type == "message_added" and data["role"] != "tool":
        mark = data["content"].removeprefix("look ")
    return [event.seq, event.type, event.moment, data, mark]


def _sum(events: list[list[Any]]) -> int:
    return crc32(json.dumps(events, sort_keys=True).encode())


def is_paired(messages: list[Dict]) -> bool:
    """Return whether the results of each call stand right behind it, one each, and there are no others."""
    waiting: list[str | None] = []
    for message in messages:
        answered = results_of(message)
        if answered is None:
            if waiting:
                return False
            waiting = [call.id for call in calls_of(message)]
        for id in answered or ():
            if id not in waiting:
                return False
            waiting.remove(id)
    return not waiting


if __name__ == "__main__":
    main()
