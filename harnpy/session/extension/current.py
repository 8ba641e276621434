"""Which session the request at hand is made with. Spec: 10 §A2.5, §B2."""

from __future__ import annotations

from contextvars import ContextVar

_CURRENT: ContextVar[str | None] = ContextVar("harnpy.session", default=None)


def current_session_id() -> str | None:
    """Return the id of the session that the last request of this thread or task was prepared with; None if
    that was none."""
    return _CURRENT.get()


def enter(session_id: str | None) -> None:
    """Have `current_session_id` return that from now on, in this thread or task."""
    _CURRENT.set(session_id)
