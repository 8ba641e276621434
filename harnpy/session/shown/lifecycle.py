"""Lifecycle events: what a transcript shows between the messages of a window. Spec: 08 §2.3, 10 §C5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.derived import transcript_form
from harnpy.session.events import COMPACTION_TRIGGERED, TRANSCRIPT_EVENT
from harnpy.session.identity import event_id
from harnpy.session.transcript import LIVE_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.session.events import Event

    #: What stands behind so many messages.
    Aside = tuple[int, "Event | Pack"]


class Pack:
    """Lifecycle events at one position, shared by all windows that have them there. ``size`` counts them."""

    __slots__ = ("_parts", "size")

    def __init__(self, parts: list[Event | Pack]) -> None:
        self._parts = parts
        self.size: int = sum(part.size for part in parts)

    def events(self) -> list[Event]:
        """Return the events in order."""
        return unpacked([self], lambda part: part._parts if isinstance(part, Pack) else None)


def unpacked(parts: list[Any], inside: Callable[[Any], Iterable[Any] | None]) -> list[Event]:
    """Return the events among ``parts`` and ``inside`` them, in order.

    Not recursive: each cut adds a level of packing, each compaction one of summaries.
    """
    waiting = parts[::-1]
    found: list[Event] = []
    while waiting:
        part = waiting.pop()
        inner = inside(part)
        if inner is None:
            found.append(part)
        else:
            waiting += [*inner][::-1]
    return found


def lifecycle_value(event: Event) -> dict[str, Any]:
    """Return the transcript event that an event of the log is shown as."""
    form = transcript_form(event.type, event.body)
    return form if "id" in form else {"id": _shown_id(event.first), **form}


def _shown_id(event: Event) -> str:
    """Return the id of a lifecycle event. That of a compaction is its own: its summary has the event's."""
    if event.type != COMPACTION_TRIGGERED:
        return event.id
    return event_id(f"{event.owner.id}#compaction", event.seq, event.time)


def events_of(asides: list[Aside]) -> Iterator[Event]:
    """Return the events of all of them, in order."""
    return (event for _, what in asides for event in events_at(what))


def is_live(event: Event) -> bool:
    """Whether the event is about live clients."""
    return event.type == TRANSCRIPT_EVENT and event.body.get("kind") in LIVE_KINDS


def values_of(aside: Aside) -> list[dict[str, Any]]:
    """Return the transcript events of one position."""
    return [lifecycle_value(event) for event in events_at(aside[1])]


def events_at(what: Event | Pack) -> list[Event]:
    """Return the events of one position."""
    return what.events() if isinstance(what, Pack) else [what]
