"""Queues with limits, and schedules, of the engine `local`: heads of streams of its store. Spec: 10 §C19.2.

A queue and its schedules serve one machine. Who takes runs from a queue holds its lease meanwhile, which
fences what it writes: so of all that count at once, one is right.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from harnpy.storage.contract import HeadQuery, all_heads
from harnpy.storage.errors import CorruptLog, VersionConflict
from harnpy.workflow.engines.contract import DELAYED, QUEUED, RUNNING, WAITING, Job, Schedule
from harnpy.workflow.engines.errors import QueueNotFound, RunError
from harnpy.workflow.engines.run_log import CODEC, KIND, RunHead, job_data, read_job, rows, run_heads

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from harnpy.storage.contract import Head, Store
    from harnpy.storage.leases import Lease

    OpenRuns = Sequence[tuple[Head, RunHead]]

_Data = TypeVar("_Data", bound=Struct)

QUEUE, SCHEDULE = "queue", "schedule"
#: Seconds after which a queue that no worker of its machine has served may go to another machine.
STALE = 60.0
#: How often workers say that they serve a queue, and how long its lease is waited for. Seconds.
_SERVED, _PATIENCE = 15.0, 2.0
#: Seconds that a queue's lease lasts: it is held while runs are chosen.
_TTL = 10.0
#: Heads that are read at once: each page looks at all runs that there are.
MANY = 10_000


class QueueHead(Struct, omit_defaults=True, frozen=True):
    """What the head of a queue has."""

    concurrency: int | None = None
    worker_concurrency: int | None = None
    #: Starts, in so many seconds.
    rate: tuple[int, float] | None = None
    #: When runs were started lately, if there is a rate.
    starts: tuple[float, ...] = ()
    #: The machine whose workers serve it, and when one did last.
    machine: str | None = None
    served: float = 0.0

    def recent(self, now: float) -> tuple[float, ...]:
        """Return the starts that count for the rate."""
        seconds = 0.0 if self.rate is None else self.rate[1]
        return tuple(time for time in self.starts if time > now - seconds)


class Room(NamedTuple):
    """What a worker can take on: how many runs, of which kinds. It has ``running`` of the queue already."""

    room: int
    running: int
    kinds: Collection[str]


def open_runs(store: Store, skip: Callable[[str, str], object], queue: str | None = None) -> OpenRuns:
    """Return the heads of the runs that haven't ended: in a queue, "" for none, or all."""
    statuses = frozenset((DELAYED, QUEUED, RUNNING, WAITING))
    query = HeadQuery(KIND, statuses, agent=queue, order="id", limit=MANY)
    return [*run_heads(store, query, skip)]


