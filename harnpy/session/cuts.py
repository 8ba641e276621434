"""Cuts: events that replace the window, as they are shown and as they are stored. Spec: 10 §C3, §C5.

A cut names what it keeps by position, so it holds no text that the log has already.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from harnpy.session.compaction import merged_summary
from harnpy.session.events import (
    BRANCH_SUMMARY,
    COMPACTION_TRIGGERED,
    HISTORY_REPLACED,
    LEAF_MOVED,
    MESSAGE_ADDED,
    SESSION_CREATED,
    TRANSCRIPT_EVENT,
    ForeignEvent,
    Origin,
    Payload,
    Summary,
)
from harnpy.session.lifecycle import lifecycle_value
from harnpy.session.rewind import REGISTER as PINS
from harnpy.session.rewind import LeafMoved
from harnpy.session.window import Window, originals
from harnpy.session.window_rewriting import Rewritten, identify, key_of, named, rewritten
from harnpy.storage.memory import AppendOnlyList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from harnpy.session.events import Event
    from harnpy.session.registers import Register

    Json = dict[str, Any]

# The events that replace the window: what they hold, as it is shown, and as it is stored.
#
# A `Cut` in memory carries the window that it leaves. Stored, it names what it keeps by position in the log
# and holds only what is nowhere else: summaries, and what a fork brought from another log. A cut that was
# read from a store gets its window from the one before it, when a view applies it. Spec: 10 §A1.7, §C4, §C5.


#: The reason of a ``history_replaced`` that a strategy wrote.
RESIZE = "resize"
#: The strategy whose summary goes on with the former one by itself: it takes that one's place.
SUMMARIZE = "summarize"
#: What a window has beside messages and lifecycle events.
_FIELDS = ("summary", "metadata", "assets", "state")


class Cut(Payload):
    """Payload of the events that replace the window.

    ``reason`` is the reason of a ``history_replaced`` (``reset``, ``set``, ``fork``, ``fork_at``,
    ``resize``) or the strategy of a ``compaction_triggered`` (``trim`` …). A fork onto a session that exists
    also brings its ``parent_id`` and the parent's ``registers``; ``branched_at`` is the branch index of a
    ``fork_at``. ``cutoff`` is the last event before a compaction, ``note`` what its transcript event says of
    it, if it has one. ``former`` is the window before. ``rewrites``: any messages may stand in any order
    (10 §C8).
    """

    __slots__ = (
        "_cutoff", "_data", "_former", "_window", "branched_at", "cutoff_seq", "note", "parent_id", "reason",
        "registers", "rewrites"
    )  # fmt: skip

    def __init__(
        self,
        reason: str,
        window: Window,
        former: Window,
        branched_at: int | None = None,
        cutoff: Event | None = None,
        note: Json | None = None,
        rewrites: bool = False,
    ) -> None:
        self.reason = reason
        self.rewrites = rewrites
        self.note = note
        self._cutoff = cutoff
        self.cutoff_seq = None if cutoff is None else cutoff.seq
        self.parent_id: str | None = None
        self.registers: dict[str, tuple[int, Any]] | None = None
        self.branched_at = branched_at
        self._window: Window | None = window
        self._former: Window | None = former.branch()
        self._data: Json | None = None

    @classmethod
    def restored(cls, data: Json) -> Cut:
        """Return the cut that `stored` wrote. It has no window before `window_after` is called."""
        cut = cls.__new__(cls)
        cut.reason = data["strategy"] if "strategy" in data else data["reason"]
        cut._cutoff = None
        cut.rewrites = data.get("rewritten", cut.reason == RESIZE)
        cut.note = data.get("note")
        cut.cutoff_seq = data.get("cutoff_seq")
        cut.parent_id = data.get("parent_session_id")
        registers = data.get("registers")
        cut.registers = None
        if registers is not None:  # all but its pins, which are numbers of another log
            cut.registers = {key: tuple(value) for key, value in registers.items() if key != PINS}
        cut.branched_at = data.get("branched_at")
        cut._window = cut._former = None
        cut._data = data
        return cut

    @classmethod
    def fork(cls, parent_id: str, window: Window, registers: dict[str, Register], depth: int) -> Cut:
        """Return the cut that brings another session's contents. It holds all of them: the log that they
        come from may be gone one day. ``depth`` is how many sessions the fork descends from then."""
        return cls.restored(
            {
                "reason": "fork",
                "parent_session_id": parent_id,
                "depth": depth,
                "registers": {key: [known.version, known.value] for key, known in registers.items()},
                **_all_of(window),
            }
        )

    @property
    def window(self) -> Window:
        """The window that the cut leaves."""
        assert self._window is not None, "a view applies a cut before anyone looks at what it leaves"
        return self._window

    def window_after(self, former: Window, event: Event) -> Window:
        """Return the window that the cut leaves of ``former``; ``event`` is the one that carries it."""
        if self._window is None:
            assert self._data is not None
            self._window = _restored(self, self._data, former, event)
        return self._window

    def identify(self, event: Event) -> None:
        """Give the messages that a new cut made the identity of the event that carries it."""
        past = self.window.past_entries() if self.reason == RESIZE else ()
        identify([*self.window.entries.items(), *past], event)

    def data(self, event: Event) -> Json:
        if event.type == HISTORY_REPLACED:
            return {"messages": list(self.window.messages()), "reason": self.reason}
        if self._data is not None and "said" in self._data:
            return self._said(self._data, event)
        return {
            "strategy": self.reason,
            "cutoff_event_id": self._cutoff_id(event.owner),
            "entries": [_history_entry(entry, event.owner) for entry in self.window.entries.items()],
            **self._noted(),
        }

    def _said(self, stored: Json, event: Event) -> Json:
        """Return what `foreign_cut` was given, with ids as the event's session has them."""
        names = ("strategy", "note", "read_files", "modified_files")
        data = {**{name: stored[name] for name in names if name in stored}, **stored["said"]}
        shape = next((shape for shape in _SHAPES if data.get(shape) is not None), None)
        if shape is not None:
            entries = list(_spelled_entries(data[shape], stored.get("entries", []), event.owner))
            data[shape] = entries if shape == "entries" else [entry["message"] for entry in entries]
        return data if self.cutoff_seq is None else {**data, "cutoff_event_id": self._cutoff_id(event.owner)}

    def _noted(self) -> Json:
        return {} if self.note is None else {"note": self.note}

    def _cutoff_id(self, owner: Origin) -> str | None:
        if self._cutoff is not None:
            return owner.own(self._cutoff).id
        return None if self.cutoff_seq is None else owner.id_of(self.cutoff_seq)

    @property
    def begins_summary(self) -> bool:
        """Return whether the transcript's summary is the cut's own, without the former one."""
        return self.reason == SUMMARIZE

    def merged(self, former: Window, text: str) -> str | None:
        """Return the transcript's summary when the cut adds a text to what it was."""
        return merged_summary(None if self.begins_summary else former.summary, text)

    def added_summary(self, event: Event) -> str:
        """Return the text by which the cut made the transcript's summary grow, or begin.

        Raises LookupError when it did neither.
        """
        if event.type == HISTORY_REPLACED:
            text = self.stored(event).get("summary")
        else:
            text = next((message["content"] for message in self.summaries(event)), None)
        if not isinstance(text, str):
            raise LookupError(f"event {event.seq} adds nothing to the summary")
        return text

    def summaries(self, event: Event) -> list[Json]:
        """Return the messages that it made: those that are in the log nowhere else."""
        data = self.stored(event)
        items = data["messages" if event.type == HISTORY_REPLACED else "entries"]
        return [item["message"] for item in items if _is_message(item)]

    def stored(self, event: Event) -> Json:
        if self._data is None:
            assert self._former is not None
            self._data = _stored(self, self._former, event.type)
            self._former = None
        return self._data


