"""The runtime: loads a session, has an action act on it, saves what it became. Spec: 10 §A3.3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.agents.send import Send
from harnpy.session.faces.cognesy.changes import write_changes
from harnpy.session.faces.cognesy.contracts import AgentSessionStage
from harnpy.session.faces.cognesy.controllers import PassThroughSessionController
from harnpy.session.faces.cognesy.events import EventDispatcher
from harnpy.session.faces.cognesy.factories import SessionFactory
from harnpy.session.faces.cognesy.saving import saved_by, show, shown
from harnpy.session.faces.cognesy.sessions import value_of
from harnpy.session.runtime import bus
from harnpy.session.runtime.runtime import SessionRuntime as HarnRuntime

if TYPE_CHECKING:
    from typing import Any

    from harnpy.session.faces.cognesy.contracts import CanControlAgentSession, CanExecuteSessionAction
    from harnpy.session.faces.cognesy.definitions import AgentDefinition
    from harnpy.session.faces.cognesy.sessions import AgentSession, AgentState
    from harnpy.session.faces.cognesy.stores import SessionRepository
    from harnpy.session.faces.cognesy.values import AgentSessionInfo, SessionInfoList
    from harnpy.session.runtime.txn import Txn

#: Behind these stages nothing can be written any more.
_SAVED = (AgentSessionStage.AFTER_SAVE, AgentSessionStage.AFTER_CREATE)


class SessionRuntime:
    """The sessions of a repository, with a controller at each stage and events on what is done.

    ``options`` are those of `harnpy.session.SessionRuntime`.
    """

    def __init__(
        self,
        repository: SessionRepository,
        events: EventDispatcher | None = None,
        controller: CanControlAgentSession | None = None,
        **options: Any,
    ) -> None:
        self._repository = repository
        self._events = events or EventDispatcher()
        self._controller = controller or PassThroughSessionController()
        store = repository.store.runtime.store
        options = {"strict_ids": True, **options}
        self._runtime = HarnRuntime(store, hooks=self._ask, events=self._events, **options)

    def list_sessions(self) -> SessionInfoList:
        """Return the headers of all sessions."""
        return self._repository.list_headers()

    def get_session_info(self, session_id: str) -> AgentSessionInfo:
        """Return the header of `get_session`."""
        return self.get_session(session_id).info

    def get_session(self, session_id: str) -> AgentSession:
        """Return a session, as the controller makes it `AFTER_LOAD`. Nothing is stored.

        Raises `SessionNotFound`, and what the controller raises.
        """
        id = str(session_id)
        try:
            loaded = self._repository.load(id)
            session = self._controller.on_stage(AgentSessionStage.AFTER_LOAD, loaded)
        except Exception as error:
            told = {"session_id": id, "error": str(error), "error_type": type(error).__name__}
            self._events.emit(bus.LOAD_FAILED, told)
            raise
        facts = {"revision": session.version, "seq": loaded.seq, "status": str(session.status)}
        self._events.emit(bus.LOADED, {"session_id": id, **facts})
        return session

    def execute(self, session_id: str, action: CanExecuteSessionAction) -> AgentSession:
        """Have an action act on a session. Return what was saved, as the controller makes it `AFTER_SAVE`.

        Raises `SessionNotFound`, `SessionConflict`, and what the action or the controller raises.
        """
        id = str(session_id)
        self._repository.store.admit(id)
        act = action if isinstance(action, Send) else _Acting(action)
        return saved_by(lambda: self._runtime.execute(id, act))

    def create(self, definition: AgentDefinition, seed: AgentState | None = None) -> AgentSession:
        """Store a new session of an agent, and return it."""
        session = SessionFactory().create(definition, seed)
        return saved_by(lambda: self._runtime.create(self._repository.store.unsaved(session)))

    def close(self) -> None:
        """End the runtime. The repository's store stays open."""
        self._runtime.close()

    def __enter__(self) -> SessionRuntime:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

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
        if not callable(getattr(action, "execute_on", None)):
            raise TypeError(f"an action needs a method `execute_on`, {type(action).__name__} has none")
        self._action = action
        self.name = type(action).__name__

    def __call__(self, session: Txn) -> None:
        value = value_of(session)
        write_changes(session, value, self._action.execute_on(value))
