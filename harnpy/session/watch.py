"""Watches and observers: receiving a session's events as they are appended. Spec: 10 §A1.12, §C10."""

from __future__ import annotations

from collections import deque
from threading import Condition, Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast
from weakref import finalize

from harnpy.session import events as kinds
from harnpy.session.chunks import Chunk
from harnpy.session.errors import InvalidArgument, ObserverError, SessionBusy
from harnpy.storage.errors import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Self

    from harnpy.session.chunks import Answer, SharedAnswers
    from harnpy.session.events import Event
    from harnpy.session.log import Session

    Observer = Callable[[Event], Any]

# Where a watch reads what it wasn't told of: the end of a log. Spec: 10 §C10.


#: How many events are read at once.
CHUNK = 256


class Tail(Protocol):
    """The end of a log."""

    @property
    def is_told(self) -> bool:
        """Return whether what the session tells of may be shown at once."""

    def read(self, after: int) -> list[Event]:
        """Return the next events behind number ``after``, as many as are read at once."""

    def wait(self, feed: Feed, timeout: float | None) -> None:
        """Wait until there is something new, or for a while."""


class OwnTail:
    """The log of a session that nobody else writes. ``events`` returns those between two numbers."""

    is_told = True

    def __init__(self, events: Callable[[int, int], list[Event]]) -> None:
        self._events = events

    def read(self, after: int) -> list[Event]:
        return self._events(after, after + CHUNK)

    def wait(self, feed: Feed, timeout: float | None) -> None:
        feed.wait(timeout)


# Who is told what a session appends: observers within the append, watches right behind it.
#
# Spec: 10 §A1.12, §C10.


class Observers:
    """The observers and watches of one `Session` object. Members may come and go in any thread."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._lock = Lock()
        self._observers: tuple[Callable[[Event], Any], ...] = ()
        self._feeds: tuple[Feed, ...] = ()
        self._is_observing = False

    def __bool__(self) -> bool:
        return bool(self._observers or self._feeds)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Add an observer. Return what takes it out again."""

        def call(event: Event) -> None:  # an object of its own, so that one function may observe twice
            observer(event)

        def leave() -> None:
            with self._lock:
                self._observers = tuple(one for one in self._observers if one is not call)

        with self._lock:
            self._observers = (*self._observers, call)
        return leave

    def join(self, feed: Feed) -> None:
        """Add a watch."""
        with self._lock:
            self._feeds = (*self._feeds, feed)

    def leave(self, feed: Feed) -> None:
        """End a watch."""
        with self._lock:
            self._feeds = tuple(one for one in self._feeds if one is not feed)
        feed.close()

    def check(self) -> None:
        """Raise `SessionBusy` while an observer is called: the session can't go on before that is over."""
        if self._is_observing:
            raise SessionBusy(
                f"session '{self._session_id}' is telling its observers of an append: "
                "let the observer return first",
                self._session_id,
            )

    def appended(self, events: Sequence[Event]) -> None:
        """Tell of events that the session itself has appended.

        Raises `ObserverError` when an observer failed, after all were told.
        """
        failures: list[Exception] = []
        try:
            self._observe(events, failures)
        finally:
            self.pass_on(events)
        if failures:
            raise ObserverError(self._session_id, events, failures[0]) from failures[0]

    def _observe(self, events: Sequence[Event], failures: list[Exception]) -> None:
        self._is_observing = True
        try:
            for event in events:
                for observer in self._observers:
                    try:
                        observer(event)
                    except Exception as error:
                        failures.append(error)
        finally:
            self._is_observing = False

    def pass_on(self, events: Sequence[Event]) -> None:
        """Tell the watches of the next events of the log, whoever appended them."""
        for feed in self._feeds:
            feed.offer(events)

    def show(self, answer: Answer) -> None:
        """Have the watches know that there is more of an answer."""
        for feed in self._feeds:
            feed.show(answer)


# What lies between a session and one watch of it. Spec: 10 §A1.12, §C10.
#
# A feed is *live* when its watch has been given all that the session has told of; then the session puts what
# comes into the buffer. One that isn't live takes nothing in: its watch reads the log until it is. Which
# events are through is one number, so there is neither a gap nor a duplicate.
#
# Pieces of answers aren't put anywhere: a feed knows the answers that are made, and how much of each its
# watch has been given. They stand behind the event that was the last one when the answer began, so before
# its message, however the watch gets at events.


