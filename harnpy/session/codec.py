"""The rows of a session on a store: encoding, decoding, searchable text. Spec: 10 §C4, §C6.

A long text that one append holds twice is stored once.
"""

from __future__ import annotations

from contextlib import contextmanager
from sys import intern
from typing import TYPE_CHECKING, Any

from msgspec import DecodeError
from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.faults import shape_problem
from harnpy.session import events as kinds
from harnpy.session.cuts import restored_payload
from harnpy.session.events import MICROS, Event, Origin, TurnRef, read_stamp
from harnpy.storage.contract import Row
from harnpy.storage.errors import CorruptLog, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# What a search looks through: the text of an event. Spec: 10 §C6.


def text_of(type: str, data: Any) -> str | None:
    """Return the text of an event with that stored data, None when it has none."""
    texts = _TEXTS.get(type)
    if texts is None or not isinstance(data, dict):
        return None
    return "\n".join(filter(None, texts(data))) or None


def _message(message: dict[str, Any]) -> Iterator[str]:
    """The text of a message: its content, or the text in its blocks or parts."""
    content = message.get("content")
    is_one = isinstance(content, str | dict)
    for part in [content] if is_one else [*_list(message, "content"), *_list(message, "parts")]:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            yield from _strings(part, ("text", "content"))


def _list(data: dict[str, Any], key: str) -> list[Any]:
    found = data.get(key)
    return found if isinstance(found, list) else []


