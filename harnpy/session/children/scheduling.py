"""Children that begin at a time of their own. Spec: 10 §A1.15.

They are known to this runtime alone until they begin: a process that ends takes them along.
"""

from __future__ import annotations

from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from threading import Condition, Thread
from typing import TYPE_CHECKING

from harnpy.session.children.outcomes import of_error
from harnpy.session.children.running import CANCELLED
from harnpy.session.children.values import ChildSpec
from harnpy.session.errors import ChildError, InvalidArgument
from harnpy.session.parts.arguments import instance

if TYPE_CHECKING:
    from harnpy.session.children.handle import Handle
    from harnpy.session.children.nursery import Children
    from harnpy.session.runtime.calling import ParentCaller
    from harnpy.world.clock import Clock

#: The clock may be put forward: so often somebody looks. Seconds.
_LOOK = 60.0


class ScheduledChild:
    """A child that begins at ``due_at``, in seconds since 1970. `SessionRuntime.wait` waits for it."""

    def __init__(self, children: Children, handle: Handle, due_at: float) -> None:
        self._children = children
        self._handle = handle
        self.due_at = due_at

    @property
    def child_id(self) -> str:
        return self._handle.ref.child_id

    @property
    def session_id(self) -> str:
        return self._handle.ref.session_id

    @property
    def status(self) -> str:
        """``scheduled``, ``running``, or what became of it."""
        return self._handle.status

    def cancel(self) -> None:
        """Have it never begin. Raises `ChildError` when it has begun (it is cancelled then) or ended."""
        if self._children.cancel_entered(self._handle):
            return
        if self._handle.result is not None:
            raise ChildError("scheduled task already completed", self.session_id)
        self._children.stop(self._handle)
        raise ChildError("scheduled task already started", self.session_id)


class Scheduler:
    """One thread that begins children when they are due; it begins with the first one that isn't yet."""

    def __init__(self, children: Children, clock: Clock) -> None:
        self._children = children
        self._clock = clock
        self._changed = Condition()
        self._waiting: list[tuple[float, int, Handle, ParentCaller]] = []
        self._numbers = count()
        self._thread: Thread | None = None
        self._closed = False

    def schedule(self, parent_id: str, spec: ChildSpec, caller: ParentCaller) -> ScheduledChild:
        """Have a child begin when ``spec.due_at`` says; at once if that is past. Raises `ChildError`."""
        due_at = _seconds(spec)
        with self._changed:
            if self._closed:
                raise ChildError("scheduler closed")
        handle = self._children.enter(parent_id, spec, caller)
        if due_at <= self._clock.now():
            self._children.start(handle, caller)
        else:
            self._wait_for(due_at, handle, caller)
        return ScheduledChild(self._children, handle, due_at)

    def wake(self) -> None:
        """Have the thread look at the clock."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Begin no more children. Those that wait are cancelled."""
        with self._changed:
            self._closed = True
            waiting, self._waiting = self._waiting, []
            self._changed.notify_all()
        for _, _, handle, _ in waiting:
            self._children.cancel_entered(handle)
        if self._thread is not None:
            self._thread.join()

    def _wait_for(self, due_at: float, handle: Handle, caller: ParentCaller) -> None:
        with self._changed:
            heappush(self._waiting, (due_at, next(self._numbers), handle, caller))
            if self._thread is None:
                self._thread = Thread(target=self._run, name="scheduled children", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while (due := self._next()) is not None:
            handle, caller = due
            if handle.result is not None:
                continue  # it was cancelled
            try:
                handle.context.run(self._children.begin, handle, caller)
            except BaseException as error:  # also a cancellation: the others still have to begin
                ended = of_error(handle.who, handle.ref.session_id, error, CANCELLED)
                self._children.settle(handle, ended)

    def _next(self) -> tuple[Handle, ParentCaller] | None:
        """Wait for the next child that is due; None when there will be no more."""
        with self._changed:
            while not self._closed:
                left = self._waiting[0][0] - self._clock.now() if self._waiting else None
                if left is not None and left <= 0:
                    return heappop(self._waiting)[2:]
                self._changed.wait(None if left is None else min(left, _LOOK))
        return None


def _seconds(spec: ChildSpec) -> float:
    due_at = instance("spec", spec, ChildSpec).due_at
    if isinstance(due_at, datetime):
        return due_at.timestamp()
    if isinstance(due_at, bool) or not isinstance(due_at, int | float):
        given = type(due_at).__name__
        raise InvalidArgument(
            f"schedule child: `due_at` must be seconds since 1970 or a datetime, got {given}"
        )
    return float(due_at)
