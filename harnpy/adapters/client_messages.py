"""A front end's list of messages, and what its session becomes by it. Spec: 10 §C20.

A front end holds the conversation so far, and sends all of it. What the session has of it stays as it is; the
session goes back to where the two part, and what is new comes behind that. The log keeps both ways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session import events as kinds
from harnpy.session.errors import RewindError
from harnpy.session.events import EventDraft
from harnpy.session.prompt import HistoryEntry, entry_of
from harnpy.session.rewind import LeafMoved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.events import Event
    from harnpy.session.log import Session

    Json = dict[str, Any]


class Item(NamedTuple):
    """A message as a front end has it, and the events that it is here: the first of them, and the last.

    ``is_own``: the front end has said it itself, and if it says it otherwise now, it is another one.
    """

    message: Json
    first: Event
    last: Event
    is_own: bool


def told(session: Session) -> list[HistoryEntry]:
    """Return all that was said, also what a compaction has taken out of the window."""
    window = session.view.window
    events = window.history()
    for _, context in window.contexts:
        at = next((at for at, event in enumerate(events) if event.seq > context.seq), len(events))
        events.insert(at, context)
    return [entry_of(each) or HistoryEntry(each.body, each.id, each.type, event=each) for each in events]


def go_along(session: Session, items: Sequence[Item], given: Sequence[Json]) -> Sequence[Json]:
    """Have the session go back to where a front end's messages part from its ``items``; return the messages
    that are new to it.

    A front end that knows none of them, or the last ones alone, hasn't taken the others back. Raises
    `RewindError` when the history was replaced since, so that there was no such moment.
    """
    ids = [item.message["id"] for item in items]
    if not given or all(message["id"] not in ids for message in given):
        return given
    start = ids.index(given[0]["id"]) if given[0]["id"] in ids else 0
    kept = start
    for item, message in zip(items[start:], given, strict=False):
        if item.message["id"] != message["id"] or (item.is_own and item.message != message):
            break
        kept += 1
    if kept < len(items):
        _go_back(session, items[kept - 1].last if kept else None, items[kept].first)
    return given[kept - start :]


def _go_back(session: Session, last: Event | None, first: Event) -> None:
    """Go on behind ``last``, the event before ``first``; None is the beginning."""
    events = [entry.event for entry in told(session) if entry.event is not None]
    kept = events[: next(at for at, event in enumerate(events) if event.seq == first.seq)]
    behind, turn = first.seq - 1, first.turn
    if turn is not None and turn.seq > (0 if last is None else last.seq):
        behind = turn.seq - 1
    session.record(kinds.LEAF_MOVED, LeafMoved(behind))
    # A turn that went on is cut there, and over.
    for seq, begun in [*session.view.open_turns.items()]:
        ends = (e for e in session.read(seq, types=frozenset({kinds.TURN_COMPLETED})) if e.turn is not None)
        body = next((end.body for end in ends if end.turn is not None and end.turn.seq == seq), None)
        if body is not None:
            session.write(EventDraft(kinds.TURN_COMPLETED, body, turn=begun))
    if [entry.event and entry.event.seq for entry in told(session)] != [event.seq for event in kept]:
        raise RewindError(
            f"session '{session.id}' can't go back there: its history was replaced since", session.id
        )
