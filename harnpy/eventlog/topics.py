"""`StoreEventLog`: an event log on a store, its chain of hashes, and how one is opened or installed.

Each topic is a stream of the store, each consumer's cursor the head of one. Appending takes no lock: a writer
that finds a newer event chains its own behind that one. Spec: 08 §15.2, 10 §C22.
"""

from __future__ import annotations

import os.path
from contextvars import ContextVar
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from harnpy.eventlog.contract import (
    QUEUE_DEPTH,
    CompactReport,
    EventLog,
    EventLogDescription,
    LogEvent,
    Subscription,
    Topic,
    TopicCodec,
    canonical,
    checked,
    checked_consumer,
)
from harnpy.eventlog.errors import ConfigError, TopicMoved, reported
from harnpy.formats.dicts import string
from harnpy.formats.manifest import require_state
from harnpy.project import project_root
from harnpy.storage.contract import HeadQuery
from harnpy.storage.errors import VersionConflict
from harnpy.storage.memory import MemoryStore
from harnpy.storage.opening import manifest_section, open_store, placed, without_ambient
from harnpy.world.clock import RealClock, milliseconds
from harnpy.world.files import RealFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike

    from harnpy.eventlog.contract import Numbered
    from harnpy.storage.contract import Store, Stream
    from harnpy.world import World
    from harnpy.world.environment import Environment

# The chain through a topic: each event's header holds the hash of the one before. Spec: 08 §15.2.
#
# Whoever changes, drops or inserts an event breaks the chain from there on.


_SCHEMA = "harn.provenance.schema"
_PREVIOUS = "harn.provenance.prev_hash"
_RECORD = "harn.provenance.record_hash"
_VERSION = "harn-eventlog-provenance-v1"


class ChainLink(NamedTuple):
    """The end of a chain: the last event's id and hash."""

    event_id: int
    record_hash: str | None


#: Where the chain of an empty topic goes on.
CHAIN_BEGIN = ChainLink(0, None)


def chain_link(record: Numbered) -> ChainLink:
    """Return where the chain goes on behind ``record``."""
    id, event = record
    return ChainLink(id, event.headers.get(_RECORD))


def chained(topic: str, event: LogEvent, at: int, previous: ChainLink) -> dict[str, str]:
    """Return the headers of the event that follows ``previous``."""
    own = {name: value for name, value in event.headers.items() if name not in (_SCHEMA, _PREVIOUS, _RECORD)}
    headers = {**own, _SCHEMA: _VERSION}
    if previous.record_hash is not None:
        headers[_PREVIOUS] = previous.record_hash
    return {**headers, _RECORD: _hash(topic, previous.event_id + 1, event, headers, at)}


def chain_problems(topic: str, events: Iterable[Numbered], previous: ChainLink = CHAIN_BEGIN) -> list[str]:
    """Return where the chain that goes on behind ``previous`` is broken."""
    found = []
    for id, event in events:
        headers = {name: value for name, value in event.headers.items() if name != _RECORD}
        if event.headers.get(_RECORD) != _hash(topic, id, event, headers, event.occurred_at_ms):
            found.append(f"event {id}: record hash mismatch")
        if event.headers.get(_PREVIOUS) != previous.record_hash:
            found.append(f"event {id}: previous hash mismatch")
        previous = chain_link((id, event))
    return found


def _hash(topic: str, id: int, event: LogEvent, headers: dict[str, str], at: int | None) -> str:
    record: dict[str, Any] = {
        "topic": topic,
        "event_id": id,
        "kind": event.kind,
        "payload": event.payload,
        "headers": headers,
        "occurred_at_ms": at,
    }
    text = canonical(record)
    return "sha256:" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


