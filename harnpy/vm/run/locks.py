"""Locks and shared cells: mutexes, semaphores, gates, rwlocks; cells and maps with versions.

Spec: 05 §7, §8.2, §8.3.
"""

from __future__ import annotations

from collections import deque

from harnpy.vm.errors import Interrupted, RuntimeFault
from harnpy.vm.run.tasks import CANCELLED
from harnpy.vm.values.equality import equal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.run.scheduler import Scheduler
    from harnpy.vm.run.tasks import Task
    from harnpy.vm.values import Value

# Mutexes, semaphores, gates and rwlocks: all of them count permits, first come first served. Spec: 05 §7.
#
# A mutex has one permit. A rwlock has as many as it lets read at the same time, and a writer takes all of
# them. Whoever waits is granted its permits by the task that frees them, so nobody overtakes and nobody
# starves.


KINDS = ("gate", "mutex", "rwlock", "semaphore")
#: The mutex that `mutex { }` takes.
DEFAULT_MUTEX = "__default__"
#: How many may read under a rwlock at the same time.
MOST_READERS = 1024


class Grant:
    """So many permits of a lock for a task: asked for, then held, then released."""

    __slots__ = ("held", "lock", "since", "task", "units")

    def __init__(self, lock: Lock, task: Task, units: int) -> None:
        self.lock = lock
        self.task = task
        self.units = units
        self.held = False
        self.since = 0.0

    def release(self) -> bool:
        """Free the permits; False if they are not held any more."""
        if not self.held:
            return False
        self.lock.take_back(self)
        return True


class Permit:
    """The value that a program holds. When the last reference to it goes, it is released."""

    __slots__ = ("grant",)
    type_name = "sync_permit"

    def __init__(self, grant: Grant) -> None:
        self.grant = grant

    def display(self) -> str:
        return f"<sync_permit:{self.grant.lock.kind}:{self.grant.lock.key}>"

    def __del__(self) -> None:
        self.grant.release()


class Lock:
    """Permits that tasks take and give back. ``line`` are those who wait, first come first."""

    def __init__(self, tasks: Scheduler, kind: str, key: str, capacity: int) -> None:
        self.tasks = tasks
        self.kind = kind
        self.key = key
        self.capacity = capacity
        self.free = capacity
        self.line: deque[Grant] = deque()
        self.acquired = self.released = self.timeouts = self.cancellations = self.longest_line = 0
        self.seconds_waited = self.seconds_held = 0.0

    def display(self) -> str:
        """Return how messages name it."""
        return f"{self.kind} '{self.key}'"

    def acquire(self, units: int, seconds: float | None = None) -> Grant | None:
        """Take permits, waiting at most ``seconds``; None when the time is up."""
        grant = Grant(self, self.tasks.current, units)
        is_free = not self.line and units <= self.free
        if not is_free and seconds is not None and seconds <= 0:
            self.timeouts += 1
            return None
        self.longest_line = max(self.longest_line, len(self.line) + 1)
        if is_free:
            self._give(grant)
        else:
            self._wait(grant, seconds)
        return grant if grant.held else None

    def _wait(self, grant: Grant, seconds: float | None) -> None:
        tasks, task = self.tasks, grant.task
        begin = tasks.now()
        until = None if seconds is None else begin + seconds
        self.line.append(grant)
        try:
            while not grant.held:
                if task.cancel_requested:
                    raise Interrupted(CANCELLED)
                if until is None:
                    tasks.suspend(self)
                elif tasks.now() < until:
                    tasks.suspend_until(until, self)
                else:
                    self.timeouts += 1
                    return
        except BaseException:
            self.cancellations += 1
            grant.release()
            raise
        finally:
            self.seconds_waited += tasks.now() - begin
            if grant in self.line:
                self.line.remove(grant)
                self._serve()

    def take_back(self, grant: Grant) -> None:
        """Free the permits of ``grant``, which go to those who wait."""
        grant.held = False
        self.free += grant.units
        self.released += 1
        self.seconds_held += self.tasks.now() - grant.since
        if grant.task.held:
            grant.task.held.pop(grant, None)
        self._serve()

    def _serve(self) -> None:
        while self.line and self.line[0].units <= self.free:
            grant = self.line.popleft()
            self._give(grant)
            self.tasks.resume(grant.task)

    def _give(self, grant: Grant) -> None:
        self.free -= grant.units
        self.acquired += 1
        grant.held, grant.since = True, self.tasks.now()
        if grant.task.held is None:
            grant.task.held = {}
        grant.task.held[grant] = None

    def metrics(self) -> dict[str, Value]:
        """Return what `sync_metrics` reports; times are in ms."""
        return {
            "kind": self.kind,
            "key": self.key,
            "capacity": self.capacity,
            "acquisition_count": self.acquired,
            "timeout_count": self.timeouts,
            "cancellation_count": self.cancellations,
            "release_count": self.released,
            "current_held": self.capacity - self.free,
            "current_queue_depth": len(self.line),
            "max_queue_depth": self.longest_line,
            "total_wait_ms": int(self.seconds_waited * 1000),
            "total_held_ms": int(self.seconds_held * 1000),
        }


