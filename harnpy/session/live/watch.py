"""A watch: the events of a session, one after the other, as they come. Spec: 10 §A1.12, §C10."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING
from weakref import finalize

from harnpy.storage.errors import StoreClosed

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from harnpy.session.events import Event
    from harnpy.session.live.audience import Audience
    from harnpy.session.live.feed import Feed
    from harnpy.session.live.tails import Tail


class Watch:
    """An iterator over a session's events, which waits for those to come; a context manager that ends it.

    Made by `Session.watch`, read by one thread at a time. It ends when it or its store is closed, and when
    nobody holds it any more.
    """

    def __init__(self, feed: Feed, tail: Tail, audience: Audience) -> None:
        self._feed = feed
        self._tail = tail
        self._read: deque[Event] = deque()
        self._leave = finalize(self, audience.leave, feed)
        self._leave.atexit = False

    @property
    def dropped(self) -> int:
        """How many events weren't taken because the buffer was full."""
        return self._feed.dropped

    @property
    def closed(self) -> bool:
        """Whether no more events come."""
        return self._feed.closed

    def close(self) -> None:
        """End the watch. What it has taken in already can still be read."""
        self._leave()

    def next(self, timeout: float | None = None) -> Event | None:
        """Return the next event; None when there is none within ``timeout`` seconds (None: however long),
        or the watch is closed. Raises `StorageError` when the store can't be read."""
        ends = None if timeout is None else monotonic() + timeout
        is_over = False
        while True:
            event = self._taken()
            if event is not None or self.closed:
                return event
            try:
                if self._catch_up():
                    continue
                if is_over:
                    return None
                left = None if ends is None else max(0.0, ends - monotonic())
                is_over = left == 0
                self._tail.wait(self._feed, left)
            except StoreClosed:
                self.close()

    def _taken(self) -> Event | None:
        return self._read.popleft() if self._read else self._feed.take()

    def _catch_up(self) -> bool:
        """Read on in the log, unless the feed is live. Return False if there is nothing more."""
        lag = self._feed.lag()
        if lag is None:
            return False
        events = self._tail.read(lag)
        self._read.extend(filter(self._feed.wants, events))
        self._feed.has_read(events[-1].seq if events else lag)
        return bool(events)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        event = self.next()
        if event is None:
            raise StopIteration
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
