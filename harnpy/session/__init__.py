"""Sessions: conversations as append-only event logs, and what the logs mean.

`SessionRuntime` keeps them on a store. Each name's module is imported when the name is first used.

The room knows streams (`harnpy.storage`) and nothing above: no model, no agent, no language. A program's
`agent_session_*` builtins are thin adapters over `SessionRegistry`. Spec: 08 §1, 10 part C.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.session import actions, drafts, hooks, messages, payload_types
    from harnpy.session.actions import Action
    from harnpy.session.agent_turn import Turn
    from harnpy.session.agents import AgentDef, Budget, ContextOverflow, Reply, RunEvent, TurnResult, Waiting
    from harnpy.session.arguments import validate_session_id
    from harnpy.session.artifacts import Artifact, ArtifactStore, FileArtifactStore
    from harnpy.session.cells import cell_of
    from harnpy.session.child_records import ChildRef, ChildResult, ChildRun, ChildSpec, child_runs
    from harnpy.session.chunks import Chunk
    from harnpy.session.codec import decode_event, encode_event
    from harnpy.session.drafting import current_metadata, current_turn, ensure_turn, metadata, turn
    from harnpy.session.errors import (
        AgentError,
        ApprovalDenied,
        ApprovalError,
        ArtifactCorrupt,
        ArtifactError,
        ArtifactNotFound,
        BudgetExceeded,
        ChildError,
        ChildNotFound,
        ChildTimeout,
        EventDecodeError,
        EventNotFound,
        EventRejected,
        ExecutionTimeout,
        InvalidArgument,
        InvalidArtifactId,
        InvalidSessionId,
        InvalidTranscript,
        InvalidTransition,
        LaneFull,
        LaneTimeout,
        NotController,
        ObserverError,
        ResizeError,
        RewindError,
        SessionBusy,
        SessionConflict,
        SessionError,
        SessionExists,
        SessionLeased,
        SessionNotFound,
        SessionReadOnly,
        ToolAmbiguous,
        TransferError,
        TransferTypeError,
    )
    from harnpy.session.events import Event, EventDraft
    from harnpy.session.extension import SessionExtension, current_session_id
    from harnpy.session.guards import ApprovalGate, ApprovalRequest, InputGate
    from harnpy.session.history import ANY
    from harnpy.session.hooks import EventBus, HookStack
    from harnpy.session.info import SessionInfo, TurnInfo
    from harnpy.session.lanes import Lanes
    from harnpy.session.lifecycle import tool_key
    from harnpy.session.log import Session
    from harnpy.session.open_sessions import SessionStack
    from harnpy.session.prompt import HistoryEntry
    from harnpy.session.reading import ModelSettings, Rebuilder
    from harnpy.session.registers import SessionStatus, Task, TaskList
    from harnpy.session.registry import SessionRegistry
    from harnpy.session.resize_policy import CLEAR, ResizePolicy, ResizeReport
    from harnpy.session.runtime import InfoPage, SessionQuery, SessionRuntime
    from harnpy.session.send import AgentFactory
    from harnpy.session.trajectory import Episode, RunLog, distill, export_run, export_run_tree
    from harnpy.session.transaction import Txn
    from harnpy.session.transfer.directories import import_sessions
    from harnpy.session.transfer.formats import dump_state, load_state
    from harnpy.session.transfer.logs import Replayer, dump_log, load_log, replay
    from harnpy.session.verbs import Snapshot
    from harnpy.session.waits import Reuse, ToolRecord
    from harnpy.session.watch import LiveWatch, Watch
    from harnpy.session.worktree import Worktree
    from harnpy.world import World

    SessionStore = SessionRegistry

__all__ = [
    "ANY",
    "CLEAR",
    "Action",
    "AgentDef",
    "AgentError",
    "AgentFactory",
    "ApprovalDenied",
    "ApprovalError",
    "ApprovalGate",
    "ApprovalRequest",
    "Artifact",
    "ArtifactCorrupt",
    "ArtifactError",
    "ArtifactNotFound",
    "ArtifactStore",
    "Budget",
    "BudgetExceeded",
    "ChildError",
    "ChildNotFound",
    "ChildRef",
    "ChildResult",
    "ChildRun",
    "ChildSpec",
    "ChildTimeout",
    "Chunk",
    "ContextOverflow",
    "Episode",
    "Event",
    "EventBus",
    "EventDecodeError",
    "EventDraft",
    "EventNotFound",
    "EventRejected",
    "ExecutionTimeout",
    "FileArtifactStore",
    "HistoryEntry",
    "HookStack",
    "InfoPage",
    "InputGate",
    "InvalidArgument",
    "InvalidArtifactId",
    "InvalidSessionId",
    "InvalidTranscript",
    "InvalidTransition",
    "LaneFull",
    "LaneTimeout",
    "Lanes",
    "LiveWatch",
    "ModelSettings",
    "NotController",
    "ObserverError",
    "Rebuilder",
    "Replayer",
    "Reply",
    "ResizeError",
    "ResizePolicy",
    "ResizeReport",
    "Reuse",
    "RewindError",
    "RunEvent",
    "RunLog",
    "Session",
    "SessionBusy",
    "SessionConflict",
    "SessionError",
    "SessionExists",
    "SessionExtension",
    "SessionInfo",
    "SessionLeased",
    "SessionNotFound",
    "SessionQuery",
    "SessionReadOnly",
    "SessionRegistry",
    "SessionRuntime",
    "SessionStack",
    "SessionStatus",
    "SessionStore",
    "Snapshot",
    "Task",
    "TaskList",
    "ToolAmbiguous",
    "ToolRecord",
    "TransferError",
    "TransferTypeError",
    "Turn",
    "TurnInfo",
    "TurnResult",
    "Txn",
    "Waiting",
    "Watch",
    "Worktree",
    "World",
    "actions",
    "cell_of",
    "child_runs",
    "current_metadata",
    "current_session_id",
    "current_turn",
    "decode_event",
    "distill",
    "drafts",
    "dump_log",
    "dump_state",
    "encode_event",
    "ensure_turn",
    "export_run",
    "export_run_tree",
    "hooks",
    "import_sessions",
    "load_log",
    "load_state",
    "messages",
    "metadata",
    "payload_types",
    "replay",
    "tool_key",
    "turn",
    "validate_session_id",
]


#: Where each name is. `SessionStore` is the former name of `SessionRegistry`.
_MODULES = {
    "session.actions": ("Action",),
    "session.agent_turn": ("Turn",),
    "session.agents": (
        "AgentDef",
        "Budget",
        "ContextOverflow",
        "Reply",
        "RunEvent",
        "TurnResult",
        "Waiting",
    ),
    "session.arguments": ("validate_session_id",),
    "session.artifacts": (
        "Artifact",
        "ArtifactStore",
        "FileArtifactStore",
    ),
    "session.cells": ("cell_of",),
    "session.child_records": (
        "ChildRef",
        "ChildResult",
        "ChildRun",
        "ChildSpec",
        "child_runs",
    ),
    "session.chunks": ("Chunk",),
    "session.codec": (
        "decode_event",
        "encode_event",
    ),
    "session.drafting": (
        "current_metadata",
        "current_turn",
        "ensure_turn",
        "metadata",
        "turn",
    ),
    "session.errors": (
        "AgentError",
        "ApprovalDenied",
        "ApprovalError",
        "ArtifactCorrupt",
        "ArtifactError",
        "ArtifactNotFound",
        "BudgetExceeded",
        "ChildError",
        "ChildNotFound",
        "ChildTimeout",
        "EventDecodeError",
        "EventNotFound",
        "EventRejected",
        "ExecutionTimeout",
        "InvalidArgument",
        "InvalidArtifactId",
        "InvalidSessionId",
        "InvalidTranscript",
        "InvalidTransition",
        "LaneFull",
        "LaneTimeout",
        "NotController",
        "ObserverError",
        "ResizeError",
        "RewindError",
        "SessionBusy",
        "SessionConflict",
        "SessionError",
        "SessionExists",
        "SessionLeased",
        "SessionNotFound",
        "SessionReadOnly",
        "ToolAmbiguous",
        "TransferError",
        "TransferTypeError",
    ),
    "session.events": (
        "Event",
        "EventDraft",
    ),
    "session.extension": (
        "SessionExtension",
        "current_session_id",
    ),
    "session.guards": (
        "ApprovalGate",
        "ApprovalRequest",
        "InputGate",
    ),
    "session.history": ("ANY",),
    "session.hooks": (
        "EventBus",
        "HookStack",
    ),
    "session.info": (
        "SessionInfo",
        "TurnInfo",
    ),
    "session.lanes": ("Lanes",),
    "session.lifecycle": ("tool_key",),
    "session.log": ("Session",),
    "session.open_sessions": ("SessionStack",),
    "session.prompt": ("HistoryEntry",),
    "session.reading": (
        "ModelSettings",
        "Rebuilder",
    ),
    "session.registers": (
        "SessionStatus",
        "Task",
        "TaskList",
    ),
    "session.registry": (
        "SessionRegistry",
        "SessionStore",
    ),
    "session.resize_policy": (
        "CLEAR",
        "ResizePolicy",
        "ResizeReport",
    ),
    "session.runtime": (
        "InfoPage",
        "SessionQuery",
        "SessionRuntime",
    ),
    "session.send": ("AgentFactory",),
    "session.trajectory": (
        "Episode",
        "RunLog",
        "distill",
        "export_run",
        "export_run_tree",
    ),
    "session.transaction": ("Txn",),
    "session.transfer.directories": ("import_sessions",),
    "session.transfer.formats": (
        "dump_state",
        "load_state",
    ),
    "session.transfer.logs": (
        "Replayer",
        "dump_log",
        "load_log",
        "replay",
    ),
    "session.verbs": ("Snapshot",),
    "session.waits": (
        "Reuse",
        "ToolRecord",
    ),
    "session.watch": (
        "LiveWatch",
        "Watch",
    ),
    "session.worktree": ("Worktree",),
    "world": ("World",),
}
#: Modules that are names themselves.
_NAMESPACES = ("actions", "drafts", "hooks", "messages", "payload_types")


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _NAMESPACES or f"session.{name}" in _MODULES:
        return import_module(f"harnpy.session.{name}")
    for module, names in _MODULES.items():
        if name in names:
            known = "SessionRegistry" if name == "SessionStore" else name
            found: object = getattr(import_module(f"harnpy.{module}"), known)
            return found
    raise AttributeError(f"module 'harnpy.session' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
