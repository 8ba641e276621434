"""The view of a log: the window, and everything else a log says about its session. Spec: 10 §C5.

The same events make the same `View`, whether applied one by one or all at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session import events as kinds
from harnpy.session.lifecycle import TranscriptOrder, is_in_transcript
from harnpy.session.prompt import FILES_LIMIT, Stable, entries
from harnpy.session.registers import (
    ACTIVE,
    DONE,
    HANDED_OVER,
    IN_PROGRESS,
    OF_THE_BRANCH,
    PENDING,
    Register,
    execution_after,
)
from harnpy.session.rewind import ENDS_REDO, Rewound, pinned_entries
from harnpy.session.rewind import REGISTER as PINS
from harnpy.session.transcript import transcript
from harnpy.session.window import NOTHING, Window, turn_of
from harnpy.storage.memory import AppendOnlyList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from harnpy.session.cuts import Created, Cut
    from harnpy.session.events import Event
    from harnpy.session.messages import Message
    from harnpy.session.prompt import HistoryEntry, ReadTools
    from harnpy.storage.contract import Stream

    Past = Callable[[int], Iterable[Event]]
    Convert = Callable[[Message], Any]


class SummaryCut(NamedTuple):
    """A cut that the transcript's summary was made by, and the one whose summary it went on with."""

    seq: int
    before: SummaryCut | None

    def backwards(self) -> Iterator[SummaryCut]:
        cut: SummaryCut | None = self
        while cut is not None:
            yield cut
            cut = cut.before


_NOT_REWOUND = Rewound()


