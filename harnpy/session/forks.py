"""The log of a session, and the branches that moves of the leaf make of it. Spec: 10 §A1.9, §C3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session import arguments
from harnpy.session.events import BRANCH_SUMMARY, LEAF_MOVED, EventDraft
from harnpy.session.reading import Reading
from harnpy.session.rewind import active, leaf_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.events import Event
    from harnpy.session.past import Until
    from harnpy.session.view import View


class Branches(Reading):
    """The part of a `Session` that reads its log, and says from where it goes on."""

    __slots__ = ()

    id: str
    view: View

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        raise NotImplementedError

    def _check_idle(self) -> None:
        raise NotImplementedError

    def events(
        self,
        after: int = 0,
        until: Until | None = None,
        *,
        types: Iterable[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
        branch: bool = False,
    ) -> list[Event]:
        """Return the events behind number ``after`` up to ``until``, oldest first: all that ever happened.

        ``until`` is a number, the id of an event, or a moment. ``types`` chooses some, ``limit`` the first so
        many, ``reverse`` begins with the newest, ``branch`` leaves out what was taken back. Raises
        `EventNotFound` for an id that isn't there, and for a moment before the first event.
        """
        end = self._end(until)
        arguments.count("after", after)
        if limit is not None:
            arguments.count("limit", limit)
        wanted = None if types is None else arguments.types(types)
        if not branch:
            return self.read(after, end, types=wanted, reverse=reverse, limit=limit)
        found = [
            event
            for event in active(self.read(0, end), 0)
            if event.seq > after and (wanted is None or event.type in wanted)
        ]
        return (found[::-1] if reverse else found)[:limit]

    def branch(self, event_id: str) -> list[Event]:
        """Return the events that lead to the one of that id, and itself. Raises `EventNotFound`."""
        return self.events(until=event_id, branch=True) if event_id else []

    @property
    def leaf_id(self) -> str | None:
        """The id of the event that the conversation goes on behind: the last one, unless it is a move."""
        seq = leaf_of(self.stream)
        return self.read(seq - 1, seq)[0].id if seq else None

    def move_leaf(self, event_id: str, summary: str | None = None) -> list[Event]:
        """Go on behind an earlier event; an empty id is the begin. What came after it stays in the log, and
        leaves the window.

        ``summary`` tells the model what became of it. Raises `EventRejected` for an event that isn't there or
        is the leaf, and for a blank summary; `SessionBusy` while a turn is open.
        """
        from harnpy.session.drafting import ROOT, moved, summarized

        self._check_idle()
        drafts = []
        if summary is not None:
            begin = event_id or self.read(ROOT - 1, ROOT)[0].id
            told = summarized(self, {"from_event_id": begin, "summary": summary})
            drafts = [EventDraft(BRANCH_SUMMARY, told)]
        return self.write(EventDraft(LEAF_MOVED, moved(self, event_id)), *drafts)

    def _end(self, until: Until | None) -> int | None:
        if until is None or type(until) is int:
            return until
        from harnpy.session.past import number_of

        return number_of(self.stream, until, self.origin)
