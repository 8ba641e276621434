"""Simulated time: it passes when everybody sleeps, and a little at each look at the clock.

So a program under test waits for nothing, its timers fire in the order of their times however busy the
machine is, and a `deadline` still ends a loop that never waits. Only while something outside the program is
at work (a process, a socket, a thread) does time pass as it really does.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from selectors import DefaultSelector, SelectorKey
from typing import Any

import pytest

from harnpy.world.threads import Wakeful

#: Seconds that pass at each look. More than 0, so that a loop which only polls comes to its end.
TICK = 5e-5
#: Simulated time begins so much after a whole second that no look falls on the edge of a millisecond: two
#: looks that are in the same millisecond in one run are so in every run.
_OFFSET = 13e-6
#: What worlds get their clock from unless one is given; `simulated_time` puts another in its place.
_REAL_CLOCK = "harnpy.world.clock.RealClock"


class SimulatedClock:
    """A `Clock` that begins at ``start``; ``passed`` are the seconds since then, ``slept`` of each sleep."""

    def __init__(self, start: float = 1_700_000_000.0, tick: float = TICK) -> None:
        self.start = start
        self.tick = tick
        self.passed = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.start + self.monotonic()

    def monotonic(self) -> float:
        self.passed += self.tick
        return self.passed

    def sleep(self, seconds: float | None) -> None:
        assert seconds is not None, "everybody waits for somebody, and nobody comes"
        self.slept.append(seconds)
        self.passed += seconds

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """An event loop whose timers keep this clock's time."""
        return _Loop(self)


@contextmanager
def simulated_time() -> Iterator[SimulatedClock]:
    """Inside the block every Vm that uses the real clock uses a simulated one."""
    clock = SimulatedClock(int(time.time()) + _OFFSET)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_REAL_CLOCK, lambda: clock)
        for module in (asyncio, asyncio.events):
            patch.setattr(module, "new_event_loop", clock.new_event_loop)
        yield clock


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: SimulatedClock) -> None:
        self._sockets = _Selector(clock)
        super().__init__(self._sockets)
        self._clock = clock

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        super().add_reader(fd, callback, *args)
        if isinstance(getattr(callback, "__self__", None), Wakeful):
            self._sockets.own += 1

    def time(self) -> float:
        return self._clock.monotonic()


class _Selector(DefaultSelector):
    """Skips the wait for a timer when nothing outside could end it.

    ``own`` are the keys that are no work of somebody outside: that by which other threads wake the loop, and
    that by which signals do.
    """

    own = 1

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__()
        self._clock = clock
        self._threads = threading.active_count()

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is not None and not self._somebody_is_outside():
            self._clock.passed += timeout
            return []
        start = time.monotonic()
        ready = super().select(timeout)
        waited = time.monotonic() - start
        self._clock.passed += waited if timeout is None else min(waited, timeout)
        return ready

    def _somebody_is_outside(self) -> bool:
        return len(self.get_map()) > self.own or threading.active_count() > self._threads
