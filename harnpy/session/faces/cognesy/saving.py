"""What a save has made of a session, for whoever asked for it. Spec: 10 §A3.3."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from harnpy.session.faces.cognesy.sessions import AgentSession, value_of
from harnpy.session.runtime import hooks

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.runtime.txn import Txn

_SAVED: Final[ContextVar[AgentSession | None]] = ContextVar("saved", default=None)


def saved_by(save: Callable[[], object]) -> AgentSession:
    """Return the session that ``save`` stores: what was last given to `show` meanwhile."""
    token = _SAVED.set(None)
    try:
        save()
        saved = _SAVED.get()
        assert saved is not None, "each save asks the hooks of `after_save`"
        return saved
    finally:
        _SAVED.reset(token)


def show(session: AgentSession) -> None:
    """Have `saved_by` return this session."""
    _SAVED.set(session)


def shown() -> AgentSession | None:
    """Return what was given to `show`."""
    return _SAVED.get()


def show_saved(stage: str, session: Txn) -> None:
    """A hook that shows each session as it is stored."""
    if stage == hooks.AFTER_SAVE:
        show(value_of(session))