#: What a store calls our streams.
TOPIC, _CONSUMER = "topic", "consumer"
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
        self._now = RealClock().now if now is None else now
        self._topics: dict[str, Stream] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store.url!r})"

    @property
    def is_near(self) -> bool:
        return "many_machines" not in self.store.features

    def describe(self) -> EventLogDescription:
        scheme, _, place = self.store.url.partition(":")
        size = _size(place) if scheme in ("jsonl", "sqlite") else None
        return EventLogDescription(_BACKENDS.get(scheme, scheme), place or None, size, self.queue_depth)

    def append(self, topic: str, event: LogEvent, expected: int | None = None) -> int:
        return self.append_all(topic, [event], expected)

    def append_all(self, topic: str, events: Iterable[LogEvent], expected: int | None = None) -> int:
        stream, events = self._stream(topic), [*events]
        now = milliseconds(self._now())
        with self._reported("write"):
            if expected is not None:
                stream.refresh()
            while True:
                last = end = self._end(stream)
                if expected not in (None, end.event_id):
                    raise TopicMoved(topic, expected, end.event_id)
                records = []
                for event in events:
                    at = now if event.occurred_at_ms is None else event.occurred_at_ms
                    headers = chained(topic, event, at, last)
                    records.append((last.event_id + 1, event._replace(headers=headers, occurred_at_ms=at)))
                    last = chain_link(records[-1])
                try:
                    stream.append(records, end.event_id)
                    break
                except VersionConflict:
                    stream.refresh()
        for listener in tuple(self.listeners):
            listener(topic)
        return last.event_id

    def read_range(self, topic: str, from_id: int | None = None, limit: int | None = None) -> list[Numbered]:
        stream = self._stream(topic)
        with self._reported("read"):
            return list(stream.read(max(0, from_id or 0), limit=limit))

    def subscribe(self, topic: str, from_id: int | None = None) -> Subscription:
        checked(topic)
        return Subscription(self, topic, from_id or 0, self.queue_depth)

    def wait(self, topic: str, after: int, timeout: float) -> int:
        with self._reported("read"):
            return self.store.changes(TOPIC, checked(topic), after, timeout)

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
                self._set_head(stream, {_COMPACTED: chain_link(last)._asdict()}, lease)
                removed = stream.drop(last[0])
            self.store.flush()
            latest = stream.refresh()
            first = next(stream.read(limit=1), None)
        remaining = 0 if first is None else latest - first[0] + 1
        return CompactReport(removed, remaining, latest or None, self.store.url.startswith("sqlite:"))

    def topics(self) -> list[Topic]:
        found: list[Topic] = []
        query = HeadQuery(kind=TOPIC, order="id")
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
            return chain_problems(topic, stream.read(begin.event_id), begin)

    def flush(self) -> None:
        with self._reported("write"):
            self.store.flush()

    def close(self) -> None:
        self.store.close()

    def _stream(self, topic: str) -> Stream:
        stream = self._topics.get(topic)
        if stream is None:
            with self._reported("open"):
                stream = self._topics[topic] = self.store.stream(TOPIC, checked(topic), _CODEC)
        return stream

    def _cursor(self, topic: str, consumer: str) -> Stream:
        name = f"{checked(topic)}/{checked_consumer(consumer)}"  # no topic has a slash
        with self._reported("open"):
            return self.store.stream(_CONSUMER, name, _CODEC)

    def _end(self, stream: Stream) -> ChainLink:
        """Return where the chain goes on, as far as is known here."""
        last = cast("Numbered | None", stream.last())
        return self._compacted(stream) if last is None else chain_link(last)

    def _compacted(self, stream: Stream) -> ChainLink:
        """Return where the chain went on behind the events that were forgotten."""
        head = self.store.head(TOPIC, stream.name)
        known = None if head is None else head.data.get(_COMPACTED)
        return CHAIN_BEGIN if known is None else ChainLink(**known)

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


# The event log that a Python program installs for its Harn programs. Spec: 08 §15.2.
#
# It holds in the context (`contextvars`) where it was installed, so threads and tasks don't see each other's.


_INSTALLED: ContextVar[StoreEventLog | None] = ContextVar("installed event log", default=None)


def install_event_log(log: StoreEventLog) -> None:
    """Make ``log`` the one that is in use from here on."""
    _INSTALLED.set(log)


def installed_event_log() -> StoreEventLog | None:
    """Return the log that was installed here; None when there is none."""
    return _INSTALLED.get()


def active_event_log() -> StoreEventLog:
    """Return the log that is in use here. The first call installs one in memory if there is none."""
    log = _INSTALLED.get()
    if log is None:
        log = memory_log()
        _INSTALLED.set(log)
    return log


def reset_active_event_log() -> None:
    """Install none."""
    _INSTALLED.set(None)


BACKEND, DIRECTORY, SQLITE, DEPTH = (
    f"HARN_EVENT_LOG_{name}" for name in ("BACKEND", "DIR", "SQLITE_PATH", "QUEUE_DEPTH")
)


