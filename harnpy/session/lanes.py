"""Lanes: the actions on one session run one after the other; and how long something may take.

Spec: 10 §A1.17, §C7.2.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Condition, Timer
from types import MappingProxyType
from typing import TYPE_CHECKING

from harnpy.session.errors import ExecutionTimeout, LaneFull, LaneTimeout, SessionBusy
from harnpy.storage.errors import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harnpy.session.calling import Caller

    Check = Callable[[], None]

# How long something may take. Spec: 10 §A1.17, §C7.


@contextmanager
def within(seconds: float | None, call: Caller, session_id: str) -> Iterator[None]:
    """Stop what ``call`` calls once it has taken so long; None: never. Raises `ExecutionTimeout` then.

    What is async is cancelled; what isn't ends when it next asks whether it should.
    """
    if seconds is None:
        yield
        return
    limit = _Limit(call)
    timer = Timer(seconds, limit.stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except asyncio.CancelledError as error:
        if limit.is_over:
            raise ExecutionTimeout(session_id, seconds) from error
        raise
    finally:
        timer.cancel()


class _Limit:
    def __init__(self, call: Caller) -> None:
        self._call = call
        self.is_over = False

    def stop(self) -> None:
        self.is_over = True
        self._call.stop()


# Lanes: the actions on one session, one after the other, first come first served. Spec: 10 §C7.2.


#: How many may wait for one session.
MOST_WAITING = 64


class _Ticket:
    """A place in a lane. ``check`` raises once nobody wants what it is for."""

    def __init__(self, check: Check) -> None:
        self.check = check


class Lanes:
    """The lanes of one runtime. ``wait`` is how many seconds an action waits for its turn.

    ``monotonic`` is the clock that waiting goes by, in seconds.
    """

    def __init__(self, wait: float, monotonic: Callable[[], float]) -> None:
        self.wait = wait
        self._monotonic = monotonic
        self._changed = Condition()
        self._queues: defaultdict[str, deque[_Ticket]] = defaultdict(deque)
        self._mine: ContextVar[Mapping[str, _Ticket]] = ContextVar("lanes", default=MappingProxyType({}))
        self._closed = False

    @contextmanager
    def lane(self, id: str, check: Check) -> Iterator[float]:
        """Have the session's lane to oneself. Give the seconds that are left to wait for more.

        ``check`` raises to end the waiting; it is called after each `wake`.

        Raises `SessionBusy` inside an action of the same session, `LaneFull` when too many wait already,
        `LaneTimeout` when the lane isn't free in time.
        """
        if self.is_mine(id):
            raise SessionBusy(f"session '{id}' is busy: this runs inside one of its actions", id)
        ticket = _Ticket(check)
        left = self._enter(id, ticket)
        mine = self._mine.set({**self._mine.get(), id: ticket})
        try:
            yield left
        finally:
            self._mine.reset(mine)
            self._leave(id, ticket)

    def is_mine(self, id: str) -> bool:
        """Whether this runs inside an action of the session."""
        return self._is_held(id, self._mine.get().get(id))

    def checks(self) -> list[Check]:
        """Return the checks of the actions that this runs inside."""
        return [ticket.check for id, ticket in self._mine.get().items() if self._is_held(id, ticket)]

    def _is_held(self, id: str, ticket: _Ticket | None) -> bool:
        """Whether an action goes on: what it has started, and what began with its context, may outlive it."""
        with self._changed:
            return ticket is not None and ticket in self._queues.get(id, ())

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

    def _enter(self, id: str, ticket: _Ticket) -> float:
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
                    ticket.check()
                    self._changed.wait(left)
                if self._closed:
                    raise StoreClosed("the runtime")
            except BaseException:
                self._remove(id, ticket)
                raise
        return max(0.0, gives_up - self._monotonic())

    def _leave(self, id: str, ticket: _Ticket) -> None:
        with self._changed:
            self._remove(id, ticket)

    def _remove(self, id: str, ticket: _Ticket) -> None:
        queue = self._queues[id]
        queue.remove(ticket)
        if not queue:
            del self._queues[id]
        self._changed.notify_all()
