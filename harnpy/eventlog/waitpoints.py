"""`Waitpoints`: something that happens outside, once, and that any number of programs wait for.

A waitpoint is a topic of an event log, so it outlives the process and belongs to all who share the log:

    created {id, metadata, at}
    completed {value, by, at}    cancelled {reason, by, at}
    wait_started {wait_id, waitpoint_ids, at, deadline_at, run_id?, session_id?}
    wait_resolved {wait_id, status, at}

Each event is appended right behind the last one that its writer has read, so that of two only one can be the
first. Times are RFC 3339 texts in UTC, with milliseconds. Spec: 06 §28, 10 §C18.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from weakref import WeakValueDictionary

from harnpy.eventlog.contract import LogEvent, canonical, in_thread
from harnpy.eventlog.errors import LogSerdeError, TopicMoved
from harnpy.faults import NamedMisuse, shape_problem
from harnpy.formats.dicts import detached
from harnpy.formats.options import OptionTable
from harnpy.world.clock import RealClock, milliseconds, rfc3339
from harnpy.world.ids import RealIds
from harnpy.world.threads import RLock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.eventlog.contract import EventLog

# The options of waitpoints and monitors, as programs may write them. Spec: 06 §28, 10 §C18.


CREATE_OPTIONS = OptionTable("""
    id: string — what it is called; by default minted
    metadata: dict — what it is about
""")

COMPLETE_OPTIONS = OptionTable("""
    by: string — who completes it
    create: bool = false — complete it even if nobody has created it
""")

CANCEL_OPTIONS = OptionTable("""
    by: string — who cancels it
    reason: string — why
""")

WAIT_OPTIONS = OptionTable("""
    wait_id: string — a wait that is entered again under its id keeps its deadline and its end
    timeout: duration | int — how long; by default without end
    all: bool = true — wait for all of them, not just for one
""")

WAIT_FOR_OPTIONS = OptionTable(
    """
    wait_id: string — one that is entered again under its id keeps its deadline, its count and its result
    timeout: duration | int — how long
    poll_interval: duration | int = 1s — how long between two polls
    source: dict — what is polled
    condition: closure — called with the state, says whether it is as it should be
    """,
    {
        "source": OptionTable("""
            label: string — what it is called
            poll: closure — called with what is known of the wait, returns the state
            push_filter: string | dict — a topic, {topic, kind?}, whose events wake the poll early
            prefers_push: bool = false — don't poll in between when there is a push_filter
        """),
    },
)


OPEN, COMPLETED, CANCELLED = "open", "completed", "cancelled"
TIMED_OUT, INTERRUPTED = "timed_out", "interrupted"

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,128}")
_DIGITS = 32


class WaitpointError(NamedMisuse):
    """A request to waitpoints or monitors can't be carried out. Nothing was written."""


class UnknownWaitpoint(WaitpointError):
    """``id`` names no waitpoint; ``verb`` is what should have been done to it."""

    def __init__(self, verb: str, id: str) -> None:
        super().__init__(f"waitpoint.{verb}: unknown waitpoint '{id}'")
        self.verb = verb
        self.id = id

    def message_from(self, builtin: str) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.verb, self.id)


class Waitpoint(NamedTuple):
    """Something that happens at most once: it is ``open``, then ``completed`` or ``cancelled``."""

    id: str
    status: str = OPEN
    created_at: str | None = None
    completed_at: str | None = None
    cancelled_at: str | None = None
    completed_by: str | None = None
    cancelled_by: str | None = None
    value: Any = None
    #: Why it was cancelled.
    reason: str | None = None
    metadata: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


class Changed(NamedTuple):
    """A waitpoint, and whether it was this call that made it what it is."""

    waitpoint: Waitpoint
    changed: bool

    def to_dict(self) -> dict[str, Any]:
        return {**self.waitpoint.to_dict(), "changed": self.changed}


class WaitResult(NamedTuple):
    """The end of a wait. ``status``: ``completed``, ``cancelled``, ``timed_out`` or ``interrupted``.

    ``waitpoints`` are as they were when it was looked at, in the order in which they were given;
    ``resolved_at`` is None for a wait that was interrupted: it can be entered again.
    """

    wait_id: str
    waitpoint_ids: Sequence[str]
    status: str
    started_at: str
    resolved_at: str | None
    deadline_at: str | None
    waitpoints: Sequence[Waitpoint]

    def to_dict(self) -> dict[str, Any]:
        points = [point.to_dict() for point in self.waitpoints]
        return {**self._asdict(), "waitpoint_ids": list(self.waitpoint_ids), "waitpoints": points}


def topic_of(family: str, id: str) -> str:
    """Return the topic of something by its id. Ids that a topic's name can't hold are there by their hash."""
    if _PLAIN.fullmatch(id):
        return f"{family}.{id}"
    return f"{family}-{sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


def checked_id(id: Any, what: str = "id") -> str:
    """Return the id. Raises `WaitpointError` for what is no text, or blank."""
    if not isinstance(id, str) or not id.strip():
        raise WaitpointError(f"`{what}` must be a non-empty string")
    return id


def checked_json(value: Any, what: str) -> Any:
    """Return a copy of a JSON value. Raises `WaitpointError` for any other."""
    try:
        canonical(value)
    except LogSerdeError:
        raise WaitpointError(f"`{what}` must be JSON-serializable") from None
    return detached(value)


