"""Waitpoints: something that happens outside, once, and that any number of programs wait for. Spec: 10 §C18.

A waitpoint is a topic of an event log, so it outlives the process and belongs to all who share the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from harnpy.eventlog.contract import in_thread
from harnpy.eventlog.log_events import LogEvent
from harnpy.eventlog.waiting import Waiting, created
from harnpy.eventlog.waitpoint_events import FAMILY, Point
from harnpy.eventlog.waitpoint_records import (
    CANCELLED,
    COMPLETED,
    OPEN,
    Changed,
    UnknownWaitpoint,
    Waitpoint,
    WaitpointError,
    WaitResult,
    checked_id,
    checked_json,
    moment_text,
)
from harnpy.world.clock import RealClock, milliseconds
from harnpy.world.ids import RealIds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.eventlog.contract import EventLog

__all__ = ["Changed", "UnknownWaitpoint", "WaitResult", "Waitpoint", "WaitpointError", "Waitpoints"]


class Waitpoints:
    """The waitpoints of an event log. Any thread may call; every call reads what others have written since.

    ``now`` is epoch seconds, None for the real time; ``new_id`` mints ids, None for UUIDs. Raises
    `WaitpointError` for what can't be asked, `LogError` when the log fails.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        now: Callable[[], float] | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        self.log = log
        self._now = now or RealClock().now
        self._new_id = new_id or RealIds().new
        self._points: WeakValueDictionary[str, Point] = WeakValueDictionary()

    def create(self, id: str | None = None, metadata: dict[str, Any] | None = None) -> Waitpoint:
        """Return the waitpoint of that id, made if there is none; None mints one."""
        point = self._point(f"wp_{self._new_id()}" if id is None else id)
        if metadata is not None and not isinstance(metadata, dict):
            raise WaitpointError("`metadata` must be a dict")
        known = checked_json(metadata or {}, "metadata")
        point.change(lambda: None if point.is_known else created(point.record.id, known, self._at()))
        return point.record

    def get(self, id: str) -> Waitpoint | None:
        """Return the waitpoint of that id; None when there is none."""
        point = self._point(id)
        return point.record if point.is_known else None

    def list(self, status: str | None = None) -> Sequence[Waitpoint]:
        """Return all waitpoints, or those with that status, in the order of their topics' names."""
        topics = (topic for topic in self.log.topics() if topic.startswith((f"{FAMILY}.", f"{FAMILY}-")))
        points = [Point(self.log, "", topic) for topic in topics]
        for point in points:
            point.read()
        known = (point.record for point in points if point.is_known)
        return [record for record in known if status is None or record.status == status]

    def complete(self, id: str, value: Any = None, *, by: str | None = None, create: bool = False) -> Changed:
        """Complete the waitpoint, unless it is over: then nothing changes.

        ``value`` is what waiters get, ``by`` who says so. Raises `UnknownWaitpoint`, unless ``create``.
        """
        payload = {"value": checked_json(value, "value"), "by": _text(by, "by")}
        if create:
            self.create(id)
        return self._end("complete", id, COMPLETED, payload)

    def cancel(self, id: str, *, reason: str | None = None, by: str | None = None) -> Changed:
        """Call the waitpoint off, unless it is over: then nothing changes. Raises `UnknownWaitpoint`."""
        return self._end("cancel", id, CANCELLED, {"reason": _text(reason, "reason"), "by": _text(by, "by")})

    def wait(
        self,
        ids: str | Sequence[str],
        *,
        wait_id: str | None = None,
        timeout: float | None = None,
        all: bool = True,
    ) -> WaitResult:
        """Block until all of the waitpoints are completed, or one of them (``all=False``).

        One that is cancelled ends a wait for all; those that don't exist are created. ``timeout`` is in
        seconds. A wait with a ``wait_id`` can be entered again, after a crash, say: it keeps its deadline,
        and its end if it has come to one.
        """
        waiting = self.enter(ids, wait_id=wait_id, timeout=timeout, all=all)
        while (result := waiting.look()) is None:
            waiting.rest()
        return result

    def enter(
        self,
        ids: str | Sequence[str],
        *,
        wait_id: str | None = None,
        timeout: float | None = None,
        all: bool = True,
        session_id: str | None = None,
        run_id: str | None = None,
    ) -> Waiting:
        """Begin a wait, or enter it again, for somebody who will look by himself when it is over.

        ``session_id`` and ``run_id`` are noted as whose wait it is.
        """
        names = [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))
        if not names:
            raise WaitpointError("there is nothing to wait for: name a waitpoint, or several")
        if timeout is not None and not 0 <= timeout < float("inf"):
            raise WaitpointError(f"`timeout` must not be negative or endless, got {timeout}")
        wait = f"wait_{self._new_id()}" if wait_id is None else checked_id(wait_id, "wait_id")
        origin = {"session_id": session_id, "run_id": run_id}
        return Waiting(
            [self._known(name) for name in names],
            wait,
            self._now_ms,
            timeout=timeout,
            all=all,
            origin={key: value for key, value in origin.items() if value is not None},
        )

    def _point(self, id: str) -> Point:
        point = self._known(id)
        point.read()
        return point

    def _known(self, id: str) -> Point:
        """Return the waitpoint's topic; all who are busy with it share what was read of it."""
        found = self._points.get(checked_id(id))
        if found is None:
            found = self._points[id] = Point(self.log, id)
        return found

    def _end(self, verb: str, id: str, kind: str, payload: dict[str, Any]) -> Changed:
        point = self._point(id)
        if not point.is_known:
            raise UnknownWaitpoint(verb, id)
        event = LogEvent(kind, {**payload, "at": self._at()})
        changed = point.change(lambda: event if point.record.status == OPEN else None)
        return Changed(point.record, changed)

    def _now_ms(self) -> int:
        return milliseconds(self._now())

    def _at(self) -> str:
        return moment_text(self._now_ms())

    # The twins for asyncio.

    async def acreate(self, id: str | None = None, metadata: dict[str, Any] | None = None) -> Waitpoint:
        return await in_thread(self.create, id, metadata)

    async def aget(self, id: str) -> Waitpoint | None:
        return await in_thread(self.get, id)

    async def alist(self, status: str | None = None) -> Sequence[Waitpoint]:
        return await in_thread(self.list, status)

    async def acomplete(
        self, id: str, value: Any = None, *, by: str | None = None, create: bool = False
    ) -> Changed:
        return await in_thread(self.complete, id, value, by=by, create=create)

    async def acancel(self, id: str, *, reason: str | None = None, by: str | None = None) -> Changed:
        return await in_thread(self.cancel, id, reason=reason, by=by)

    async def await_(
        self,
        ids: str | Sequence[str],
        *,
        wait_id: str | None = None,
        timeout: float | None = None,
        all: bool = True,
    ) -> WaitResult:
        """`wait`, without blocking the loop. Cancelling it writes nothing: the wait can be entered again."""
        waiting = await in_thread(self.enter, ids, wait_id=wait_id, timeout=timeout, all=all)
        while (result := await in_thread(waiting.look)) is None:
            await in_thread(waiting.rest)
        return result


def _text(given: Any, what: str) -> str | None:
    if given is not None and not isinstance(given, str):
        raise WaitpointError(f"`{what}` must be a string, got {type(given).__name__}")
    return given