class View:
    """A session as its log describes it.

    ``registers`` are by key, ``clients`` the records of the attached clients by id,
    ``open_turns`` the turns without an end by number.
    ``parent_id`` is the session it was last forked from, ``linked_at`` the last event that came from there,
    ``cleared_at`` the last reset, ``cut_at`` the last cut, ``summary_cut`` the last that changed the summary.
    """

    __slots__ = (
        "branched_at", "cleared_at", "clients", "created", "cut_at", "execution", "linked_at", "log",
        "open_turns", "parent_id", "pins", "registers", "rewound", "sent", "transcript_order", "status",
        "summary_cut", "_turns", "window"
    )  # fmt: skip

    def __init__(self, window: Window | None = None) -> None:
        self.window = Window() if window is None else window
        #: Of the lifecycle, and of the last turn: the session's own, not those of what it was forked from.
        self.status, self.execution = ACTIVE, PENDING
        self.open_turns: Mapping[int, Event] = NOTHING
        self.transcript_order: TranscriptOrder[Event] = TranscriptOrder()
        self.registers: dict[str, Register] = {}
        self.clients: Mapping[str, dict[str, Any]] = NOTHING
        self.created = 0.0
        self.parent_id: str | None = None
        self.linked_at = 0
        self.cleared_at = 0
        self.cut_at = 0
        self.summary_cut: SummaryCut | None = None
        self.branched_at: int | None = None
        self._turns: AppendOnlyList[int] | None = None
        #: Positions of the messages that no cut takes out.
        self.pins: tuple[int, ...] = ()
        self.rewound = _NOT_REWOUND
        #: What the last requests sent, by the form of their messages.
        self.sent: Mapping[Convert, Stable] = NOTHING
        #: Returns the events up to a number, for moves of the leaf.
        self.log: Past | None = None

    @property
    def turns(self) -> AppendOnlyList[int]:
        """Where each turn of the active branch began."""
        if self._turns is None:
            self._turns = AppendOnlyList()
        return self._turns

    @turns.setter
    def turns(self, turns: AppendOnlyList[int]) -> None:
        self._turns = turns

    def at(self, seq: int) -> View:
        """Return the view as it was right after event number ``seq``."""
        assert self.log is not None, "only a view of a log moves"
        return replay(self.log(seq))

    def has_added(self, after: int, until: int) -> bool:
        """Return whether something that the conversation consists of was added between these events."""
        assert self.log is not None, "only a view of a log moves"
        return any(event.seq > after and event.type in ENDS_REDO for event in self.log(until))

    def branch(self) -> View:
        """Return the same view, to continue from here on its own."""
        branch = View(self.window.branch())
        branch.registers = dict(self.registers)
        branch.clients = self.clients
        branch.created, branch.parent_id = self.created, self.parent_id
        branch.linked_at, branch.cleared_at, branch.cut_at = self.linked_at, self.cleared_at, self.cut_at
        branch.summary_cut, branch.branched_at = self.summary_cut, self.branched_at
        branch.status, branch.execution = self.status, self.execution
        branch.transcript_order = self.transcript_order.branch()
        branch.open_turns = self.open_turns
        branch._turns = None if self._turns is None else self._turns.branch()
        branch.pins, branch.rewound = self.pins, self.rewound
        return branch

    def extend(self, events: Sequence[Event]) -> None:
        """Apply the events of one append. A step that begins among them begins before them all; types that
        mean nothing to a view are legal."""
        for event in events:
            if event.type == kinds.STEP_STARTED:
                _step_started(self, event)
        for event in events:
            if event.type == kinds.MESSAGE_ADDED:
                if event.turn is None:
                    self.window.entries.append(event)
                else:
                    self.window.add(event)
            elif event.type != kinds.STEP_STARTED:
                effect = _EFFECTS.get(event.type)
                if effect is not None:
                    effect(self, event)

    def read(self, events: Iterable[Event]) -> None:
        """Apply the events of the next appends."""
        append: list[Event] = []
        for event in events:
            append.append(event)
            if not event.more:
                self.extend(append)
                append = []
        if append:
            self.extend(append)

    def apply(self, event: Event) -> None:
        """Apply the next append, of one event."""
        self.extend((event,))

    def register(self, key: str, default: Any = None) -> Any:
        found = self.registers.get(key)
        return default if found is None else found.value

    def controller_id(self) -> str | None:
        """The id of the client that controls the session."""
        return next((id for id, client in self.clients.items() if client["mode"] == "controller"), None)

    def metadata(self) -> Any:
        """The transcript's metadata. A fork's names its parent, until a reset."""
        metadata = self.window.metadata
        if self.parent_id is None or self.cleared_at > self.linked_at:
            return metadata
        return {**(metadata if isinstance(metadata, dict) else {}), "parent_session_id": self.parent_id}

    def entries(
        self, read_tools: ReadTools, annotate: bool = False, files_limit: int = FILES_LIMIT
    ) -> list[HistoryEntry]:
        """Return what a model is shown. ``annotate``: with what the log knows of the calls."""
        window = self.window
        pinned = pinned_entries(window, self.pins) if self.pins else ()
        return entries(window.visible(), read_tools, pinned, window.files, annotate, files_limit)

    def stable(self, convert: Convert, read_tools: ReadTools) -> Stable:
        """Return the messages of a request, each as ``convert`` makes it: pass the same one each time."""
        sent = self.sent.get(convert)
        if sent is None or not sent.grows_to(self):
            sent = Stable(self, convert, read_tools)
            self.sent = {**self.sent, convert: sent}
        return sent

    def transcript(self, id: str) -> dict[str, Any]:
        """Return the transcript value; it shares its lists with the next one."""
        window = self.window
        messages, events = window.lists()
        return transcript(
            id,
            messages,
            events,
            window.assets,
            summary=window.summary,
            metadata=self.metadata(),
            state=window.state,
        )


def replay(events: Iterable[Event]) -> View:
    """The view of a whole log."""
    view = View()
    seen: list[Event] = []
    view.log = lambda until: seen[:until]
    view.read(_noted(events, seen))
    return view


def _noted(events: Iterable[Event], seen: list[Event]) -> Iterator[Event]:
    for event in events:
        seen.append(event)
        yield event


# What each type of event does to a view.


