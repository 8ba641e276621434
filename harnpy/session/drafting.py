"""Drafts: checking what callers want to append and completing it. Spec: 10 §A1.4, §C3, §C3.4."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harnpy.session import events as kinds
from harnpy.session.arguments import checked, mapping, text
from harnpy.session.cuts import BranchSummary, Cut, foreign_cut
from harnpy.session.errors import EventNotFound, EventRejected
from harnpy.session.events import (
    MICROS,
    TURN_COMPLETED,
    TURN_STARTED,
    Event,
    EventDraft,
    Payload,
    Place,
    TurnRef,
    read_stamp,
)
from harnpy.session.past import number_of
from harnpy.session.rewind import LeafMoved, leaf_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harnpy.session.events import Origin
    from harnpy.session.view import View
    from harnpy.storage.contract import Stream

    Json = dict[str, Any]

# What a draft says beside its data: type, turn, cost, and what an import brings. Spec: 10 §C3.


_INFINITY = float("inf")


def check_drafts(drafts: Sequence[EventDraft]) -> None:
    """Make sure that they can be stored anywhere. Raises `EventRejected`."""
    check_fields(drafts)
    for draft in drafts:
        draft.check()


def check_fields(drafts: Sequence[EventDraft]) -> None:
    """Check all but data and metadata. Raises `EventRejected`."""
    for draft in drafts:
        if not isinstance(draft, EventDraft):
            raise EventRejected(f"session append: expected an EventDraft, got {type(draft).__name__}")
        if draft.type.__class__ is not str or not draft.type.isascii():
            draft.type = _text("type", draft.type)
        if draft.cost or draft.turn is not None or draft.id is not None or draft.place is not None:
            _check_rest(draft)


def _check_rest(draft: EventDraft) -> None:
    if draft.cost and not _is_finite(draft.cost):
        raise EventRejected(f"session append: `cost` must be a finite number, got {draft.cost!r}")
    if draft.turn is not None and not isinstance(draft.turn, Event | TurnRef | EventDraft):
        draft.turn = _text("turn", draft.turn)
    draft.id = _brought("id", draft.id)
    if draft.place is not None:
        parent_id, timestamp, seq = draft.place
        if seq is not None and type(seq) is not int:
            raise EventRejected(f"session append: `seq` must be an int, got {type(seq).__name__}")
        draft.place = Place(_brought("parent_id", parent_id), _brought("timestamp", timestamp), seq)


def _brought(name: str, value: str | None) -> str | None:
    return None if value is None else _text(name, value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise EventRejected(f"session append: `{name}` must be a text, got {type(value).__name__}")
    mended: str = checked(str(value))
    return mended


def _is_finite(cost: Any) -> bool:
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    return is_number and -_INFINITY < cost < _INFINITY


# What the code around an append adds to the events: metadata, and the turn that they belong to.
#
# Both are context variables: they hold in the block, and in the tasks and threads that it starts. What an
# event says itself wins; within blocks, the inner one. Spec: 10 §A1.4 step 2.


class Ambient(NamedTuple):
    """``turn`` is the name of one, None outside of any."""

    metadata: Mapping[str, Any]
    turn: str | None


#: None outside of all blocks: appending costs one look at it.
AMBIENT: ContextVar[Ambient | None] = ContextVar("harnpy.session.ambient", default=None)
_NOTHING = Ambient({}, None)


@contextmanager
def metadata(values: Mapping[str, Any] | None = None, /, **more: Any) -> Iterator[None]:
    """Add these keys to the metadata of the events that the block appends; what an event has itself stays.

    Raises `EventRejected` for what isn't JSON.
    """
    now = current()
    given = checked({**mapping("metadata", values), **more}, "metadata")
    with _set(Ambient({**now.metadata, **given}, now.turn)):
        yield


def current_metadata() -> dict[str, Any]:
    """Return the metadata that an event would get here."""
    return dict(current().metadata)


@contextmanager
def turn(id: str) -> Iterator[str]:
    """Have the events that the block appends belong to the turn of that name, where they belong to none."""
    id = text("turn", id)
    with _set(current()._replace(turn=id)):
        yield id


def current_turn() -> str | None:
    """Return the name of the turn that an event would belong to here; None outside of any."""
    return current().turn


@contextmanager
def ensure_turn() -> Iterator[str]:
    """`turn` under the name of the one that this is in already, else under a new one."""
    known = current_turn()
    if known is None:
        from harnpy.world import World

        known = World().ids.new()
    with turn(known):
        yield known


def current() -> Ambient:
    return AMBIENT.get() or _NOTHING


def surrounded(drafts: Sequence[EventDraft], ambient: Ambient) -> list[EventDraft]:
    """Return copies of drafts with what the code around them adds."""
    copies: list[EventDraft] = []
    for draft in drafts:
        turn: Any = ambient.turn if draft.turn is None else draft.turn
        if isinstance(turn, EventDraft):  # it is among them
            turn = next((copy for known, copy in zip(drafts, copies, strict=False) if known is turn), turn)
        metadata = {**ambient.metadata, **(draft.metadata or {})}
        copies.append(draft.copy(metadata=metadata, turn=turn))
    return copies


@contextmanager
def _set(now: Ambient) -> Iterator[None]:
    token = AMBIENT.set(now)
    try:
        yield
    finally:
        AMBIENT.reset(token)


# Drafts that name other events by their ids, as the log keeps them: by number. Spec: 10 §A1.4, §A1.7.


#: Where a conversation goes on from that is taken back to its begin: behind the session's first event.
ROOT = 1


class Log(Protocol):
    """A log in which references are looked up."""

    id: str
    origin: Origin
    stream: Stream
    view: View


class MoveToParent(EventDraft):
    """The move of the leaf that an event of another branch needs before it: nobody gave this draft."""

    __slots__ = ()


def move_to_parent(log: Log, parent_id: str) -> list[EventDraft]:
    """Return the move that makes the event of that id the leaf; none when it is. Raises `EventRejected`."""
    seq = _number(log, parent_id)
    if not seq:
        raise EventRejected(f'session tree: parent event "{parent_id}" not found', log.id)
    return [] if seq == leaf_of(log.stream) else [MoveToParent(kinds.LEAF_MOVED, LeafMoved(seq))]


def resolved(log: Log, draft: EventDraft, said: Any) -> EventDraft:
    """Return the draft as the log keeps it; ``said`` is its data. Raises `EventRejected`."""
    if draft.type == kinds.LEAF_MOVED:
        return draft.copy(data=moved(log, said.target_event_id or "", said.reason))
    if draft.type == kinds.BRANCH_SUMMARY:
        return draft.copy(data=summarized(log, draft.data))
    if draft.type == kinds.COMPACTION_TRIGGERED:
        return draft.copy(data=Cut.restored(_compaction(log, draft.data)))
    return draft


def moved(log: Log, event_id: str, reason: str | None = None) -> LeafMoved:
    """Return the move of the leaf to the event of that id; to the begin, for an empty one.

    Raises `EventRejected` for an event that isn't there, or is the leaf.
    """
    target = _number(log, event_id) if event_id else ROOT
    if not target:
        raise EventRejected(f'session tree: target event "{event_id}" not found', log.id)
    if target == leaf_of(log.stream):
        raise EventRejected("session tree: leaf target cannot be the leaf event itself", log.id)
    return LeafMoved(target, reason)


def summarized(log: Log, data: Json) -> Payload | Json:
    """Return the payload of a ``branch_summary``. Raises `EventRejected` for a blank one."""
    if not text("summary", data["summary"]).strip():
        raise EventRejected("session branch summary: summary is required", log.id)
    seq = _number(log, data.get("from_event_id") or "")
    if not seq:
        return data
    return BranchSummary(
        {**{key: value for key, value in data.items() if key != "from_event_id"}, "from_seq": seq}
    )


def _compaction(log: Log, data: Json) -> Json:
    """Return the stored form of a cut that spells out what a model is to be shown, and what followed."""
    cutoff = data.get("cutoff_event_id")
    if cutoff and not _number(log, cutoff):
        raise EventRejected(f'effective history: compaction cutoff "{cutoff}" not found', log.id)
    messages = [entry.get("message") for entry in data.get("entries") or ()] or data.get("messages") or ()
    if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
        raise EventRejected(
            "session append: compaction_triggered: an entry has no message with a role", log.id
        )
    window = (entry for entry in log.view.window.entries.items() if entry.is_logged)
    return foreign_cut(data, lambda id: _number(log, id), {entry.seq: entry.body for entry in window})


def _number(log: Log, id: Any) -> int:
    """Return the number of the event of that id; 0 when there is none."""
    try:
        return number_of(log.stream, id, log.origin) if id and isinstance(id, str) else 0
    except EventNotFound:
        return 0


# Drafts that name their turn, or bring their own time and number. Spec: 10 §A1.4 step 4, §C3.


def place(drafts: Sequence[EventDraft], events: Sequence[Event], view: View, moment: float) -> None:
    """Give the events of one append their turns by name, and the times that their drafts say. An end that
    names no turn ends the open one that began last.

    ``moment`` is that of the event before: times of one log never go back. Raises `EventRejected` for a
    number that isn't the next, or for what is no time stamp.
    """
    open_turns = {seq: events[0].owner.own(turn) for seq, turn in view.open_turns.items()}
    for draft, event in zip(drafts, events, strict=True):
        if draft.place is not None:
            _, timestamp, seq = draft.place
            if seq is not None:
                _check_seq(seq, event)
            if timestamp is not None:
                event.moment = _moment(timestamp, event)
        event.moment = moment = max(moment, event.moment)
        if event.type == TURN_STARTED:
            open_turns[event.seq] = event
        elif isinstance(draft.turn, str):
            begun = reversed(open_turns.values())
            named = (turn for turn in begun if draft.turn in (turn.turn_name, turn.id))
            event.turn = next(named, event.turn)
        elif event.type == TURN_COMPLETED and draft.turn is None:
            event.turn = next(reversed(open_turns.values()), None)
        if event.type == TURN_COMPLETED and event.turn is not None:
            open_turns.pop(event.turn.seq, None)


def asked_for(drafts: Sequence[EventDraft], events: Sequence[Event]) -> list[Event]:
    """Return the events of the drafts that a caller gave: no moves that one needs before it."""

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
