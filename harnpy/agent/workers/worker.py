"""A worker: an agent that runs in the background, task after task. Spec: 07 §11.3, 08 §13.1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from harnpy.agent.background_runs import Activity, Bell
    from harnpy.agent.context import AgentContext
    from harnpy.agent.workers.carry import Carry
    from harnpy.reading.dicts import Dict


RUNNING, COMPLETED, AWAITING = "running", "completed", "awaiting"
FAILED, CANCELLED, INTERRUPTED = "failed", "cancelled", "interrupted"
STATUSES = (RUNNING, COMPLETED, AWAITING, FAILED, CANCELLED, INTERRUPTED)

STAGE, WORKFLOW, SUB_AGENT = "stage", "workflow", "sub_agent"
DELEGATED_STAGE = "delegated_stage"


class Outcome(NamedTuple):
    """The outcome of a run: ``result`` is for the caller, the next run continues from the rest."""

    result: Dict
    transcript: Dict | None
    artifacts: list[Any]


class Job(Protocol):
    """What a worker does with its tasks."""

    @property
    def session_id(self) -> str | None:
        """The session that it works in, if any."""

    def run(self, worker: Worker) -> Outcome:
        """Carry out the worker's task, which isn't the first one if its history has others."""


@dataclass(slots=True)
class Worker:
    """``request`` and ``history`` keep what was asked: the first task with its lists, and all tasks.

    ``config`` is what its job is made of. ``artifacts`` and ``transcript`` are those of the last run.
    ``failure`` is the last run's error, ``failure_raised`` whether a waiting caller has received it,
    ``merged`` whether somebody has taken its outcome.
    """

    id: str
    name: str
    task: str
    mode: str
    request: Dict
    config: Dict
    carry: Carry
    context: AgentContext
    created_at: str
    bell: Bell
    audit: Dict
    execution: Dict = field(default_factory=dict)
    status: str = RUNNING
    started_at: str | None = None
    finished_at: str | None = None
    awaiting_started_at: str | None = None
    history: list[str] = field(default_factory=list)
    result: Dict | None = None
    error: str | None = None
    artifacts: list[Any] = field(default_factory=list)
    transcript: Dict | None = None
    session_id: str | None = None
    parent_session_id: str | None = None
    parent_worker_id: str | None = None
    parent_stage_id: str | None = None
    child_run_id: str | None = None
    child_run_path: str | None = None
    snapshot_path: str | None = None
    job: Job | None = None
    activity: Activity | None = None
    failure: BaseException | None = None
    failure_raised: bool = False
    merged: bool = False
    #: How often it was started or stopped. The outcome of a run with an older number is dropped.
    turn: int = 0

    @property
    def resting(self) -> bool:
        """Whether it neither runs nor awaits a trigger."""
        return self.status not in (RUNNING, AWAITING)

    @property
    def restarted(self) -> bool:
        return len(self.history) > 1

    def provenance(self) -> Dict:
        return {
            "worker_id": self.id,
            "worker_name": self.name,
            "mode": self.mode,
            "parent_worker_id": self.parent_worker_id,
            "parent_stage_id": self.parent_stage_id,
            "session_id": self.session_id,
            "parent_session_id": self.parent_session_id,
            "snapshot_path": self.snapshot_path,
            "run_id": self.child_run_id,
            "run_path": self.child_run_path,
        }

    def handle(self) -> Dict:
        """Return the worker as programs see it."""
        return {
            "_type": "agent_handle",
            "id": self.id,
            "name": self.name,
            "task": self.task,
            "mode": self.mode,
            "status": self.status,
            "created_at": self.created_at,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "awaiting_started_at": self.awaiting_started_at,
            "history": list(self.history),
            "request": self.request,
            "provenance": self.provenance(),
            "result": self.result,
            "error": self.error,
            "artifact_count": len(self.artifacts),
            "has_transcript": self.transcript is not None,
            "parent_worker_id": self.parent_worker_id,
            "parent_stage_id": self.parent_stage_id,
            "child_run_id": self.child_run_id,
            "child_run_path": self.child_run_path,
            "execution": self.execution,
            "snapshot_path": self.snapshot_path,
            "audit": self.audit,
        }