def _created(view: View, event: Event) -> None:
    payload: Created = event.body
    view.created = event.moment
    view.branched_at = None
    if payload.parent is not None:
        view.parent_id = payload.parent.id
        view.linked_at = payload.fork_seq
        view.clients = {}
        view.status, view.execution = ACTIVE, PENDING


def _cut(view: View, event: Event) -> None:
    cut: Cut = event.body
    former = view.window.summary
    view.window = cut.window_after(view.window, event).branch()
    view.cut_at = event.seq
    if view.window.summary != former:
        view.summary_cut = _summary_cut(view, event)
    if event.type == kinds.HISTORY_REPLACED:
        view.pins = ()
    else:
        _show(view, event)
    if cut.reason == "reset":
        view.cleared_at = event.seq
    if cut.registers is not None:
        view.registers = {key: Register(*known, event.seq) for key, known in cut.registers.items()}
    if event.seq <= view.linked_at:
        return  # the parent's own history says nothing about this session's lineage
    if cut.reason == "reset":
        view.execution = PENDING
    if cut.parent_id is not None:
        view.parent_id = cut.parent_id
        view.linked_at = event.seq
        view.branched_at = None
    if cut.branched_at is not None:
        view.branched_at = cut.branched_at


def _summary_cut(view: View, event: Event) -> SummaryCut | None:
    if view.window.summary is None:
        return None
    goes_on = event.type == kinds.COMPACTION_TRIGGERED and not event.body.begins_summary
    return SummaryCut(event.seq, view.summary_cut if goes_on else None)


def _show(view: View, event: Event) -> None:
    """Put an event among the lifecycle events, if transcripts show it."""
    if is_in_transcript(event.type, event.body):
        view.window.notes.append((len(view.window.entries), event))


def _note(view: View, event: Event) -> None:
    view.window.notes.append((len(view.window.entries), event))
    if event.seq <= view.linked_at:
        return  # a parent's clients stay with the parent
    changed = event.metadata.get(kinds.LIVE_CLIENTS)
    if changed is not None:
        records = {**view.clients, **changed}
        view.clients = {id: record for id, record in records.items() if record is not None}


def _context(view: View, event: Event) -> None:
    window = view.window
    window.contexts = (*window.contexts, (len(window.entries), event))


def _fact(view: View, event: Event) -> None:
    window = view.window
    for shown in view.transcript_order.add(event.type, event.body, event):
        window.notes.append((len(window.entries), shown))


def _register(view: View, event: Event) -> None:
    key, value = event.body["key"], event.body["value"]
    view.registers[key] = Register(event.body["version"], value, event.seq)
    _show(view, event)
    if key == PINS:
        view.pins = tuple(value or ())


def _status(view: View, event: Event) -> None:
    if event.seq > view.linked_at:
        view.status = event.body["to"]


def _turn_started(view: View, event: Event) -> None:
    if event.seq > view.linked_at:
        view.execution = IN_PROGRESS
    view.open_turns = {**view.open_turns, event.seq: event}
    window, count = view.window, len(view.window.entries)
    window.floor, window.state = count, "active"
    view.turns.append(event.seq)
    window.groups.begin(event.seq, count)


def _step_started(view: View, event: Event) -> None:
    view.window.groups.begin(turn_of(event), len(view.window.entries))


def _turn_completed(view: View, event: Event) -> None:
    view.window.groups.end(turn_of(event))
    if event.turn is not None:
        done = event.turn.seq
        view.open_turns = {seq: turn for seq, turn in view.open_turns.items() if seq != done} or NOTHING
    if event.seq > view.linked_at:
        view.execution = execution_after(event.body)
    if "error" not in event.body:
        view.window.floor = len(view.window.entries)
        done = event.body.get("turn_stop_reason") in (DONE, HANDED_OVER)
        view.window.state = "active" if done else "paused"


