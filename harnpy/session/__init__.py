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
from harnpy.session.registry import SessionRegistry
from harnpy.session.snapshot import Snapshot
from harnpy.session.stack import SessionStack
from harnpy.session.tasks import Task, TaskList
from harnpy.world import World

if TYPE_CHECKING:
    from harnpy.session.agents.definition import AgentDef, Budget
    from harnpy.session.agents.factories import AgentFactory
    from harnpy.session.agents.turn import Turn
    from harnpy.session.agents.values import ContextOverflow, Reply, RunEvent, TurnResult, Waiting
    from harnpy.session.artifacts.artifact import Artifact, ArtifactStore
    from harnpy.session.artifacts.files import FileArtifactStore
    from harnpy.session.children.child_runs import ChildRun, child_runs
    from harnpy.session.children.values import ChildRef, ChildResult, ChildSpec
    from harnpy.session.children.worktree import Worktree
    from harnpy.session.drafting import drafts, messages, payload_types
    from harnpy.session.drafting.ambient import current_metadata, current_turn, ensure_turn, metadata, turn
    from harnpy.session.extension.current import current_session_id
    from harnpy.session.extension.extension import SessionExtension
    from harnpy.session.guards.approvals import ApprovalGate, ApprovalRequest
    from harnpy.session.guards.inputs import InputGate
    from harnpy.session.kept.codec import decode_event, encode_event
    from harnpy.session.kept.ids import validate_session_id
    from harnpy.session.kept.info import SessionInfo
    from harnpy.session.live.watch import Watch
    from harnpy.session.parts.history import ANY
    from harnpy.session.parts.questions import ModelSettings
    from harnpy.session.parts.waits import Reuse, ToolRecord
    from harnpy.session.resize.report import ResizeReport
    from harnpy.session.resize.resize_policy import CLEAR, ResizePolicy
    from harnpy.session.runtime import actions, hooks
    from harnpy.session.runtime.actions import Action
    from harnpy.session.runtime.bus import EventBus
    from harnpy.session.runtime.hooks import HookStack
    from harnpy.session.runtime.lanes import Lanes
    from harnpy.session.runtime.queries import InfoPage, SessionQuery
    from harnpy.session.runtime.runtime import SessionRuntime
    from harnpy.session.runtime.txn import Txn
    from harnpy.session.shown.entries import HistoryEntry
    from harnpy.session.shown.rebuilder import Rebuilder
    from harnpy.session.statuses import SessionStatus
    from harnpy.session.trajectory.episode import Episode, distill
    from harnpy.session.trajectory.run_log import RunLog, export_run
    from harnpy.session.trajectory.run_tree import export_run_tree
    from harnpy.session.transfer.logs import dump_log, load_log
    from harnpy.session.transfer.replaying import Replayer, replay
    from harnpy.session.transfer.states import dump_state, load_state
    from harnpy.session.turns.calls import tool_key
    from harnpy.session.turns.turn_info import TurnInfo

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
    "ModelSettings",
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
        "ANY": "parts.history",
        "Action": "runtime.actions",
        "AgentDef": "agents.definition",
        "AgentFactory": "agents.factories",
        "ApprovalGate": "guards.approvals",
        "ApprovalRequest": "guards.approvals",
        "Artifact": "artifacts.artifact",
        "ArtifactStore": "artifacts.artifact",
        "Budget": "agents.definition",
        "CLEAR": "resize.resize_policy",
        "ChildRef": "children.values",
        "ChildResult": "children.values",
        "ChildRun": "children.child_runs",
        "ChildSpec": "children.values",
        "ContextOverflow": "agents.values",
        "Episode": "trajectory.episode",
        "EventBus": "runtime.bus",
        "FileArtifactStore": "artifacts.files",
        "HistoryEntry": "shown.entries",
        "HookStack": "runtime.hooks",
        "InfoPage": "runtime.queries",
        "InputGate": "guards.inputs",
        "Lanes": "runtime.lanes",
        "ModelSettings": "parts.questions",
        "Rebuilder": "shown.rebuilder",
        "Replayer": "transfer.replaying",
        "Reply": "agents.values",
        "ResizePolicy": "resize.resize_policy",
        "ResizeReport": "resize.report",
        "Reuse": "parts.waits",
        "RunEvent": "agents.values",
        "RunLog": "trajectory.run_log",
        "SessionExtension": "extension.extension",
        "SessionInfo": "kept.info",
        "SessionQuery": "runtime.queries",
        "SessionRuntime": "runtime.runtime",
        "SessionStatus": "statuses",
        "ToolRecord": "parts.waits",
        "Turn": "agents.turn",
        "TurnInfo": "turns.turn_info",
        "TurnResult": "agents.values",
        "Txn": "runtime.txn",
        "Waiting": "agents.values",
        "Watch": "live.watch",
        "Worktree": "children.worktree",
        "child_runs": "children.child_runs",
        "current_metadata": "drafting.ambient",
        "current_session_id": "extension.current",
        "current_turn": "drafting.ambient",
        "decode_event": "kept.codec",
        "distill": "trajectory.episode",
        "dump_log": "transfer.logs",
        "dump_state": "transfer.states",
        "encode_event": "kept.codec",
        "ensure_turn": "drafting.ambient",
        "export_run": "trajectory.run_log",
        "export_run_tree": "trajectory.run_tree",
        "load_log": "transfer.logs",
        "load_state": "transfer.states",
        "metadata": "drafting.ambient",
        "replay": "transfer.replaying",
        "tool_key": "turns.calls",
        "turn": "drafting.ambient",
        "validate_session_id": "kept.ids",
    }.get(name)
    if module is None:
        raise AttributeError(f"module 'harnpy.session' has no attribute {name!r}")
    found: object = getattr(import_module(f"harnpy.session.{module}"), name)
    return found
