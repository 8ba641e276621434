"""A log of events by topic: append, read from an id, get notified of what comes. Spec: 08 §15.2.

Ids count from 1 in each topic, without gaps. Every event carries the chain of `provenance` in its headers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harnpy.eventlog import provenance
from harnpy.eventlog.log_events import InvalidTopic, LogEvent
from harnpy.storage.memory import MemoryStore
from harnpy.world.clock import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.storage.memory import MemoryStream


#: What a store calls a stream of ours.
_KIND = "topic"
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


class EventLog:
    """``now`` is epoch seconds. A listener is called with the topic after each append."""

    def __init__(self, store: MemoryStore, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self.listeners: list[Callable[[str], object]] = []

    def _stream(self, topic: str) -> MemoryStream:
        return self._store.stream(_KIND, checked(topic))

    def append(self, topic: str, event: LogEvent) -> int:
        """Append the event and return its id. Raises `InvalidTopic`."""
        stream = self._stream(topic)
        version = stream.version
        at = milliseconds(self._now()) if event.occurred_at_ms is None else event.occurred_at_ms
        headers = provenance.chained(topic, version + 1, event, at, stream.last())
        stream.append([event._replace(headers=headers, occurred_at_ms=at)], version)
        for listener in tuple(self.listeners):
            listener(topic)
        return version + 1

    def read_range(
        self, topic: str, from_id: int | None = None, limit: int | None = None
    ) -> list[tuple[int, LogEvent]]:
        """Return the events with ids greater than ``from_id``, oldest first, at most ``limit``."""
        after = from_id or 0
        until = None if limit is None else after + limit
        return list(enumerate(self._stream(topic).read(after, until), after + 1))

    def latest(self, topic: str) -> int | None:
        """Return the highest id ever given; None for an empty topic."""
        return self._stream(topic).version or None

    def topics(self) -> list[str]:
        return sorted(self._store.names(_KIND))

    def verify_topic(self, topic: str) -> list[str]:
        """Return what is wrong with the topic's chain; [] when it is whole."""
        return provenance.problems(topic, self.read_range(topic))


def memory_log(now: Callable[[], float]) -> EventLog:
    """A log that lives and dies with the process."""
    return EventLog(MemoryStore(), now)


def checked(topic: str) -> str:
    if not topic:
        raise InvalidTopic("topic cannot be empty")
    if not _TOPIC.fullmatch(topic):
        raise InvalidTopic(f"topic '{topic}' contains unsupported characters")
    return topic
