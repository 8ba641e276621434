"""What a framework's message was, beside the events that it is here: it comes out equal. Spec: 10 §C20.

A message of a framework is one event or several, in the shapes that every reader of sessions knows. The first
one's metadata holds the message as it was given; of long texts that the events hold, too, it says where they
stand. So nothing is stored twice, and what no shape has a place for isn't lost.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harnpy.session.events import MESSAGE_ADDED, EventDraft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harnpy.session.prompt import HistoryEntry
    from harnpy.session.transfer.foreign import Entry

    Json = dict[str, Any]

#: Of an event's metadata: {tool, events, message}; ``events`` is how many the message is.
KEY = "original"
#: The role of a message that says nothing: no model is shown it.
SILENT_ROLE = "item"
#: Texts of so many characters are stored once.
_LONG = 40
#: A dict of one of these keys alone stands for a text of the events, as it is there, or as URL-safe base64;
#: for a text with half characters, as JSON; or for a dict that would be taken for one of them.
_AT, _SAFE, _HALF, _IS = "$at", "$safe", "$half", "$is"
_MARKS = (_AT, _SAFE, _HALF, _IS)
_URL_SAFE = str.maketrans("+/", "-_")


def drafts(tool: str, messages: Iterable[Json], read: Callable[[Json], Sequence[Entry]]) -> list[EventDraft]:
    """Return the events of messages; ``read`` says what one of them is. Raises what ``read`` raises."""
    found: list[EventDraft] = []
    for message in messages:
        own = [EventDraft(each.type, each.data, dict(each.told())) for each in read(message)]
        own = own or [EventDraft(MESSAGE_ADDED, {"role": SILENT_ROLE}, {})]
        packed = pack(message, [draft.data for draft in own])
        assert own[0].metadata is not None
        own[0].metadata[KEY] = {"tool": tool, "events": len(own), "message": packed}
        found += own
    return found


def grouped(
    tool: str, entries: Iterable[HistoryEntry]
) -> Iterator[tuple[Json | None, Sequence[HistoryEntry]]]:
    """Yield the tool's messages with the entries that they are; an entry of no message, or of one that isn't
    there in whole any more, comes alone, with None."""
    left = list(entries)
    at = 0
    while at < len(left):
        message, count = _original(tool, left, at) or (None, 1)
        if message is not None or left[at].message.get("role") != SILENT_ROLE:
            yield message, left[at : at + count]
        at += count


def _original(tool: str, entries: Sequence[HistoryEntry], at: int) -> tuple[Json, int] | None:
    """Return the message that begins with an entry, and how many it is; None unless all of them are there."""
    first = entries[at].event
    told = None if first is None else first.metadata.get(KEY)
    if first is None or not isinstance(told, dict) or told.get("tool") != tool:
        return None
    given = told.get("events")
    count = given if type(given) is int else 0
    events = [entry.event for entry in entries[at : at + count]]
    whole = [event.seq - first.seq for event in events if event is not None and event.is_logged]
    if not whole or whole != [*range(count)]:
        return None
    try:
        message = unpack(told.get("message"), [event and event.body for event in events])
    except (LookupError, TypeError, ValueError, AttributeError):  # of a log that something else has written
        return None
    return (message, count) if isinstance(message, dict) else None


def pack(value: Any, bodies: Sequence[Any]) -> Any:
    """Return a value without the long texts that the data of some events holds, too."""
    return _packed(value, _texts([*bodies]))


def _texts(value: Any) -> dict[str, Json]:
    """Return the long texts in a value, each with what stands for it."""
    found: dict[str, Json] = {}
    rest: list[tuple[list[str | int], Any]] = [([], value)]
    while rest:
        path, each = rest.pop()
        if isinstance(each, str):
            if len(each) >= _LONG:
                found[each.translate(_URL_SAFE)] = {_SAFE: path}
                found[each] = {_AT: path}
        elif isinstance(each, dict):
            rest += (([*path, key], inner) for key, inner in each.items())
        elif isinstance(each, list):
            rest += (([*path, number], inner) for number, inner in enumerate(each))
    return found


def _packed(value: Any, texts: dict[str, Json]) -> Any:
    if isinstance(value, str):
        return texts.get(value, value) if value.isascii() or _is_text(value) else {_HALF: json.dumps(value)}
    if isinstance(value, list):
        return [_packed(each, texts) for each in value]
    if not isinstance(value, dict):
        return value
    packed = {key: _packed(each, texts) for key, each in value.items()}
    return {_IS: packed} if _mark(packed) is not None else packed


def _is_text(value: str) -> bool:
    return value == value.encode("utf-8", "replace").decode()


def unpack(value: Any, bodies: Sequence[Any]) -> Any:
    """Return what was packed. Raises LookupError, TypeError, ValueError or AttributeError for what wasn't."""
    if isinstance(value, list):
        return [unpack(each, bodies) for each in value]
    if not isinstance(value, dict):
        return value
    mark = _mark(value)
    if mark is None or mark == _IS:
        inner = value if mark is None else value[_IS]
        return {key: unpack(each, bodies) for key, each in inner.items()}
    if mark == _HALF:
        return json.loads(value[_HALF])
    text: Any = bodies
    for step in value[mark]:
        text = text[step]
    return text if mark == _AT else text.translate(_URL_SAFE)


def _mark(value: Json) -> str | None:
    """Return what a dict of one key alone is a sign for."""
    return next((key for key in value if key in _MARKS), None) if len(value) == 1 else None
