"""Projection snapshots: what a view shows, so that a load need not read the log behind it.

Spec: 10 §C4, §C5.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import Struct, ValidationError, convert
from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.session import events as kinds
from harnpy.session.compaction import joined_summaries
from harnpy.session.cuts import Created, Cut
from harnpy.session.events import Summary
from harnpy.session.registers import Register
from harnpy.session.rewind import Rewound
from harnpy.session.view import SummaryCut, View, replay
from harnpy.session.window import Window
from harnpy.session.window_rewriting import Rewritten
from harnpy.storage.memory import AppendOnlyList, LazyAppendOnlyList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harnpy.session.events import Event, Origin
    from harnpy.storage.contract import Stream

    Span = tuple[int, int] | dict[str, int]
    Log = Callable[[int], Sequence[Event]]

# What a window shows, as spans of positions in the log. Spec: 10 §C4.
#
# ``[from, to]`` means what those events show by themselves, in the order of a window that holds nothing else;
# ``{"cut": seq}`` is the summary that the cut with that number made, ``{"cut": seq, "item": n}`` the n-th
# message (from 0) that a strategy wrote there. So a window is named without a word
# of it, and is read back without the events before it.


#: Types of the events that a window shows, and of those that say in which order.
_ORDERED = frozenset({
    kinds.MESSAGE_ADDED, kinds.CONTEXT_ADDED, kinds.BRANCH_SUMMARY,
    kinds.TURN_STARTED, kinds.STEP_STARTED, kinds.TURN_COMPLETED,
})  # fmt: skip


def extended(spans: Sequence[Span], end: int, until: int) -> list[Span]:
    """Return the spans, up to event number ``end``, of a window that has only grown since."""
    last = spans[-1] if spans else (1, end)
    if isinstance(last, tuple) and last[1] == end:
        return [*spans[:-1], (last[0], until)]
    return [*spans, (end + 1, until)]


def spans_of(shown: Sequence[Event], log: Callable[[int], Sequence[Event]], until: int) -> list[Span] | None:
    """Return the spans of what a window shows behind event number ``until``, the last one.

    ``log(seq)`` returns the events from that one on. None for what can't be named: what a fork onto the
    session brought from another log.
    """
    if not all(entry.is_logged or _is_made(entry) for entry in shown):
        return None
    first = min((_begin(entry) for entry in shown if entry.is_logged), default=until + 1)
    events = log(first)
    order = [event.seq for event in in_order(events)]
    visible = sorted(order)
    found: list[Span] = []
    for piece in _pieces(shown, order):
        if not piece[0].is_logged:
            found.append(_made_span(piece[0]))
            continue
        seqs = [entry.seq for entry in piece]
        place = bisect_left(visible, min(seqs))
        low = visible[place - 1] + 1 if place else first
        high = until if piece[-1] is shown[-1] else max(seqs)
        among = [event.seq for event in in_order(events[low - first : high - first + 1])]
        found += [(low, high)] if among == seqs else ((seq, seq) for seq in seqs)
    return found


def _begin(entry: Event) -> int:
    """Return the number of the event that the order of the entry depends on first."""
    return entry.seq if entry.turn is None else entry.turn.seq or entry.seq


def _is_made(entry: Event) -> bool:
    """Return whether a cut of this log made the message."""
    return isinstance(entry, Rewritten) or (isinstance(entry, Summary) and entry.foreign_id is None)


def _made_span(entry: Event) -> Span:
    if isinstance(entry, Rewritten):
        return {"cut": entry.seq, "item": entry.number}
    return {"cut": entry.seq}


def _pieces(shown: Sequence[Event], order: list[int]) -> list[list[Event]]:
    """Return the entries in pieces: those that follow each other in ``order``, and each summary alone."""
    places = {seq: place for place, seq in enumerate(order)}
    pieces: list[list[Event]] = []
    next_place: int | None = None
    for entry in shown:
        place = places[entry.seq] if entry.is_logged else None
        if place is not None and place == next_place:
            pieces[-1].append(entry)
        else:
            pieces.append([entry])
        next_place = None if place is None else place + 1
    return pieces


def in_order(events: Iterable[Event]) -> list[Event]:
    """Return what a window shows that has these events and no others."""
    view = View()
    append: list[Event] = []
    for event in events:
        if event.type in _ORDERED:
            append.append(event)
        if not event.more:
            view.extend(append)
            append = []
    view.extend(append)
    return view.window.visible()


def read_spans(
    spans: Iterable[Span], stream: Stream, archived: Callable[[int], Iterable[Event]]
) -> list[Event]:
    """Return what they name; ``archived(place)`` is what a summary at that place stands for.

    Raises LookupError when it isn't there.
    """
    shown: list[Event] = []
    for span in spans:
        if isinstance(span, tuple):
            first, last = span
            shown += in_order(stream.read(first - 1, last))
        else:
            cut = event_at(stream, span["cut"])
            item = span.get("item")
            shown.append(_summary(cut, archived(len(shown))) if item is None else _rewritten(cut, item))
    return shown


def event_at(stream: Stream, seq: int) -> Event:
    """Return the event with that number. Raises LookupError when there is none."""
    event: Event | None = next(stream.read(seq - 1, seq), None) if seq > 0 else None
    if event is None:
        raise LookupError(f"there is no event {seq}")
    return event


def _rewritten(cut: Event, item: int) -> Rewritten:
    entry = Rewritten(cut.first.owner, _messages_of(cut)[item])
    entry.made_by(cut, item)
    return entry


def _messages_of(cut: Event) -> list[dict[str, Any]]:
    if not isinstance(cut.body, Cut):
        raise LookupError(f"event {cut.seq} is no cut")
    return cut.body.summaries(cut)


def _summary(cut: Event, archived: Iterable[Event]) -> Summary:
    messages = _messages_of(cut)
    if len(messages) != 1:
        raise LookupError(f"event {cut.seq} made {len(messages)} summaries")
    summary = Summary(cut.first.owner, messages[0], archived)
    summary.made_by(cut)
    return summary


# Projection snapshots: what a view shows, so that a load need not read the log behind it. Spec: 10 §C5.
#
# A snapshot names messages by their place in the log, and registers by the event that set them. What only
# few ask for (transcript events, history, where turns began) isn't in it: a view that was made from one
# reads the log when it is wanted.


#: A snapshot is due when this many events came after the last one.
EVENTS = 50


class Projection(Struct, omit_defaults=True):
    """The payload of ``projection_snapshotted``.

    ``shown`` counts the messages and contexts that ``entries`` name; ``live``: the transcript has events
    about live clients.
    ``summary`` is ``[seq, cuts]``: that of an earlier snapshot (0: none), and the cuts that went on with it.
    """

    strategy: str
    cutoff_seq: int
    entries: list[tuple[int, int] | dict[str, int]]
    shown: int
    live: bool = False
    floor: int = 0
    repeated: int = 0
    registers: dict[str, int] = {}
    clients: dict[str, dict[str, Any]] = {}
    pins: list[int] = []
    summary: tuple[int, list[int]] | None = None
    metadata: Any = None
    assets: list[dict[str, Any]] = []
    state: str | None = None
    read_files: list[str] = []
    modified_files: list[str] = []
    parent_session_id: str | None = None
    linked_seq: int = 0
    cleared_seq: int = 0
    branched_at: int | None = None
    moved_seq: int = 0
    undone: list[int] = []


class Piece(NamedTuple):
    """The cuts of the summary that snapshot number ``seq`` names."""

    seq: int
    cuts: list[int]


class Basis(NamedTuple):
    """The window and summary of the snapshot before the next one, number ``seq``, on which that builds."""

    seq: int = 0
    spans: Sequence[Span] = ()
    summary: tuple[Piece, ...] = ()


class NewSnapshot(NamedTuple):
    payload: dict[str, Any]
    basis: Basis


class Loaded(NamedTuple):
    """A view as of a snapshot, written at ``moment``; ``created`` is the session's first event."""

    view: View
    basis: Basis
    created: Event
    moment: float


