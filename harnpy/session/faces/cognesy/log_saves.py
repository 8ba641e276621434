"""Actions on sessions of harnpy's: the pipeline's steps, with values around each. Spec: 10 §A3.3, §C7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.agents.send import Send
from harnpy.session.faces.cognesy.changes import write_changes
from harnpy.session.faces.cognesy.contracts import AgentSessionStage
from harnpy.session.faces.cognesy.controllers import PassThroughSessionController
from harnpy.session.faces.cognesy.saving import saved_by, show, shown
from harnpy.session.faces.cognesy.sessions import value_of
from harnpy.session.runtime.runtime import SessionRuntime

if TYPE_CHECKING:
    from typing import Any

    from harnpy.session.faces.cognesy.contracts import CanControlAgentSession, CanExecuteSessionAction
    from harnpy.session.faces.cognesy.events import EventDispatcher
    from harnpy.session.faces.cognesy.sessions import AgentSession
    from harnpy.session.faces.cognesy.stores import HarnSessionStore
    from harnpy.session.runtime.txn import Txn

#: Behind these stages nothing can be written any more.
_SAVED = (AgentSessionStage.AFTER_SAVE, AgentSessionStage.AFTER_CREATE)


class LogSaves:
    """Carries out actions: what they, and the controller, give back is written as events."""

    def __init__(
        self,
        store: HarnSessionStore,
        events: EventDispatcher,
        controller: CanControlAgentSession,
        options: dict[str, Any],
    ) -> None:
        self._store = store
        self._controller = controller
        given = {"strict_ids": True, **options}
        self._runtime = SessionRuntime(store.runtime.store, hooks=self._ask, events=events, **given)

    def execute(self, id: str, action: CanExecuteSessionAction) -> AgentSession:
        """Return what was saved. A turn is written as it goes on."""
        self._store.admit(id)
        act = action if isinstance(action, Send) else _Acting(action)
        return saved_by(lambda: self._runtime.execute(id, act))

    def create(self, session: AgentSession) -> AgentSession:
        """Store a session of version 0."""
        return saved_by(lambda: self._runtime.create(self._store.unsaved(session)))

    def close(self) -> None:
        self._runtime.close()

    def _ask(self, name: str, session: Txn) -> None:
        """The hook: ask the controller, and write what it changes."""
        stage = AgentSessionStage(name)
        if stage not in _SAVED:
            if not isinstance(self._controller, PassThroughSessionController):
                value = value_of(session)
                write_changes(session, value, self._controller.on_stage(stage, value))
            return
        value = (shown() if stage is AgentSessionStage.AFTER_CREATE else None) or value_of(session)
        show(self._controller.on_stage(stage, value))


class _Acting:
    """An action on values, as one on a session of harnpy's."""

    def __init__(self, action: CanExecuteSessionAction) -> None:
        self._action = action
        self.name = type(action).__name__

    def __call__(self, session: Txn) -> None:
        value = value_of(session)
        write_changes(session, value, self._action.execute_on(value))
