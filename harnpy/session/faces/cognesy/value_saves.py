"""Actions on sessions of a store that isn't harnpy's: it keeps values, so the steps are taken on those.

Nobody waits for anybody there: who saves an old version gets what that store raises. Spec: 10 §A3.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.faces.cognesy.contracts import AgentSessionStage
from harnpy.session.runtime import bus

if TYPE_CHECKING:
    from harnpy.session.faces.cognesy.contracts import CanControlAgentSession, CanExecuteSessionAction
    from harnpy.session.faces.cognesy.events import EventDispatcher
    from harnpy.session.faces.cognesy.sessions import AgentSession
    from harnpy.session.faces.cognesy.stores import SessionRepository


class ValueSaves:
    """Loads sessions, and carries out actions on them."""

    def __init__(
        self, repository: SessionRepository, events: EventDispatcher, controller: CanControlAgentSession
    ) -> None:
        self._repository = repository
        self._events = events
        self._ask = controller.on_stage

    def load(self, id: str) -> AgentSession:
        """Return a session as the controller makes it `AFTER_LOAD`. Nothing is stored."""
        with self._events.failure(bus.LOAD_FAILED, id):
            session = self._ask(AgentSessionStage.AFTER_LOAD, self._repository.load(id))
            self._events.emit(bus.LOADED, _facts(session))
            return session

    def execute(self, id: str, action: CanExecuteSessionAction) -> AgentSession:
        """Return what was saved, as the controller makes it `AFTER_SAVE`."""
        loaded = self.load(id)
        session = self._ask(AgentSessionStage.AFTER_ACTION, action.execute_on(loaded))
        session = self._ask(AgentSessionStage.BEFORE_SAVE, session)
        executed: dict[str, Any] = {"session_id": id, "action": type(action).__name__}
        executed |= {"before_revision": loaded.version, "before_status": str(loaded.status)}
        executed |= {"after_revision": session.version + 1, "after_status": str(session.status)}
        self._events.emit(bus.EXECUTED, executed)
        with self._events.failure(bus.SAVE_FAILED, id):
            session = self._ask(AgentSessionStage.AFTER_SAVE, self._repository.save(session))
            self._events.emit(bus.SAVED, _facts(session))
            return session

    def create(self, session: AgentSession) -> AgentSession:
        """Store a session of version 0."""
        with self._events.failure(bus.SAVE_FAILED, str(session.session_id)):
            session = self._ask(AgentSessionStage.BEFORE_CREATE, session)
            session = self._ask(AgentSessionStage.BEFORE_SAVE, session)
            session = self._ask(AgentSessionStage.AFTER_SAVE, self._repository.create(session))
            session = self._ask(AgentSessionStage.AFTER_CREATE, session)
            self._events.emit(bus.SAVED, _facts(session))
            return session

    def close(self) -> None:
        """There is nothing to close."""


def _facts(session: AgentSession) -> dict[str, Any]:
    facts = {"revision": session.version, "seq": session.seq, "status": str(session.status)}
    return {"session_id": str(session.session_id), **facts}
