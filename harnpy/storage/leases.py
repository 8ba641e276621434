"""Leases: who may write, until when, and how anyone later can tell.

A lease has a *token*; the tokens of a key only ever rise, so an append that carries one can be refused
once somebody else has taken the lease (a *fence*). Spec: 10 §C6.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from collections.abc import Callable
from functools import cached_property
from threading import Condition, Event, Thread
from types import TracebackType
from typing import NamedTuple, Protocol

from harnpy.storage.errors import LeaseHeld, LeaseLost, StorageError

#: Called by those who wait: what it raises ends the waiting. It must be short and not use the store: one
#: in memory calls it under its lock.
Check = Callable[[], None]

# The machine that a store's process runs on: who the process is, who is still there, and a clock that no
# one sets.
#
# Leases need all three. An *owner* is ``<host>:<boot id>:<pid>:<process start>``, so that a process number
# that is given again names another owner. Spec: 10 §C6.


_PROC = "/proc"
#: The first namespace of process numbers on Linux. In another one, numbers mean other processes.
_INITIAL_NAMESPACE = 4026531836


class Machine:
    """This machine, as this process sees it. ``uptime`` is in seconds."""

    def __init__(self, uptime: Callable[[], float] | None = None) -> None:
        self.uptime = _uptime if uptime is None else uptime
        self._owners: dict[int, str] = {}

    @cached_property
    def boot(self) -> str:
        """A text that distinguishes this run of the machine from every other one."""
        try:
            with open(f"{_PROC}/sys/kernel/random/boot_id", encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return f"{time.time() - time.monotonic():.0f}"

    @cached_property
    def host(self) -> str:
        """The machine's name, and the namespace of its process numbers if that isn't the first one."""
        import socket

        name = socket.gethostname().replace(":", "-") or "localhost"
        try:
            namespace = os.stat(f"{_PROC}/self/ns/pid").st_ino
        except OSError:
            return name
        return name if namespace == _INITIAL_NAMESPACE else f"{name}~{namespace}"

    def owner(self) -> str:
        """This process. Ask anew each time: a fork is another one."""
        pid = os.getpid()
        if pid not in self._owners:
            self._owners = {pid: f"{self.host}:{self.boot}:{pid}:{_start(pid) or '0'}"}
        return self._owners[pid]

    def is_gone(self, owner: str) -> bool:
        """Return whether ``owner`` is a process of this machine that is no longer there.

        False for owners of other machines, and for what isn't in the form of an owner: nobody can tell.
        """
        host, _, rest = owner.partition(":")
        parts = rest.split(":")
        if host != self.host or len(parts) != 3 or not parts[1].isdecimal():
            return False
        boot, pid, start = parts[0], int(parts[1]), parts[2]
        if boot != self.boot:
            return True
        return _start(pid) != start if os.path.exists(_PROC) else not _exists(pid)


def _uptime() -> float:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def _start(pid: int) -> str | None:
    """Return when a process began, in ticks since the boot; None when there is none, or only its remains."""
    try:
        with open(f"{_PROC}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Keeper(Protocol):
    """The store's side of a lease."""

    def renew(self, lease: Lease) -> float:
        """Extend the lease by its ``ttl``; return its end, in seconds since 1970. Raises `LeaseLost`."""

    def release(self, lease: Lease) -> None:
        """Let the lease go, if it is still held."""

    def is_wanted(self, lease: Lease) -> bool:
        """Return whether somebody waits for the lease's key."""


class Leases(Protocol):
    """The leases of a store."""

    def take(self, key: str, owner: str | None, ttl: float, wait: float, check: Check | None = None) -> Lease:
        """Take the lease on ``key``; those who wait for it get it in the order in which they came."""

    def holder(self, key: str) -> str | None:
        """Return the owner of the lease on ``key``; None where it is free."""


class Lease:
    """The right to write under ``key``, as a context manager that lets it go.

    ``ttl`` is in seconds, ``expires_at`` in seconds since 1970: for people; what decides is a clock that
    nobody sets.
    """

    def __init__(
        self, keeper: Keeper, key: str, owner: str, token: int, ttl: float, expires_at: float
    ) -> None:
        self._keeper = keeper
        self.key = key
        self.owner = owner
        self._token, self._process = token, os.getpid()
        self.ttl = ttl
        self.expires_at = expires_at

    @property
    def token(self) -> int:
        """Return the number of the lease, which is higher than those of earlier ones; 0, as of no lease, in a
        process that was forked off from the one that holds it."""
        return self._token if os.getpid() == self._process else 0

    def renew(self) -> None:
        """Hold the lease for another ``ttl`` seconds from now. Raises `LeaseLost`."""
        self.expires_at = self._keeper.renew(self)

    def release(self) -> None:
        """Let it go. Does nothing when it was let go or lost before."""
        self._keeper.release(self)

    def is_wanted(self) -> bool:
        """Return whether somebody waits for it."""
        return self._keeper.is_wanted(self)

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"Lease({self.key!r}, {self.owner!r}, token={self.token})"


