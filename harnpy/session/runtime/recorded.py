"""What the log has of a turn that is entered again, and whether its new run does the same. Spec: 10 §C16.5.

Pure: drafts are compared with the recorded events, in order. What only happens inside of a call (of a model,
a tool, a person) stands where it stood, and so do others' events.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.session import events as kinds
from harnpy.session.events import Event
from harnpy.session.runtime.commuting import commutes
from harnpy.session.turns.calls import ToolStarted
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.events import EventDraft

#: What makes an event of a type the one that is written, beside its type; None: all its data.
_SAME_BY: Final[dict[str, tuple[str, ...] | None]] = {
    kinds.MESSAGE_ADDED: None,
    kinds.CONTEXT_ADDED: None,
    kinds.TURN_STARTED: ("agent_id", "key"),
    kinds.REGISTER_SET: ("key", "value"),
    kinds.TOOL_STARTED: ("tool", "id", "args"),
    kinds.TOOL_COMPLETED: ("tool", "id"),
    kinds.APPROVAL_REQUESTED: ("tool", "args"),
    kinds.EXTERNAL_INPUT: ("prompt", "status"),
}
#: What else a turn has in its log for a call that is answered from there.
_INSIDE: Final = frozenset({
    kinds.TRANSCRIPT_EVENT, kinds.ESCALATION_RETRIED, kinds.TOOL_OUTPUT_DELTA, kinds.APPROVAL_REQUESTED,
    kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED, kinds.EXTERNAL_INPUT, kinds.WAIT_STARTED,
    kinds.WAIT_RESOLVED, kinds.HANDOFF, kinds.ARTIFACT_RECORDED, kinds.CHILD_REQUESTED, kinds.CHILD_STARTED,
    kinds.CHILD_PROGRESSED, kinds.CHILD_BLOCKED, kinds.CHILD_COMPLETED, kinds.CHILD_FAILED,
    kinds.CHILD_CANCELED, kinds.CHILD_MERGED,
})  # fmt: skip
#: What ends what begins with an event of a type, and what both name it by.
_ENDS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    kinds.STEP_STARTED: ((kinds.STEP_COMPLETED,), ()),
    kinds.TOOL_STARTED: ((kinds.TOOL_COMPLETED,), ("tool", "id")),
    kinds.APPROVAL_REQUESTED: ((kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED), ("id",)),
    kinds.EXTERNAL_INPUT: ((kinds.EXTERNAL_INPUT,), ("prompt",)),
}
#: What may come in another order, where an agent does several things at once.
_SIDE_BY_SIDE: Final = kinds.TOOL_TYPES | {
    kinds.APPROVAL_REQUESTED, kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED,
}  # fmt: skip
#: What comes of all the calls before it.
_SAID: Final = frozenset({
    kinds.MESSAGE_ADDED, kinds.STEP_STARTED, kinds.STEP_COMPLETED, kinds.TURN_COMPLETED,
})  # fmt: skip


class Diverged(BaseException):
    """The new run of a turn does something else than event number ``seq``. Agents don't handle it."""

    def __init__(self, turn: Event, seq: int) -> None:
        super().__init__(f"diverged at {seq}")
        self.turn = turn
        self.seq = seq


class Recalled(NamedTuple):
    """A call that an earlier run of the turn has begun, and its end, if it came to one."""

    begin: Event
    end: Event | None


class Recorded:
    """The events of the log from the append on that began ``turn``. Each is taken once."""

    def __init__(self, turn: Event, events: Iterable[Event]) -> None:
        self._turn = turn
        self._ahead = deque(events)
        self._last = max(event.seq for event in self._ahead if self.is_own(event))
        self._late: list[Event] = []  # what may still be taken behind others
        self._begun: list[Recalled] = []
        self._ended: set[int] = set()

    @property
    def is_ahead(self) -> bool:
        """Whether the log has more than was taken."""
        return bool(self._ahead)

    def is_own(self, event: Event) -> bool:
        """Whether it is one of the turn, its beginning included."""
        return event.seq == self._turn.seq or (event.turn is not None and event.turn.seq == self._turn.seq)

    def take(self, draft: EventDraft, taken: list[Event]) -> Event | None:
        """Return the event that a draft is; None where the log ends before it. What the log moves on by is
        added to ``taken``. Raises `Diverged`."""
        if draft.turn is not None and draft.type in _SAID:
            self._check_calls()
        for event in self._late:
            if _is_same(event, draft):
                self._late.remove(event)
                self._note_begin(event)
                return event
        while self._ahead:
            event = self._ahead[0]
            is_same = _is_same(event, draft)
            if not (is_same or self._may_pass(event, draft)):
                raise Diverged(self._turn, event.seq)
            taken.append(self._ahead.popleft())
            if is_same:
                self._note_begin(event)
                return event
            if event.type in _SIDE_BY_SIDE:
                self._late.append(event)
        return None

    def is_left(self, event: Event) -> bool:
        """Whether an event that the log has moved on by wasn't taken itself."""
        return any(left.seq == event.seq for left in self._late)

    def take_messages(self) -> list[Event]:
        """Return the messages of others that come next."""
        taken = []
        while self._ahead and self._ahead[0].type == kinds.MESSAGE_ADDED and self._ahead[0].turn is None:
            taken.append(self._ahead.popleft())
        return taken

    def recall(self, type: str, **names: Any) -> Recalled | None:
        """Return the next call of that type and those names which was begun before; None for a new one."""
        for known in self._begun:
            if known.begin.type == type and all(_get(known.begin, key) == names[key] for key in names):
                self._begun.remove(known)
                return known
        return None

    def _check_calls(self) -> None:
        """Raise `Diverged` where a call was left out, before what comes of all calls."""
        for event in self._late:
            if event.type in kinds.TOOL_TYPES:
                raise Diverged(self._turn, event.seq)

    def _may_pass(self, event: Event, draft: EventDraft) -> bool:
        """Whether an event may stand before a draft that it isn't."""
        if self.is_own(event):
            if event.type in kinds.TOOL_TYPES:
                return draft.type in _SIDE_BY_SIDE
            return event.type in _INSIDE
        # While the turn ran, nobody else could write what it couldn't go on behind.
        return event.seq < self._last or event.type == kinds.STORE_REPAIRED or commutes(event)

    def _note_begin(self, event: Event) -> None:
        if event.type not in _ENDS or _is_answer(event):
            return
        types, keys = _ENDS[event.type]
        ends = (
            end
            for end in (*self._late, *self._ahead)
            if end.type in types
            and end.seq > event.seq
            and end.seq not in self._ended
            and (end.type != kinds.EXTERNAL_INPUT or _is_answer(end))
            and all(_get(end, key) == _get(event, key) for key in keys)
        )
        end = next(ends, None)
        if end is not None:
            self._ended.add(end.seq)
        self._begun.append(Recalled(event, end))


def _is_same(event: Event, draft: EventDraft) -> bool:
    if event.type != draft.type or (event.turn is None) != (draft.turn is None):
        return False
    keys = _SAME_BY.get(event.type, ())
    if keys is None:
        return bool(event.body == draft.data)
    return all(_get(event, key) == _get(draft, key) for key in keys)


def _is_answer(event: Event) -> bool:
    return event.type == kinds.EXTERNAL_INPUT and event.body["status"] == "received"


def _get(what: Event | EventDraft, key: str) -> Any:
    body = what.body if isinstance(what, Event) else what.data
    if isinstance(body, ToolStarted):
        return compact_json(body.arguments) if key == "args" else getattr(body, key)
    return body.get(key)