def moment_text(ms: int) -> str:
    """Return a time, in milliseconds since 1970, as records have it."""
    return rfc3339(ms / 1000)


def moment_ms(text: str) -> int:
    """Return what `moment_text` was made of."""
    return milliseconds(datetime.fromisoformat(text).timestamp())


# What the events of a topic come to, and changing it by whoever has read all of them. Spec: 10 §C18.


class TopicFold(ABC):
    """A topic, as far as it was read. ``version`` is the last event that was. Any thread may call."""

    #: What the topic is about.
    about: ClassVar[str]

    def __init__(self, log: EventLog, topic: str) -> None:
        self.log = log
        self.topic = topic
        self.version = 0
        self._lock = RLock()

    @abstractmethod
    def _fold(self, number: int, kind: str, payload: Any) -> None:
        """Take one more event into account."""

    def read(self) -> None:
        """Take notice of what was written since."""
        with self._lock:
            for number, event in self.log.read_range(self.topic, self.version):
                self._take(number, event)

    def change(self, draft: Callable[[], LogEvent | None]) -> bool:
        """Append what ``draft`` says, None for nothing, and return whether it did.

        It is asked again when somebody else was quicker.
        """
        with self._lock:
            while (event := draft()) is not None:
                try:
                    number = self.log.append(self.topic, event, self.version)
                except TopicMoved:
                    self.read()
                else:
                    self._take(number, event)
                    return True
            return False

    def _take(self, number: int, event: LogEvent) -> None:
        if number <= self.version:
            return  # a listener of the log has read it while it was appended
        try:
            self._fold(number, event.kind, event.payload)
        except (KeyError, TypeError, AttributeError) as error:
            where = f"event {number} of topic '{self.topic}'"
            raise WaitpointError(f"{where} tells of no {self.about}: {shape_problem(error)}") from None
        self.version = number


FAMILY = "waitpoint"
CREATED, WAIT_STARTED, WAIT_RESOLVED = "created", "wait_started", "wait_resolved"


class Wait(NamedTuple):
    """One wait, as the topic of one of its waitpoints has it. It is open while ``status`` is None."""

    waitpoint_ids: tuple[str, ...]
    started_at: str
    deadline_at: str | None
    status: str | None = None
    resolved_at: str | None = None
    run_id: str | None = None
    session_id: str | None = None


class Point(TopicFold):
    """The topic of one waitpoint. ``record`` has no ``created_at`` as long as nobody has created it."""

    about = "waitpoint"

    def __init__(self, log: EventLog, id: str, topic: str | None = None) -> None:
        super().__init__(log, topic_of(FAMILY, id) if topic is None else topic)
        self.record = Waitpoint(id)
        self.waits: dict[str, Wait] = {}

    @property
    def is_known(self) -> bool:
        return self.record.created_at is not None

    def _fold(self, number: int, kind: str, payload: Any) -> None:
        record = self.record
        if kind == CREATED and not self.is_known:
            known = {"id": payload["id"], "created_at": payload["at"], "metadata": payload["metadata"]}
            self.record = record._replace(**known)
        elif kind == COMPLETED and record.status == OPEN:
            self.record = record._replace(
                status=kind, value=payload["value"], completed_by=payload["by"], completed_at=payload["at"]
            )
        elif kind == CANCELLED and record.status == OPEN:
            self.record = record._replace(
                status=kind, reason=payload["reason"], cancelled_by=payload["by"], cancelled_at=payload["at"]
            )
        elif kind == WAIT_STARTED and payload["wait_id"] not in self.waits:
            self.waits[payload["wait_id"]] = Wait(
                tuple(payload["waitpoint_ids"]),
                payload["at"],
                payload["deadline_at"],
                run_id=payload.get("run_id"),
                session_id=payload.get("session_id"),
            )
        elif kind == WAIT_RESOLVED:
            wait = self.waits.get(payload["wait_id"])
            if wait is not None and wait.status is None:
                ended = wait._replace(status=payload["status"], resolved_at=payload["at"])
                self.waits[payload["wait_id"]] = ended


# One wait for waitpoints, as a machine that anybody can drive: look, rest, look again. Spec: 10 §C18.
#
# Of several waitpoints the one whose topic is the first in order decides: the deadline and the end that stand
# there are those of the wait. The other topics are told.


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
        self.all = all
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

    def rest(self, at_most: float = _LONGEST_REST) -> None:
        """Block until there may be something new to see, ``at_most`` that many seconds."""
        waited_for = [point for point in self.points if point.record.status == OPEN]
        if not waited_for:
            # Somebody who shares the points has read, since the last look, how they ended.
            return
        left = self.seconds_left()
        longest = min(at_most, _LONGEST_REST if len(waited_for) == 1 else _REST_OF_MANY)
        first = waited_for[0]
        first.log.wait(first.topic, first.version, longest if left is None else min(left, longest))

    @property
    def _wait(self) -> Wait:
        return self._anchor.waits[self.wait_id]

    def _status(self) -> str | None:
        """Return the end that the waitpoints bring about, None for none yet."""
        statuses = [point.record.status for point in self.points]
        some, every = (CANCELLED, COMPLETED) if self.all else (COMPLETED, CANCELLED)
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
        self._now = RealClock().now if now is None else now
        self._new_id = RealIds().new if new_id is None else new_id
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