class MemoryEventLog(StoreEventLog):
    """One that lives and dies with the process."""

    def __init__(self, queue_depth: int = QUEUE_DEPTH) -> None:
        super().__init__(opened("memory:"), queue_depth)


class FileEventLog(StoreEventLog):
    """One in the directory ``root``, a file for each topic."""

    def __init__(self, root: str | PathLike[str], queue_depth: int = QUEUE_DEPTH) -> None:
        super().__init__(opened(f"jsonl:{root}"), queue_depth)


class SqliteEventLog(StoreEventLog):
    """One in the file at ``path``."""

    def __init__(self, path: str | PathLike[str], queue_depth: int = QUEUE_DEPTH) -> None:
        super().__init__(opened(f"sqlite:{path}"), queue_depth)


class EventLogConfig(NamedTuple):
    """``backend`` is ``memory``, ``file`` or ``sqlite``."""

    backend: str = "sqlite"
    file_dir: str = ".harn/events"
    sqlite_path: str = ".harn/events.sqlite"
    queue_depth: int = QUEUE_DEPTH

    @classmethod
    def for_base_dir(
        cls, path: str | PathLike[str], environment: Environment | None = None
    ) -> EventLogConfig:
        """Return the settings of the environment (None: the process's), with paths relative to ``path``."""
        if environment is None:
            from harnpy.world import World

            environment = World().environment
        base, usual = str(path), cls()
        return cls(
            environment.get(BACKEND) or usual.backend,
            os.path.join(base, environment.get(DIRECTORY) or usual.file_dir),
            os.path.join(base, environment.get(SQLITE) or usual.sqlite_path),
            _depth(environment.get(DEPTH)),
        )

    @property
    def url(self) -> str:
        """The store's. Raises `ConfigError`."""
        urls = {"memory": "memory:", "file": f"jsonl:{self.file_dir}", "sqlite": f"sqlite:{self.sqlite_path}"}
        if self.backend not in urls:
            raise ConfigError(f"unsupported event log backend '{self.backend}'")
        return urls[self.backend]


def open_event_log(config: EventLogConfig) -> StoreEventLog:
    """Open the log, creating it when there is none. Raises `ConfigError`, `LogIoError`."""
    return StoreEventLog(opened(config.url), config.queue_depth)


def opened(url: str) -> Store:
    """Open a log's store. Raises `LogIoError`."""
    with reported(url, "open"):
        return open_store(url)


def _depth(text: str | None) -> int:
    return max(1, int(text)) if text and text.isascii() and text.isdecimal() else QUEUE_DEPTH


# Where events are kept, as the environment and the project say. Spec: 10 §C22.
#
# The ``HARN_EVENT_LOG_…`` variables, else ``[event_log] store`` of the project's `harn.toml`.
# ``HARN_EVENT_LOG_DIR`` alone says nothing: it is where sessions write their agent events (08 §1.7).


_KNOWN = {"store": (string, 'e.g. store = "sqlite:.harn/events.sqlite"')}


class EventLogSettings(NamedTuple):
    """``url`` is the store's."""

    url: str
    queue_depth: int = QUEUE_DEPTH


def event_log_settings(world: World) -> EventLogSettings | None:
    """Return what is set for the working directory, None when nothing is.

    Raises `ManifestError` for an unusable manifest, `ConfigError` for an unknown backend.
    """
    root = project_root(world.files.cwd(), world.files)
    section, refusal = manifest_section(world, root, "event_log", _KNOWN, "where events are kept")
    if any(world.environment.get(name) for name in (BACKEND, SQLITE)):
        return usual_settings(world)
    if refusal is not None:
        raise refusal
    if root is not None and "store" in section:
        return EventLogSettings(placed(without_ambient(section["store"]), root))
    return None


def usual_settings(world: World) -> EventLogSettings:
    """Return where events are kept by default, for those who need to keep them.

    Raises `ManifestError` for links there that nobody trusts.
    """
    here = world.files.cwd()
    base = project_root(here, world.files) or here
    if not any(world.environment.get(name) for name in (BACKEND, DIRECTORY, SQLITE)):
        require_state(world, base)
    config = EventLogConfig.for_base_dir(base, world.environment)
    return EventLogSettings(config.url, config.queue_depth)
