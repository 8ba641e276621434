"""A session's events by their numbers. Spec: 10 §C3."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnpy.session.events import Event, Origin
    from harnpy.storage.contract import Stream


class Reading:
    """The part of a `Session` that the others read its log with."""

    __slots__ = ()

    origin: Origin
    stream: Stream

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> list[Event]:
        """Return the events numbered ``after + 1`` … ``until``, as this session's."""
        found = self.stream.read(after, until, types=types, reverse=reverse, limit=limit)
        return [self.origin.own(event) for event in found]

    def event(self, seq: int) -> Event:
        """The event with that number."""
        return self.read(seq - 1, seq)[0]