def take(strategy: str, view: View, until: int, basis: Basis, log: Log) -> NewSnapshot | None:
    """Return a snapshot of ``view``, behind event number ``until``; ``log(seq)`` returns the events from that
    number on. None while a turn is open, and for a window that can't be named (`spans_of`)."""
    now = view.window
    if view.open_turns or view.transcript_order.is_waiting or now.groups.are_open:
        return None
    if view.cut_at <= basis.seq:
        spans: list[Span] | None = extended(basis.spans, max(0, basis.seq - 1), until)
    else:
        spans = spans_of(now.visible(), log, until)
    if spans is None:
        return None
    summary = _projections_summary(view.summary_cut, basis.summary, until + 1)
    read_files, modified_files = now.files
    payload = Projection(
        strategy=strategy,
        cutoff_seq=until,
        entries=spans,
        shown=len(now) + len(now.contexts),
        live=now.has_live_events,
        floor=now.floor,
        repeated=now.repeated,
        registers={key: register.seq for key, register in view.registers.items()},
        clients=dict(view.clients),
        pins=list(view.pins),
        summary=_named(summary, until + 1),
        metadata=now.metadata,
        assets=now.assets,
        state=now.state,
        read_files=list(read_files),
        modified_files=list(modified_files),
        parent_session_id=view.parent_id,
        linked_seq=view.linked_at,
        cleared_seq=view.cleared_at,
        branched_at=view.branched_at,
        moved_seq=view.rewound.at,
        undone=list(view.rewound.leaves),
    )
    return NewSnapshot(from_json(to_json(payload)), Basis(until + 1, spans, summary))


