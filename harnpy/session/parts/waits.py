"""Waiting for something outside, and calls of tools by their keys. Spec: 10 §A1.13, §C3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from harnpy.session import events as kinds
from harnpy.session.errors import ToolAmbiguous
from harnpy.session.events import EventDraft
from harnpy.session.parts import arguments

if TYPE_CHECKING:
    from harnpy.session.events import Event, Origin
    from harnpy.storage.contract import Stream


class ToolRecord(NamedTuple):
    """What the log knows of a call: how it ended, or else how it began."""

    key: str
    started: Event | None = None
    completed: Event | None = None

    @property
    def output(self) -> Any:
        """What the call came to; None before its end, and for an error without output."""
        return None if self.completed is None else self.completed.data.get("output")

    @property
    def error(self) -> str | None:
        found: str | None = None if self.completed is None else self.completed.data.get("error")
        return found


class Reuse(NamedTuple):
    """The call has been made: what it came to then."""

    output: Any
    error: str | None = None


class Waits:
    """The part of a `Session` about what is done outside of it."""

    __slots__ = ()

    id: str
    origin: Origin
    stream: Stream

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        raise NotImplementedError

    def wait_started(self, reason: str | None = None, external_id: str | None = None) -> Event:
        """Note that the session waits for something outside, which ``external_id`` names."""
        return self._noted(kinds.WAIT_STARTED, reason, external_id)

    def wait_resolved(self, reason: str | None = None, external_id: str | None = None) -> Event:
        """Note that what the session waited for has come."""
        return self._noted(kinds.WAIT_RESOLVED, reason, external_id)

    def find_tool(self, key: str) -> ToolRecord | None:
        """Return what the log knows last of the call with that key (`tool_key`); None for nothing."""
        from harnpy.session.kept.finding import find_key

        event = find_key(self.stream, key) if key else None
        if event is None:
            return None
        event = self.origin.own(event)
        if event.type == kinds.TOOL_COMPLETED:
            return ToolRecord(key, completed=event)
        return ToolRecord(key, started=event)

    def tool_fence(self, key: str) -> Literal["execute"] | Reuse:
        """Say whether to make a call: ``execute``, or `Reuse` with what it came to.

        Raises `ToolAmbiguous` for one that began and has no end: it may or may not have run.
        """
        known = self.find_tool(key)
        if known is None:
            return "execute"
        if known.completed is None:
            raise ToolAmbiguous(key, self.id)
        return Reuse(known.output, known.error)

    def _noted(self, type: str, reason: str | None, external_id: str | None) -> Event:
        given = {
            "reason": arguments.optional_text("reason", reason),
            "external_id": arguments.optional_text("external_id", external_id),
        }
        return self.write(EventDraft(type, {key: text for key, text in given.items() if text is not None}))[0]
