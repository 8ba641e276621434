"""Lanes: the actions on one session, one after the other, first come first served. Spec: 10 §C7.2."""

from __future__ import annotations

from collections import defaultdict, deque
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Condition
from typing import TYPE_CHECKING

from harnpy.session.errors import LaneFull, LaneTimeout, SessionBusy
from harnpy.storage.errors import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: How many may wait for one session.
MOST_WAITING = 64


class Lanes:
    """The lanes of one runtime. ``wait`` is how many seconds an action waits for its turn.

    ``monotonic`` is the clock that waiting goes by, in seconds.
    """

    def __init__(self, wait: float, monotonic: Callable[[], float]) -> None:
        self.wait = wait
        self._monotonic = monotonic
        self._changed = Condition()
        self._queues: defaultdict[str, deque[object]] = defaultdict(deque)
        self._mine: ContextVar[frozenset[str]] = ContextVar("lanes", default=frozenset())
        self._closed = False

    @contextmanager
    def lane(self, id: str, check: Callable[[], None]) -> Iterator[float]:
        """Have the session's lane to oneself. Give the seconds that are left to wait for more.

        ``check`` raises to end the waiting; it is called after each `wake`.

        Raises `SessionBusy` inside an action of the same session, `LaneFull` when too many wait already,
        `LaneTimeout` when the lane isn't free in time.
        """
        if id in self._mine.get():
            raise SessionBusy(f"session '{id}' is busy: this runs inside one of its actions", id)
        ticket = object()
        left = self._enter(id, ticket, check)
        mine = self._mine.set(self._mine.get() | {id})
        try:
            yield left
        finally:
            self._mine.reset(mine)
            self._leave(id, ticket)

    def is_busy(self, id: str) -> bool:
        """Whether somebody has the session's lane."""
        with self._changed:
            return id in self._queues

    def waiting(self, id: str) -> int:
        """Return how many wait for the session's lane."""
        with self._changed:
            return len(self._queues[id]) - 1 if id in self._queues else 0

    def wake(self) -> None:
        """Have all who wait look whether they still should."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Let nobody in any more: whoever waits gets `StoreClosed`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _enter(self, id: str, ticket: object, check: Callable[[], None]) -> float:
        gives_up = self._monotonic() + self.wait
        with self._changed:
            queue = self._queues[id]
            if len(queue) > MOST_WAITING:
                raise LaneFull(id)
            queue.append(ticket)
            try:
                while queue[0] is not ticket and not self._closed:
                    left = gives_up - self._monotonic()
                    if left <= 0:
                        raise LaneTimeout(id, self.wait)
                    self._changed.wait(left)
                    check()
                if self._closed:
                    raise StoreClosed("the runtime")
            except BaseException:
                self._remove(id, ticket)
                raise
        return max(0.0, gives_up - self._monotonic())

    def _leave(self, id: str, ticket: object) -> None:
        with self._changed:
            self._remove(id, ticket)

    def _remove(self, id: str, ticket: object) -> None:
        queue = self._queues[id]
        queue.remove(ticket)
        if not queue:
            del self._queues[id]
        self._changed.notify_all()
