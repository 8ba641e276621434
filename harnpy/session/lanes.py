"""Lanes: who works on a session, and who waits for it; and how long something may take.

Spec: 10 §A1.17, §C7.2.
"""

from __future__ import annotations

from collections import defaultdict, deque
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import TIMEOUT_MAX, Event, Lock, Timer
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from harnpy.faults import is_cancelled
from harnpy.session.errors import ExecutionTimeout, LaneFull, LaneTimeout, SessionBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.session.calling import Caller

    Check = Callable[[], None]

# How long something may take. Spec: 10 §A1.17, §C7.


def within(seconds: float | None, call: Caller, session_id: str) -> AbstractContextManager[None]:
    """Stop what ``call`` calls once it has taken so long; None: never. Raises `ExecutionTimeout` then.

    What is async is cancelled; what isn't ends when it next asks whether it should.
    """
    return _WITHOUT_END if seconds is None else _limited(seconds, call, session_id)


_WITHOUT_END: AbstractContextManager[None] = nullcontext()


@contextmanager
def _limited(seconds: float, call: Caller, session_id: str) -> Iterator[None]:
    limit = _Limit(call)
    timer = Timer(min(seconds, TIMEOUT_MAX), limit.stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except BaseException as error:
        if limit.is_over and is_cancelled(error):
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


# Lanes: the turns on one session, one after the other, first come first served. Spec: 10 §C7.2.
#
# An action has its session to itself. Loops of one program share theirs, as they always could. Whoever waits
# is a thread, or a task of a program, which lets other tasks go on meanwhile: a `Waiter` knows how.


#: How many may wait for one session.
MOST_WAITING = 64

#: What actions and loops are called where no name is given.
ACTION = "one of its actions"
LOOP = "an agent_loop on it"


class Ticket:
    """A place in a session's lane. Tickets that are ``shared`` have it together.

    ``check`` raises once nobody wants what the ticket is for; ``who`` says what that is.
    """

    __slots__ = ("check", "id", "pause", "shared", "who")

    def __init__(self, id: str, check: Check, who: str, shared: bool) -> None:
        self.id = id
        self.check = check
        self.who = who
        self.shared = shared
        self.pause: Pause | None = None


class Pause(Protocol):
    """A way to wait until there is news."""

    def wait(self, seconds: float) -> object:
        """Wait for `set`, at most so long."""

    def set(self) -> None:
        """End the waiting. From any thread."""


class Waiter(Protocol):
    """Whoever takes turns: how they wait, and which turns they are inside of."""

    #: Whether a store may make the whole thread wait.
    blocks: bool

    def now(self) -> float:
        """Return the time that waiting goes by, in seconds."""

    def pause(self) -> Pause: ...

    def mine(self) -> tuple[Ticket, ...]:
        """Return the tickets of the turns that this runs inside of, some of which may have ended."""

    def inside(self, ticket: Ticket) -> AbstractContextManager[None]:
        """Have what runs inside the block, and what that starts, be inside of a turn."""


_MINE: ContextVar[tuple[Ticket, ...]] = ContextVar("turns", default=())


class _ThreadPause(Event):
    def wait(self, timeout: float | None = None) -> bool:
        ended = super().wait(timeout)
        self.clear()
        return ended


class ThreadWaiter:
    """Waits in a thread. ``now`` is the clock that waiting goes by, in seconds."""

    blocks = True

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self.now = now

    def pause(self) -> Pause:
        return _ThreadPause()

    def mine(self) -> tuple[Ticket, ...]:
        return _MINE.get()

    def inside(self, ticket: Ticket) -> _Inside:
        return _Inside(ticket)


class _Inside:
    """Being inside of a turn, in this context and in what begins with it."""

    __slots__ = ("_ticket",)

    def __init__(self, ticket: Ticket) -> None:
        self._ticket = ticket

    def __enter__(self) -> None:
        _MINE.set((*_MINE.get(), self._ticket))

    def __exit__(self, *error: object) -> None:
        ticket = self._ticket
        _MINE.set(tuple([one for one in _MINE.get() if one is not ticket]))


class Lane:
    """A session's lane, had inside a ``with`` block, which gives the seconds that are left to wait for more.

    Raises `SessionBusy` inside a turn of the same session, which would wait for itself, `LaneFull` when too
    many wait already, `LaneTimeout` when the lane isn't free in time.
    """

    __slots__ = ("_inside", "_lanes", "_ticket", "_wait", "_waiter")

    def __init__(self, lanes: Lanes, ticket: Ticket, waiter: Waiter, wait: float) -> None:
        self._lanes = lanes
        self._ticket = ticket
        self._waiter = waiter
        self._wait = wait

    def __enter__(self) -> float:
        lanes, ticket, waiter = self._lanes, self._ticket, self._waiter
        around = lanes.mine(ticket.id, waiter)
        if around is not None and not (ticket.shared and around.shared):
            busy = f"session '{ticket.id}' is busy: this runs inside {around.who}"
            raise SessionBusy(busy, ticket.id)
        left = lanes.enter(ticket, waiter, self._wait, first=around is not None)
        self._inside = waiter.inside(ticket)
        self._inside.__enter__()
        return left

    def __exit__(self, *error: Any) -> None:
        try:
            self._inside.__exit__(*error)
        finally:
            self._lanes.leave(self._ticket)


class Lanes:
    """The lanes of the sessions of one store, in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: defaultdict[str, deque[Ticket]] = defaultdict(deque)

    def lane(
        self, id: str, waiter: Waiter, check: Check, wait: float, who: str = ACTION, *, shared: bool = False
    ) -> Lane:
        """Return the session's lane for a ``with`` block, to oneself or ``shared``.

        ``wait`` is how many seconds to wait for it. ``check`` raises to end the waiting; it is called after
        each `wake`.
        """
        return Lane(self, Ticket(id, check, who, shared), waiter, wait)

    def mine(self, id: str, waiter: Waiter) -> Ticket | None:
        """Return the ticket of the turn of the session that this runs inside of; None outside of any.

        What a turn has started, and what began with its context, may outlive it.
        """
        for ticket in reversed(waiter.mine()):
            if ticket.id == id and self._is_held(ticket):
                return ticket
        return None

    def checks(self, waiter: Waiter) -> list[Check]:
        """Return the checks of the turns that this runs inside of."""
        return [ticket.check for ticket in waiter.mine() if self._is_held(ticket)]

    def _is_held(self, ticket: Ticket) -> bool:
        with self._lock:
            return ticket in self._queues.get(ticket.id, ())

    def is_busy(self, id: str) -> bool:
        """Return whether somebody has the session's lane."""
        with self._lock:
            return id in self._queues

    def waiting(self, id: str) -> int:
        """Return how many wait for the session's lane."""
        with self._lock:
            queue = self._queues.get(id, ())
            return sum(not self._may_go(ticket) for ticket in queue)

    def wake(self) -> None:
        """Have all who wait look whether they still should."""
        with self._lock:
            pauses = [ticket.pause for queue in self._queues.values() for ticket in queue]
        for pause in pauses:
            if pause is not None:
                pause.set()

    def enter(self, ticket: Ticket, waiter: Waiter, wait: float, *, first: bool) -> float:
        """Wait for the lane. ``first``: as part of a turn that has it, which others may wait for."""
        with self._lock:
            queue = self._queues[ticket.id]
            if len(queue) > MOST_WAITING:
                raise LaneFull(ticket.id)
            if first:
                queue.appendleft(ticket)
            else:
                queue.append(ticket)
            if queue[0] is ticket or self._may_go(ticket):
                return wait
            pause = ticket.pause = waiter.pause()
        try:
            gives_up = waiter.now() + wait
            while True:
                with self._lock:
                    if self._may_go(ticket):
                        break
                left = gives_up - waiter.now()
                if left <= 0:
                    raise LaneTimeout(ticket.id, wait)
                ticket.check()
                pause.wait(left)
        except BaseException:
            self.leave(ticket)
            raise
        ticket.pause = None
        return max(0.0, gives_up - waiter.now())

    def _may_go(self, ticket: Ticket) -> bool:
        """Return whether nobody is before a ticket, or only those that share the lane with it."""
        for other in self._queues[ticket.id]:
            if other is ticket:
                return True
            if not (other.shared and ticket.shared):
                return False
        raise AssertionError("a ticket is in its queue")

    def leave(self, ticket: Ticket) -> None:
        """Let the next one have the lane."""
        with self._lock:
            queue = self._queues[ticket.id]
            queue.remove(ticket)
            if not queue:
                del self._queues[ticket.id]
                return
            pauses = [one.pause for one in queue]
        for pause in pauses:
            if pause is not None:
                pause.set()