def _strings(data: dict[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        value = data.get(key)
        if isinstance(value, str):
            yield value


def _of(*keys: str) -> Callable[[dict[str, Any]], Iterator[str]]:
    return lambda data: _strings(data, keys)


def _cut(data: dict[str, Any]) -> Iterator[str]:
    """The messages that a cut has written out, its summary among them."""
    for entry in (*_list(data, "entries"), *_list(data, "messages")):
        message = entry.get("message") if isinstance(entry, dict) else None
        if isinstance(message, dict):
            yield from _message(message)


def _register(data: dict[str, Any]) -> Iterator[str]:
    if data.get("key") == "memo" and data.get("value") is not None:
        from harnpy.formats.json import to_json

        yield to_json(data["value"])


_TEXTS: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    kinds.MESSAGE_ADDED: _message,
    kinds.HISTORY_REPLACED: _cut,
    kinds.COMPACTION_TRIGGERED: _cut,
    kinds.REGISTER_SET: _register,
    "context_added": _of("content"),
    "branch_summary": _of("summary"),
    "tool_started": _of("args"),
    "tool_completed": _of("output"),
    "child_completed": _of("summary"),
}


# A long text that one append holds twice is stored once. Spec: 10 §C4.
#
# A text of 64 characters or more that an earlier event of the append holds is written as ``{"$same": [k,
# pointer]}``: k events back, at that JSON pointer of its data. A dict of the caller's that looks like one is
# stored with one ``$`` more.


#: Shorter texts are written again.
LONG = 64
_KEY = "$same"


def shortened(values: list[Any]) -> list[Any]:
    """Return the data of an append's events, each with references to those before it."""
    sources, changing = _repeats(values)
    if not changing:
        return values
    seen: dict[str, tuple[int, str]] = {}
    for place in sorted(sources):
        _note_texts(values[place], "", place, seen)
    return [
        _shortened(value, place, seen) if place in changing else value for place, value in enumerate(values)
    ]


def _repeats(values: list[Any]) -> tuple[set[int], set[int]]:
    """Return the places of the values that have a long text first, and of those that have it again, or that
    look like a reference."""
    first: dict[str, int] = {}
    sources: set[int] = set()
    changing: set[int] = set()
    for place, value in enumerate(values):
        found = [value]
        for item in found:
            kind = type(item)
            if kind is str:
                if len(item) >= LONG and (source := first.setdefault(item, place)) != place:
                    sources.add(source)
                    changing.add(place)
            elif kind is dict:
                if len(item) == 1 and _marker(item) is not None:
                    changing.add(place)
                found += item.values()
            elif kind is list:
                found += item
    return sources, changing


def is_plain(text: str) -> bool:
    """Return whether JSON text has no reference and nothing that looks like one."""
    return f'{_KEY}"' not in text


def restored(value: Any, before: list[Any]) -> Any:
    """Return what `shortened` was given; ``before`` is the data of the append's earlier events, restored."""

    def change(found: dict[str, Any], key: str) -> tuple[bool, Any]:
        if key == _KEY:
            back, pointer = found[key]
            return True, _at(before[-back] if back <= len(before) else None, pointer)
        return False, {key[1:]: found[key]}

    return _changed(value, change, lambda text: text)


def _shortened(value: Any, place: int, seen: dict[str, tuple[int, str]]) -> Any:
    def change(found: dict[str, Any], key: str) -> tuple[bool, Any]:
        return False, {f"${key}": found[key]}

    def short(text: str) -> Any:
        known = seen.get(text) if len(text) >= LONG else None
        return text if known is None or known[0] == place else {_KEY: [place - known[0], known[1]]}

    return _changed(value, change, short)


def _changed(
    value: Any, change: Callable[[dict[str, Any], str], tuple[bool, Any]], text: Callable[[str], Any]
) -> Any:
    """Return a copy with ``text(part)`` of each text and ``change(part, key)`` of each dict that looks like a
    reference; that says whether it is done with it. One frame a level: values may be deep.
    """
    kind = type(value)
    if kind is str:
        return text(value)
    if kind is list:
        items = []
        for item in value:
            items.append(_changed(item, change, text))
        return items
    if kind is not dict:
        return value
    key = _marker(value)
    if key is not None:
        is_done, value = change(value, key)
        if is_done:
            return value
    copy = {}
    for key, item in value.items():
        copy[key] = _changed(item, change, text)
    return copy


def _marker(value: dict[str, Any]) -> str | None:
    """The only key of ``value``, if it is ``$same`` or looks like it."""
    if len(value) != 1:
        return None
    (key,) = value
    return key if key.endswith(_KEY) and key.strip("$") == "same" else None


def _note_texts(value: Any, pointer: str, place: int, seen: dict[str, tuple[int, str]]) -> None:
    if type(value) is str:
        if len(value) >= LONG:
            seen.setdefault(value, (place, pointer))
    elif type(value) is dict:
        for key, item in value.items():
            _note_texts(item, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", place, seen)
    elif type(value) is list:
        for index, item in enumerate(value):
            _note_texts(item, f"{pointer}/{index}", place, seen)


def _at(value: Any, pointer: str) -> Any:
    try:
        for step in pointer.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            value = value[int(step)] if type(value) is list else value[step]
    except (LookupError, TypeError, ValueError):
        return ""  # a repair has put something else in the place of an unreadable record
    return value


# How a store keeps a session's events, and how they are shown. Spec: 10 §C4.
#
# The stored form is an event without what can be computed: ids, the session, what an append holds twice.


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
            texts = [to_json(value).decode() for value in _codec_shortened(records, values)]
        return [_row(event, text) for event, text in zip(records, texts, strict=True)]

    def decode(self, rows: Sequence[Row]) -> list[Event]:
        with _readable(self.origin.id, rows):
            return self._decoded(rows)

    def _decoded(self, rows: Sequence[Row]) -> list[Event]:
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
            event = Event(owner, row.seq, intern(row.type), payload, row.time / MICROS, turn)
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
        with _readable(self.origin.id, rows):
            return [text_of(row.type, value) for row, value in zip(rows, _values(rows), strict=True)]


def _codec_shortened(records: Sequence[Event], values: list[Any]) -> list[Any]:
    """The values with references within each append: an import writes several at once."""
    found: list[Any] = []
    start = 0
    for end, event in enumerate(records, 1):
        if not event.more or end == len(records):
            found += shortened(values[start:end])
            start = end
    return found


@contextmanager
def _readable(id: str, rows: Sequence[Row]) -> Iterator[None]:
    """Raise `CorruptLog` for rows that are no events: a store without checksums may have damaged ones."""
    try:
        yield
    except StorageError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        where = f"records {rows[0].seq} to {rows[-1].seq}" if rows else "a record"
        raise CorruptLog(id, f"{where} can't be read: {_problem(error)}") from error


def _problem(error: Exception) -> str:
    return "it isn't JSON" if isinstance(error, DecodeError) else shape_problem(error)


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
    """Return the store's key of the action with that idempotency key."""
    return f"action:{key}"


def store_key(event: Event) -> str | None:
    """Return the store's key of the call of a tool, or of an action."""
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
