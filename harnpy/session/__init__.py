"""Sessions: conversations as append-only event logs, and what the logs mean.

`SessionRuntime` keeps them on a store; its module is imported when it is first used.

The room knows streams (`harnpy.storage`) and nothing above: no model, no agent, no language. A program's
`agent_session_*` builtins are thin adapters over `SessionRegistry`. Spec: 08 §1, 10 part C.
"""

from typing import TYPE_CHECKING

from harnpy.session.errors import (
    AgentError,
    EventNotFound,
    EventRejected,
    InvalidArgument,
    InvalidTransition,
    ObserverError,
    ResizeError,
    RewindError,
    SessionBusy,
    SessionConflict,
    SessionError,
    SessionExists,
    SessionNotFound,
    SessionReadOnly,
    ToolAmbiguous,
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
    from harnpy.session.agents.values import Reply, RunEvent, TurnResult, Waiting
    from harnpy.session.children.child_runs import ChildRun, child_runs
    from harnpy.session.extension.current import current_session_id
    from harnpy.session.extension.extension import SessionExtension
    from harnpy.session.runtime import actions, hooks
    from harnpy.session.runtime.bus import EventBus
    from harnpy.session.runtime.hooks import HookStack
    from harnpy.session.runtime.queries import InfoPage, SessionQuery
    from harnpy.session.runtime.runtime import SessionRuntime
    from harnpy.session.runtime.txn import Txn
    from harnpy.session.trajectory.episode import Episode, distill
    from harnpy.session.trajectory.run_log import RunLog, export_run
    from harnpy.session.trajectory.run_tree import export_run_tree
    from harnpy.session.transfer.states import dump_state, load_state

#: The former name.
SessionStore = SessionRegistry

__all__ = [
    "AgentDef",
    "AgentError",
    "AgentFactory",
    "Budget",
    "ChildRun",
    "Episode",
    "Event",
    "EventBus",
    "EventDraft",
    "EventNotFound",
    "EventRejected",
    "HookStack",
    "InfoPage",
    "InvalidArgument",
    "InvalidTransition",
    "ObserverError",
    "Reply",
    "ResizeError",
    "RewindError",
    "RunEvent",
    "RunLog",
    "Session",
    "SessionBusy",
    "SessionConflict",
    "SessionError",
    "SessionExists",
    "SessionExtension",
    "SessionNotFound",
    "SessionQuery",
    "SessionReadOnly",
    "SessionRegistry",
    "SessionRuntime",
    "SessionStack",
    "SessionStore",
    "Snapshot",
    "Task",
    "TaskList",
    "ToolAmbiguous",
    "Turn",
    "TurnResult",
    "Txn",
    "Waiting",
    "World",
    "actions",
    "child_runs",
    "current_session_id",
    "distill",
    "dump_state",
    "export_run",
    "export_run_tree",
    "hooks",
    "load_state",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in ("actions", "hooks"):
        return import_module(f"harnpy.session.runtime.{name}")
    module = {
        "AgentDef": "agents.definition",
        "AgentFactory": "agents.factories",
        "Budget": "agents.definition",
        "ChildRun": "children.child_runs",
        "Episode": "trajectory.episode",
        "EventBus": "runtime.bus",
        "HookStack": "runtime.hooks",
        "InfoPage": "runtime.queries",
        "Reply": "agents.values",
        "RunEvent": "agents.values",
        "RunLog": "trajectory.run_log",
        "SessionExtension": "extension.extension",
        "SessionQuery": "runtime.queries",
        "SessionRuntime": "runtime.runtime",
        "Turn": "agents.turn",
        "TurnResult": "agents.values",
        "Txn": "runtime.txn",
        "Waiting": "agents.values",
        "child_runs": "children.child_runs",
        "current_session_id": "extension.current",
        "dump_state": "transfer.states",
        "distill": "trajectory.episode",
        "export_run": "trajectory.run_log",
        "export_run_tree": "trajectory.run_tree",
        "load_state": "transfer.states",
    }.get(name)
    if module is None:
        raise AttributeError(f"module 'harnpy.session' has no attribute {name!r}")
    found: object = getattr(import_module(f"harnpy.session.{module}"), name)
    return found
