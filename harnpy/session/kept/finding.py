"""Finding an event by what it says of itself. Spec: 10 §C3.3, §A1.13.

A store knows the keys and the ids that imports brought by its codec; sessions in memory have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.kept.codec import KEYED, store_key
from harnpy.storage.memory import MemoryStream

if TYPE_CHECKING:
    from harnpy.session.events import Event
    from harnpy.storage.contract import Stream


def find_key(stream: Stream, key: str) -> Event | None:
    """Return the newest event with that idempotency key."""
    if not _has_no_codec(stream):
        found: Event | None = stream.find_key(key)
        return found
    events = stream.read(types=KEYED, reverse=True)
    return next((event for event in events if store_key(event) == key), None)


def find_id(stream: Stream, id: str) -> int:
    """Return the number of the event that an import brought under that id; 0 when there is none."""
    if not _has_no_codec(stream):
        return stream.find_id(id) or 0
    return next((event.seq for event in stream.read() if event.foreign_id == id), 0)


def _has_no_codec(stream: Stream) -> bool:
    return isinstance(stream, MemoryStream) and stream.codec is None
