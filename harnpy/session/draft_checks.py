"""Checks of an append's drafts, beside that they are JSON. Spec: 10 §A1.4, §C3.

Every session refuses what its views couldn't read. A strict one also wants messages of known roles that say
something, and results of calls that are open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import ValidationError, convert

from harnpy.formats.tool_messages import calls_of, results_of
from harnpy.session import drafting, rewind
from harnpy.session import events as kinds
from harnpy.session.errors import EventRejected
from harnpy.session.events import Payload
from harnpy.session.messages import has_payload
from harnpy.session.payload_types import by_type
from harnpy.session.registers import check_transition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.events import Event, EventDraft
    from harnpy.session.view import View

    Message = dict[str, Any]

_ROLES = ("user", "assistant", "tool")
_NO_CALL = "session append: tool message has no matching pending assistant tool call"
_SAYS_NOTHING = "session append: assistant message has no content, reasoning, thinking blocks, or tool calls"
_HAS_NOTHING = (
    "session append: user message has no content: its keys are {}. Is it another tool's? `harnpy sessions "
    "import` reads those that docs/faces.md lists"
)
#: What the session writes itself.
_ITS_OWN = {
    kinds.SESSION_CREATED: "a session has it already: create another one",
    kinds.HISTORY_REPLACED: "use set_history or reset",
}
_TYPES = by_type()


class Log(drafting.Log, Protocol):
    """The part of a session that checks need."""

    strict: bool

    @property
    def status(self) -> str: ...


def admitted(session: Log, drafts: Sequence[EventDraft]) -> list[EventDraft]:
    """Return what to append for these drafts. Raises `EventRejected`, `InvalidTransition`."""
    found: list[EventDraft] = []
    pending: Pending | None = None
    for draft in drafts:
        if draft.place is not None and draft.place.parent_id is not None:
            found += drafting.move_to_parent(session, draft.place.parent_id)
        if isinstance(draft.data, Payload):
            found.append(draft)
        elif draft.type == kinds.MESSAGE_ADDED:
            _check_role(session, draft.data)
            if session.strict:
                pending = pending or Pending(session.view, draft.turn)
                pending.take(draft.data)
            found.append(draft)
        else:
            found.append(_typed(session, draft))
    return found


class Pending:
    """The calls that are open where a message is to stand."""

    def __init__(self, view: View, turn: Any) -> None:
        entries = view.window.entries.items()
        place = len(entries) if turn is None or isinstance(turn, str) else _place(view, turn, len(entries))
        self._open: list[str] = []
        answered: list[str | None] = []
        for at in range(place - 1, -1, -1):
            message = entries[at].body
            results = results_of(message)
            if results is None:
                self._open = _without(_calls(message), answered)
                break
            answered += results

    def take(self, message: Message) -> None:
        """Check the next message. Raises `EventRejected`."""
        results = results_of(message)
        if results is None:
            if message["role"] == "assistant" and not has_payload(message):
                raise EventRejected(_SAYS_NOTHING)
            if message["role"] == "user" and not _has_content(message):
                raise EventRejected(_HAS_NOTHING.format(", ".join(sorted(message))))
            self._open = _calls(message)
            return
        for id in results:
            if id not in self._open:
                raise EventRejected(_NO_CALL)
            self._open.remove(id)


def _has_content(message: Message) -> bool:
    """Return whether a user's message has a content, even an empty one, or parts in harnpy's shape."""
    parts = message.get("parts")
    known = isinstance(parts, list) and any(isinstance(part, dict) and "type" in part for part in parts)
    return known or message.get("content") is not None


def _place(view: View, turn: Event, count: int) -> int:
    """Return where the turn's next message will stand among ``count`` others."""
    return view.window.groups.branch().place(turn.seq or turn.id, count)


def _calls(message: Message) -> list[str]:
    return [call.id for call in calls_of(message) if call.id is not None]


def _without(calls: list[str], answered: list[str | None]) -> list[str]:
    left = list(calls)
    for id in answered:
        if id in left:
            left.remove(id)
    return left


def _check_role(session: Log, message: Any) -> None:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str) or (session.strict and role not in _ROLES):
        raise EventRejected("session append: message has invalid role", session.id)


def _typed(session: Log, draft: EventDraft) -> EventDraft:
    kind = _TYPES.get(draft.type)
    if kind is None:
        return draft
    if draft.type in _ITS_OWN:
        raise EventRejected(
            f"session append: {draft.type} is the session's own: {_ITS_OWN[draft.type]}", session.id
        )
    try:
        said = convert(draft.data, kind)
    except ValidationError as error:
        from harnpy.formats.mismatch import mismatch

        problem = mismatch(draft.data, kind, "data")
        raise EventRejected(f"session append: {draft.type}: {problem}", session.id) from error
    if draft.type == kinds.STATUS_CHANGED:
        check_transition(session.id, session.status, draft.data["to"])
    if draft.type == kinds.REGISTER_SET and _is_misset_pins(draft.data):
        raise EventRejected(
            "session append: register_set: `pins` must be a list of event numbers", session.id
        )
    return drafting.resolved(session, draft, said)


def _is_misset_pins(register: Message) -> bool:
    return register["key"] == rewind.REGISTER and not rewind.are_pins(register["value"])
