"""Sessions: conversations as append-only event logs, and what the logs mean.

The room knows streams (`harnpy.storage`) and nothing above: no model, no agent, no language. A program's
`agent_session_*` builtins are thin adapters over `SessionRegistry`. Spec: 08 §1, 10 part C.
"""

from harnpy.session.errors import (
    EventNotFound,
    EventRejected,
    InvalidArgument,
    InvalidTransition,
    ResizeError,
    RewindError,
    SessionBusy,
    SessionConflict,
    SessionError,
    SessionExists,
    SessionNotFound,
    SessionReadOnly,
)
from harnpy.session.events import Event, EventDraft
from harnpy.session.log import Session
from harnpy.session.registry import SessionRegistry
from harnpy.session.snapshot import Snapshot
from harnpy.session.stack import SessionStack
from harnpy.session.tasks import Task, TaskList
from harnpy.world import World

#: The former name.
SessionStore = SessionRegistry

__all__ = [
    "Event",
    "EventDraft",
    "EventNotFound",
    "EventRejected",
    "InvalidArgument",
    "InvalidTransition",
    "ResizeError",
    "RewindError",
    "Session",
    "SessionBusy",
    "SessionConflict",
    "SessionError",
    "SessionExists",
    "SessionNotFound",
    "SessionReadOnly",
    "SessionRegistry",
    "SessionStack",
    "SessionStore",
    "Snapshot",
    "Task",
    "TaskList",
    "World",
]
