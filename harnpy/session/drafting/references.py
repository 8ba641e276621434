"""Drafts that name other events by their ids, as the log keeps them: by number. Spec: 10 §A1.4, §A1.7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.errors import EventNotFound, EventRejected
from harnpy.session.events import EventDraft, Payload
from harnpy.session.kept.past import number_of
from harnpy.session.parts.arguments import text
from harnpy.session.shown.branch_summary import BranchSummary
from harnpy.session.shown.rewinding import LeafMoved, leaf_of

if TYPE_CHECKING:
    from harnpy.session.drafting import payload_types as types
    from harnpy.session.events import Origin
    from harnpy.session.views import View
    from harnpy.storage.contract import Stream

    Json = dict[str, Any]

#: Where a conversation goes on from that is taken back to its begin: behind the session's first event.
ROOT = 1


class Log(Protocol):
    """What references are looked up in."""

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
        return draft.copy(data=Cut.restored(_compaction(log, said)))
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


def _compaction(log: Log, said: types.CompactionTriggered) -> Json:
    """Return the stored form of a cut that spells out what a model is to be shown, and what followed."""
    stored: Json = {"strategy": said.strategy, "foreign": True}
    if said.note is not None:
        stored["note"] = said.note
    cutoff = _number(log, said.cutoff_event_id or "")
    if said.cutoff_event_id and not cutoff:
        raise EventRejected(
            f'effective history: compaction cutoff "{said.cutoff_event_id}" not found', log.id
        )
    entries = said.entries
    if entries is None and said.messages is not None:
        entries = [{"message": message} for message in said.messages]
    if not cutoff or entries is None:
        return stored
    window = log.view.window.entries.items()
    known = {log.origin.own(entry).id: entry for entry in window if entry.is_logged}
    items = [item for entry in entries if (item := _item(log, entry, known)) is not None]
    named = {item[0] for item in items if isinstance(item, list)}
    items += [[e.seq, e.seq] for e in window if e.is_logged and e.seq > cutoff and e.seq not in named]
    files = {key: found for key in ("read_files", "modified_files") if (found := getattr(said, key))}
    return {**stored, "cutoff_seq": cutoff, "entries": items, **files}


def _item(log: Log, entry: Json, known: dict[str, Any]) -> Any:
    """Return a message of the window by its number, or what is nowhere else spelt out; None for context,
    which stays by itself."""
    message = entry.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise EventRejected(
            "session append: compaction_triggered: an entry has no message with a role", log.id
        )
    id = entry.get("event_id") or ""
    if id in known:
        return [known[id].seq] * 2 if known[id].body == message else {"message": message}
    if _number(log, id) or entry.get("context_kind") == "working_set":
        return None
    return {"message": message}


def _number(log: Log, id: str) -> int:
    """Return the number of the event of that id; 0 when there is none."""
    try:
        return number_of(log.stream, id, log.origin) if id else 0
    except EventNotFound:
        return 0
