"""What a window shows, as spans of positions in the log. Spec: 10 §C4.

``[from, to]`` means what those events show by themselves, in the order of a window that holds nothing else;
``{"cut": seq}`` is the summary that the cut with that number made, ``{"cut": seq, "item": n}`` the n-th
message (from 0) that a strategy wrote there. So a window is named without a word
of it, and is read back without the events before it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.events import Summary
from harnpy.session.shown.rewriting import Rewritten
from harnpy.session.views import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.session.events import Event
    from harnpy.storage.contract import Stream

    Span = tuple[int, int] | dict[str, int]

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
    """Whether a cut of this log made the message."""
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
