"""Waiting for something outside, and finding a tool call by its key. Spec: 10 §A1.13, §C3, §C3.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from harnpy.session import arguments
from harnpy.session import events as kinds
from harnpy.session.codec import KEYED, store_key
from harnpy.session.errors import ToolAmbiguous
from harnpy.session.events import EventDraft
from harnpy.storage.memory import MemoryStream

if TYPE_CHECKING:
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.storage.contract import Stream

# Finding an event by what it says of itself. Spec: 10 §C3.3, §A1.13.
#
# A store knows the keys and the ids that imports brought by its codec; sessions in memory have none.


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


# Waiting for something outside, and calls of tools by their keys. Spec: 10 §A1.13, §C3.


class ToolRecord(NamedTuple):
    """A call as the log knows it: its end, or else its beginning."""

    key: str
    started: Event | None = None
    completed: Event | None = None

    @property
    def output(self) -> Any:
        """Return the call's output; None before its end, and for an error without output."""
        return None if self.completed is None else self.completed.data.get("output")

    @property
    def error(self) -> str | None:
        found: str | None = None if self.completed is None else self.completed.data.get("error")
        return found


class Reuse(NamedTuple):
    """The call has been made: what it came to then."""

    output: Any
    error: str | None = None


def wait_started(session: Session, reason: str | None = None, external_id: str | None = None) -> Event:
    """Note that the session waits for something outside, which ``external_id`` names."""
    return _noted(session, kinds.WAIT_STARTED, reason, external_id)


def wait_resolved(session: Session, reason: str | None = None, external_id: str | None = None) -> Event:
    """Note that what the session waited for has come."""
    return _noted(session, kinds.WAIT_RESOLVED, reason, external_id)


def find_tool(session: Session, key: str) -> ToolRecord | None:
    """Return what the log knows last of the call with that key (`tool_key`); None for nothing."""

    key = arguments.checked(key) if key else ""  # as the event has it
    event = find_key(session.stream, key) if key else None
    if event is None:
        return None
    event = session.origin.own(event)
    if event.type == kinds.TOOL_COMPLETED:
        return ToolRecord(key, completed=event)
    return ToolRecord(key, started=event)


def tool_fence(session: Session, key: str) -> Literal["execute"] | Reuse:
    """Say whether to make a call: ``execute``, or `Reuse` with its outcome.

    Raises `ToolAmbiguous` for one that began and has no end: it may or may not have run.
    """
    known = session.find_tool(key)
    if known is None:
        return "execute"
    if known.completed is None:
        raise ToolAmbiguous(key, session.id)
    return Reuse(known.output, known.error)


def _noted(session: Session, type: str, reason: str | None, external_id: str | None) -> Event:
    given = {
        "reason": arguments.optional_text("reason", reason),
        "external_id": arguments.optional_text("external_id", external_id),
    }
    return session.write(EventDraft(type, {key: text for key, text in given.items() if text is not None}))[0]