class Queues:
    """The queues of a store. ``machine`` is the name of this one; ``skip`` gets the ids of runs that can't be
    read, and why."""

    def __init__(
        self, store: Store, now: Callable[[], float], machine: str, skip: Callable[[str, str], object]
    ) -> None:
        self._store = store
        self._skip = skip
        self._now = now
        self._machine = machine

    def names(self) -> list[str]:
        return [head.name for head in all_heads(self._store, HeadQuery(QUEUE, order="id"))]

    def require(self, name: str) -> None:
        """Raise `RunError` unless there is a queue of that name."""
        if self._store.head(QUEUE, name) is None:
            raise QueueNotFound(name, self.names())

    def set(self, name: str, **limits: Any) -> None:
        """Make the queue, or change its limits."""
        check_queue(name, limits)
        with self._store.lease(f"queue:{name}", ttl=_TTL, wait=2 * _TTL) as lease:
            self._write(name, replace(self._read(name), **limits, starts=()), lease)

    def serve(self, name: str) -> None:
        """Say that a worker of this machine serves the queue, which is made if there is none.

        Raises `RunError` when another machine's do.
        """
        found = self._read(name)
        if found.machine == self._machine and self._now() - found.served < _SERVED:
            return
        with self._store.lease(f"queue:{name}", ttl=_TTL, wait=_PATIENCE) as lease:
            found = self._read(name)
            if found.machine not in (None, self._machine) and self._now() - found.served < STALE:
                raise RunError(
                    f"queue '{name}' is served by the machine {found.machine}: the engine 'local' serves one "
                    "machine; for many open 'dbos'"
                )
            self._write(name, replace(found, machine=self._machine, served=self._now()), lease)

    def take(self, name: str, heads: OpenRuns, worker: Room, take: Callable[[str, Lease], object]) -> None:
        """Call ``take`` with each run that may start now, and the queue's lease.

        ``heads`` are the runs as they were a moment ago: where none could start, nobody is kept from the
        queue. Raises `LeaseHeld` while others choose.
        """
        if not self._choice(name, self._read(name), heads, worker):
            return
        with self._store.lease(f"queue:{name}", ttl=_TTL, wait=_PATIENCE) as lease:
            limits = self._read(name)
            chosen = self._choice(name, limits, open_runs(self._store, self._skip, name), worker)
            if chosen and limits.rate is not None:
                # Before they start: who dies in between has started too few, not too many.
                starts = limits.recent(self._now()) + (self._now(),) * len(chosen)
                self._write(name, replace(limits, starts=starts), lease)
            for id in chosen:
                take(id, lease)

    def _choice(self, name: str, limits: QueueHead, heads: OpenRuns, worker: Room) -> list[str]:
        """Return the runs that may start now, in their order."""
        mine = [(head, run) for head, run in heads if run.agent == name]
        running = sum(run.status in (RUNNING, WAITING) for _, run in mine)
        room, now = worker.room, self._now()
        if limits.worker_concurrency is not None:
            room = min(room, limits.worker_concurrency - worker.running)
        if limits.concurrency is not None:
            room = min(room, limits.concurrency - running)
        if limits.rate is not None:
            room = min(room, limits.rate[0] - len(limits.recent(now)))
        if room <= 0:
            return []
        ready = [
            (run.priority, head.created, head.name)
            for head, run in mine
            if run.kind in worker.kinds and run.may_start(now)
        ]
        return [id for _, _, id in sorted(ready)[:room]]

    def _read(self, name: str) -> QueueHead:
        head = self._store.head(QUEUE, name)
        return QueueHead() if head is None else _read_head(head, QueueHead)

    def _write(self, name: str, head: QueueHead, lease: Lease) -> None:
        stream = self._store.stream(QUEUE, name, CODEC)
        version, time = stream.refresh(), round(self._now() * 1e6)
        first = [] if version else rows([("queue_made", {"name": name})], 0, time)
        stream.append(first, version, head=msgspec.to_builtins(head), fence=lease)


def _read_head(head: Head, type: type[_Data]) -> _Data:
    """Return what the head of a queue or a schedule says. Raises `CorruptLog`."""
    try:
        return msgspec.convert(head.data, type)
    except msgspec.ValidationError:
        raise CorruptLog(f"{head.kind} '{head.name}'", f"its head is none of a {head.kind}") from None


