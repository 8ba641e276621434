"""Turns that a process left open, and another one resumes by replaying the log. Spec: 10 §C7.2, §C16.5.

A `ResumedTxn` is the session as it was before the turn began. The agent runs the turn from its start, and
knows nothing of it: what it writes is looked up in the log first, and not written again if it is there. So
the session advances along its own log until that is used up; then it is a `Txn` like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harnpy.session import events as kinds
from harnpy.session.errors import SessionConflict
from harnpy.session.events import EventDraft
from harnpy.session.history import ANY
from harnpy.session.transaction import HISTORY, Diverged, RecordedCall, RecordedTurn, Txn
from harnpy.session.turns import end_open_turns, events_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.calling import Caller
    from harnpy.session.events import Event
    from harnpy.session.live import LiveSession

_TURNS: Final = frozenset({kinds.TURN_STARTED})
#: What names something that outlives the event that it begins with.
_IDS: Final = ("id", "external_id", "request_id", "child_id")
_NAMED: Final = frozenset({
    kinds.APPROVAL_REQUESTED, kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED, kinds.EXTERNAL_INPUT,
    kinds.WAIT_STARTED, kinds.WAIT_RESOLVED,
})  # fmt: skip


class ResumedTxn(Txn):
    """The session of ``turn``, which is open and resumed."""

    __slots__ = ("_diverged", "_ids", "_recorded")

    def __init__(self, live: LiveSession, action: str, caller: Caller, key: str | None, turn: Event) -> None:
        super().__init__(live, action, caller, key)
        self._diverged: Diverged | None = None
        self._ids: dict[Any, Any] = {}  # those that the log has for those that were minted anew
        with live.lock:
            start = _append_of(live, turn) - 1
            self._recorded = RecordedTurn(turn, live.read(after=start))
            self._start_at(start, live.view.at(start), live.event(start).moment)

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        """Append what the log doesn't have. Return what it has, or has now, for each draft.

        Raises `Diverged` where it has something else.
        """
        self._check_diverged()
        for draft in drafts:
            draft.check()
            self._rename(draft)
        if expected_version is not None and expected_version != ANY:
            self._advance(self._recorded.take_messages())
            if expected_version != self.version:
                raise SessionConflict(self.id, expected_version, self.version)
        done = self._matched(drafts)
        missing = drafts[len(done) :]
        if not missing:
            return done
        if expected_version is not None and expected_version != ANY:
            expected_version = self.version
        return done + super().write(*missing, expected_version=expected_version)

    def refresh(self) -> None:
        self._check_diverged()
        if self._recorded.has_more:
            self._advance(self._recorded.take_messages())
        else:
            super().refresh()

    @property
    def is_replaying(self) -> bool:
        return self._recorded.has_more

    def find_call(self, key: str) -> Event | None:
        known = super().find_call(key)
        return None if known is None or self._recorded.is_unmatched(known) else known

    def recorded_call(self, type: str, **names: Any) -> RecordedCall | None:
        return self._recorded.recorded_call(type, **names)

    def rollback(self, error: BaseException, reason: str) -> None:
        if not isinstance(error, Diverged):  # that is ended by whoever begins the new turn
            super().rollback(error, reason)

    def _check_diverged(self) -> None:
        if self._diverged is not None:
            raise self._diverged  # the agent handled it

    def _matched(self, drafts: Sequence[EventDraft]) -> list[Event]:
        """Return the first of the drafts that the log has, as it has them."""
        done: list[Event] = []
        taken: list[Event] = []
        for draft in drafts:
            try:
                event = self._recorded.take(draft, taken)
            except Diverged as diverged:
                self._diverged = diverged
                raise
            if event is None:
                break
            self._note_ids(draft, event)
            draft.event = event
            done.append(event)
        self._advance(taken, done)
        return done

    def _advance(self, events: list[Event], written: Sequence[Event] = ()) -> None:
        """Stand behind these events, which come next in the log; some of them were ``written`` anew."""
        if not events:
            return
        self.view.read(events)
        self.version = events[-1].seq
        self._overlay.start = self.version
        self.moment = events[-1].moment
        self._has_streamed |= any(event.type == kinds.TURN_STARTED for event in events)
        self._has_changed_history |= any(event.type in HISTORY for event in events)
        self._tell([event for event in events if not (event in written or self._recorded.is_own(event))])

    def _note_ids(self, draft: EventDraft, event: Event) -> None:
        if event.type in _NAMED:
            for name in _IDS:
                given = draft.data.get(name)
                if given != event.body.get(name):
                    self._ids[given] = event.body.get(name)

    def _rename(self, draft: EventDraft) -> None:
        """Give a draft the ids under which the log knows what it is about."""
        if self._ids and draft.type in _NAMED:
            draft.data = {
                name: self._ids.get(value, value) if name in _IDS else value
                for name, value in draft.data.items()
            }


def resumable_turn(live: LiveSession, key: str | None) -> Event | None:
    """Return the session's last turn, if it is open and its ``key`` is this one."""
    turns = list(live.view.open_turns.values())
    if key is None or len(turns) != 1 or turns[0].body.get("key") != key:
        return None
    turn = turns[0]
    return turn if turn.seq > live.view.linked_at else None


def ended_turn(live: LiveSession, key: str) -> Event | None:
    """Return the session's last turn of that ``key``, if it has ended as planned."""
    for turn in live.stream.read(types=_TURNS, reverse=True):
        if turn.body.get("key") == key:
            ends = (event for event in events_of(live, turn) if event.type == kinds.TURN_COMPLETED)
            end = next(ends, None)
            is_own = turn.seq > live.view.linked_at
            return turn if is_own and end is not None and "error" not in end.body else None
    return None


def end_diverged(live: LiveSession, diverged: Diverged) -> None:
    """End a turn whose new run has diverged from the log."""
    started = diverged.turn.body
    tried = {"agent_id": started["agent_id"], "scope": "turn", "target": started["key"], "attempt": 1}
    with live.lock:
        live.write(
            EventDraft(kinds.ESCALATION_RETRIED, {**tried, "error": str(diverged)}, turn=diverged.turn)
        )
        end_open_turns(live)


def _append_of(live: LiveSession, turn: Event) -> int:
    """Return the number of the first event of the append that began a turn."""
    first = turn.seq
    while live.event(first - 1).more:
        first -= 1
    return first
