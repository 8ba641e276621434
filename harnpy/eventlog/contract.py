"""`EventLog`: what every event log can do, the events in it, and subscriptions to its topics.

Append to topics, read them, follow them, remember how far each consumer has read. Ids count from 1 in each
topic, without gaps, and are never given again. All methods block and may be called from any thread; those
that begin with ``a`` are their twins for asyncio. Spec: 08 §15.2, 10 §C22.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, NewType, ParamSpec, Protocol, TypeVar

from harnpy.eventlog.errors import ConsumerLagged, InvalidConsumer, InvalidTopic, LogSerdeError
from harnpy.storage.contract import Row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
    from types import TracebackType


class LogEvent(NamedTuple):
    """``payload`` is a JSON value. The log sets the provenance headers and, when it is None, the time."""

    kind: str
    payload: Any = None
    headers: Mapping[str, str] = {}
    occurred_at_ms: int | None = None


def _encoder(sort_keys: bool) -> json.JSONEncoder:
    return json.JSONEncoder(sort_keys=sort_keys, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


_AS_IT_IS, _SORTED = _encoder(sort_keys=False), _encoder(sort_keys=True)

#: A record of a topic: the event, and its id there.
Numbered = tuple[int, LogEvent]


class TopicCodec:
    """Numbered events ↔ rows: the payload is the row's data, its kind the type."""

    def encode(self, records: Sequence[Numbered]) -> list[Row]:
        return [self._row(*record) for record in records]

    def _row(self, id: int, event: LogEvent) -> Row:
        headers, payload = _AS_IT_IS.encode({"headers": dict(event.headers)}), _AS_IT_IS.encode(event.payload)
        time = (event.occurred_at_ms or 0) * 1000
        return Row(id, _stored(event.kind), time, _stored(payload), rest=_stored(headers))

    def decode(self, rows: Sequence[Row]) -> list[Numbered]:
        return [(row.seq, _event(row)) for row in rows]

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [row.data for row in rows]


