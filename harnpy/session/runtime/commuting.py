"""What others may append while a turn runs. Spec: 10 §C7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harnpy.session import events as kinds

if TYPE_CHECKING:
    from harnpy.session.events import Event

_COMMUTING: Final = frozenset({
    kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED, kinds.WAIT_RESOLVED, kinds.EXTERNAL_INPUT,
    kinds.REGISTER_SET, kinds.CHILD_REQUESTED, kinds.CHILD_STARTED, kinds.CHILD_PROGRESSED,
    kinds.CHILD_BLOCKED, kinds.CHILD_COMPLETED, kinds.CHILD_FAILED, kinds.CHILD_CANCELED,
    kinds.CHILD_MERGED, kinds.ARTIFACT_RECORDED, kinds.TRANSCRIPT_EVENT,
})  # fmt: skip


def commutes(event: Event) -> bool:
    """Whether a turn goes on behind an event of others: it stands where it was appended."""
    if event.type == kinds.MESSAGE_ADDED:
        return event.turn is None
    return event.type in _COMMUTING
