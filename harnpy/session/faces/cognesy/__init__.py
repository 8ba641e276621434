"""Cognesy's names: sessions as immutable values, which a runtime loads, has actions change, and saves.

A value (`AgentSession`) is read from a session of harnpy's; what an action or a controller gives back is
compared with it, and the difference is written as events. Rules, stores and conflicts are harnpy's.
How programs read in Python: docs/faces.md. Spec: 10 §A3, §B2.
"""

from typing import TYPE_CHECKING

from harnpy.session.faces.cognesy.actions import (
    ChangeModel,
    ChangeSystemPrompt,
    ClearSession,
    ForkSession,
    ResumeSession,
    SendMessage,
    SuspendSession,
    UpdateTask,
    WriteMetadata,
)
from harnpy.session.faces.cognesy.contracts import (
    AgentSessionStage,
    CanControlAgentSession,
    CanExecuteSessionAction,
    CanManageAgentSessions,
    CanStoreSessions,
)
from harnpy.session.faces.cognesy.controllers import PassThroughSessionController, SessionHookStack
from harnpy.session.faces.cognesy.definitions import AgentDefinition, LLMConfig
from harnpy.session.faces.cognesy.errors import (
    InvalidSessionFileException,
    SessionConflictException,
    SessionNotFoundException,
)
from harnpy.session.faces.cognesy.events import (
    EventDispatcher,
    SessionActionExecuted,
    SessionLoaded,
    SessionLoadFailed,
    SessionSaved,
    SessionSaveFailed,
)
from harnpy.session.faces.cognesy.factories import DefinitionStateFactory, SessionFactory
from harnpy.session.faces.cognesy.runtime import SessionRuntime
from harnpy.session.faces.cognesy.sessions import AgentSession, AgentState
from harnpy.session.faces.cognesy.stores import (
    FileSessionStore,
    HarnSessionStore,
    InMemorySessionStore,
    SessionRepository,
)
from harnpy.session.faces.cognesy.values import AgentSessionInfo, SessionId, SessionInfoList, SessionStatus

if TYPE_CHECKING:
    from harnpy.session.faces.cognesy.loops import AgentCapabilityRegistry, DefinitionLoopFactory, UseBash

__all__ = [
    "AgentCapabilityRegistry",
    "AgentDefinition",
    "AgentSession",
    "AgentSessionInfo",
    "AgentSessionStage",
    "AgentState",
    "CanControlAgentSession",
    "CanExecuteSessionAction",
    "CanManageAgentSessions",
    "CanStoreSessions",
    "ChangeModel",
    "ChangeSystemPrompt",
    "ClearSession",
    "DefinitionLoopFactory",
    "DefinitionStateFactory",
    "EventDispatcher",
    "FileSessionStore",
    "ForkSession",
    "HarnSessionStore",
    "InMemorySessionStore",
    "InvalidSessionFileException",
    "LLMConfig",
    "PassThroughSessionController",
    "ResumeSession",
    "SendMessage",
    "SessionActionExecuted",
    "SessionConflictException",
    "SessionFactory",
    "SessionHookStack",
    "SessionId",
    "SessionInfoList",
    "SessionLoadFailed",
    "SessionLoaded",
    "SessionNotFoundException",
    "SessionRepository",
    "SessionRuntime",
    "SessionSaveFailed",
    "SessionSaved",
    "SessionStatus",
    "SuspendSession",
    "UpdateTask",
    "UseBash",
    "WriteMetadata",
]


def __getattr__(name: str) -> object:
    """Loops need models and tools: their module is imported when it is first used."""
    if name not in ("AgentCapabilityRegistry", "DefinitionLoopFactory", "UseBash"):
        raise AttributeError(f"module 'harnpy.session.faces.cognesy' has no attribute {name!r}")
    from harnpy.session.faces.cognesy import loops

    found: object = getattr(loops, name)
    return found
