"""What actions, controllers, stores and runtimes are, as protocols. Spec: 10 §A3.3, §A3.4, §A3.5, §A3.7."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harnpy.session.faces.cognesy.sessions import AgentSession
    from harnpy.session.faces.cognesy.values import AgentSessionInfo, SessionInfoList


class AgentSessionStage(StrEnum):
    """When a controller is asked."""

    BEFORE_CREATE = "before_create"
    AFTER_LOAD = "after_load"
    AFTER_ACTION = "after_action"
    BEFORE_SAVE = "before_save"
    AFTER_SAVE = "after_save"
    AFTER_CREATE = "after_create"


class CanExecuteSessionAction(Protocol):
    """An action. It should be a pure function of the session."""

    def execute_on(self, session: AgentSession) -> AgentSession: ...


class CanControlAgentSession(Protocol):
    """A controller. What it returns behind `AFTER_SAVE` isn't stored, only handed back."""

    def on_stage(self, stage: AgentSessionStage, session: AgentSession) -> AgentSession: ...


class CanManageAgentSessions(Protocol):
    """What `SessionRuntime` offers."""

    def list_sessions(self) -> SessionInfoList: ...
    def get_session_info(self, session_id: str) -> AgentSessionInfo: ...
    def get_session(self, session_id: str) -> AgentSession: ...
    def execute(self, session_id: str, action: CanExecuteSessionAction) -> AgentSession: ...


class CanStoreSessions(Protocol):
    """A store of sessions. `create` takes version 0 and stores 1, `save` takes the stored version and stores
    the next one; `AgentSession.reconstitute` sets it."""

    def create(self, session: AgentSession) -> AgentSession: ...
    def save(self, session: AgentSession) -> AgentSession: ...
    def load(self, session_id: str) -> AgentSession | None: ...
    def exists(self, session_id: str) -> bool: ...
    def delete(self, session_id: str) -> None: ...
    def list_headers(self) -> SessionInfoList: ...