class Feed:
    """A buffer of at most ``size`` events.

    A full one that is ``lossy`` drops what comes; one that isn't keeps the appender waiting. One that isn't
    ``pushed`` is never live. ``turns`` are the numbers of those that are open, for a watch that is given
    pieces of answers; None for another one.
    """

    def __init__(
        self,
        size: int,
        types: frozenset[str] | None,
        *,
        lossy: bool,
        pushed: bool,
        turns: set[int] | None = None,
    ) -> None:
        self.dropped = 0
        self.closed = False
        self._size = size
        self._types = types
        self._lossy = lossy
        self._pushed = pushed
        self._changed = Condition()
        self._buffer: deque[Event] = deque()
        self._is_live = False
        #: The last event that is through: given to the watch, in the buffer, dropped, or of another type.
        self._seen = 0
        #: The last event that the session has told of.
        self._told = 0
        self.turns = turns
        #: How many pieces of each answer the watch was given.
        self._answers: dict[Answer, int] = {}

    # The session's side.

    def show(self, answer: Answer) -> None:
        """Know that there is more of an answer."""
        if self.turns is None or self.closed:
            return
        with self._changed:
            if answer not in self._answers:
                self._answers[answer] = 0
                if len(self._answers) > self._size:
                    del self._answers[next(iter(self._answers))]
            self._changed.notify_all()

    def offer(self, events: Sequence[Event]) -> None:
        """Take the next events of the log."""
        with self._changed:
            for event in events:
                self._told = max(self._told, event.seq)
                while not self._took(event):
                    self._changed.notify_all()
                    self._changed.wait()
            self._changed.notify_all()

    def _took(self, event: Event) -> bool:
        """Be done with an event. Return False if there is no room for it."""
        if self.closed or not self._is_live or event.seq <= self._seen:
            return True
        if self.turns is not None:
            self.note_turn(event)
        if self.wants(event):
            if len(self._buffer) < self._size:
                self._buffer.append(event)
            elif self._lossy:
                self.dropped += 1
            else:
                return False
        self._seen = event.seq
        return True

    # The watch's side.

    def wants(self, event: Event) -> bool:
        """Return whether the event is of a type that is watched."""
        return self._types is None or event.type in self._types

    def note_turn(self, event: Event) -> None:
        """Know which turns are open behind an event."""
        assert self.turns is not None
        if event.type == kinds.TURN_STARTED:
            self.turns.add(event.seq)
        elif event.type == kinds.TURN_COMPLETED and event.turn is not None:
            self.turns.discard(event.turn.seq)

    def take_chunk(self, read: Event | None) -> Chunk | None:
        """Return the next piece of an answer that stands before all events to come; None when there is none.
        ``read`` is the next event that the watch has read in the log."""
        if not self._answers:
            return None
        with self._changed:
            following = self._buffer[0] if read is None and self._buffer else read
            bound = self._seen + 1 if following is None else following.seq
            for answer, given in [*self._answers.items()]:
                if answer.behind >= bound:
                    continue
                is_over, count = (
                    answer.is_over,
                    len(answer.pieces),
                )  # in this order: it grows until it is over
                if given < count:
                    self._answers[answer] = count
                    return Chunk(answer.turn, "".join(answer.pieces[given:count]), given == 0)
                if is_over:
                    del self._answers[answer]
        return None

    def _has_chunk(self) -> bool:
        return any(
            given < len(answer.pieces) and answer.behind <= self._seen
            for answer, given in self._answers.items()
        )

    def take(self) -> Event | None:
        """Return the next event of the buffer, None when there is none."""
        with self._changed:
            if not self._buffer:
                return None
            self._changed.notify_all()
            return self._buffer.popleft()

    def lag(self) -> int | None:
        """Return the number of the event behind which the watch has to read the log; None: it is live."""
        with self._changed:
            return None if self._is_live else self._seen

    def has_read(self, until: int) -> None:
        """The watch has read the log up to event number ``until``."""
        with self._changed:
            self._seen = max(self._seen, until)
            self._is_live = self._pushed and self._seen >= self._told

    def fall_behind(self, version: int) -> None:
        """The log is ``version`` events long: if some of them aren't here, the watch has to read them."""
        with self._changed:
            if not self._buffer and version > self._seen:
                self._is_live = False

    @property
    def seen(self) -> int:
        """The last event that is through."""
        return self._seen

    def wait(self, timeout: float | None) -> None:
        """Wait until there is something in the buffer, a piece of an answer, or the feed is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._buffer or self.closed or self._has_chunk(), timeout)

    def close(self) -> None:
        """Take nothing more. What is in the buffer stays."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()


