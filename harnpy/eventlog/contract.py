"""What every event log can do: append to topics, read them, follow them, remember who has read how far.

Ids count from 1 in each topic, without gaps, and are never given again. All methods block and may be called
from any thread; those that begin with ``a`` are their twins for asyncio. Spec: 08 §15.2.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple, NewType, ParamSpec, TypeVar

from harnpy.eventlog.errors import InvalidConsumer, InvalidTopic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from harnpy.eventlog.log_events import LogEvent, Numbered
    from harnpy.eventlog.subscriptions import Subscription

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
    """How many events went and stayed; ``latest`` is the highest id ever, None for an unknown topic."""

    removed: int
    remaining: int
    latest: int | None
    checkpointed: bool = False


class EventLog(ABC):
    """Topics of events. Raises `LogError`s and nothing else."""

    @abstractmethod
    def describe(self) -> EventLogDescription: ...

    @abstractmethod
    def append(self, topic: str, event: LogEvent, expected: int | None = None) -> int:
        """Append the event and return its id.

        Raises `TopicMoved` when the topic's highest id isn't ``expected``; None: whatever it is.
        """

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
