"""Turns for the asyncio loop around a program that computes and doesn't wait. Spec: 09 §16.2.

Between two waits a program has the thread to itself: a `while true { }` would block the asyncio loop, and
nothing could cancel it. A second thread asks for a turn now and then. To start it costs more than most
spells between two waits take, so it is started only for one that has polled a thousand times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.world.ticker import Stopwatch, Ticker

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.run.tasks.scheduler import Scheduler

#: Seconds for which a program computes before the loop has a turn.
_SPELL = 0.01
#: Polls of a spell that look at the time themselves, before a thread does.
_FEW = 1000


class Turns:
    """The spells of one run: `begin` when the program goes on, `end` when the loop does."""

    def __init__(self, scheduler: Scheduler, give_way: Callable[[], object]) -> None:
        """``give_way()`` lets the loop go on, and returns when it has had its turn."""
        self._scheduler = scheduler
        self._signal = scheduler.signal
        self._give_way = give_way
        self._left = 0
        self._watch = Stopwatch()
        self._ticker: Ticker | None = None
        """Runs while a spell is timed."""
        self._due = False

    def begin(self) -> None:
        self._left, self._due, self._watch = _FEW, False, Stopwatch()
        self._have_polled()

    def end(self) -> None:
        if self._ticker is not None:
            self._ticker.stop()
            self._ticker = None
        self._signal.watched = self._scheduler.limited
        self._scheduler.refresh()

    def poll(self) -> None:
        """Between two turns of a loop of the program: give way if it is time to."""
        if self._due:
            self._give_way()
            self._scheduler.refresh()
        elif self._left:
            self._left -= 1
            self._due = self._watch.has_passed(_SPELL)
        elif self._ticker is None:
            self._signal.watched = self._scheduler.limited
            self._scheduler.refresh()
            # One that ticks again and again: a refresh of the flag at that very moment would undo a tick.
            self._ticker = Ticker(_SPELL, self._ask)

    def _ask(self) -> None:
        self._due = True
        self._have_polled()

    def _have_polled(self) -> None:
        self._signal.watched = self._signal.pending = True
