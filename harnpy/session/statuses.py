"""A session's status, and which may follow which; what became of its last turn. Spec: 10 §C3.1."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from harnpy.session.errors import InvalidArgument, InvalidTransition

ACTIVE, SUSPENDED, COMPLETED, FAILED, DELETED = "active", "suspended", "completed", "failed", "deleted"

#: What became of the last turn: there is none, it has no end yet, and its ends.
PENDING, IN_PROGRESS, STOPPED = "pending", "in_progress", "stopped"

#: Why a turn ended that did what it was to do, by itself or by giving the work to somebody else.
#: Spec: 10 §C16.1.
DONE, HANDED_OVER = "completed", "handoff"


class SessionStatus(StrEnum):
    """The statuses of a session. Each equals its text."""

    ACTIVE = ACTIVE
    SUSPENDED = SUSPENDED
    COMPLETED = COMPLETED
    FAILED = FAILED
    DELETED = DELETED


_ALL: Final = frozenset({ACTIVE, SUSPENDED, COMPLETED, FAILED, DELETED})
_NEXT: Final = {
    ACTIVE: _ALL,
    SUSPENDED: _ALL,
    COMPLETED: frozenset({ACTIVE, DELETED}),
    FAILED: frozenset({ACTIVE, DELETED}),
    DELETED: frozenset[str](),
}


def can_become(former: str, status: str) -> bool:
    """Whether a session of status ``former`` may get ``status``; staying the same is no change."""
    return status == former or status in _NEXT[former]


def check_status(status: str, session_id: str | None = None) -> None:
    """Raises `InvalidArgument` for what is no status."""
    if status not in _ALL:
        raise InvalidArgument(f'unknown status "{status}"', session_id)


def check_transition(session_id: str, former: str, status: str) -> None:
    """Raises `InvalidArgument` for what is no status, `InvalidTransition` for one that can't follow."""
    check_status(status, session_id)
    if not can_become(former, status):
        raise InvalidTransition(session_id, former, status)


def execution_after(turn_completed: dict[str, Any]) -> str:
    """Return what became of a turn, by the payload of its end."""
    if "error" in turn_completed:
        return FAILED
    return COMPLETED if turn_completed.get("turn_stop_reason") == DONE else STOPPED