def _leaf_moved(view: View, event: Event) -> None:
    is_last = not view.has_added(view.rewound.at, event.seq - 1)
    view.rewound = view.rewound.moved(event, is_last)
    there = view.at(event.body.target)
    view.window, view.cleared_at, view.cut_at = there.window, there.cleared_at, event.seq
    view.summary_cut = there.summary_cut
    view.turns, view.open_turns, view.transcript_order = there.turns, there.open_turns, there.transcript_order
    view.execution = there.execution
    pins = view.registers.get(PINS)
    view.pins = there.pins if pins is None or pins.seq <= event.body.target else tuple(pins.value or ())
    for key in OF_THE_BRANCH:
        view.registers.pop(key, None)
        if key in there.registers:
            view.registers[key] = there.registers[key]


_EFFECTS: dict[str, Callable[[View, Event], None]] = {
    kinds.SESSION_CREATED: _created,
    kinds.TRANSCRIPT_EVENT: _note,
    kinds.STEP_COMPLETED: _fact,
    kinds.TOOL_STARTED: _fact,
    kinds.TOOL_COMPLETED: _fact,
    kinds.CHILD_REQUESTED: _show,
    kinds.CHILD_COMPLETED: _show,
    kinds.CHILD_FAILED: _show,
    kinds.HISTORY_REPLACED: _cut,
    kinds.COMPACTION_TRIGGERED: _cut,
    kinds.REGISTER_SET: _register,
    kinds.STATUS_CHANGED: _status,
    kinds.TURN_STARTED: _turn_started,
    kinds.CONTEXT_ADDED: _context,
    kinds.BRANCH_SUMMARY: _context,
    kinds.LEAF_MOVED: _leaf_moved,
    kinds.STEP_STARTED: _step_started,
    kinds.TURN_COMPLETED: _turn_completed,
}


# A session's revision: how many saves its log tells of. Spec: 10 §C3.3.
#
# An append is a save, unless something it writes belongs to a turn that is still open afterwards. So the log
# alone decides, and a session that was loaded finds the number that the live one had.


#: A fact of an import's first event: how many saves the session had before, where it comes from.
SAVES_BEFORE = "saves_before"
_NO_TURNS: frozenset[int] = frozenset()


class Saves:
    """Counts the saves of a log, as far as somebody has asked."""

    __slots__ = ("_batch", "_open", "_read", "count")

    def __init__(self, shared: int = 0) -> None:
        """``shared`` is how many events a fork has from its parent; it counts its own saves alone."""
        self.count = 1 if shared else 0
        self._read = shared  # the number of the last event taken into account
        self._open = _NO_TURNS
        self._batch = _NO_TURNS  # the turns of the append being read; 0 for none

    def copy(self) -> Saves:
        """Return the same count, to go on from here on its own."""
        copy = Saves.__new__(Saves)
        copy.count, copy._read = self.count, self._read
        copy._open, copy._batch = self._open.copy(), self._batch.copy()
        return copy

    def resume(self, count: int, read: int, open_turns: Iterable[int]) -> None:
        """Go on behind event number ``read``, with what is known of the log up to there."""
        self.count, self._read = count, read
        self._open = frozenset(open_turns) or _NO_TURNS

    def upto(self, stream: Stream) -> int:
        """Return the revision at the stream's end."""
        self.add(stream.read(after=self._read))
        return self.count

    def add(self, events: Iterable[Event]) -> None:
        """Take the next events into account."""
        for event in events:
            self._read += 1
            if self._read == 1:
                self.count = event.body.facts.get(SAVES_BEFORE, 0)
            turn = 0 if event.turn is None else event.turn.seq
            if event.type == kinds.TURN_STARTED:
                turn = event.seq
                self._open |= {turn}
            elif event.type == kinds.TURN_COMPLETED:
                self._open = self._open - {turn} or _NO_TURNS
            if event.more or self._batch:
                self._batch |= {turn}
            if not event.more:
                self.count += self._open.isdisjoint(self._batch or (turn,))
                self._batch = _NO_TURNS
