"""The window: the messages that count, and the lifecycle events between them. Spec: 10 §C5."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harnpy.session.events import CONTEXT_ADDED, Summary
from harnpy.session.lifecycle import Pack, events_at, lifecycle_value, live_among, unpacked, values_of
from harnpy.session.transcript import message_event, plain_message
from harnpy.storage.memory import AppendOnlyList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from harnpy.session.events import Event
    from harnpy.session.lifecycle import PlacedNote

    Turn = int | str
    Message = dict[str, Any]
    Past = tuple[Iterable[Event], "Past | None"]

# What a turn appends from one of its steps to the next stands in one piece. Spec: 10 §C5.
#
# The groups of a window stand in the order of their first events. A message that others add while a step is
# under way stands behind the whole step, and nothing comes between a call and its result.


#: Nobody changes it: `begin` replaces it, and the rest is for groups that have begun.
_NO_GROUPS: dict[Any, tuple[int, int]] = {}


class Groups:
    """The groups that can still grow, the oldest first: turn → (messages up to the group's end, in it)."""

    __slots__ = ("_open",)

    def __init__(self, groups: dict[Turn, tuple[int, int]] | None = None) -> None:
        self._open: dict[Turn, tuple[int, int]] = groups or _NO_GROUPS

    @property
    def are_open(self) -> bool:
        """Return whether a group can still grow: one of a turn, that is."""
        return any(self._open)

    def branch(self) -> Groups:
        """Return the same groups, to grow on their own."""
        return Groups(dict(self._open))

    def begin(self, turn: Turn, count: int) -> None:
        """Begin a group behind all ``count`` messages that there are; the turn's last one is complete."""
        groups = {**self._open}
        groups.pop(turn, None)
        groups[turn] = (count, 0)
        self._open = groups

    def end(self, turn: Turn) -> None:
        """The turn appends nothing more."""
        self._open.pop(turn, None)

    def is_begun(self, turn: Turn) -> bool:
        """Return whether the turn's group has messages."""
        return self._open.get(turn, (0, 0))[1] > 0

    def place(self, turn: Turn, count: int) -> int:
        """Return where the turn's next message stands among ``count`` others, and make room for it."""
        if turn not in self._open:
            return count
        place, own = self._open[turn]
        if len(self._open) == 1:
            self._open[turn] = place + 1, own + 1
            return place
        behind = False
        for other, (end, size) in self._open.items():
            behind = behind or other == turn
            if end > place or (behind and end == place):
                self._open[other] = end + 1, size + (other == turn)
        return place

    def moved(self, place: Callable[[int], int]) -> Groups:
        """Return the groups of a window in which each end is at ``place(end)``."""
        return Groups({turn: (place(end), size) for turn, (end, size) in self._open.items()})


def turn_of(event: Event) -> Turn:
    """Return what tells the event's turn from others."""
    turn = event.turn
    return 0 if turn is None else turn.seq or turn.id


# A session's window: the messages that count, and the lifecycle events between them. Spec: 10 §C5.
#
# A `Window` is either growing (a session's own) or frozen (one that a `Cut` carries).
#
# Nothing here is computed on append. A column (the messages, the events derived from them …) is brought up
# to date on reading, so each entry is processed once however often it is read.


#: Kinds of context that stand before all messages unless they say otherwise. Spec: 10 §A1.8.
PREFIX_KINDS = ("bootstrap", "harness", "summary", "working_set")


def is_prefix_context(event: Event) -> bool:
    """Return whether the event is context that stands before all messages. Spec: 10 §A1.8."""
    if event.type != CONTEXT_ADDED:
        return False
    placement = event.body.get("placement")
    return placement == "prefix" or (not placement and event.body.get("kind") in PREFIX_KINDS)


def originals(entries: list[Event]) -> list[Event]:
    """Return the entries with the messages that summaries stand for in their place."""
    return unpacked(entries, lambda entry: entry.archived if isinstance(entry, Summary) else None)


#: What most sessions have instead of a dict of their own.
NOTHING: Mapping[Any, Any] = MappingProxyType({})
#: Lists that nobody changes: those of a window are replaced.
_NO_FILES: tuple[list[str], list[str]] = [], []
_NO_ASSETS: list[dict[str, Any]] = []


class Window:
    """A transcript's contents.

    ``entries`` are the events of the messages. ``notes`` are lifecycle events, each with the number of
    messages before it; a `Pack` is many at one position. A position below ``floor`` counts as ``floor``: a
    turn of an agent loop moves all lifecycle events behind its messages (08 §1.12), and this way it need
    not touch them.
    ``past`` holds the entries that were trimmed away, newest first: (entries, what was before them). The
    first ``repeated`` entries are no part of the history: what a strategy made, or what the past has, too.
    """

    __slots__ = (
        "_columns", "_lists", "_live", "_notes", "_totals", "assets", "contexts", "entries", "files", "floor",
        "groups", "live_before", "metadata", "past", "repeated", "state", "summary"
    )  # fmt: skip

    def __init__(
        self,
        entries: AppendOnlyList[Event] | None = None,
        notes: AppendOnlyList[PlacedNote] | None = None,
        like: Window | None = None,
    ) -> None:
        self.entries: AppendOnlyList[Event] = AppendOnlyList() if entries is None else entries
        self._notes = notes
        self._columns: Mapping[Callable[..., Any], list[Any]] = NOTHING
        self._totals: Mapping[Callable[..., Any], tuple[int, int]] = NOTHING
        self._lists: tuple[tuple[int, int, int], list[Message], list[dict[str, Any]]] | None = None
        self._live: tuple[int, list[dict[str, Any]]] | None = None
        #: Whether there are some about live clients among the first lifecycle events, which are read late.
        self.live_before = False
        self.floor = self.repeated = 0
        self.groups = Groups()
        self.contexts: tuple[tuple[int, Event], ...] = ()
        if like is None:
            self.past: Past | None = None
            self.summary: str | None = None
            self.metadata: Any = None
            self.assets = _NO_ASSETS
            self.state: str | None = None
            self.files: tuple[list[str], list[str]] = _NO_FILES
        else:
            self.past = like.past
            self.summary, self.metadata = like.summary, like.metadata
            self.assets, self.state = like.assets, like.state
            self.files = like.files

    def __len__(self) -> int:
        """The number of messages."""
        return len(self.entries)

    @property
    def notes(self) -> AppendOnlyList[PlacedNote]:
        if self._notes is None:
            self._notes = AppendOnlyList()
        return self._notes

    def branch(self) -> Window:
        """Return the same window, to grow on its own. Costs nothing until it is read."""
        notes = None if self._notes is None else self._notes.branch()
        branch = Window(self.entries.branch(), notes, like=self)
        branch.floor, branch.repeated = self.floor, self.repeated
        branch.groups = self.groups.branch()
        branch.contexts = self.contexts
        branch.live_before = self.live_before
        if self._live is not None:
            done, found = self._live
            branch._live = done, list(found)
        return branch

    def add(self, entry: Event) -> None:
        """Add a message of a turn to the turn's group. All lifecycle events move behind it."""
        entries = self.entries
        count = len(entries)
        turn = turn_of(entry)
        begun = bool(self.contexts) and self.groups.is_begun(turn)
        place = self.groups.place(turn, count)
        if self.contexts:
            self._shift_contexts(place, begun)
        if place == count:
            entries.append(entry)
        else:
            self._insert(place, entry)
        self.floor = count + 1

    def _shift_contexts(self, place: int, begun: bool) -> None:
        """Make room for a message: context doesn't come between the messages of a group, either."""
        first = place if begun else place + 1
        self.contexts = tuple((at + (at >= first), event) for at, event in self.contexts)

    def _insert(self, place: int, entry: Event) -> None:
        """Insert a message before others. The entries are copied, as branches may share them."""
        entries = self.entries.items()
        self.entries = AppendOnlyList([*entries[:place], entry, *entries[place:]])
        if place < self.repeated:
            self.past = ([entry], self.past)
            self.repeated += 1
        self._columns = self._totals = NOTHING

    def settle(self) -> None:
        """Become independent of the window that this one was branched from."""
        self.entries.settle()
        self.notes.settle()

    # Reading. The lists are the window's own: read them, don't change them, don't keep them.

    def messages(self) -> list[Message]:
        return self._column(_message, self.entries.items())

    def message_events(self) -> list[dict[str, Any]]:
        return self._column(_message_event, self.entries.items())

    def converted(self, convert: Callable[[Message], Any]) -> list[Any]:
        """Return ``convert(message)`` of every message. Cached by function: pass the same one each time."""
        return self._column(convert, self.messages())

    def total(self, measure: Callable[[Message], int]) -> int:
        """Return the sum of ``measure(message)``. Cached by function: pass the same one each time."""
        messages = self.messages()
        count, total = self._totals.get(measure, (0, 0))
        if count < len(messages):
            total += sum(map(measure, messages[count:]))
            self._totals = {**self._totals, measure: (len(messages), total)}
        return total

    def plain(self) -> tuple[list[Message], list[dict[str, Any]]]:
        """Return the messages as a loop's result shows them, and their events, in new lists."""
        entries = self.entries.items()
        messages, events = self._cached(plain_message), self._cached(message_event)
        done, hidden = self._totals.get(plain_message, (0, 0))
        if done < len(entries):
            del messages[done:], events[done:]  # of a call that was interrupted
            for entry in entries[done:]:
                message = plain_message(entry.body)
                messages.append(message)
                events.append(None if message is None else message_event(message, entry.first.id))
                hidden += message is None
            self._totals = {**self._totals, plain_message: (len(entries), hidden)}
        if hidden:
            return [*filter(None, messages)], [*filter(None, events)]
        return list(messages), list(events)

    def lists(self) -> tuple[list[Message], list[dict[str, Any]]]:
        """Return the messages and the events in lists that never change: the same ones until something
        is added."""
        stand = (len(self.entries), 0 if self._notes is None else len(self._notes), self.floor)
        if self._lists is None or self._lists[0] != stand:
            self._lists = stand, list(self.messages()), self.events()
        return self._lists[1:]

    def events(self) -> list[dict[str, Any]]:
        """Return the transcript's events, messages and lifecycle, in order, in a new list."""
        shown = self.message_events()
        merged: list[dict[str, Any]] = []
        done = 0
        notes = self.notes.items()
        for (position, _), events in zip(notes, self._column(values_of, notes), strict=True):
            position = max(position, self.floor)
            merged += shown[done:position]
            merged += events
            done = position
        return merged + shown[done:] if merged else list(shown)

    def kept(self) -> list[Event]:
        """Return the entries that were trimmed away, followed by the window's that aren't among them."""
        return [*self.past_entries(), *self.entries.items()[self.repeated :]]

    def past_entries(self) -> list[Event]:
        """Return the entries that were trimmed away."""
        pieces: list[Iterable[Event]] = []
        past = self.past
        while past is not None:
            pieces.append(past[0])
            past = past[1]
        return [entry for piece in reversed(pieces) for entry in piece]

    def history(self) -> list[Event]:
        """Return the events of all messages behind the window, including those trimmed away or summarised."""
        return originals(self.kept())

    def lifecycle(self) -> list[tuple[int, Event]]:
        """Return the lifecycle events, each with the number of messages before it."""
        return [(position, event) for position, what in self._placed() for event in events_at(what)]

    def live_events(self) -> list[dict[str, Any]]:
        """Return the lifecycle events about live clients, in order."""
        if self.notes.is_lazy and not self.live_before:
            return [lifecycle_value(event) for event in live_among(self.notes.loaded())]
        done, found = self._live or (0, [])
        notes = self.notes.items()
        if done < len(notes):
            found += [lifecycle_value(event) for event in live_among(notes[done:])]
            self._live = len(notes), found
        return found

    @property
    def has_live_events(self) -> bool:
        """Return whether a lifecycle event is about live clients."""
        return (self.notes.is_lazy and self.live_before) or bool(self.live_events())

    def visible(self) -> list[Event]:
        """Return the events that a model is shown: messages, and the context between them."""
        entries = self.entries.items()
        if not self.contexts:
            return list(entries)
        merged: list[Event] = []
        done = 0
        for position, event in self.contexts:
            merged += entries[done:position]
            merged.append(event)
            done = position
        return merged + entries[done:]

    def shows_summary(self) -> bool:
        """Return whether a message says what the summary does, or there is none: a summary that a compaction
        has put there, or a user's message with which the summary ends (08 §1.11)."""
        summary = self.summary
        if summary is None or not summary.strip():
            return True
        return any(isinstance(e, Summary) or _ends(e.body, summary) for e in self.entries.items())

    def begins_with(self, entries: Sequence[Event]) -> bool:
        """Return whether these are still the first entries. Some may have been read again meanwhile."""
        now = self.entries.items()
        same = (a is b or a.id == b.id for a, b in zip(now, entries, strict=False))
        return len(now) >= len(entries) and all(same)

    def branch_index(self, keep_first: int) -> int:
        """Return the number of events up to and including message number ``keep_first`` (08 §1.4)."""
        everything = keep_first > len(self)
        notes = (what.size for position, what in self._placed() if everything or position < keep_first)
        return min(keep_first, len(self)) + sum(notes)

    # Other windows made from this one.

    def trimmed(self, keep_last: int) -> Window:
        """Return the newest messages. Lifecycle events stay between those that remain."""
        dropped = max(0, len(self) - keep_last)
        entries = self.entries.items()
        notes = self.moved_notes(lambda position: max(0, position - dropped))
        window = Window(AppendOnlyList(entries[dropped:]), notes, like=self)
        window.groups = self.groups.moved(lambda end: max(0, end - dropped))
        window.contexts = self.kept_contexts(lambda position: max(0, position - dropped))
        window.repeated = max(0, self.repeated - dropped)
        if dropped > self.repeated:
            window.past = (entries[self.repeated : dropped], self.past)
        return window

    def compacted(self, start: int, split: int, summary: Summary) -> Window:
        """Replace the messages from ``start`` up to ``split`` with ``summary``. Lifecycle events stay between
        what remains."""
        gone = split - start - 1

        def place(position: int) -> int:
            if position <= start:
                return position
            return start + 1 if position <= split else position - gone

        entries = self.entries.items()
        kept = AppendOnlyList([*entries[:start], summary, *entries[split:]])
        window = Window(kept, self.moved_notes(place), like=self)
        window.groups = self.groups.moved(place)
        window.contexts = self.kept_contexts(place)
        window.repeated = self.repeated
        if start < self.repeated:
            window.repeated = start if split > self.repeated else self.repeated - gone
            summary.archived = entries[self.repeated : split]
        return window

    def kept_contexts(self, place: Callable[[int], int]) -> tuple[tuple[int, Event], ...]:
        """Return the context that survives a cut: all of the prefix, and what has an older message."""
        moved = ((place(position), event) for position, event in self.contexts)
        return tuple((position, event) for position, event in moved if position or is_prefix_context(event))

    def prefix_contexts(self) -> tuple[tuple[int, Event], ...]:
        """Return the context that stands before all messages."""
        return self.kept_contexts(lambda position: 0)

    def head(self, keep_first: int) -> Window:
        """Return the first messages, and the lifecycle events before the last of them."""
        entries = self.entries.items()[:keep_first]
        window = self.beginning(entries, self.branch_index(keep_first) - len(entries))
        if not keep_first:
            window.past = None  # a branch that begins before the first message has no past
        return window

    def beginning(self, entries: list[Event], notes: int) -> Window:
        """Return a window with these messages, and the first ``notes`` lifecycle events."""
        kept: list[PlacedNote] = []
        for note in self._placed():
            notes -= note[1].size
            if notes < 0:
                break
            kept.append(note)
        window = Window(AppendOnlyList(entries), AppendOnlyList(kept), like=self)
        window.repeated = min(self.repeated, len(entries))
        return window

    def with_entries(self, entries: list[Event]) -> Window:
        """Return a window with other messages, followed by the lifecycle events."""
        return Window(AppendOnlyList(entries), self.moved_notes(lambda position: len(entries)), like=self)

    def _placed(self) -> list[PlacedNote]:
        return [(max(position, self.floor), what) for position, what in self.notes.items()]

    def moved_notes(self, place: Callable[[int], int]) -> AppendOnlyList[PlacedNote]:
        """Move each lifecycle event to ``place(position)``, and pack those at one position.

        So a cut costs what came since the last one, however many events there are in all.
        """
        groups: list[tuple[int, list[Event | Pack]]] = []
        for position, what in self._placed():
            position = place(position)
            if groups and groups[-1][0] == position:
                groups[-1][1].append(what)
            else:
                groups.append((position, [what]))
        return AppendOnlyList(
            (position, parts[0] if len(parts) == 1 else Pack(parts)) for position, parts in groups
        )

    def _cached(self, of: Callable[..., Any]) -> list[Any]:
        column = self._columns.get(of)
        if column is None:
            column = []
            self._columns = {**self._columns, of: column}
        return column

    def _column(self, of: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        column = self._cached(of)
        if len(column) < len(items):
            column.extend([of(item) for item in items[len(column) :]])
        return column


def _ends(message: Message, summary: str) -> bool:
    """Return whether the summary ends with a user's message."""
    said = message.get("content") if message.get("role") == "user" else None
    if not isinstance(said, str) or not said.strip():
        return False
    return summary == said or summary.endswith(f"\n\n{said}")


def _message(entry: Event) -> Message:
    message: Message = entry.body
    return message


def _message_event(entry: Event) -> dict[str, Any]:
    first = entry.first
    return message_event(entry.body, first.id)
