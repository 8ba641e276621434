"""Turns that nobody will end: of a process that is gone, or of the session that this one was forked from.

Spec: 10 §C16.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session import events as kinds
from harnpy.session.events import EventDraft
from harnpy.session.shown.rewinding import active
from harnpy.session.turns.closing import INTERRUPTED, Fact, closing, last_answer

if TYPE_CHECKING:
    from harnpy.session.events import Event
    from harnpy.session.log import Session

_ERROR = "interrupted before it ended"


def events_of(session: Session, turn: Event) -> list[Event]:
    """Return the events of a turn but the one that starts it; none that was taken back."""
    later = active(list(session.stream.read(turn.seq)), turn.seq)
    return [event for event in later if event.turn is not None and event.turn.seq == turn.seq]


def end_open_turns(session: Session, reason: str = INTERRUPTED, error: str = _ERROR) -> None:
    """End the turns that are open, for a ``reason`` of C16.4. None of them may be running.

    A fork that was made during a turn begins before the step that it was made in.
    """
    for turn in list(session.view.open_turns.values()):
        events = events_of(session, turn)
        facts = [Fact(event.type, event.body) for event in events]
        ends = closing(facts, turn.body.get("agent_id", ""), reason, error)
        if turn.seq <= session.view.linked_at:
            _leave_step(session, events, facts)
            ends = ends[-1:]
        session.write(*(EventDraft(type, payload, turn=turn) for type, payload in ends))


def _leave_step(session: Session, events: list[Event], facts: list[Fact]) -> None:
    at = last_answer(facts)
    if at is None or not any(type in (kinds.TOOL_STARTED, kinds.TOOL_COMPLETED) for type, _ in facts[at:]):
        return
    gone = {event.seq for event in events[at:]}
    window = session.view.window
    entries = [entry for entry in window.entries.items() if entry.seq not in gone]
    session.replace("set", window.with_entries(entries))
