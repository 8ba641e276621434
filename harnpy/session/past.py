"""A session as it stood at one moment: a stream that ends there and can't be written. Spec: 10 §C3."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from harnpy.session import arguments
from harnpy.session.codec import KEYED, store_key
from harnpy.session.errors import EventNotFound, InvalidArgument, SessionReadOnly
from harnpy.session.events import position
from harnpy.session.waits import find_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.session.events import Event, Origin
    from harnpy.storage.contract import Stream
    from harnpy.storage.leases import Lease

    #: The number of an event, its id, or a moment.
    Until = int | str | datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PastStream:
    """The first ``version`` events of ``whole``. What others append isn't seen."""

    def __init__(self, whole: Stream, version: int) -> None:
        self.whole = whole
        self.name = whole.name
        self.version = version

    def append(
        self,
        records: Sequence[Event],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        self._refuse()

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Event]:
        end = self.version if until is None else min(until, self.version)
        return self.whole.read(after, end, types=types, reverse=reverse, limit=limit)

    def last(self) -> Event | None:
        return next(self.read(self.version - 1), None)

    def find_key(self, key: str) -> Event | None:
        """The newest event with that key."""
        found: Event | None = self.whole.find_key(key)
        if found is None or found.seq <= self.version:
            return found
        older = self.read(types=KEYED, reverse=True)
        return next((event for event in older if store_key(event) == key), None)

    def find_id(self, id: str) -> int | None:
        found = self.whole.find_id(id)
        return found if found is not None and found <= self.version else None

    def refresh(self) -> int:
        return self.version

    def settle(self) -> None:
        """Do nothing: it shares what its stream shares."""

    def drop(self, until: int) -> int:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise SessionReadOnly(self.name, self.version)


def past(stream: Stream, until: Until, origin: Origin) -> PastStream:
    """Return the stream as it stood after the event that ``until`` names.

    Raises `EventNotFound` when there is none, `InvalidArgument` for a moment without an offset.
    """
    return PastStream(stream, number_of(stream, until, origin))


def number_of(stream: Stream, until: Until, origin: Origin) -> int:
    """Return the number of the event that ``until`` names, or of the last one up to that moment.

    Raises `EventNotFound` when there is none, `InvalidArgument` for a moment without an offset.
    """
    if isinstance(until, datetime):
        seq = _last_before(stream, until, origin)
        name = until.isoformat()
    elif isinstance(until, str):
        seq, name = _named(stream, until, origin), until
    else:
        number = arguments.instance("until", until, int, "the number of an event, its id, or a moment")
        seq, name = number if 1 <= number <= stream.version else 0, str(number)
    if not seq:
        raise EventNotFound(name, origin.id)
    return seq


def _last_before(stream: Stream, moment: datetime, origin: Origin) -> int:
    """Return the number of the last event up to a moment, 0 when all are younger."""
    if moment.tzinfo is None:
        raise InvalidArgument(f"`until` needs an offset: {moment.isoformat()}", origin.id)
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    # Times never go back, but for the first event of a fork: it is younger than the past behind it.
    first = 2 if origin.shared > 1 else 1
    numbers = range(first, stream.version + 1)
    older = bisect_right(numbers, micros, key=lambda seq: _at(stream, seq).time)
    return numbers[older - 1] if older else 0


def _named(stream: Stream, id: str, origin: Origin) -> int:
    """Return the number of the event with that id, in this session or in the one that wrote it."""
    above: Origin | None = origin
    while above is not None:
        seq = position(id, above.id)
        if seq is not None and 1 <= seq <= stream.version:
            event = _at(stream, seq)
            if id in (origin.own(event).id, event.first.id):
                return seq
        above = above.parent
    return find_id(stream, id)


def _at(stream: Stream, seq: int) -> Event:
    event: Event = next(stream.read(seq - 1, seq))
    return event
