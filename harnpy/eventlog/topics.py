"""An event log on a store: each topic is a stream, each consumer's cursor the head of one. Spec: 10 §C22.

Nobody holds a lock to append: who finds that another was quicker chains its event behind that one's.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, cast

from harnpy.eventlog import provenance
from harnpy.eventlog.contract import (
    QUEUE_DEPTH,
    CompactReport,
    EventLog,
    EventLogDescription,
    Topic,
    checked,
    checked_consumer,
)
from harnpy.eventlog.errors import TopicMoved, reported
from harnpy.eventlog.log_events import LogEvent, TopicCodec
from harnpy.eventlog.subscriptions import Subscription
from harnpy.storage.contract import HeadQuery
from harnpy.storage.errors import VersionConflict
from harnpy.storage.memory import MemoryStore
from harnpy.world.clock import RealClock, milliseconds
from harnpy.world.files import RealFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.eventlog.log_events import Numbered
    from harnpy.eventlog.provenance import Link
    from harnpy.storage.contract import Store, Stream

#: What a store calls our streams.
_TOPIC, _CONSUMER = "topic", "consumer"
#: In a topic's head: where the chain went on when its oldest events were forgotten.
_COMPACTED = "compacted"
#: Seconds to wait for somebody else who compacts the same topic.
_PATIENCE = 60.0
_CODEC = TopicCodec()
_BACKENDS = {"jsonl": "file"}


class StoreEventLog(EventLog):
    """``now`` is epoch seconds, None for the real time.

    A listener is called with the topic after each append through this object.
    """

    def __init__(
        self, store: Store, queue_depth: int = QUEUE_DEPTH, *, now: Callable[[], float] | None = None
    ) -> None:
        self.store = store
        self.queue_depth = max(1, queue_depth)
        self.listeners: list[Callable[[str], object]] = []
        self._now = now or RealClock().now
        self._topics: dict[str, Stream] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store.url!r})"

    def describe(self) -> EventLogDescription:
        scheme, _, place = self.store.url.partition(":")
        size = _size(place) if scheme in ("jsonl", "sqlite") else None
        return EventLogDescription(_BACKENDS.get(scheme, scheme), place or None, size, self.queue_depth)

    def append(self, topic: str, event: LogEvent, expected: int | None = None) -> int:
        stream = self._stream(topic)
        at = milliseconds(self._now()) if event.occurred_at_ms is None else event.occurred_at_ms
        with self._reported("write"):
            if expected is not None:
                stream.refresh()
            while True:
                end = self._end(stream)
                if expected not in (None, end.event_id):
                    raise TopicMoved(topic, expected, end.event_id)
                headers = provenance.chained(topic, event, at, end)
                record = end.event_id + 1, event._replace(headers=headers, occurred_at_ms=at)
                try:
                    stream.append([record], end.event_id)
                    break
                except VersionConflict:
                    stream.refresh()
        for listener in tuple(self.listeners):
            listener(topic)
        return record[0]

    def read_range(self, topic: str, from_id: int | None = None, limit: int | None = None) -> list[Numbered]:
        stream = self._stream(topic)
        with self._reported("read"):
            return list(stream.read(max(0, from_id or 0), limit=limit))

    def subscribe(self, topic: str, from_id: int | None = None) -> Subscription:
        checked(topic)
        return Subscription(self, topic, from_id or 0, self.queue_depth)

    def wait(self, topic: str, after: int, timeout: float) -> int:
        with self._reported("read"):
            return self.store.changes(_TOPIC, checked(topic), after, timeout)

    def ack(self, topic: str, consumer: str, up_to: int) -> None:
        now = milliseconds(self._now())
        stream = self._cursor(topic, consumer)
        cursor = {"topic": topic, "consumer_id": consumer, "cursor": up_to, "updated_at_ms": now}
        with self._reported("write"):
            while True:
                known = stream.refresh()
                first = [] if known else [(1, LogEvent("created", occurred_at_ms=now))]
                try:
                    stream.append(first, known, head=cursor)
                    return
                except VersionConflict:
                    continue  # somebody else has made it just now

    def consumer_cursor(self, topic: str, consumer: str) -> int | None:
        name = self._cursor(topic, consumer).name
        with self._reported("read"):
            head = self.store.head(_CONSUMER, name)
        return None if head is None else head.data["cursor"]

    def latest(self, topic: str) -> int | None:
        stream = self._stream(topic)
        with self._reported("read"):
            return stream.refresh() or None

    def compact(self, topic: str, before: int) -> CompactReport:
        stream = self._stream(topic)
        with self._reported("write"), self.store.lease(f"topic:{topic}", wait=_PATIENCE) as lease:
            removed = 0
            last = next(stream.read(0, max(0, before), reverse=True, limit=1), None)
            if last is not None:
                # First where the chain goes on: after a crash in between nothing but the room is lost.
                self._set_head(stream, {_COMPACTED: provenance.link(last)._asdict()}, lease)
                removed = stream.drop(last[0])
            self.store.flush()
            latest = stream.refresh()
            first = next(stream.read(limit=1), None)
        remaining = 0 if first is None else latest - first[0] + 1
        return CompactReport(removed, remaining, latest or None, self.store.url.startswith("sqlite:"))

    def topics(self) -> list[Topic]:
        found: list[Topic] = []
        query = HeadQuery(kind=_TOPIC, order="id")
        with self._reported("read"):
            while True:
                page = self.store.heads(query)
                found += [Topic(head.name) for head in page.items]
                if page.next is None:
                    return found
                query = query._replace(after=page.next)

    def verify_topic(self, topic: str) -> list[str]:
        stream = self._stream(topic)
        with self._reported("read"):
            begin = self._compacted(stream)
            return provenance.problems(topic, stream.read(begin.event_id), begin)

    def flush(self) -> None:
        with self._reported("write"):
            self.store.flush()

    def close(self) -> None:
        self.store.close()

    def _stream(self, topic: str) -> Stream:
        stream = self._topics.get(topic)
        if stream is None:
            with self._reported("open"):
                stream = self._topics[topic] = self.store.stream(_TOPIC, checked(topic), _CODEC)
        return stream

    def _cursor(self, topic: str, consumer: str) -> Stream:
        name = f"{checked(topic)}/{checked_consumer(consumer)}"  # no topic has a slash
        with self._reported("open"):
            return self.store.stream(_CONSUMER, name, _CODEC)

    def _end(self, stream: Stream) -> Link:
        """Where the chain goes on, as far as is known here."""
        last = cast("Numbered | None", stream.last())
        return self._compacted(stream) if last is None else provenance.link(last)

    def _compacted(self, stream: Stream) -> Link:
        """Where the chain went on behind the events that were forgotten."""
        head = self.store.head(_TOPIC, stream.name)
        known = None if head is None else head.data.get(_COMPACTED)
        return provenance.BEGIN if known is None else provenance.Link(**known)

    def _set_head(self, stream: Stream, data: dict[str, Any], lease: Any) -> None:
        while True:
            try:
                return stream.append([], stream.refresh(), head=data, fence=lease)
            except VersionConflict:
                continue

    def _reported(self, doing: str) -> Any:
        return reported(self.store.url, doing)


def _size(path: str) -> int | None:
    """The bytes of a file, or of those in a directory; None when there is none."""
    files = RealFiles()
    if files.is_dir(path):
        return sum(files.status(os.path.join(path, name)).st_size for name in files.files_under(path))
    return files.status(path).st_size if files.is_file(path) else None


def memory_log(now: Callable[[], float] | None = None) -> StoreEventLog:
    """A log that lives and dies with the process."""
    return StoreEventLog(MemoryStore(), now=now)