def _history_entry(entry: Event, owner: Origin) -> Json:
    """Return a window's message as snapshots of ``owner`` show it. Spec: 10 §A1.7."""
    shown = {"event_id": owner.own(entry).id, "event_type": entry.type, "message": entry.body}
    return {**shown, "context_kind": "summary"} if isinstance(entry, Summary) else shown


# Writing.


def _stored(cut: Cut, former: Window, type: str) -> Json:
    window = cut.window
    if type != HISTORY_REPLACED:
        known = named(former) if cut.rewrites else former.entries.items()
        entries = _references(window.entries.items(), known)
        data: Json = {"strategy": cut.reason, "cutoff_seq": cut.cutoff_seq, "entries": entries}
        return data | ({"rewritten": True} if cut.rewrites else {}) | cut._noted()
    if cut.reason == "reset":
        return {"messages": [], "reason": cut.reason}
    known = named(former) if cut.rewrites else former.kept()
    data = {"messages": _references(window.entries.items(), known), "reason": cut.reason}
    past = window.past_entries()
    if past:
        data["history"] = _references(past, known)
    if window.repeated:
        data["repeated"] = window.repeated
    if cut.branched_at is not None:
        data["branched_at"] = cut.branched_at
    changed = (name for name in _FIELDS if getattr(window, name) != getattr(former, name))
    return {**data, **{name: getattr(window, name) for name in changed}}


