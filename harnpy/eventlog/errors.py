"""The errors of an event log. Nothing has changed when one is raised. Spec: 08 §15.2.

LogError
├─ ConfigError         the configuration names no log
├─ InvalidTopic  InvalidConsumer
├─ LogIoError          the store can't be opened, read or written
│  └─ LogSqliteError   likewise, and it is one of SQLite
├─ LogSerdeError       what is stored can't be read, or what is given isn't JSON
├─ TopicMoved          somebody else appended first: `.topic`, `.expected`, `.found`
└─ ConsumerLagged      a subscriber didn't keep up; `.last_id` is the last event that it got
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.faults import MisuseError
from harnpy.storage.errors import CorruptLog, StorageError

if TYPE_CHECKING:
    pass


class LogError(MisuseError):
    """The log could not do what was asked. Nothing has changed."""

    def message_from(self, builtin: str) -> str:
        return f"event_log: {self.message}"


class ConfigError(LogError):
    pass


class InvalidTopic(LogError):
    pass


class InvalidConsumer(LogError):
    pass


class LogIoError(LogError):
    pass


class LogSqliteError(LogIoError):
    pass


class LogSerdeError(LogError):
    pass


class TopicMoved(LogError):
    """The topic doesn't end where the caller saw it end: read on, and decide again."""

    def __init__(self, topic: str, expected: int, found: int) -> None:
        super().__init__(f"topic '{topic}' has moved on: its last event is {found}, not {expected}")
        self.topic = topic
        self.expected = expected
        self.found = found

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.topic, self.expected, self.found)


class ConsumerLagged(LogError):
    def __init__(self, last_id: int) -> None:
        super().__init__(f"subscriber lagged behind after event {last_id}")
        self.last_id = last_id

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.last_id,)


class reported:  # noqa: N801 - a context manager; as a generator it would cost each request of a server more
    """Raise what a store raises as an error of the log; ``doing`` is ``open``, ``read`` or ``write``."""

    __slots__ = ("_doing", "_url")

    def __init__(self, url: str, doing: str) -> None:
        self._url = url
        self._doing = doing

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, place: object) -> None:
        if isinstance(error, CorruptLog):
            raise LogSerdeError(f"event log parse error: {error}") from error
        if isinstance(error, StorageError):
            failure = LogSqliteError if self._url.startswith("sqlite:") else LogIoError
            raise failure(f"event log {self._doing} error: {error}") from error
