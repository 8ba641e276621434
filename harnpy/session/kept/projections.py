"""Projection snapshots: what a view shows, so that a load need not read the log behind it. Spec: 10 §C5.

A snapshot names messages by their place in the log, and registers by the event that set them. What only
few ask for (transcript events, history, where turns began) isn't in it: a view that was made from one
reads the log when it is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, ValidationError, convert
from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.events import Summary
from harnpy.session.kept.spans import event_at, extended, read_spans, spans_of
from harnpy.session.payloads import Created
from harnpy.session.registers import Register
from harnpy.session.resize.engine import joined_summaries
from harnpy.session.shown.rewinding import Rewound
from harnpy.session.views import SummaryCut, View
from harnpy.session.window import Window
from harnpy.storage.spine import LateSpine, Spine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harnpy.session.events import Event
    from harnpy.session.kept.spans import Span
    from harnpy.storage.contract import Stream

    Log = Callable[[int], Sequence[Event]]

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
    """What a snapshot builds on: what the one before it, number ``seq``, says of window and summary."""

    seq: int = 0
    spans: Sequence[Span] = ()
    summary: tuple[Piece, ...] = ()


class Taken(NamedTuple):
    payload: dict[str, Any]
    basis: Basis


class Loaded(NamedTuple):
    """A view as of a snapshot, written at ``moment``; ``created`` is the session's first event."""

    view: View
    basis: Basis
    created: Event
    moment: float


def take(strategy: str, view: View, until: int, basis: Basis, log: Log) -> Taken | None:
    """Return a snapshot of ``view``, behind event number ``until``; ``log(seq)`` returns the events from that
    number on. None while a turn is open, and for a window that can't be named (`spans_of`)."""
    now = view.window
    if view.open_turns or view.shown.is_waiting or now.groups.are_open:
        return None
    if view.cut_at <= basis.seq:
        spans: list[Span] | None = extended(basis.spans, max(0, basis.seq - 1), until)
    else:
        spans = spans_of(now.visible(), log, until)
    if spans is None:
        return None
    summary = _summary(view.summary_cut, basis.summary, until + 1)
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
        clients=view.clients,
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
    return Taken(from_json(to_json(payload)), Basis(until + 1, spans, summary))


def _summary(last: SummaryCut | None, before: tuple[Piece, ...], seq: int) -> tuple[Piece, ...]:
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


def load(stream: Stream, seq: int, whole: Callable[[], View]) -> Loaded | None:
    """Return the view of snapshot number ``seq``; ``whole()`` is the same, made of the log behind it.

    None when it isn't there, or names what isn't there: the log says it all as well.
    """
    try:
        event = event_at(stream, seq)
        found = _projection(event)
        shown = read_spans(found.entries, stream, lambda place: Late(lambda: _archived(whole(), place)))
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
    window = _window(found, shown, whole)
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
    view.turns = LateSpine(lambda: whole().turns.items())
    return Loaded(view, Basis(seq, found.entries, summary), created, event.moment)


def _projection(event: Event) -> Projection:
    if event.type != kinds.PROJECTION_SNAPSHOTTED:
        raise LookupError(f"event {event.seq} is no snapshot")
    return convert(event.body, Projection)


def _window(found: Projection, shown: list[Event], whole: Callable[[], View]) -> Window:
    entries: list[Event] = []
    contexts: list[tuple[int, Event]] = []
    for event in shown:
        if event.type == kinds.MESSAGE_ADDED:
            entries.append(event)
        else:
            contexts.append((len(entries), event))
    window = Window(Spine(entries), LateSpine(lambda: whole().window.asides.items()))
    window.contexts = tuple(contexts)
    window.floor, window.live_before, window.repeated = found.floor, found.live, found.repeated
    window.past = Late(lambda: whole().window.past_entries()), None
    window.metadata, window.assets, window.state = found.metadata, found.assets, found.state
    window.files = found.read_files, found.modified_files
    return window


class Late:
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