def _references(entries: Sequence[Event], known: Sequence[Event]) -> list[Any]:
    """Return ``entries`` as spans of positions in the log; messages that aren't ``known`` are spelt out.

    A span ``[from, to]`` means all known entries among those events. Where that would be too many, because
    the window's order isn't the log's, ``{"at": [start, end]}`` is a slice of the known entries.
    """
    places = {key_of(entry): place for place, entry in enumerate(known)}
    items: list[Any] = []
    start = end = -1
    for entry in entries:
        place = places.get(key_of(entry))
        if place is not None and place == end:
            end += 1
            continue
        if start >= 0:
            items.append(_span(known, start, end))
            start = end = -1
        if place is None:
            items.append({"message": entry.body})
        else:
            start, end = place, place + 1
    if start >= 0:
        items.append(_span(known, start, end))
    return items


def _span(known: Sequence[Event], start: int, end: int) -> Any:
    seqs = [entry.seq for entry in known[start:end]]
    low, high = min(seqs), max(seqs)
    if sum(low <= entry.seq <= high for entry in known) == end - start:
        return [low, high]
    return {"at": [start, end]}


# Cuts that others wrote, who say what a model is to be shown. Spec: 10 §A1.7.


_SHAPES = ("entries", "messages")


def foreign_cut(data: Json, number: Callable[[Any], int | None], messages: Mapping[int, Json]) -> Json:
    """Return the stored form of a cut that says what it leaves in ``entries`` or ``messages``.

    ``number(id)`` is that of the event with the id, None without one; ``messages`` are those that the cut
    may keep, by number. It counts with a cut-off and something in it. What the stored form doesn't say
    itself is in ``said``: of each entry ``[number, rest]``, where the message stands among the stored
    entries, or ``[entry]`` for one that is none.
    """
    said = dict(data)
    stored: Json = {"strategy": str(said.pop("strategy", "")), "foreign": True, "said": said}
    if said.get("note") is not None:
        stored["note"] = said.pop("note")
    cutoff = number(data.get("cutoff_event_id"))
    if cutoff:
        stored["cutoff_seq"] = cutoff
        del said["cutoff_event_id"]
    shape = next((shape for shape in _SHAPES if data.get(shape) is not None), None)
    if shape is None:
        return stored
    entries = data[shape] if shape == "entries" else [{"message": message} for message in data[shape]]
    parted = [_parted(entry, number, messages if cutoff else None) for entry in entries]
    said[shape] = [rest for _, rest in parted]
    if not cutoff:
        return stored
    items = [item for item, _ in parted if item is not None]
    named = {item[0] for item in items if isinstance(item, list)}
    items += [[at, at] for at in messages if at > cutoff and at not in named]
    files = {key: said.pop(key) for key in ("read_files", "modified_files") if said.get(key)}
    return {**stored, "entries": joined(items), **files}


def _parted(
    entry: Any, number: Callable[[Any], int | None], messages: Mapping[int, Json] | None
) -> tuple[Any, Any]:
    """Return an entry's message by its number in the log, or what is nowhere else spelt out, and the rest of
    it. None for context, which stays by itself, and for all if the cut doesn't count."""
    message = entry.get("message") if isinstance(entry, dict) else None
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return None, [entry]
    at = number(entry.get("event_id")) or 0
    rest = {key: value for key, value in entry.items() if key != "event_id" or not at}
    is_context = at or entry.get("context_kind") == "working_set"
    if messages is None or (at not in messages and is_context):
        return None, [at, rest]  # the views make it of the log themselves
    del rest["message"]
    return [at, at] if messages.get(at) == message else {"message": message}, [at, rest]


def joined(items: list[Any]) -> list[Any]:
    """Return the items with neighbours in one span."""
    found: list[Any] = []
    for item in items:
        last = found[-1] if found else None
        if isinstance(item, list) and isinstance(last, list) and last[1] + 1 == item[0]:
            found[-1] = [last[0], item[1]]
        else:
            found.append(item)
    return found