def _projections_summary(last: SummaryCut | None, before: tuple[Piece, ...], seq: int) -> tuple[Piece, ...]:
    """Return the pieces of the summary that cut ``last`` made, for snapshot number ``seq``.

    It names the cuts that came after those pieces, and takes over a piece that is no longer than its own: so
    there are few of them, and each cut is named few times, however many there are.
    """
    pieces = list(before)
    known = pieces[-1].cuts[-1] if pieces else 0
    cuts: list[int] = []
    while last is not None and last.seq != known:
        cuts.append(last.seq)
        last = last.before
    cuts.reverse()
    if last is None:
        pieces = []
    if not cuts:
        return tuple(pieces)
    while pieces and len(pieces[-1].cuts) <= len(cuts):
        cuts = pieces.pop().cuts + cuts
    return (*pieces, Piece(seq, cuts))


def _named(summary: tuple[Piece, ...], seq: int) -> tuple[int, list[int]] | None:
    """Return how snapshot number ``seq`` says the summary: the one that it goes on with, and its own cuts."""
    if not summary:
        return None
    *before, last = summary
    if last.seq != seq:
        return last.seq, []
    return before[-1].seq if before else 0, last.cuts


def load(stream: Stream, seq: int, full_view: Callable[[], View]) -> Loaded | None:
    """Return the view of snapshot number ``seq``; ``full_view()`` is the same, made of the log behind it.

    None when it isn't there, or names what isn't there: the log says it all as well.
    """
    try:
        event = event_at(stream, seq)
        found = _projection(event)
        shown = read_spans(found.entries, stream, lambda place: Lazy(lambda: _archived(full_view(), place)))
        if len(shown) != found.shown or found.cutoff_seq != seq - 1:
            return None
        created = event_at(stream, 1)
        if not isinstance(created.body, Created):
            return None
        registers = {key: _register(stream, key, at) for key, at in found.registers.items()}
        summary = _read_summary(event, stream)
        text, last = _spelled(summary, stream)
    except (LookupError, ValidationError):
        return None
    window = _window(found, shown, full_view)
    window.summary = text
    view = View(window)
    view.summary_cut = last
    view.registers = registers
    view.clients = found.clients
    view.pins = tuple(found.pins)
    view.created = created.moment
    view.parent_id, view.linked_at = found.parent_session_id, found.linked_seq
    view.cleared_at, view.branched_at = found.cleared_seq, found.branched_at
    view.rewound = Rewound(tuple(found.undone), found.moved_seq)
    view.turns = LazyAppendOnlyList(lambda: full_view().turns.items())
    return Loaded(view, Basis(seq, found.entries, summary), created, event.moment)


