"""A session as Canto's log, and its record in the ancestry. Spec: 10 §A1.1, §A1.10, §A1.11, §C17."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.json import encode as to_json

from harnpy.session import events as kinds
from harnpy.session.events import Summary
from harnpy.session.shown.message_parts import calls_of, results_of
from harnpy.session.shown.rewinding import LeafMoved
from harnpy.session.transfer.canto import approvals
from harnpy.session.transfer.canto.ids import next_id, to_canto_id
from harnpy.session.transfer.canto.messages import to_canto
from harnpy.session.transfer.shapes import shape_of
from harnpy.session.views import View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.shown.entries import HistoryEntry

    Json = dict[str, Any]

#: Canto's logs have no first event: its facts are the record in the ancestry.
FIRST = 1
_RESET = "<conversation_summary>\nThe conversation was reset.\n</conversation_summary>"
_PRIVILEGED = ("system", "developer")
#: What Canto reads as a snapshot of what a model is shown.
SNAPSHOTS = frozenset({kinds.COMPACTION_TRIGGERED, kinds.PROJECTION_SNAPSHOTTED})


def ancestry_of(session: Session) -> Json:
    """Return a session's record in the ancestry."""
    first = session.event(FIRST)
    facts, parent = first.stored(), session.origin.parent
    record: Json = {"session_id": session.id}
    if parent is not None:
        point = first.data.get("fork_point_event_id")
        record["parent_session_id"] = parent.id
        record |= {"fork_point_event_id": to_canto_id(point, parent.id)} if point else {}
    record |= {key: facts[key] for key in ("branch_label", "fork_reason") if facts.get(key)}
    more = {"more": first.more} if first.more else {}
    harn = {"stored": facts, **more}
    return {**record, "depth": facts["depth"], "created_at": first.timestamp, "harn": harn}


def dump_lines(session: Session) -> Iterator[str]:
    """The lines of a session's log, each with its line break."""
    writer = _Writer(session)
    for event in session.events():
        for envelope in writer.envelopes(event):
            yield to_json(envelope).decode() + "\n"


