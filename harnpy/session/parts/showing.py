"""What a session shows: its window, raw and as a model gets it, and its history. Spec: 10 §C5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.parts.reading import Reading
from harnpy.session.shown.entries import FILES_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.session.events import Event
    from harnpy.session.shown.entries import HistoryEntry
    from harnpy.session.shown.stable import Stable
    from harnpy.session.views import View


class Showing(Reading):
    """The part of a `Session` that returns messages."""

    __slots__ = ()

    view: View

    @property
    def length(self) -> int:
        """The number of messages in the window."""
        return len(self.view.window)

    def messages(self) -> list[dict[str, Any]]:
        """The window's messages, in a new list; the messages themselves are shared."""
        return list(self.view.window.messages())

    def total(self, measure: Callable[[dict[str, Any]], int]) -> int:
        """The sum of ``measure(message)`` in the window. Cached by function: pass the same one each time."""
        return self.view.window.total(measure)

    def window(self) -> list[dict[str, Any]]:
        """The window as a model gets it: valid for every provider (10 §C5)."""
        return list(self.stable(_as_it_is).messages)

    def entries(self, files_limit: int = FILES_LIMIT) -> list[HistoryEntry]:
        """The messages of `window` with their events, context marks and what the log knows of calls.

        ``files_limit``: how many files of each sort the working set names.
        """
        return self.view.entries(self._read_tools, annotate=True, files_limit=files_limit)

    def stable(self, convert: Callable[[dict[str, Any]], Any]) -> Stable:
        """The messages of `window` as a request sends them, each as ``convert`` makes it (10 §C16.2)."""
        return self.view.stable(convert, self._read_tools)

    def _read_tools(self, after: int, before: int | None) -> Iterator[Event]:
        until = None if before is None else before - 1
        return self.stream.read(after, until, types=kinds.CALL_TYPES)

    def history(self, include_reset: bool = False) -> list[dict[str, Any]]:
        """The messages behind the window since the last reset, as they were written; with
        ``include_reset`` those of the whole log."""
        if include_reset:
            return self.every_message()
        return [entry.body for entry in self.view.window.history()]

    @property
    def context_window(self) -> list[dict[str, Any]]:
        """`messages` by its name in Agently."""
        return self.messages()

    @property
    def full_context(self) -> list[dict[str, Any]]:
        """`history` by its name in Agently."""
        return self.history()

    def every_message(self) -> list[dict[str, Any]]:
        """Return the messages of the whole log, including those before a reset. A fork onto this session
        counts as the messages that it brought."""
        found: list[dict[str, Any]] = []
        for event in self.read():
            if event.type == kinds.MESSAGE_ADDED:
                found.append(event.body)
            elif isinstance(event.body, Cut) and event.body.parent_id is not None:
                found += [entry.body for entry in event.body.window.history()]
        return found

    def prompt_state(self) -> tuple[list[dict[str, Any]], str | None]:
        """Return what a loop starts from: the messages, led by the summary unless they show it, and the
        summary (08 §1.11)."""
        window = self.view.window
        opening = [] if window.shows_summary() else [{"role": "user", "content": window.summary}]
        return opening + self.messages(), window.summary


def _as_it_is(message: dict[str, Any]) -> dict[str, Any]:
    return message
