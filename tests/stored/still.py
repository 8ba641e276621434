"""A process in which nothing is left to chance: time, ids, random bytes and the machine's name are given.

Import it before harnpy: what harnpy takes from Python's modules is replaced there.
"""

from __future__ import annotations

import os
import random
import socket
import time

from tests.stored.tokens import BEGIN

_STEP = 0.01


class Still:
    """A clock and a source of ids. Each look at the clock is a hundredth of a second after the one before."""

    def __init__(self, hours: int = 0) -> None:
        self.begin_at(hours)

    def begin_at(self, hours: int) -> None:
        """Begin anew, so many hours after `BEGIN`; ids and bytes begin anew, too."""
        self._passed = hours * 3600.0
        self._hours = hours
        self._ids = 0
        self._chance = random.Random(hours)

    def now(self) -> float:
        self._passed = round(self._passed + _STEP, 2)
        return BEGIN + self._passed

    def monotonic(self) -> float:
        return self._passed

    def sleep(self, seconds: float | None) -> None:
        self._passed += seconds or 0

    def new(self) -> str:
        """A UUID, version 7."""
        self._ids += 1
        return f"019ca8b4-a600-7{self._hours:03x}-8000-{self._ids:012x}"

    def bytes(self, count: int) -> bytes:
        return self._chance.randbytes(count)


class Waking(Still):
    """The same for programs with timers: they wait in real time."""

    monotonic = staticmethod(time.monotonic)  # type: ignore[assignment]
    sleep = staticmethod(time.sleep)  # type: ignore[assignment]


class Stopped(Still):
    """The same for those who ask no clock of ours: how often stores do differs, so time doesn't pass."""

    def now(self) -> float:
        return BEGIN + self._passed

    def begin_at(self, hours: int) -> None:
        super().begin_at(hours + 12)


STILL = Still()
_STOPPED = Stopped()


def begin_at(hours: int) -> None:
    """Begin anew, so many hours after `BEGIN`."""
    STILL.begin_at(hours)
    _STOPPED.begin_at(hours)
    random.seed(hours)


def be_still() -> None:
    """Replace time, ids, chance and the machine's name in this process."""
    from harnpy.world.ids import RealIds

    time.time = _STOPPED.now
    time.time_ns = lambda: round(_STOPPED.now() * 1000) * 1_000_000
    os.urandom = _STOPPED.bytes
    random._urandom = _STOPPED.bytes  # type: ignore[attr-defined]
    RealIds.new = lambda self: _STOPPED.new()  # type: ignore[method-assign]
    socket.gethostname = lambda: "maker"