def _projection(event: Event) -> Projection:
    if event.type != kinds.PROJECTION_SNAPSHOTTED:
        raise LookupError(f"event {event.seq} is no snapshot")
    return convert(event.body, Projection)


def _window(found: Projection, shown: list[Event], full_view: Callable[[], View]) -> Window:
    entries: list[Event] = []
    contexts: list[tuple[int, Event]] = []
    for event in shown:
        if event.type == kinds.MESSAGE_ADDED:
            entries.append(event)
        else:
            contexts.append((len(entries), event))
    window = Window(AppendOnlyList(entries), LazyAppendOnlyList(lambda: full_view().window.notes.items()))
    window.contexts = tuple(contexts)
    window.floor, window.live_before, window.repeated = found.floor, found.live, found.repeated
    window.past = Lazy(lambda: full_view().window.past_entries()), None
    window.metadata, window.assets, window.state = found.metadata, found.assets, found.state
    window.files = found.read_files, found.modified_files
    return window


def spelled_out(event: Event) -> dict[str, Any]:
    """Return the data of a ``projection_snapshotted`` as Canto has it: with the messages that it names."""
    data: dict[str, Any] = event.data
    if "cutoff_seq" not in data or not hasattr(event, "owner"):
        return data
    owner = event.owner
    log = cast("Stream", _Log(owner))
    loaded = load(log, event.seq, lambda: replay(log.read(0, event.seq - 1)))
    if loaded is None:
        return data

    def read_tools(after: int, before: int | None) -> Iterator[Event]:
        found = log.read(after, (before or event.seq) - 1)
        return (each for each in found if each.type in kinds.CALL_TYPES)

    shown = loaded.view.entries(read_tools, annotate=True)
    known = ("strategy", "read_files", "modified_files")
    return {
        **{key: value for key, value in data.items() if key in known},
        "cutoff_event_id": owner.id_of(data["cutoff_seq"]),
        "entries": [entry.shown() for entry in shown],
    }


class _Log:
    """The log that an event is in."""

    def __init__(self, owner: Origin) -> None:
        self._owner = owner

    def read(self, after: int, until: int) -> Iterator[Event]:
        """Return the events numbered ``after + 1`` … ``until``."""
        found = map(self._owner.find, range(after + 1, until + 1))
        return (self._owner.own(event) for event in found if event is not None)


class Lazy:
    """Events that are read when somebody wants to see them."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Iterable[Event]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Event]:
        return iter(self._read())


def _archived(whole: View, place: int) -> Iterable[Event]:
    summary = whole.window.visible()[place]
    assert isinstance(summary, Summary), "the log and its snapshot show the same"
    return summary.archived


def _register(stream: Stream, key: str, seq: int) -> Register:
    event = event_at(stream, seq)
    payload = event.body
    if isinstance(payload, Cut) and payload.registers is not None:
        return Register(*payload.registers[key], seq)
    if event.type != kinds.REGISTER_SET or payload["key"] != key:
        raise LookupError(f"event {seq} doesn't set {key}")
    return Register(payload["version"], payload["value"], seq)


def _read_summary(event: Event, stream: Stream) -> tuple[Piece, ...]:
    """Return the pieces of the summary that a snapshot says."""
    said = _projection(event).summary
    if said is None:
        return ()
    pieces: list[Piece] = []
    at = event.seq
    while True:
        base, cuts = said
        if cuts:
            pieces.append(Piece(at, cuts))
        if not base:
            return tuple(reversed(pieces))
        if base >= at:
            raise LookupError(f"snapshot {base} is no earlier one")
        said, at = _projection(event_at(stream, base)).summary, base
        if said is None:
            raise LookupError(f"snapshot {base} has no summary")


def _spelled(summary: tuple[Piece, ...], stream: Stream) -> tuple[str | None, SummaryCut | None]:
    """Return the summary that the cuts spell, and the last of them."""
    texts: list[str] = []
    last: SummaryCut | None = None
    for piece in summary:
        for seq in piece.cuts:
            cut = event_at(stream, seq)
            if not isinstance(cut.body, Cut):
                raise LookupError(f"event {seq} is no cut")
            texts.append(cut.body.added_summary(cut))
            last = SummaryCut(seq, last)
    return joined_summaries(texts), last
