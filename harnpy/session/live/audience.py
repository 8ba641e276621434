"""Who is told what a session appends: observers within the append, watches right behind it.

Spec: 10 §A1.12, §C10.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from harnpy.session.errors import ObserverError, SessionBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.session.events import Event
    from harnpy.session.live.feed import Feed

    Observer = Callable[[Event], Any]


class Audience:
    """The observers and watches of one `Session` object. Members may come and go in any thread."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._lock = Lock()
        self._observers: tuple[Callable[[Event], Any], ...] = ()
        self._feeds: tuple[Feed, ...] = ()
        self._is_observing = False

    def __bool__(self) -> bool:
        return bool(self._observers or self._feeds)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Add an observer. Return what takes it out again."""

        def call(event: Event) -> None:  # an object of its own, so that one function may observe twice
            observer(event)

        def leave() -> None:
            with self._lock:
                self._observers = tuple(one for one in self._observers if one is not call)

        with self._lock:
            self._observers = (*self._observers, call)
        return leave

    def join(self, feed: Feed) -> None:
        """Add a watch."""
        with self._lock:
            self._feeds = (*self._feeds, feed)

    def leave(self, feed: Feed) -> None:
        """End a watch."""
        with self._lock:
            self._feeds = tuple(one for one in self._feeds if one is not feed)
        feed.close()

    def check(self) -> None:
        """Raise `SessionBusy` while an observer is called: the session can't go on before that is over."""
        if self._is_observing:
            raise SessionBusy(
                f"session '{self._session_id}' is telling its observers of an append: "
                "let the observer return first",
                self._session_id,
            )

    def appended(self, events: Sequence[Event]) -> None:
        """Tell of events that the session itself has appended.

        Raises `ObserverError` when an observer failed, after all were told.
        """
        failures: list[Exception] = []
        try:
            self._observe(events, failures)
        finally:
            self.pass_on(events)
        if failures:
            raise ObserverError(self._session_id, events, failures[0]) from failures[0]

    def _observe(self, events: Sequence[Event], failures: list[Exception]) -> None:
        self._is_observing = True
        try:
            for event in events:
                for observer in self._observers:
                    try:
                        observer(event)
                    except Exception as error:
                        failures.append(error)
        finally:
            self._is_observing = False

    def pass_on(self, events: Sequence[Event]) -> None:
        """Tell the watches of the next events of the log, whoever appended them."""
        for feed in self._feeds:
            feed.offer(events)