def _event(row: Row) -> LogEvent:
    headers = json.loads(row.rest)["headers"] if row.rest else {}
    return LogEvent(row.type, json.loads(row.data), headers, row.time // 1000)


def canonical(value: Any) -> str:
    """Return a JSON value as compact text with sorted keys. Raises `LogSerdeError` if it is none."""
    try:
        return _SORTED.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise LogSerdeError("event log parse error: an event must be JSON") from error


def _stored(text: str) -> str:
    """Return the text if it can be written. Raises `LogSerdeError`."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise LogSerdeError(f"event log parse error: half a surrogate pair in {text!r:.60}") from None
    return text


# Following a topic: what is there, then what comes, without gaps or doubles. Spec: 08 §15.2.
#
# A subscriber reads the log itself, so nothing is queued for it. As a bounded queue would, it gives up once
# more events are waiting than ``depth``, but only when it has been at the end before: the past may be long.


#: Seconds between two looks whether it was closed, and at what other processes have appended.
_POLL = 0.1
#: How many events are read at once.
_PAGE = 128


class Followed(Protocol):
    """The part of an event log that following needs."""

    def wait(self, topic: str, after: int, timeout: float) -> int: ...

    def read_range(
        self, topic: str, from_id: int | None = None, limit: int | None = None
    ) -> list[Numbered]: ...


class Subscription:
    """An iterator over the events of ``topic`` behind ``cursor``. It waits for more until `close`.

    Raises `ConsumerLagged` and ends when it is more than ``depth`` events behind; subscribe again from its
    ``last_id``. One thread iterates; any may close.
    """

    def __init__(self, log: Followed, topic: str, cursor: int, depth: int) -> None:
        self._log = log
        self._topic = topic
        #: The last event that was delivered.
        self._cursor = cursor
        self._depth = depth
        self._is_live = False
        self._closed = False
        self._events: deque[Numbered] = deque()

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> Numbered:
        while not self._closed:
            if not self._events:
                self._fetch()
            if self._events:
                event = self._events.popleft()
                self._cursor = event[0]
                return event
        raise StopIteration

    def _fetch(self) -> None:
        """Read what has come; wait a moment for it when there is nothing."""
        latest = self._log.wait(self._topic, self._cursor, 0)
        if latest <= self._cursor:
            self._is_live = True
            self._log.wait(self._topic, self._cursor, _POLL)
            return
        most = max(_PAGE, self._depth + 1)
        found = self._log.read_range(self._topic, self._cursor, most)
        if self._is_live and len(found) > self._depth:
            self.close()
            raise ConsumerLagged(self._cursor)
        self._is_live = len(found) < most
        self._events.extend(found)
        if not found:  # they were forgotten meanwhile
            self._cursor = latest

    def close(self) -> None:
        """End the iteration, also one that waits in another thread."""
        self._closed = True

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


P = ParamSpec("P")
T = TypeVar("T")

Topic = NewType("Topic", str)
ConsumerId = NewType("ConsumerId", str)

#: How many events a subscriber may be behind, unless the log says otherwise.
QUEUE_DEPTH = 128

_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


class EventLogDescription(NamedTuple):
    """``location`` is a path or a server, None in memory; ``size_bytes`` None where it isn't known."""

    backend: str
    location: str | None
    size_bytes: int | None
    queue_depth: int


class CompactReport(NamedTuple):
    """The numbers of events that went and stayed; ``latest``: the highest id ever, None without events."""

    removed: int
    remaining: int
    latest: int | None
    checkpointed: bool = False


class EventLog(ABC):
    """Topics of events. Raises `LogError`s and nothing else."""

    @property
    def is_near(self) -> bool:
        """Whether `wait` without a timeout is over at once, so that a loop may call it."""
        return False

    @abstractmethod
    def describe(self) -> EventLogDescription: ...

    @abstractmethod
    def append(self, topic: str, event: LogEvent, expected: int | None = None) -> int:
        """Append the event and return its id.

        Raises `TopicMoved` when the topic's highest id isn't ``expected``; None: whatever it is.
        """

    def append_all(self, topic: str, events: Iterable[LogEvent]) -> int:
        """Append the events, at once where the log can, and return the last one's id."""
        return [self.append(topic, event) for event in events][-1]

    @abstractmethod
    def flush(self) -> None:
        """Return once everything appended is on the medium."""

    @abstractmethod
    def read_range(self, topic: str, from_id: int | None = None, limit: int | None = None) -> list[Numbered]:
        """Return the events with ids greater than ``from_id``, oldest first, at most ``limit``."""

    @abstractmethod
    def subscribe(self, topic: str, from_id: int | None = None) -> Subscription:
        """Iterate over the events behind ``from_id``: first those that are there, then those that come."""

    @abstractmethod
    def wait(self, topic: str, after: int, timeout: float) -> int:
        """Wait up to ``timeout`` seconds for an event behind ``after``. Return the highest id, 0 for none."""

    @abstractmethod
    def ack(self, topic: str, consumer: str, up_to: int) -> None:
        """Remember how far the consumer has read. It may go back, and beyond the last event."""

    @abstractmethod
    def consumer_cursor(self, topic: str, consumer: str) -> int | None:
        """Return what the consumer acknowledged last; None when it never did."""

    @abstractmethod
    def latest(self, topic: str) -> int | None:
        """Return the highest id ever given; None for a topic that never had an event."""

    @abstractmethod
    def compact(self, topic: str, before: int) -> CompactReport:
        """Forget the events with ids up to ``before``."""

    @abstractmethod
    def topics(self) -> list[Topic]:
        """Return the topics that ever had an event, sorted."""

    @abstractmethod
    def verify_topic(self, topic: str) -> list[str]:
        """Return what is wrong with the topic's chain of hashes; [] when it is whole."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections; nothing may be asked afterwards."""

    async def aappend(self, topic: str, event: LogEvent, expected: int | None = None) -> int:
        return await in_thread(self.append, topic, event, expected)

    async def aflush(self) -> None:
        await in_thread(self.flush)

    async def aread_range(
        self, topic: str, from_id: int | None = None, limit: int | None = None
    ) -> list[Numbered]:
        return await in_thread(self.read_range, topic, from_id, limit)

    async def asubscribe(self, topic: str, from_id: int | None = None) -> AsyncIterator[Numbered]:
        with await in_thread(self.subscribe, topic, from_id) as events:
            while (event := await in_thread(next, events, None)) is not None:
                yield event

    async def aack(self, topic: str, consumer: str, up_to: int) -> None:
        await in_thread(self.ack, topic, consumer, up_to)

    async def aconsumer_cursor(self, topic: str, consumer: str) -> int | None:
        return await in_thread(self.consumer_cursor, topic, consumer)

    async def alatest(self, topic: str) -> int | None:
        return await in_thread(self.latest, topic)

    async def acompact(self, topic: str, before: int) -> CompactReport:
        return await in_thread(self.compact, topic, before)

    async def atopics(self) -> list[Topic]:
        return await in_thread(self.topics)

    async def averify_topic(self, topic: str) -> list[str]:
        return await in_thread(self.verify_topic, topic)


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what ``call`` returns, without blocking the loop."""
    from asyncio import to_thread  # not before it is needed: it takes its time

    return await to_thread(call, *args, **kwargs)


def checked(topic: str) -> str:
    """Return the topic's name. Raises `InvalidTopic`."""
    if not topic:
        raise InvalidTopic("topic cannot be empty")
    if not _TOPIC.fullmatch(topic):
        raise InvalidTopic(f"topic '{topic}' contains unsupported characters")
    return topic


def checked_consumer(consumer: str) -> str:
    """Return the consumer's name. Raises `InvalidConsumer`."""
    if not consumer.strip():
        raise InvalidConsumer("consumer id cannot be empty")
    return consumer
