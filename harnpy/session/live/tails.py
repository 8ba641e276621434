"""Where a watch reads what it wasn't told of: the end of a log. Spec: 10 §C10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.events import Event
    from harnpy.session.live.feed import Feed

#: How many events are read at once.
CHUNK = 256


class Tail(Protocol):
    """The end of a log."""

    @property
    def is_told(self) -> bool:
        """Whether what the session tells of may be shown at once."""

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