class Held(NamedTuple):
    """The newest lease of a key, as a store keeps it, and when it ends by the uptime of the machine ``boot``.

    A lease that was let go ends at 0. The row stays, for its token.
    """

    owner: str
    token: int
    boot: str
    ends: float

    def is_free(self, machine: Machine) -> bool:
        """Return whether the key can be taken: let go, expired, or its owner is no longer there."""
        if self.boot != machine.boot:
            return True  # the machine has been started again since
        return self.ends <= machine.uptime() or machine.is_gone(self.owner)

    def holder(self, machine: Machine) -> str | None:
        """Return the owner, None when the key can be taken."""
        return None if self.is_free(machine) else self.owner


def check_fence(held: Held | None, fence: Lease) -> Held:
    """Return what is held. Raises `LeaseLost` unless ``fence`` is that lease and wasn't let go.

    One that has expired is still good as long as nobody has taken it.
    """
    if held is None or held.token != fence.token:
        raise LeaseLost(fence.key, None if held is None else held.owner)
    if not held.ends:
        raise LeaseLost(fence.key)
    return held


def refusal(key: str, held: Held | None, machine: Machine) -> LeaseHeld:
    """Return the error of who can't have a lease: somebody holds it, or waits for it and came earlier."""
    if held is None or held.is_free(machine):
        return LeaseHeld(key, "somebody who waits for it, too,", time.time())
    return LeaseHeld(key, held.owner, wall(machine, held.ends))


def wall(machine: Machine, ends: float) -> float:
    """Return a moment of the machine's uptime as seconds since 1970, for people."""
    return time.time() + ends - machine.uptime()


#: How often a waiting process looks whether a lease is free, where nobody can tell it. Seconds.
PAUSE = 0.02


class MemoryLeases:
    """The leases of a store that one process has for itself. ``changed`` guards and announces them."""

    def __init__(self, changed: Condition, machine: Machine | None = None) -> None:
        self._changed = changed
        self._machine = Machine() if machine is None else machine
        self._held: dict[str, Held] = {}
        self._queues: defaultdict[str, deque[object]] = defaultdict(deque)

    def take(self, key: str, owner: str | None, ttl: float, wait: float, check: Check | None = None) -> Lease:
        machine = self._machine
        owner = owner or machine.owner()
        ticket = object()
        gives_up = time.monotonic() + wait
        with self._changed:
            queue = self._queues[key]
            queue.append(ticket)
            try:
                while not (queue[0] is ticket and self._is_free(key)):
                    left = gives_up - time.monotonic()
                    if left <= 0:
                        raise refusal(key, self._held.get(key), machine)
                    self._changed.wait(min(left, PAUSE))
                    if check is not None:
                        check()
            finally:
                queue.remove(ticket)
                if not queue:
                    del self._queues[key]
            former = self._held.get(key)
            token = 1 if former is None else former.token + 1
            ends = machine.uptime() + ttl
            self._held[key] = Held(owner, token, machine.boot, ends)
        return Lease(self, key, owner, token, ttl, wall(machine, ends))

    def holder(self, key: str) -> str | None:
        with self._changed:
            held = self._held.get(key)
            return None if held is None else held.holder(self._machine)

    def check(self, fence: Lease) -> None:
        """Raise `LeaseLost` unless ``fence`` is held."""
        check_fence(self._held.get(fence.key), fence)

    def renew(self, lease: Lease) -> float:
        with self._changed:
            self.check(lease)
            ends = self._machine.uptime() + lease.ttl
            self._held[lease.key] = self._held[lease.key]._replace(ends=ends)
        return wall(self._machine, ends)

    def release(self, lease: Lease) -> None:
        with self._changed:
            held = self._held.get(lease.key)
            if held is not None and held.token == lease.token:
                self._held[lease.key] = held._replace(ends=0.0)
                self._changed.notify_all()

    def is_wanted(self, lease: Lease) -> bool:
        with self._changed:
            return lease.key in self._queues

    def _is_free(self, key: str) -> bool:
        held = self._held.get(key)
        return held is None or held.is_free(self._machine)


# Leases that are held for as long as the work takes: a thread renews them. Spec: 10 §C6, §C9.


class KeptLease:
    """A lease that is renewed three times in each ``ttl``, until `release`."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self._done = Event()
        self._thread = Thread(target=self._keep, name=f"lease {lease.key}", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Let the lease go."""
        self._done.set()
        self._thread.join()
        self.lease.release()

    def _keep(self) -> None:
        while not self._done.wait(self.lease.ttl / 3):
            try:
                self.lease.renew()
            except StorageError:
                return  # an append under it will say so
