"""A window with other messages than it had, as a strategy wants it, above the same history. Spec: 10 §C8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.events import MESSAGE_ADDED, Event, Summary, event_id
from harnpy.session.window import Window
from harnpy.storage.memory import AppendOnlyList

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.session.events import Origin


class Rewritten(Event):
    """A message that a strategy made. Only the cut holds it; the first one of a cut has the cut's id."""

    __slots__ = ("number",)
    is_logged = False

    def __init__(self, owner: Origin, message: dict[str, Any]) -> None:
        super().__init__(owner, 0, MESSAGE_ADDED, message, 0)
        self.number = 0

    def made_by(self, cut: Event, number: int) -> None:
        """Take the identity of message ``number``, counted from 0, of the event that carries it."""
        self.seq, self.moment, self.number = cut.seq, cut.moment, number
        if number:
            self._id = event_id(f"{self.owner.id}#{number}", cut.seq, cut.time)


def identify(entries: Iterable[Event], cut: Event) -> None:
    """Give the messages that ``cut`` made their identities."""
    number = 0
    for entry in entries:
        if entry.seq:
            continue
        if isinstance(entry, Rewritten):
            entry.made_by(cut, number)
            number += 1
        elif isinstance(entry, Summary):
            entry.made_by(cut)


def rewritten(window: Window, entries: Sequence[Event]) -> Window:
    """Return ``window`` with these messages: its own, those of its history, and new ones, in any order.

    The history stays: what the window no longer shows in its place there becomes its past. Lifecycle events
    and context stay between what remains.
    """
    former = window.entries.items()
    head = _equal(former, entries)
    tail = _equal(former[head:][::-1], entries[head:][::-1])
    end = len(former) - tail

    def place(position: int) -> int:
        if position <= head:
            return position
        return len(entries) - tail if position <= end else position + len(entries) - len(former)

    made = Window(AppendOnlyList(entries), window.moved_notes(place), like=window)
    made.groups = window.groups.moved(place)
    made.contexts = window.kept_contexts(place)
    end = max(end, window.repeated)
    made.repeated = len(entries) - (len(former) - end)
    if end > window.repeated:
        made.past = (former[window.repeated : end], window.past)
    return made


def _equal(ones: Sequence[Event], others: Sequence[Event]) -> int:
    """Return how many of the first entries are the same."""
    count = 0
    for one, other in zip(ones, others, strict=False):
        if key_of(one) != key_of(other):
            break
        count += 1
    return count


def named(window: Window) -> list[Event]:
    """Return the entries that a rewritten window can refer to: those of the history, and what else the
    window shows."""
    history = window.history()
    known = set(map(key_of, history))
    return [*history, *(entry for entry in window.entries.items() if key_of(entry) not in known)]


def key_of(entry: Event) -> tuple[bool, int]:
    """Return what tells an entry from others, also when it was read again."""
    return (True, entry.seq) if entry.is_logged else (False, id(entry))