class _Writer:
    """Writes the events of a log in order, and what only Canto needs behind those that it stands for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: list[Event] = []
        self._append: list[Event] = []
        self._view = View()
        self._view.log = lambda until: self._seen[:until]
        self._count = 0
        #: The last line of an event that has several, by the event's id there.
        self._tips: dict[str, str] = {}

    def envelopes(self, event: Event) -> list[Json]:
        self._show(event)
        if event.seq == FIRST:
            return []
        first, *more = self._forms(event)
        id, parent = self._id(event.id), self._parent(event)
        envelopes = [self._envelope(event, id, parent, *first)]
        for step, (type, data) in enumerate(more, 1):
            parent, self._tips[id] = self._tips.get(id, id), next_id(id, step)
            envelopes.append(self._envelope(event, self._tips[id], parent, type, data, {"extra": True}))
        return envelopes

    def _show(self, event: Event) -> None:
        self._seen.append(event)
        self._append.append(event)
        # The last append of a log cut short by ``until`` may lack its end: a cut is shown at once.
        if not event.more or event.type in SNAPSHOTS or event.type == kinds.HISTORY_REPLACED:
            self._view.extend(self._append)
            self._append = []

    def _envelope(
        self, event: Event, id: str, parent: str | None, type: str, data: Any, harn: Json | None = None
    ) -> Json:
        self._count += 1
        metadata = self._metadata(event, {} if harn is None else harn)
        envelope: Json = {"id": id, "session_id": event.session_id}
        if event.turn_id is not None:
            envelope["turn_id"] = self._id(event.turn_id)
        envelope["seq"] = self._count
        if parent is not None:
            envelope["parent_id"] = parent
        envelope |= {"type": type, "timestamp": event.timestamp, "data": data}
        if metadata:
            envelope["metadata"] = metadata
        if event.cost and "extra" not in metadata.get("harn", {}):
            envelope["cost"] = event.cost
        return envelope

    def _metadata(self, event: Event, harn: Json) -> Json:
        if "extra" in harn:
            return {"harn": harn}
        metadata = dict(event.metadata)
        origin = metadata.get("fork_origin")
        if isinstance(origin, dict):
            metadata["fork_origin"] = {**origin, "event_id": to_canto_id(**_named(origin))}
        harn |= {"more": event.more} if event.more else {}
        if self._id(event.id) == event.id:
            harn["seq"] = event.seq
        return metadata | ({"harn": harn} if harn else {})

    def _parent(self, event: Event) -> str | None:
        parent = event.parent_id
        if parent is None or parent == self._seen[0].id:
            return None
        return self._last_line(parent)

    def _last_line(self, id: str) -> str:
        """Return the id of the last line of an event."""
        first = self._id(id)
        return self._tips.get(first, first)

    def _id(self, id: str) -> str:
        return to_canto_id(id, self._session.id)

    # What Canto reads in an event: its own form, then lines for Canto alone.

    def _forms(self, event: Event) -> list[tuple[Any, ...]]:
        if event.type == kinds.MESSAGE_ADDED:
            return self._message(event.body)
        if event.type == kinds.LEAF_MOVED:
            return [(event.type, self._target(event), {"stored": event.stored()})]
        if event.type in SNAPSHOTS:
            stored = event.stored()
            is_checkpoint = event.type == kinds.PROJECTION_SNAPSHOTTED
            cutoff = event.seq - 1 if is_checkpoint else stored["cutoff_seq"]
            note = {"note": stored["note"]} if "note" in stored else {}
            snapshot = self._snapshot(stored["strategy"], cutoff, self._shown(is_cut=not is_checkpoint))
            return [(event.type, {**snapshot, **note}, {"stored": stored})]
        if event.type == kinds.HISTORY_REPLACED:
            snapshot = self._snapshot("history_replaced", event.seq, self._shown(is_cut=True))
            extra = (kinds.COMPACTION_TRIGGERED, snapshot)
            return [(event.type, event.data, {"stored": event.stored()}), extra]
        data, stored = approvals.to_canto(event.type, event.data), event.stored()
        if event.type == kinds.BRANCH_SUMMARY and "from_event_id" in data:
            data = {**data, "from_event_id": self._id(data["from_event_id"])}
        harn = {} if stored == event.data else {"stored": stored}
        return [(event.type, data, harn)]

    def _message(self, message: Json) -> list[tuple[Any, ...]]:
        if message["role"] in _PRIVILEGED:
            context = {"kind": "harness", "placement": "history", "content": shape_of(message).text}
            return [(kinds.CONTEXT_ADDED, context, {"message": message})]
        first, *more = to_canto(message)
        harn = {} if first == message and not more else {"message": message}
        return [(kinds.MESSAGE_ADDED, first, harn), *((kinds.MESSAGE_ADDED, other) for other in more)]

    def _target(self, event: Event) -> Json:
        data = {key: value for key, value in event.data.items() if key != "target_event_id"}
        target = self._standing(event.body.target)
        return data if target is None else {"target_event_id": target, **data}

    def _standing(self, seq: int | None) -> str | None:
        """Return the id of the event that one behind number ``seq`` stands behind: no move, as they are on no
        branch. None at the begin."""
        while seq and isinstance(move := self._seen[seq - 1].body, LeafMoved):
            seq = move.target
        return self._last_line(self._seen[seq - 1].id) if seq and seq > FIRST else None

    def _shown(self, *, is_cut: bool) -> list[Json]:
        """What a model is shown at this point. A cut that left nothing would count for nothing; a checkpoint
        that was taken while a call was open must, or the call's result would stand without it."""
        if not is_cut and self._awaits_results():
            return []
        shown = self._view.entries(self._session._read_tools, annotate=True)
        entries = [form for entry in shown for form in self._entry(entry)]
        if is_cut and not entries:
            message = {"role": "user", "content": _RESET}
            return [{"context_kind": "summary", "placement": "prefix", "message": message}]
        return entries

    def _awaits_results(self) -> bool:
        """Whether a call of the last answer has no result yet."""
        awaited: list[str | None] = []
        for message in self._view.window.messages():
            answered = results_of(message)
            if answered is None:
                awaited = [call.id for call in calls_of(message)]
            else:
                awaited = [id for id in awaited if id not in answered]
        return bool(awaited)

    def _snapshot(self, strategy: str, cutoff: int | None, entries: list[Json]) -> Json:
        """``cutoff`` is the number of the last event before the snapshot."""
        standing = self._standing(cutoff)
        known = {} if standing is None else {"cutoff_event_id": standing}
        read, modified = self._view.window.files
        files = {"read_files": list(read), "modified_files": list(modified)}
        return {"strategy": strategy, **known, "entries": entries, **{k: v for k, v in files.items() if v}}

    def _entry(self, entry: HistoryEntry) -> list[Json]:
        form = entry.shown()
        if isinstance(entry.event, Summary):
            form.pop("event_id", None)  # it is that of the cut itself
        elif "event_id" in form:
            form["event_id"] = self._id(form["event_id"])
        return [{**form, "message": message} for message in to_canto(form["message"])]


def _named(origin: Json) -> Json:
    return {"id": str(origin.get("event_id", "")), "session_id": str(origin.get("session_id", ""))}
