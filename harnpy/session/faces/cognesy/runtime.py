"""The runtime: loads a session, has an action act on it, saves what it became. Spec: 10 §A3.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.faces.cognesy.controllers import PassThroughSessionController
from harnpy.session.faces.cognesy.events import EventDispatcher
from harnpy.session.faces.cognesy.factories import SessionFactory
from harnpy.session.faces.cognesy.log_saves import LogSaves
from harnpy.session.faces.cognesy.stores import HarnSessionStore
from harnpy.session.faces.cognesy.value_saves import ValueSaves

if TYPE_CHECKING:
    from harnpy.session.faces.cognesy.contracts import CanControlAgentSession, CanExecuteSessionAction
    from harnpy.session.faces.cognesy.definitions import AgentDefinition
    from harnpy.session.faces.cognesy.sessions import AgentSession, AgentState
    from harnpy.session.faces.cognesy.stores import SessionRepository
    from harnpy.session.faces.cognesy.values import AgentSessionInfo, SessionInfoList


class SessionRuntime:
    """The sessions of a repository, with a controller at each stage and events on what is done.

    ``options`` are those of `harnpy.session.SessionRuntime`, for a repository on a store of harnpy's.
    """

    def __init__(
        self,
        repository: SessionRepository,
        events: EventDispatcher | None = None,
        controller: CanControlAgentSession | None = None,
        **options: Any,
    ) -> None:
        events, controller = events or EventDispatcher(), controller or PassThroughSessionController()
        self._repository = repository
        self._values = ValueSaves(repository, events, controller)
        self._saves: LogSaves | ValueSaves = self._values
        if isinstance(repository.store, HarnSessionStore):
            self._saves = LogSaves(repository.store, events, controller, options)

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
        return self._values.load(str(session_id))

    def execute(self, session_id: str, action: CanExecuteSessionAction) -> AgentSession:
        """Have an action act on a session. Return what was saved, as the controller makes it `AFTER_SAVE`.

        Raises `SessionNotFound`, `SessionConflict`, and what the action or the controller raises.
        """
        if not callable(getattr(action, "execute_on", None)):
            raise TypeError(f"an action needs a method `execute_on`, {type(action).__name__} has none")
        return self._saves.execute(str(session_id), action)

    def create(self, definition: AgentDefinition, seed: AgentState | None = None) -> AgentSession:
        """Store a new session of an agent, and return it."""
        return self._saves.create(SessionFactory().create(definition, seed))

    def close(self) -> None:
        """End the runtime. The repository's store stays open."""
        self._saves.close()

    def __enter__(self) -> SessionRuntime:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
