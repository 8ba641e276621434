"""What lies between a session and one watch of it. Spec: 10 §A1.12, §C10.

A feed is *live* when its watch has been given all that the session has told of; then the session puts what
comes into the buffer. One that isn't live takes nothing in: its watch reads the log until it is. Which
events are through is one number, so there is neither a gap nor a duplicate.
"""

from __future__ import annotations

from collections import deque
from threading import Condition
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.events import Event


class Feed:
    """A buffer of at most ``size`` events.

    A full one that is ``lossy`` drops what comes; one that isn't keeps the appender waiting. One that isn't
    ``pushed`` is never live.
    """

    def __init__(self, size: int, types: frozenset[str] | None, *, lossy: bool, pushed: bool) -> None:
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

    # The session's side.

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
        """Whether the event is of a type that is watched."""
        return self._types is None or event.type in self._types

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
        """Wait until there is something in the buffer, or the feed is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._buffer or self.closed, timeout)

    def close(self) -> None:
        """Take nothing more. What is in the buffer stays."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