# A watch: the events of a session, one after the other, as they come. Spec: 10 §A1.12, §C10.


#: What a watch gives.
T = TypeVar("T")

#: Seconds between two looks at what other processes show of an answer, and the most of them once nothing has
#: come for long.
LOOK = 0.05
RARE_LOOK = 0.5


class AnyWatch(Generic[T]):
    """An iterator over what a session has to tell, which waits for what is to come; a context manager that
    ends it. Read by one thread at a time. It ends when it or its store is closed, and when nobody holds it.
    """

    def __init__(
        self, feed: Feed, tail: Tail, observers: Observers, shared: SharedAnswers | None = None
    ) -> None:
        """``shared`` are the answers that are made in other processes."""
        self._feed = feed
        self._tail = tail
        self._shared = shared
        self._looked = self._came = monotonic()
        self._read: deque[Event] = deque()
        self._leave = finalize(self, observers.leave, feed)
        self._leave.atexit = False

    @property
    def dropped(self) -> int:
        """Return the number of events that weren't taken because the buffer was full."""
        return self._feed.dropped

    @property
    def closed(self) -> bool:
        """Return whether no more events come."""
        return self._feed.closed

    def close(self) -> None:
        """End the watch. What it has taken in already can still be read."""
        self._leave()

    def next(self, timeout: float | None = None) -> T | None:
        """Return what comes next; None when nothing does within ``timeout`` seconds (None: however long), or
        the watch is closed. Raises `StorageError` when the store can't be read."""
        ends = None if timeout is None else monotonic() + timeout
        is_over = False
        while True:
            found = self._taken()
            if found is not None or self.closed:
                return cast("T | None", found)
            try:
                if self._catch_up():
                    continue
                if is_over:
                    return None
                left = None if ends is None else max(0.0, ends - monotonic())
                is_over = left == 0
                self._wait(left)
            except StoreClosed:
                self.close()

    def _taken(self) -> Event | Chunk | None:
        chunk = self._feed.take_chunk(self._read[0] if self._read else None)
        if chunk is not None:
            self._came = monotonic()
            return chunk
        return self._read.popleft() if self._read else self._feed.take()

    def _wait(self, timeout: float | None) -> None:
        if not self._feed.turns:
            self._tail.wait(self._feed, timeout)
            return
        look = self._look()
        self._feed.wait(look if timeout is None else min(timeout, look))
        self._tail.wait(self._feed, 0)

    def _look(self) -> float:
        """Return the seconds until the next look at the store, while a turn runs."""
        return min(RARE_LOOK, max(LOOK, (monotonic() - self._came) / 10))

    def _catch_up(self) -> bool:
        """Read on in the log, unless the feed is live. Return False if there is nothing more."""
        feed, shared = self._feed, self._shared
        if shared is not None and feed.turns and monotonic() - self._looked >= LOOK:
            self._looked = monotonic()
            for answer in shared.read(feed.turns):
                feed.show(answer)
        lag = feed.lag()
        if lag is None:
            return False
        events = self._tail.read(lag)
        if feed.turns is not None:
            for event in events:
                feed.note_turn(event)
        if shared is not None:
            shared.end(events)
        self._read.extend(filter(feed.wants, events))
        feed.has_read(events[-1].seq if events else lag)
        return bool(events)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        found = self.next()
        if found is None:
            raise StopIteration
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Watch(AnyWatch["Event"]):
    """A watch of a session's events."""


