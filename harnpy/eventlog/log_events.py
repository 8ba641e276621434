"""An event of a topic, and how a store keeps it. Spec: 08 §15.2, 10 §C22."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.eventlog.errors import LogSerdeError
from harnpy.storage.contract import Row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LogEvent(NamedTuple):
    """``payload`` is a JSON value. The log sets the provenance headers and, when it is None, the time."""

    kind: str
    payload: Any = None
    headers: Mapping[str, str] = {}
    occurred_at_ms: int | None = None


def _encoder(sort_keys: bool) -> json.JSONEncoder:
    return json.JSONEncoder(sort_keys=sort_keys, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


_AS_IT_IS, _SORTED = _encoder(sort_keys=False), _encoder(sort_keys=True)

#: A record of a topic: the event, and its id there.
Numbered = tuple[int, LogEvent]


class TopicCodec:
    """Numbered events ↔ rows: the payload is the row's data, its kind the type."""

    def encode(self, records: Sequence[Numbered]) -> list[Row]:
        return [self._row(*record) for record in records]

    def _row(self, id: int, event: LogEvent) -> Row:
        headers, payload = _AS_IT_IS.encode({"headers": dict(event.headers)}), _AS_IT_IS.encode(event.payload)
        time = (event.occurred_at_ms or 0) * 1000
        return Row(id, _stored(event.kind), time, _stored(payload), rest=_stored(headers))

    def decode(self, rows: Sequence[Row]) -> list[Numbered]:
        return [(row.seq, _event(row)) for row in rows]

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [row.data for row in rows]


def _event(row: Row) -> LogEvent:
    headers = json.loads(row.rest)["headers"] if row.rest else {}
    return LogEvent(row.type, json.loads(row.data), headers, row.time // 1000)


def canonical(value: Any) -> str:
    """Return a JSON value as compact text with sorted keys. Raises `LogSerdeError` if it is none."""
    try:
        return _SORTED.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise LogSerdeError(f"event log parse error: an event must be JSON: {error}") from None


def _stored(text: str) -> str:
    """Return the text if it can be written. Raises `LogSerdeError`."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise LogSerdeError(f"event log parse error: half a surrogate pair in {text!r:.60}") from None
    return text
