"""The event loop of a program whose run is recorded: it hears of nothing but what the journal gives out.

Its clock is the program's, and where another loop would wait for the outside, this one stops: then no
coroutine and no task can go on, and it is the journal's turn.
"""

from __future__ import annotations

import asyncio
from selectors import DefaultSelector
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from harnpy.vm.run.aio import Bridge, OwnLoop
from harnpy.world.loops import cancel_tasks, close_generators

if TYPE_CHECKING:
    from collections.abc import Callable
    from selectors import SelectorKey

    from harnpy.durable.journal import Journal
    from harnpy.vm.run.scheduler import Scheduler

#: Seconds between two looks for what other threads may bring.
_LOOK = 0.05


class _Selector(DefaultSelector):
    """Doesn't wait: ``on_rest(seconds)`` is called where it would, for so long at most."""

    on_rest: Callable[[float | None], object]

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        found = super().select(0) if self.get_map() else []
        if not found and (timeout is None or timeout > 0):
            self.on_rest(timeout)
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        selector = _Selector()
        super().__init__(selector)
        #: For how long nothing can go on: None where no time is set.
        self.rests_for: float | None = None
        selector.on_rest = self._rest

    def _make_self_pipe(self) -> None:
        """Make none: it wakes a loop that waits, and this one never does."""
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        """There is none to close."""

    def time(self) -> float:
        return self._journal.seconds

    def _rest(self, seconds: float | None) -> None:
        self.rests_for = seconds
        self.stop()


class RecordedLoop(OwnLoop):
    """The bridge to that loop."""

    loop: _Loop

    def __init__(self, scheduler: Scheduler, journal: Journal) -> None:
        Bridge.__init__(self, scheduler, _Loop(journal))
        self.serving: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._journal = journal

    @property
    def is_inside(self) -> bool:
        return asyncio._get_running_loop() is not None  # the journal's loop is none for the program either

    def _until(self, future: asyncio.Future[Any]) -> None:
        future.add_done_callback(lambda _: self.loop.stop())
        while True:
            self.loop.run_forever()
            if future.done():
                return
            if not self._journal.resolve(self.loop.rests_for):
                # Something that isn't recorded is waited for; whoever brings it is in another thread.
                self._journal.look(_LOOK)

    def forked(self) -> None:
        """It is never copied: nothing that is recorded forks."""

    def close(self) -> None:
        try:
            self._whole(cancel_tasks())
            if self._journal.has_gone_outside:
                self._journal.outside(self.close_all())  # there it was opened
            else:
                self._whole(self.close_all())
            self._whole(close_generators())
        finally:
            self.loop.close()
            self.scheduler.bridge = None
