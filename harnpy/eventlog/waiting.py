"""One wait for waitpoints, as a machine that anybody can drive: look, rest, look again. Spec: 10 §C18.

Of several waitpoints the one whose topic is the first in order decides: the deadline and the end that stand
there are those of the wait. The other topics are told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.eventlog.log_events import LogEvent
from harnpy.eventlog.waitpoint_events import CREATED, WAIT_RESOLVED, WAIT_STARTED
from harnpy.eventlog.waitpoint_records import (
    CANCELLED,
    COMPLETED,
    INTERRUPTED,
    OPEN,
    TIMED_OUT,
    WaitpointError,
    WaitResult,
    moment_ms,
    moment_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.eventlog.waitpoint_events import Point, Wait

#: Seconds between two looks at least: at the clock, and at all topics when there are several.
_LONGEST_REST, _REST_OF_MANY = 1.0, 0.1


class Waiting:
    """``points`` are in the order in which they were given, each once; ``now_ms`` is the time.

    Creating one enters the wait, or enters it again: then the deadline is the one that it had.
    """

    def __init__(
        self,
        points: Sequence[Point],
        wait_id: str,
        now_ms: Callable[[], int],
        *,
        timeout: float | None = None,
        all: bool = True,
        origin: dict[str, str] | None = None,
    ) -> None:
        self.points = points
        self.wait_id = wait_id
        self._now_ms = now_ms
        self._all = all
        self._origin = origin or {}
        self._anchor = min(points, key=lambda point: point.topic)
        self.ids = [point.record.id for point in points]
        now = now_ms()
        deadline = None if timeout is None else moment_text(now + round(timeout * 1000))
        for point in points:
            point.read()
            self._create(point)
        self._start(self._anchor, moment_text(now), deadline)
        self._check_ids()
        for point in points:
            self._start(point, self._wait.started_at, self._wait.deadline_at)

    def seconds_left(self) -> float | None:
        """Return how long until the deadline, None without one."""
        deadline = self._wait.deadline_at
        return None if deadline is None else max(moment_ms(deadline) - self._now_ms(), 0) / 1000

    def look(self, is_over: bool = False) -> WaitResult | None:
        """Return what the wait came to; None when it goes on.

        ``is_over``: its time is, whatever the clock says.
        """
        for point in self.points:
            point.read()
        if self._wait.status is None:
            status = self._status() or (TIMED_OUT if is_over or self.seconds_left() == 0 else None)
            if status is None:
                return None
            self._resolve(self._anchor, status, moment_text(self._now_ms()))
        return self._told()

    def interrupted(self) -> WaitResult:
        """Return the result of a wait that somebody gave up. Nothing is written: it may be entered again."""
        for point in self.points:
            point.read()
        return self._told() if self._wait.status is not None else self._result(INTERRUPTED)

    def rest(self) -> None:
        """Block until there may be something new to see."""
        waited_for = [point for point in self.points if point.record.status == OPEN]
        if not waited_for:
            # Somebody who shares the points has read, since the last look, how they ended.
            return
        left = self.seconds_left()
        longest = _LONGEST_REST if len(waited_for) == 1 else _REST_OF_MANY
        first = waited_for[0]
        first.log.wait(first.topic, first.version, longest if left is None else min(left, longest))

    @property
    def _wait(self) -> Wait:
        return self._anchor.waits[self.wait_id]

    def _status(self) -> str | None:
        """Return the end that the waitpoints bring about, None for none yet."""
        statuses = [point.record.status for point in self.points]
        some, every = (CANCELLED, COMPLETED) if self._all else (COMPLETED, CANCELLED)
        if some in statuses:
            return some
        return every if all(status == every for status in statuses) else None

    def _told(self) -> WaitResult:
        """Return the end that the wait has come to, after telling the topics that don't know of it."""
        wait = self._wait
        assert wait.status is not None
        assert wait.resolved_at is not None
        for point in self.points:
            self._resolve(point, wait.status, wait.resolved_at)
        return self._result(wait.status)

    def _result(self, status: str) -> WaitResult:
        wait = self._wait
        return WaitResult(
            self.wait_id,
            tuple(self.ids),
            status,
            wait.started_at,
            wait.resolved_at,
            wait.deadline_at,
            tuple(point.record for point in self.points),
        )

    def _check_ids(self) -> None:
        known = self._wait.waitpoint_ids
        if set(known) != set(self.ids):
            names = ", ".join(known)
            raise WaitpointError(f"wait '{self.wait_id}' is for {names}: it can't be entered for others")

    # What is written, unless it is there already.

    def _create(self, point: Point) -> None:
        at = moment_text(self._now_ms())
        point.change(lambda: None if point.is_known else created(point.record.id, {}, at))

    def _start(self, point: Point, at: str, deadline: str | None) -> None:
        started: dict[str, Any] = {
            "wait_id": self.wait_id,
            "waitpoint_ids": self.ids,
            "at": at,
            "deadline_at": deadline,
            **self._origin,
        }
        point.change(lambda: None if self.wait_id in point.waits else LogEvent(WAIT_STARTED, started))

    def _resolve(self, point: Point, status: str, at: str) -> None:
        resolved = {"wait_id": self.wait_id, "status": status, "at": at}
        point.change(
            lambda: LogEvent(WAIT_RESOLVED, resolved) if point.waits[self.wait_id].status is None else None
        )


def created(id: str, metadata: dict[str, Any], at: str) -> LogEvent:
    """Return the event that begins a waitpoint."""
    return LogEvent(CREATED, {"id": id, "metadata": metadata, "at": at})
