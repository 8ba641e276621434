"""Drafts that name their turn, or bring their own time and number. Spec: 10 §A1.4 step 4, §C3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.errors import EventRejected
from harnpy.session.events import TURN_STARTED, Event, EventDraft
from harnpy.session.identity import MICROS, read_stamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.views import View


def place(drafts: Sequence[EventDraft], events: Sequence[Event], view: View, moment: float) -> None:
    """Give the events of one append their turns by name, and the times that their drafts say.

    ``moment`` is that of the event before: times of one log never go back. Raises `EventRejected` for a
    number that isn't the next, or for what is no time stamp.
    """
    open_turns = list(view.open_turns.values())
    for draft, event in zip(drafts, events, strict=True):
        if draft.place is not None:
            _, timestamp, seq = draft.place
            if seq is not None:
                _check_seq(seq, event)
            if timestamp is not None:
                event.moment = _moment(timestamp, event)
        event.moment = moment = max(moment, event.moment)
        if isinstance(draft.turn, str):
            begun = (each for each in reversed(open_turns) if draft.turn in (each.turn_name, each.id))
            if event.type != TURN_STARTED and (turn := next(begun, None)) is not None:
                event.turn = turn
        if event.type == TURN_STARTED:
            open_turns.append(event)


def asked_for(drafts: Sequence[EventDraft], events: Sequence[Event]) -> list[Event]:
    """Return the events of the drafts that a caller gave: no moves that one needs before it."""
    from harnpy.session.drafting.references import MoveToParent

    return [event for draft, event in zip(drafts, events, strict=True) if not isinstance(draft, MoveToParent)]


def _check_seq(seq: int, event: Event) -> None:
    if seq == event.seq:
        return
    if seq < 0:
        raise EventRejected("session append: event sequence cannot be negative", event.owner.id)
    if seq < event.seq:
        raise EventRejected("session append: event sequence is not monotonic", event.owner.id)
    raise EventRejected(
        f"session append: event sequence {seq} leaves a gap: the next one is {event.seq}", event.owner.id
    )


def _moment(timestamp: str, event: Event) -> float:
    try:
        return read_stamp(timestamp) / MICROS
    except (ValueError, TypeError) as error:
        raise EventRejected(
            f"session append: no RFC 3339 time stamp: {timestamp!r}", event.owner.id
        ) from error
