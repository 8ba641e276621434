"""What one resize works on: the session as it stood when the resize began. Spec: 10 §C8."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from harnpy.reading.dicts import detached
from harnpy.session.events import BRANCH_SUMMARY, Summary
from harnpy.session.resize.engine import estimate_tokens
from harnpy.session.resize.lengths import length_of
from harnpy.session.resize.report import Size
from harnpy.session.shown.message_parts import calls_of, results_of
from harnpy.session.shown.pins import pinned_entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harnpy.session.events import Event
    from harnpy.session.resize.subject import Subject

    Message = dict[str, Any]


class Seen:
    """``entries`` are those of the window up to an assistant's message whose calls are still open, which
    stays with all that follows.

    ``pinned`` are the numbers of the entries that stay in any case, ``made`` those of summaries.
    """

    def __init__(self, session: Subject, settings: Mapping[str, Any]) -> None:
        window = session.view.window
        shown = window.entries.items()
        self.session_id = session.id
        self.settings = settings
        self.memo = session.memo
        self.entries: list[Event] = list(shown[: _open_at(session, shown)])
        pins = set(session.view.pins)
        self.pinned = {
            number for number, entry in enumerate(self.entries) if entry.is_logged and entry.seq in pins
        }
        self.made = {number for number, entry in enumerate(self.entries) if isinstance(entry, Summary)}
        self._behind = [entry.body for entry in shown[len(self.entries) :]]
        self._beside = _beside(session)
        self.size = _size([*(entry.body for entry in shown), *self._beside])
        self._session_window = window

    @cached_property
    def past(self) -> list[Event]:
        """The entries of the history."""
        return self._session_window.history()

    @cached_property
    def full(self) -> list[Message]:
        """Copies of the history's messages."""
        return [detached(entry.body) for entry in self.past]

    @cached_property
    def window(self) -> list[Message]:
        """Copies of the entries' messages."""
        return [detached(entry.body) for entry in self.entries]

    def arguments(self) -> tuple[list[Message], list[Message], Any, Mapping[str, Any]]:
        """Return what a handler is given."""
        return list(self.full), list(self.window), detached(self.memo), self.settings

    def given(self) -> Iterator[tuple[Message, Event]]:
        """Yield the copies that were handed out, each with its entry; those of the window last."""
        if "full" in vars(self):
            yield from zip(self.full, self.past, strict=True)
        yield from zip(self.window, self.entries, strict=True)

    def room(self, max_length: int) -> int:
        """Return what ``max_length`` leaves to the messages: context, pinned ones, and what stands behind
        the entries are counted first."""
        pinned = [self.window[number] for number in self.pinned]
        return max(0, max_length - length_of([*self._behind, *self._beside, *pinned]))


def size_of(session: Subject) -> Size:
    """Return how much of the session a model is shown."""
    return _size([*session.view.window.messages(), *_beside(session)])


def _size(messages: list[Message]) -> Size:
    return Size(len(messages), length_of(messages), estimate_tokens(messages))


def _beside(session: Subject) -> list[Message]:
    """Return what a model is shown that isn't among the window's messages: context, and pinned messages that
    a cut has taken out."""
    window, pins = session.view.window, session.view.pins
    keys = ((event, "summary" if event.type == BRANCH_SUMMARY else "content") for _, event in window.contexts)
    found = [{"role": "user", "content": event.data[key]} for event, key in keys]
    return found + ([entry.body for entry in pinned_entries(window, pins)] if pins else [])


def _open_at(session: Subject, shown: list[Event]) -> int:
    """Return the number of the first message whose calls may still be answered, or of none."""
    running = session.view.open_turns
    answered: set[str | None] = set()
    found = len(shown)
    only_results = True
    for number in range(len(shown) - 1, -1, -1):
        entry = shown[number]
        results = results_of(entry.body)
        if results is not None:
            answered.update(results)
            continue
        runs = entry.turn is not None and entry.turn.seq in running
        calls = calls_of(entry.body) if only_results or runs else []
        if any(call.id not in answered for call in calls):
            found = number
        only_results = False
        if not running:
            break
    return found