def check_queue(name: str, limits: dict[str, Any]) -> None:
    """Raise `RunError` for a name or a limit that no queue can have."""
    check_name("queue", name)
    for what in ("concurrency", "worker_concurrency"):
        limit = limits[what]
        if limit is not None and (type(limit) is not int or limit < 1):
            raise RunError(f"queue '{name}': `{what}` must be an int >= 1, got {limit!r}")
    rate = limits["rate"]
    if rate is None:
        return
    is_pair = isinstance(rate, tuple | list) and len(rate) == 2 and all(_is_number(part) for part in rate)
    if not is_pair or int(rate[0]) != rate[0] or rate[0] < 1 or not 0 < rate[1] < float("inf"):
        raise RunError(f"queue '{name}': `rate` must be (starts, seconds), e.g. (10, 60), got {rate!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_name(what: str, name: object) -> None:
    """Raise `RunError` for what names nothing that can be stored."""
    if not isinstance(name, str) or not name.strip() or "\0" in name:
        raise RunError(f"the name of a {what} must be a non-empty string, got {name!r}")


# Schedules. Spec: 10 §C19.2.


class ScheduleHead(Struct, omit_defaults=True, frozen=True):
    """What the head of a schedule has; its job is in its last record."""

    cron: str
    timezone: str
    next: float | None
    agent: str = ""


class Schedules:
    """The schedules of a store."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now

    def set(self, name: str, cron: str, job: Job, queue: str | None, timezone: str) -> None:
        """Make the schedule, or another one of it. Raises `RunError`."""
        check_name("schedule", name)
        head = ScheduleHead(cron, timezone, next_time(name, cron, timezone, self._now()), queue or "")
        stream = self._store.stream(SCHEDULE, name, CODEC)
        while True:
            version = stream.refresh()
            new = rows([("schedule_set", {"job": job_data(job)})], version, round(self._now() * 1e6))
            try:
                return stream.append(new, version, head=msgspec.to_builtins(head))
            except VersionConflict:
                continue  # somebody else was quicker

    def remove(self, name: str) -> bool:
        return self._store.delete(SCHEDULE, name)

    def all(self) -> list[Schedule]:
        return [self._schedule(head) for head in all_heads(self._store, HeadQuery(SCHEDULE, order="id"))]

    def fire(
        self,
        queues: Collection[str],
        start: Callable[[Schedule, float], object],
        skip: Callable[[str, str], object],
    ) -> None:
        """Call ``start`` with each schedule that is due and has no queue or one of ``queues``, and its time.

        Of several times that have passed, it is the last one. The run's id names it: so whoever else notices,
        too, starts the same run. ``skip`` gets what can't be read, and why.
        """
        for head in all_heads(self._store, HeadQuery(SCHEDULE, order="id")):
            try:
                found = _read_head(head, ScheduleHead)
            except CorruptLog as error:
                skip(f"{SCHEDULE} {head.name}", error.reason)
                continue
            if found.next is None or found.next > self._now() or found.agent not in ("", *queues):
                continue
            times = (head.name, found.cron, found.timezone)
            due = max(found.next, next_time(*times, self._now(), back=True) or 0.0)
            start(self._schedule(head), due)
            after = replace(found, next=next_time(*times, due))
            stream = self._store.stream(SCHEDULE, head.name, CODEC)
            try:
                stream.append([], head.version, head=msgspec.to_builtins(after))
            except VersionConflict:
                continue  # it is another one by now

    def _schedule(self, head: Head) -> Schedule:
        found = _read_head(head, ScheduleHead)
        row = self._store.stream(SCHEDULE, head.name, CODEC).last()
        assert row is not None
        job = read_job(msgspec.json.decode(row.data)["job"])
        return Schedule(head.name, found.cron, job, found.agent or None, found.timezone, found.next)


def next_time(name: str, cron: str, timezone: str, after: float, *, back: bool = False) -> float | None:
    """Return the first time of a schedule after ``after``, or with ``back`` the last one until then.

    None when there is none. Raises `RunError` for what can't be read.
    """
    from cronsim import CronSim

    try:
        zone = UTC if timezone == "UTC" else ZoneInfo(timezone)
    except (LookupError, OSError, ValueError, TypeError):
        raise RunError(f"schedule '{name}': unknown timezone '{timezone}', e.g. Europe/Berlin") from None
    start = datetime.fromtimestamp(int(after) + back, zone)
    try:
        if len(cron.split()) != 5:
            raise ValueError(cron)
        times = CronSim(cron, start, reverse=back)
    except Exception:
        # Some of what it can't read fails in other ways than it says.
        raise RunError(
            f"schedule '{name}': '{cron}' is no cron expression of five fields, e.g. '30 2 * * 1-5'"
        ) from None
    found = next(times, None)
    return None if found is None else found.timestamp()