def _spelled_entries(said: list[Any], items: list[Any], owner: Origin) -> Iterator[Any]:
    """Return the entries of `foreign_cut`, of what was parted."""
    spans: Iterator[Iterable[Any]]
    spans = ([item] if isinstance(item, dict) else range(item[0], item[1] + 1) for item in items)
    parts = chain.from_iterable(spans)
    for number, *rest in said:
        if not rest:
            yield number
            continue
        entry = {"event_id": owner.id_of(number), **rest[0]} if number else dict(rest[0])
        if "message" not in entry:
            part = next(parts)
            logged = None if isinstance(part, dict) else owner.find(part)
            entry["message"] = part["message"] if isinstance(part, dict) else logged and logged.body
        yield entry


def _all_of(window: Window) -> Json:
    return {
        "messages": [_spelt_out(entry) for entry in window.entries.items()],
        "history": [_spelt_out(entry) for entry in window.past_entries()],
        "repeated": window.repeated,
        "events": [[position, lifecycle_value(event)] for position, event in window.lifecycle()],
        **{name: getattr(window, name) for name in _FIELDS},
    }


def _spelt_out(entry: Event) -> Json:
    data = {"message": entry.body, "id": entry.first.id}
    if isinstance(entry, Summary):
        data["archived"] = [_spelt_out(event) for event in originals([entry])]
    return data


# Reading.


def _restored(cut: Cut, data: Json, former: Window, event: Event) -> Window:
    window = _window_of(cut, data, former, event)
    if "read_files" in data or "modified_files" in data:
        window.files = data.get("read_files", []), data.get("modified_files", [])
    return window


def _window_of(cut: Cut, data: Json, former: Window, event: Event) -> Window:
    if event.type != HISTORY_REPLACED:
        if data.get("foreign"):
            return _foreign_window(data.get("entries"), former, event)
        return _compacted(cut, data["entries"], former, event)
    if cut.reason == "reset":
        return Window()
    if cut.parent_id is not None:
        return _brought_window(data, event)
    known = named(former) if cut.rewrites else former.kept()
    made = Rewritten if cut.rewrites else _bare_summary
    entries = _entries(data["messages"], known, event, made)
    if cut.rewrites:
        window = rewritten(former, entries)
    elif cut.branched_at is None:
        window = former.with_entries(entries)
    else:
        window = former.beginning(entries, cut.branched_at - len(entries))
    past = _entries(data.get("history", []), known, event, made)
    window.past = (past, None) if past else None
    window.repeated = data.get("repeated", 0)
    if cut.rewrites:
        identify([*entries, *past], event)
    for name in _FIELDS:
        if name in data:
            setattr(window, name, data[name])
    return window


def _compacted(cut: Cut, items: list[Any], former: Window, event: Event) -> Window:
    if cut.rewrites:
        entries = _entries(items, named(former), event, Rewritten)
        identify(entries, event)
        return rewritten(former, entries)
    known = former.entries.items()
    made = next((place for place, item in enumerate(items) if _is_message(item)), None)
    if made is None:
        return former.trimmed(len(_entries(items, known, event)))
    start = len(_entries(items[:made], known, event))
    split = len(known) - len(_entries(items[made + 1 :], known, event))
    message = items[made]["message"]
    summary = Summary(event.first.owner, message, known[start:split])
    summary.made_by(event)
    window = former.compacted(start, split, summary)
    window.summary = cut.merged(former, message["content"])
    return window


def _foreign_window(items: list[Any] | None, former: Window, event: Event) -> Window:
    """Return the window that another system's cut leaves: of any shape. Without ``items`` it counts for
    nothing."""
    if items is None:
        return former
    known = former.entries.items()
    kept = _entries(items, known, event)
    places = {id(entry) for entry in kept}
    window = former.with_entries(kept)
    window.past = ([entry for entry in known if id(entry) not in places], former.past)
    window.contexts = former.prefix_contexts()
    return window


def _is_message(item: Any) -> bool:
    return isinstance(item, dict) and "message" in item


def _bare_summary(owner: Origin, message: Json) -> Summary:
    return Summary(owner, message, [])


