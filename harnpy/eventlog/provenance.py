"""The chain through a topic: each event's header holds the hash of the one before. Spec: 08 §15.2.

Whoever changes, drops or inserts an event breaks the chain from there on.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.eventlog.log_events import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.eventlog.log_events import LogEvent, Numbered

_SCHEMA = "harn.provenance.schema"
_PREVIOUS = "harn.provenance.prev_hash"
_RECORD = "harn.provenance.record_hash"
_VERSION = "harn-eventlog-provenance-v1"


class Link(NamedTuple):
    """Where a chain goes on: the last event's id and hash."""

    event_id: int
    record_hash: str | None


#: Where the chain of an empty topic goes on.
BEGIN = Link(0, None)


def link(record: Numbered) -> Link:
    """Return where the chain goes on behind ``record``."""
    id, event = record
    return Link(id, event.headers.get(_RECORD))


def chained(topic: str, event: LogEvent, at: int, previous: Link) -> dict[str, str]:
    """Return the headers of the event that follows ``previous``."""
    own = {name: value for name, value in event.headers.items() if name not in (_SCHEMA, _PREVIOUS, _RECORD)}
    headers = {**own, _SCHEMA: _VERSION}
    if previous.record_hash is not None:
        headers[_PREVIOUS] = previous.record_hash
    return {**headers, _RECORD: _hash(topic, previous.event_id + 1, event, headers, at)}


def problems(topic: str, events: Iterable[Numbered], previous: Link = BEGIN) -> list[str]:
    """Return where the chain that goes on behind ``previous`` is broken."""
    found = []
    for id, event in events:
        headers = {name: value for name, value in event.headers.items() if name != _RECORD}
        if event.headers.get(_RECORD) != _hash(topic, id, event, headers, event.occurred_at_ms):
            found.append(f"event {id}: record hash mismatch")
        if event.headers.get(_PREVIOUS) != previous.record_hash:
            found.append(f"event {id}: previous hash mismatch")
        previous = link((id, event))
    return found


def _hash(topic: str, id: int, event: LogEvent, headers: dict[str, str], at: int | None) -> str:
    record: dict[str, Any] = {
        "topic": topic,
        "event_id": id,
        "kind": event.kind,
        "payload": event.payload,
        "headers": headers,
        "occurred_at_ms": at,
    }
    text = canonical(record)
    return "sha256:" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
