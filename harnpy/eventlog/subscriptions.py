"""Following a topic: what is there, then what comes, without gaps or doubles. Spec: 08 §15.2.

A subscriber reads the log itself, so nothing is queued for it. As a bounded queue would, it gives up once
more events are waiting than ``depth``, but only when it has been at the end before: the past may be long.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from harnpy.eventlog.errors import ConsumerLagged

if TYPE_CHECKING:
    from types import TracebackType

    from harnpy.eventlog.log_events import Numbered

#: Seconds between two looks whether it was closed, and at what other processes have appended.
_POLL = 0.1
#: How many events are read at once.
_PAGE = 128


class Followed(Protocol):
    """What following needs of an event log."""

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
