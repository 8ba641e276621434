"""A stream with events behind it that no store has yet."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from harnpy.session.kept.codec import store_key
from harnpy.session.kept.past import PastStream
from harnpy.storage.errors import VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.session.events import Event
    from harnpy.storage.contract import Stream
    from harnpy.storage.leases import Lease


class StagedStream:
    """The first ``start`` events of ``base``, and behind them those that are ``staged``."""

    def __init__(self, base: Stream, start: int) -> None:
        self.base = PastStream(base, start)
        self.name = base.name
        self.staged: list[Event] = []

    @property
    def start(self) -> int:
        return self.base.version

    @start.setter
    def start(self, version: int) -> None:
        self.base.version = version

    @property
    def version(self) -> int:
        return self.start + len(self.staged)

    def append(
        self,
        records: Sequence[Event],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        if expected_version != self.version:
            raise VersionConflict(self.name, expected_version, self.version)
        self.staged += records

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Event]:
        def older(after: int, until: int) -> Iterator[Event]:
            return self.base.read(after, until, types=types, reverse=reverse)

        return iter(self.merged(older, after, until, types=types, reverse=reverse, limit=limit))

    def merged(
        self,
        older: Callable[[int, int], Iterator[Event]],
        after: int,
        until: int | None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> list[Event]:
        """Return what ``older`` gives of the stream's own events, and the staged ones."""
        newer = [event for event in self.behind(after, until) if types is None or event.type in types]
        found = self.joined(older, newer[::-1] if reverse else newer, after, until, reverse=reverse)
        return list(islice(found, limit))

    def behind(self, after: int, until: int | None) -> list[Event]:
        """Return the staged events numbered ``after + 1`` … ``until``."""
        end = self.version if until is None else until
        return self.staged[max(0, after - self.start) : max(0, end - self.start)]

    def joined(
        self,
        older: Callable[[int, int], Iterator[Event]],
        newer: list[Event],
        after: int,
        until: int | None,
        *,
        reverse: bool = False,
    ) -> Iterator[Event]:
        """Return what ``older`` gives of the stream's own events, and ``newer``."""
        end = self.start if until is None else min(until, self.start)
        stored = older(after, end) if after < end else iter(())
        return chain(newer, stored) if reverse else chain(stored, newer)

    def last(self) -> Event | None:
        return next(self.read(self.version - 1), None)

    def find_key(self, key: str) -> Event | None:
        """The newest event with that key."""
        for event in reversed(self.staged):
            if store_key(event) == key:
                return event
        return self.base.find_key(key)

    def find_id(self, id: str) -> int | None:
        return self.base.find_id(id)

    def refresh(self) -> int:
        return self.version

    def settle(self) -> None:
        """Do nothing: the events are still the stream's."""

    def drop(self, until: int) -> int:
        raise NotImplementedError("a session forgets nothing")