class Locks(dict[tuple[str, str], Lock]):
    """The locks of one program, by kind and key; each is made when it is first used."""

    def lock(self, tasks: Scheduler, kind: str, key: str, capacity: int, units: int = 1) -> Lock:
        """Return a lock that ``units`` permits can be taken of. Raises RuntimeFault if that can never be."""
        lock = self.get((kind, key))
        if lock is not None and lock.capacity != capacity:
            raise RuntimeFault(
                f"sync {lock.display()} already exists with capacity {lock.capacity}, not {capacity}"
            )
        if units > capacity:
            raise RuntimeFault(f"sync {kind} '{key}' requested {units} permits from capacity {capacity}")
        if lock is None:
            lock = self[kind, key] = Lock(tasks, kind, key, capacity)
        return lock


def mutex_begin(tasks: Scheduler) -> Grant:
    """Start a `mutex` block: wait for the default mutex; the result is its token."""
    grant = tasks.vm.state(Locks).lock(tasks, "mutex", DEFAULT_MUTEX, 1).acquire(1)
    assert grant
    return grant


def mutex_end(tasks: Scheduler, token: Grant) -> None:
    token.release()


# Cells and maps that tasks share, and swaps that fail when somebody else was faster. Spec: 05 §8.2, §8.3.
#
# Each write counts the version up by one. A snapshot is a value with the version it was read at.


_SNAPSHOT = "shared_snapshot"


class Versioned:
    """A shared value, and how often it was used."""

    def __init__(self) -> None:
        self.version = self.reads = self.writes = self.swaps = self.refusals = self.stale = 0

    def metrics(self) -> dict[str, Value]:
        return {
            "version": self.version,
            "read_count": self.reads,
            "write_count": self.writes,
            "cas_success_count": self.swaps,
            "cas_failure_count": self.refusals,
            "stale_read_count": self.stale,
        }

    def _written(self) -> None:
        self.version += 1
        self.writes += 1

    def _snapshot(self, value: Value) -> dict[str, Value]:
        self.reads += 1
        return {"_type": _SNAPSHOT, "value": value, "version": self.version}

    def _is_as_expected(self, value: Value, expected: Value) -> bool:
        """Return True if a swap may go on: ``expected`` is the value, or a snapshot with its version."""
        is_old = False
        if type(expected) is dict and expected.get("_type") == _SNAPSHOT:
            is_old, expected = expected.get("version") != self.version, expected.get("value")
        if not is_old and equal(value, expected):
            self.swaps += 1
            return True
        self.refusals += 1
        self.stale += is_old
        return False


class Cell(Versioned):
    """One value."""

    def __init__(self, value: Value = None) -> None:
        super().__init__()
        self._value = value

    def get(self) -> Value:
        self.reads += 1
        return self._value

    def snapshot(self) -> dict[str, Value]:
        return self._snapshot(self._value)

    def set(self, value: Value) -> Value:
        """Store ``value``; return the former one."""
        before, self._value = self._value, value
        self._written()
        return before

    def swap(self, expected: Value, new: Value) -> bool:
        """Store ``new`` if the value is the expected one; return whether it was."""
        if not self._is_as_expected(self._value, expected):
            return False
        self.set(new)
        return True


class SharedMap(Versioned):
    """Values by their keys. The version is that of the whole map."""

    def __init__(self, entries: dict[str, Value] | None = None) -> None:
        super().__init__()
        self._entries = dict(entries or {})

    def get(self, key: str, default: Value = None) -> Value:
        self.reads += 1
        return self._entries.get(key, default)

    def entries(self) -> dict[str, Value]:
        self.reads += 1
        return dict(self._entries)

    def snapshot(self, key: str) -> dict[str, Value]:
        return self._snapshot(self._entries.get(key))

    def set(self, key: str, value: Value) -> Value:
        """Store ``value``; return the former one."""
        before = self._entries.get(key)
        self._entries[key] = value
        self._written()
        return before

    def delete(self, key: str) -> Value:
        """Remove an entry; return its value. Without one, nothing was written."""
        before = self._entries.pop(key, None)
        if before is not None:
            self._written()
        return before

    def swap(self, key: str, expected: Value, new: Value) -> bool:
        """Store ``new`` if the entry is the expected one, nil standing for none; return whether it was."""
        if not self._is_as_expected(self._entries.get(key), expected):
            return False
        if new is None:
            self._entries.pop(key, None)
            self._written()
        else:
            self.set(key, new)
        return True
