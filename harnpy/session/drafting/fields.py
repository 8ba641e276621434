"""What a draft says beside its data: type, turn, cost, and what an import brings. Spec: 10 §C3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.errors import EventRejected
from harnpy.session.events import Event, EventDraft, Place, TurnRef
from harnpy.session.json_check import checked

if TYPE_CHECKING:
    from collections.abc import Sequence

_INFINITY = float("inf")


def check_drafts(drafts: Sequence[EventDraft]) -> None:
    """Make sure that they can be stored anywhere. Raises `EventRejected`."""
    check_fields(drafts)
    for draft in drafts:
        draft.check()


def check_fields(drafts: Sequence[EventDraft]) -> None:
    """Check all but data and metadata. Raises `EventRejected`."""
    for draft in drafts:
        if not isinstance(draft, EventDraft):
            raise EventRejected(f"session append: expected an EventDraft, got {type(draft).__name__}")
        if draft.type.__class__ is not str or not draft.type.isascii():
            draft.type = _text("type", draft.type)
        if draft.cost or draft.turn is not None or draft.id is not None or draft.place is not None:
            _check_rest(draft)


def _check_rest(draft: EventDraft) -> None:
    if draft.cost and not _is_finite(draft.cost):
        raise EventRejected(f"session append: `cost` must be a finite number, got {draft.cost!r}")
    if draft.turn is not None and not isinstance(draft.turn, Event | TurnRef):
        draft.turn = _text("turn", draft.turn)
    draft.id = _brought("id", draft.id)
    if draft.place is not None:
        parent_id, timestamp, seq = draft.place
        if seq is not None and type(seq) is not int:
            raise EventRejected(f"session append: `seq` must be an int, got {type(seq).__name__}")
        draft.place = Place(_brought("parent_id", parent_id), _brought("timestamp", timestamp), seq)


def _brought(name: str, value: str | None) -> str | None:
    return None if value is None else _text(name, value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise EventRejected(f"session append: `{name}` must be a text, got {type(value).__name__}")
    mended: str = checked(str(value))
    return mended


def _is_finite(cost: Any) -> bool:
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    return is_number and -_INFINITY < cost < _INFINITY
