"""A subscription: the events of a session as they come. Spec: 10 §A1.12."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.faces.canto.events import Event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.session.live.watch import Watch


class Subscription:
    """A watch. What isn't read in time is dropped; an append never waits for it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def events(self) -> Iterator[Event]:
        """Return the events, waiting for those to come until the subscription is closed."""
        return map(Event.of, self._watch)

    def next(self, timeout: float | None = None) -> Event | None:
        """Return the next event; None after ``timeout`` seconds, or once it is closed and empty."""
        event = self._watch.next(timeout)
        return None if event is None else Event.of(event)

    def close(self) -> None:
        """End it. Closing again does nothing."""
        self._watch.close()
