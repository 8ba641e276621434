"""The end of a log on a store, as a watch reads it. Spec: 10 §C10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.live.tails import CHUNK

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.events import Event
    from harnpy.session.kept.reading import KeptLog
    from harnpy.session.live.feed import Feed

#: How long one wait on the store is at most: a watch that is closed by another thread ends so soon. Seconds.
_LOOK = 0.5


class StoreTail:
    """The log of a session, with what other objects and processes append.

    It is read by an object of its own, which ``load`` returns: what the session's object has seen, that one
    alone decides. ``changes`` waits on the store, like `Store.changes`.
    """

    def __init__(
        self,
        load: Callable[[], KeptLog | None],
        changes: Callable[[int, float], int],
        *,
        is_told: bool,
    ) -> None:
        self.is_told = is_told
        self._load = load
        self._changes = changes
        self._log: KeptLog | None = None

    def read(self, after: int) -> list[Event]:
        log = self._log
        if log is None:
            log = self._log = self._load()
        elif log.version < after + CHUNK:
            log.refresh()
        return [] if log is None else log.read(after, min(log.version, after + CHUNK))

    def wait(self, feed: Feed, timeout: float | None) -> None:
        look = _LOOK if timeout is None else min(timeout, _LOOK)
        feed.fall_behind(self._changes(feed.seen, look))
