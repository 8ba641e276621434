"""How a store keeps a session's events, and how they are shown. Spec: 10 §C4.

The stored form is an event without what can be computed: ids, the session, what an append holds twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.session.events import Event, Origin, TurnRef
from harnpy.session.identity import MICROS, read_stamp
from harnpy.session.kept.event_text import text_of
from harnpy.session.kept.sameness import is_plain, restored, shortened
from harnpy.session.payloads import restored_payload
from harnpy.storage.contract import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Types of the events that are found by a key.
KEYED = frozenset({"tool_started", "tool_completed", "action_executed"})
#: The version of the shown form.
FORM = 1


class SessionCodec:
    """Events of one session ↔ rows. Those that a fork shares belong to the session that wrote them."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin

    def encode(self, records: Sequence[Event]) -> list[Row]:
        values = [event.stored() for event in records]
        texts = [to_json(value).decode() for value in values]
        if len(texts) > 1 or not is_plain(texts[0]):
            texts = [to_json(value).decode() for value in _shortened(records, values)]
        return [_row(event, text) for event, text in zip(records, texts, strict=True)]

    def decode(self, rows: Sequence[Row]) -> list[Event]:
        turns: dict[tuple[Origin, int], TurnRef] = {}
        events = []
        for row, value in zip(rows, _values(rows), strict=True):
            owner = self.origin.writer(row.seq)
            turn = None
            if row.turn is not None:
                turn = turns.get((owner, row.turn))
                if turn is None:
                    turn = turns[owner, row.turn] = TurnRef(owner, row.turn)
            payload = restored_payload(row.type, value, owner)
            event = Event(owner, row.seq, row.type, payload, row.time / MICROS, turn)
            rest = {} if row.rest is None else from_json(row.rest)
            event.supplement(
                metadata=rest.get("metadata"),
                cost=row.cost or 0.0,
                more=row.more,
                id=rest.get("id"),
                parent=rest.get("parent"),
            )
            if "turn" in rest:
                event.turn = TurnRef(owner, name=rest["turn"])
            events.append(event)
        return events

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [text_of(row.type, value) for row, value in zip(rows, _values(rows), strict=True)]


def _shortened(records: Sequence[Event], values: list[Any]) -> list[Any]:
    """The values with references within each append: an import writes several at once."""
    found: list[Any] = []
    start = 0
    for end, event in enumerate(records, 1):
        if not event.more or end == len(records):
            found += shortened(values[start:end])
            start = end
    return found


def _values(rows: Sequence[Row]) -> list[Any]:
    """The rows' data, with the references within each append resolved."""
    values: list[Any] = []
    start = 0
    for row in rows:
        value = from_json(row.data)
        values.append(value if is_plain(row.data) else restored(value, values[start:]))
        if not row.more:
            start = len(values)
    return values


def _row(event: Event, data: str) -> Row:
    turn = event.turn
    rest: dict[str, Any] = {}
    if event.metadata:
        rest["metadata"] = event.metadata
    foreign = event.foreign_id
    if foreign is not None:
        rest["id"] = foreign
    if event.foreign_parent is not None:
        rest["parent"] = event.foreign_parent
    if turn is not None and not turn.seq:
        rest["turn"] = turn.id
    return Row(
        event.seq,
        event.type,
        event.time,
        data,
        event.more,
        turn.seq if turn is not None and turn.seq else None,
        event.cost or None,
        store_key(event),
        to_json(rest).decode() if rest else None,
    )


def action_key(key: str) -> str:
    """What an action of that idempotency key is found by."""
    return f"action:{key}"


def store_key(event: Event) -> str | None:
    """What the call of a tool, or an action, is found by."""
    if event.type not in KEYED:
        return None
    data = event.data
    key: str | None = data.get("idempotency_key") if isinstance(data, dict) else None
    if key and event.type == "action_executed":
        return action_key(key)
    return key or None


# The shown form.


def encode_event(event: Event) -> dict[str, Any]:
    """Return the event as a dict of the shown form; defaults are left out."""
    shown = {
        "v": FORM,
        "id": event.id,
        "session_id": event.session_id,
        "seq": event.seq,
        "turn_id": event.turn_id,
        "parent_id": event.parent_id,
        "type": event.type,
        "timestamp": event.timestamp,
        "data": event.data,
        "metadata": event.metadata,
        "cost": event.cost,
        "more": event.more,
    }
    return {key: value for key, value in shown.items() if key == "data" or value not in (None, {}, 0)}


def decode_event(shown: dict[str, Any], origin: Origin) -> Event:
    """Return the event of a dict of the shown form, as one of ``origin``'s. Its data stays as shown.

    Raises ValueError and KeyError for what isn't one.
    """
    turn = shown.get("turn_id")
    event = Event(
        origin,
        shown["seq"],
        shown["type"],
        shown["data"],
        read_stamp(shown["timestamp"]) / MICROS,
        None if turn is None else TurnRef(origin, name=turn),
    )
    event.supplement(
        metadata=shown.get("metadata"),
        cost=shown.get("cost", 0.0),
        more=shown.get("more", 0),
        id=shown["id"],
        parent=shown.get("parent_id"),
    )
    return event
