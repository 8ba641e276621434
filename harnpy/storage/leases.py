"""Leases: who may write, until when, and how anyone later can tell.

A lease has a *token*; the tokens of a key only ever rise, so an append that carries one can be refused
once somebody else has taken the lease (a *fence*). Spec: 10 §C6.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from harnpy.storage.errors import LeaseHeld, LeaseLost
from harnpy.storage.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Condition
    from types import TracebackType

    #: Called by those who wait: what it raises ends the waiting. It must be short and not use the store: one
    #: in memory calls it under its lock.
    Check = Callable[[], None]


class Keeper(Protocol):
    """The store's side of a lease."""

    def renew(self, lease: Lease) -> float:
        """Extend the lease by its ``ttl``; return its end, in seconds since 1970. Raises `LeaseLost`."""

    def release(self, lease: Lease) -> None:
        """Let the lease go, if it is still held."""

    def is_wanted(self, lease: Lease) -> bool:
        """Whether somebody waits for the lease's key."""


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
        self.token = token
        self.ttl = ttl
        self.expires_at = expires_at

    def renew(self) -> None:
        """Hold the lease for another ``ttl`` seconds from now. Raises `LeaseLost`."""
        self.expires_at = self._keeper.renew(self)

    def release(self) -> None:
        """Let it go. Does nothing when it was let go or lost before."""
        self._keeper.release(self)

    def is_wanted(self) -> bool:
        """Whether somebody waits for it."""
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
    """What a store keeps of a key: the newest lease, and when it ends by the uptime of the machine ``boot``.

    A lease that was let go ends at 0. The row stays, for its token.
    """

    owner: str
    token: int
    boot: str
    ends: float

    def is_free(self, machine: Machine) -> bool:
        """Whether the key can be taken: let go, expired, or its owner is no longer there."""
        if self.boot != machine.boot:
            return True  # the machine has been started again since
        return self.ends <= machine.uptime() or machine.is_gone(self.owner)


def wall(machine: Machine, ends: float) -> float:
    """Return a moment of the machine's uptime as seconds since 1970, for people."""
    return time.time() + ends - machine.uptime()


#: How often a waiting process looks whether a lease is free, where nobody can tell it. Seconds.
PAUSE = 0.02


class MemoryLeases:
    """The leases of a store that one process has for itself. ``changed`` guards and announces them."""

    def __init__(self, changed: Condition, machine: Machine | None = None) -> None:
        self._changed = changed
        self._machine = machine or Machine()
        self._held: dict[str, Held] = {}
        self._queues: defaultdict[str, deque[object]] = defaultdict(deque)

    def take(self, key: str, owner: str | None, ttl: float, wait: float, check: Check | None = None) -> Lease:
        """Take the lease on ``key``; those who wait for it get it in the order in which they came."""
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
                        raise self._refusal(key)
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

    def check(self, fence: Lease) -> None:
        """Raise `LeaseLost` unless ``fence`` is the newest lease of its key and wasn't let go.

        One that has expired is still good as long as nobody has taken it.
        """
        held = self._held.get(fence.key)
        if held is None or held.token != fence.token:
            raise LeaseLost(fence.key, None if held is None else held.owner)
        if not held.ends:
            raise LeaseLost(fence.key)

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

    def _refusal(self, key: str) -> LeaseHeld:
        held = self._held.get(key)
        if held is None or held.is_free(self._machine):
            return LeaseHeld(key, "somebody who waits for it, too,", time.time())
        return LeaseHeld(key, held.owner, wall(self._machine, held.ends))
