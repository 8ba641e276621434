"""Sessions: conversations as append-only event logs, and what the logs mean.

`SessionRuntime` keeps them on a store; its module is imported when it is first used.

The room knows streams (`harnpy.storage`) and nothing above: no model, no agent, no language. A program's
`agent_session_*` builtins are thin adapters over `SessionRegistry`. Spec: 08 §1, 10 part C.
"""

from typing import TYPE_CHECKING

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
from harnpy.session.log import Session
from harnpy.session.open_sessions import SessionStack
from harnpy.session.registers import Task, TaskList
from harnpy.session.registry import SessionRegistry
from harnpy.session.verbs import Snapshot
from harnpy.world import World

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
    from harnpy.session.extension import SessionExtension, current_session_id
    from harnpy.session.guards import ApprovalGate, ApprovalRequest, InputGate
    from harnpy.session.history import ANY
    from harnpy.session.hooks import EventBus, HookStack
    from harnpy.session.info import SessionInfo, TurnInfo
    from harnpy.session.lanes import Lanes
    from harnpy.session.lifecycle import tool_key
    from harnpy.session.prompt import HistoryEntry
    from harnpy.session.reading import ModelSettings, Rebuilder
    from harnpy.session.registers import SessionStatus
    from harnpy.session.resize_policy import CLEAR, ResizePolicy, ResizeReport
    from harnpy.session.runtime import InfoPage, SessionQuery, SessionRuntime
    from harnpy.session.send import AgentFactory
    from harnpy.session.trajectory import Episode, RunLog, distill, export_run, export_run_tree
    from harnpy.session.transaction import Txn
    from harnpy.session.transfer.directories import import_sessions
    from harnpy.session.transfer.formats import dump_state, load_state
    from harnpy.session.transfer.logs import Replayer, dump_log, load_log, replay
    from harnpy.session.waits import Reuse, ToolRecord
    from harnpy.session.watch import LiveWatch, Watch
    from harnpy.session.worktree import Worktree

#: The former name.
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


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in ("actions", "drafts", "hooks", "messages", "payload_types"):
        return import_module(f"harnpy.session.{name}")
    module = {
        "ANY": "history",
        "cell_of": "cells",
        "Action": "actions",
        "AgentDef": "agents",
        "AgentFactory": "send",
        "ApprovalGate": "guards",
        "ApprovalRequest": "guards",
        "Artifact": "artifacts",
        "ArtifactStore": "artifacts",
        "Budget": "agents",
        "CLEAR": "resize_policy",
        "ChildRef": "child_records",
        "ChildResult": "child_records",
        "ChildRun": "child_records",
        "ChildSpec": "child_records",
        "Chunk": "chunks",
        "ContextOverflow": "agents",
        "Episode": "trajectory",
        "EventBus": "hooks",
        "FileArtifactStore": "artifacts",
        "HistoryEntry": "prompt",
        "HookStack": "hooks",
        "InfoPage": "runtime",
        "InputGate": "guards",
        "Lanes": "lanes",
        "LiveWatch": "watch",
        "ModelSettings": "reading",
        "Rebuilder": "reading",
        "Replayer": "transfer.logs",
        "Reply": "agents",
        "ResizePolicy": "resize_policy",
        "ResizeReport": "resize_policy",
        "Reuse": "waits",
        "RunEvent": "agents",
        "RunLog": "trajectory",
        "SessionExtension": "extension",
        "SessionInfo": "info",
        "SessionQuery": "runtime",
        "SessionRuntime": "runtime",
        "SessionStatus": "registers",
        "ToolRecord": "waits",
        "Turn": "agent_turn",
        "TurnInfo": "info",
        "TurnResult": "agents",
        "Txn": "transaction",
        "Waiting": "agents",
        "Watch": "watch",
        "Worktree": "worktree",
        "child_runs": "child_records",
        "current_metadata": "drafting",
        "current_session_id": "extension",
        "current_turn": "drafting",
        "decode_event": "codec",
        "distill": "trajectory",
        "dump_log": "transfer.logs",
        "dump_state": "transfer.formats",
        "encode_event": "codec",
        "ensure_turn": "drafting",
        "export_run": "trajectory",
        "export_run_tree": "trajectory",
        "import_sessions": "transfer.directories",
        "load_log": "transfer.logs",
        "load_state": "transfer.formats",
        "metadata": "drafting",
        "replay": "transfer.logs",
        "tool_key": "lifecycle",
        "turn": "drafting",
        "validate_session_id": "arguments",
    }.get(name)
    if module is None:
        raise AttributeError(f"module 'harnpy.session' has no attribute {name!r}")
    found: object = getattr(import_module(f"harnpy.session.{module}"), name)
    return found