class LiveWatch(AnyWatch["Event | Chunk"]):
    """A watch of a session's events, and between them of the pieces of the answers that are made."""


# Beginning a watch. Spec: 10 §C10.


def started(
    version: Callable[[], int],
    tail: Tail,
    observers: Observers,
    buffer: int,
    after: int | None,
    types: Iterable[str] | None,
    *,
    lossy: bool,
) -> Watch:
    """Return a new watch of a session; ``version`` returns its last event's number.

    Raises `InvalidArgument`.
    """
    feed = _feed(tail, buffer, after, types, lossy=lossy)
    _join(feed, observers, version, after)
    return Watch(feed, tail, observers)


def started_live(
    session: Session,
    answers: Iterable[Answer],
    shared: SharedAnswers | None,
    buffer: int,
    after: int | None,
    types: Iterable[str] | None,
) -> LiveWatch:
    """Return a new watch of a session and of the answers that are made in it: ``answers`` now, ``shared`` in
    other processes. Raises `InvalidArgument`.

    Whoever calls has the session's lock: neither its log nor its answers change.
    """
    tail, observers = session.tail(), session._ensure_observers()
    feed = _feed(tail, buffer, after, types, lossy=True, turns=set(session.view.open_turns))
    _join(feed, observers, lambda: session.version, after)
    for answer in answers:
        feed.show(answer)
    return LiveWatch(feed, tail, observers, shared)


def _feed(
    tail: Tail,
    buffer: int,
    after: int | None,
    types: Iterable[str] | None,
    *,
    lossy: bool,
    turns: set[int] | None = None,
) -> Feed:
    if not _is_count(buffer) or buffer < 1:
        raise InvalidArgument(f"watch: buffer must be an int >= 1, got {buffer!r}")
    if after is not None and not (_is_count(after) and after >= 0):
        raise InvalidArgument(f"watch: after must be the number of an event, got {after!r}")
    if types is not None and (isinstance(types, str) or not hasattr(types, "__iter__")):
        raise InvalidArgument(f"watch: types must be a list of event types, got {types!r}")
    wanted = None if types is None else frozenset(types)
    return Feed(buffer, wanted, lossy=lossy, pushed=tail.is_told, turns=turns)


def _join(feed: Feed, observers: Observers, version: Callable[[], int], after: int | None) -> None:
    observers.join(feed)
    # Joined first: what is appended from here on is told, or is behind ``seen``.
    feed.has_read(version() if after is None else after)
    if after is not None:
        feed.fall_behind(version())


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# What a session does for those who want to be told of its events. Spec: 10 §A1.12, §C3, §C10.


#: How many events a watch buffers, unless it is told otherwise.
BUFFER = 64


def has_watchers(session: Session) -> bool:
    """Return whether somebody watches or observes."""
    return bool(session.observers)


def watch(
    session: Session,
    *,
    buffer: int = BUFFER,
    after: int | None = None,
    types: Iterable[str] | None = None,
    lossy: bool = True,
) -> Watch:
    """Return a `Watch` of the events of these ``types`` (None: all) to come, whoever appends them.

    ``after``: first those of the log behind that number. A watch that isn't read fast enough has up to
    ``buffer`` events waiting; then it drops what comes if it is ``lossy``, and keeps those waiting who
    append to this object if it isn't. Raises `InvalidArgument`.
    """

    observers = session._ensure_observers()
    return started(lambda: session.version, session.tail(), observers, buffer, after, types, lossy=lossy)


def observe(session: Session, fn: Callable[[Event], Any]) -> Callable[[], None]:
    """Have ``fn`` called with each event that this object appends, in order, before the append returns.

    Return what ends that. When ``fn`` raises, the append raises `ObserverError`, and the events are
    stored; when it writes to the session, that raises `SessionBusy`. Raises `InvalidArgument` for an
    ``async`` function, which nobody would wait for.
    """
    from inspect import iscoroutinefunction

    if iscoroutinefunction(fn):
        raise InvalidArgument("observe: an observer must be a plain function, not an async one", session.id)
    return session._ensure_observers().observe(fn)


def tail(session: Session) -> Tail:
    """Return the end of the log, for a watch."""

    return OwnTail(session.read)