def _entries(
    items: list[Any],
    known: Sequence[Event],
    event: Event,
    made: Callable[[Origin, Json], Event] = _bare_summary,
) -> list[Event]:
    """Return what `_references` wrote; ``made(owner, message)`` is a message that is spelt out."""
    entries: list[Event] = []
    for item in items:
        if isinstance(item, list):
            low, high = item
            entries += [entry for entry in known if low <= entry.seq <= high]
        elif "at" in item:
            start, end = item["at"]
            entries += known[start:end]
        else:
            entry = made(event.first.owner, item["message"])
            if isinstance(entry, Summary):
                entry.made_by(event)
            entries.append(entry)
    return entries


def _brought_window(data: Json, event: Event) -> Window:
    def entry(item: Json) -> Event:
        if "archived" not in item:
            return ForeignEvent(event, MESSAGE_ADDED, item["message"], item["id"])
        summary = Summary(event.first.owner, item["message"], [entry(inner) for inner in item["archived"]])
        summary.made_by(event)
        summary.named(item["id"])
        return summary

    events = [(at, ForeignEvent(event, TRANSCRIPT_EVENT, value, value["id"])) for at, value in data["events"]]
    window = Window(AppendOnlyList(map(entry, data["messages"])), AppendOnlyList(events))
    past = [entry(item) for item in data["history"]]
    window.past = (past, None) if past else None
    window.repeated = data.get("repeated", 0)
    for name in _FIELDS:
        setattr(window, name, data[name])
    return window


# The payload of ``branch_summary``. Spec: 10 §A1.2, §A1.9, §C4.


class BranchSummary(Payload):
    """The summary of a branch that was left. Stored, it names the event that it begins from by its number."""

    __slots__ = ("_stored",)

    def __init__(self, stored: dict[str, Any]) -> None:
        self._stored = stored

    def data(self, event: Event) -> dict[str, Any]:
        said = {key: value for key, value in self._stored.items() if key != "from_seq"}
        return {"from_event_id": event.owner.id_of(self._stored["from_seq"]), **said}

    def stored(self, event: Event) -> dict[str, Any]:
        return self._stored


# The payload of a session's first event, and payloads made of what a store keeps.
#
# Spec: 10 §A1.1, §C9.


#: What ``session_created`` says of the session's agent.
AGENT_FACTS = ("agent_name", "agent_label", "definition")


_NO_FACTS: dict[str, Any] = {}


class Created(Payload):
    """Payload of ``session_created``. A fork names its parent and how many events it has from there.

    ``point`` is the last of those, if it is at hand; ``facts`` is what else is known of the session.
    """

    __slots__ = ("_point", "facts", "fork_seq", "parent")

    def __init__(
        self,
        parent: Origin | None = None,
        fork_seq: int = 0,
        point: Event | None = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        self.parent = parent
        self.fork_seq = fork_seq
        self.facts = facts or _NO_FACTS
        self._point = point

    def data(self, event: Event) -> dict[str, Any]:
        data = self.stored(event)
        if self.parent is None:
            return data
        point = self._point or event.owner.find(self.fork_seq)
        id = "" if point is None else self.parent.own(point).id
        return {
            "depth": event.owner.depth,
            "parent_session_id": self.parent.id,
            "fork_point_event_id": id,
            **data,
        }

    def stored(self, event: Event) -> dict[str, Any]:
        depth = event.owner.depth
        if self.parent is None:
            return {"depth": depth, **self.facts}
        fork = {"parent_session_id": self.parent.id, "fork_point_seq": self.fork_seq}
        return {"depth": depth, **fork, **self.facts}


def restored_payload(type: str, data: Any, owner: Origin) -> Any:
    """Return the payload whose stored form is ``data``; ``owner`` is the session that wrote it."""
    if type == SESSION_CREATED:
        return _restored_creation(data, owner)
    if type in (HISTORY_REPLACED, COMPACTION_TRIGGERED):
        return Cut.restored(data)
    if type == LEAF_MOVED:
        return LeafMoved.restored(data)
    if type == BRANCH_SUMMARY and "from_seq" in data:
        return BranchSummary(data)
    return data


def _restored_creation(data: dict[str, Any], owner: Origin) -> Created:
    facts = {key: value for key, value in data.items() if key not in _LINEAGE}
    if facts.get("depth") == owner.depth:
        del facts["depth"]  # which is as it should be
    parent = data.get("parent_session_id")
    if parent is None:
        return Created(facts=facts)
    shared = data["fork_point_seq"]
    # An imported log holds what it shared with a parent that may not be here.
    known = owner.parent or Origin(parent, owner.world, shared=shared)
    return Created(known, shared, facts=facts)


_LINEAGE = frozenset({"parent_session_id", "fork_point_seq"})
