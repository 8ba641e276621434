"""A worker: an agent that works beside the one that started it, task after task. Spec: 07 §11.3, 08 §13.1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harnpy.agent.workers.worktrees import read_worktree
from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from harnpy.agent.context import AgentContext
    from harnpy.agent.workers.carry import Carry
    from harnpy.reading.dicts import Dict


RUNNING, COMPLETED, AWAITING = "running", "completed", "awaiting"
FAILED, CANCELLED, INTERRUPTED = "failed", "cancelled", "interrupted"
STATUSES = (RUNNING, COMPLETED, AWAITING, FAILED, CANCELLED, INTERRUPTED)

STAGE, WORKFLOW, SUB_AGENT = "stage", "workflow", "sub_agent"
DELEGATED_STAGE = "delegated_stage"


class Outcome(NamedTuple):
    """What a run came to: ``result`` is for the caller, the rest is where the next run goes on."""

    result: Dict
    transcript: Dict | None
    artifacts: list[Any]


class Job(Protocol):
    """What a worker does with its tasks."""

    @property
    def session_id(self) -> str | None:
        """The session that it works in, if it is one."""

    def run(self, worker: Worker) -> Outcome:
        """Carry out the worker's task; it isn't the first one when its history has others."""


class Activity(Protocol):
    """A run that goes on beside its starter."""

    @property
    def ended(self) -> bool: ...

    def abort(self) -> None:
        """End it where it is."""

    def collect(self) -> None:
        """Let what it printed show where the caller prints."""


class Bell(Protocol):
    """Where tasks wait until somebody rings."""

    def wait(self, outside: tuple[str, str] | None = None, seconds: float | None = None) -> None:
        """Wait, at most ``seconds``; may return early. ``outside``: what is waited for when no run of ours
        brings it, and what to do about it."""

    def ring(self) -> None: ...


class Beside(Protocol):
    """How runs go on beside one another."""

    def start(self, body: Any, context: AgentContext) -> Activity: ...

    def bell(self) -> Bell: ...


@dataclass(slots=True)
class Worker:
    """``request`` and ``history`` keep what was asked: the first task with its lists, and all tasks.

    ``config`` is what its job is made of. ``artifacts`` and ``transcript`` are those of the last run.
    ``failure`` is the last run's error, ``told`` whether somebody who waited has got it.
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
    told: bool = False
    #: How often it was started or stopped: a run whose number this isn't has nothing to say any more.
    turn: int = 0

    @property
    def resting(self) -> bool:
        """Whether nothing goes on and nothing is expected."""
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
        """The worker as programs see it."""
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


_LISTS = {
    "research_questions": "questions",
    "action_items": "actions",
    "workflow_stages": "stages",
    "verification_steps": "verification",
}


def read_request(task: str, system: str | None, given: Dict) -> Dict:
    """What a worker was asked for; the lists of ``given`` also go by shorter names."""
    lists = {key: _list(given, key) or _list(given, alias) for key, alias in _LISTS.items()}
    payload = given.get("request")
    if payload is None:
        payload = {key: items for key, items in lists.items() if items}
    return {"task": task, "system": system, "payload": payload, **lists}


def _list(given: Dict, key: str) -> list[Any]:
    value = given.get(key)
    return value if isinstance(value, list) else []


def read_execution(given: Any, caller: str) -> Dict:
    """Where a worker works: `{cwd?, env?, worktree?}`. Raises `MisuseError`."""
    if given is None:
        return {}
    name = f"{caller}: execution"
    if not isinstance(given, dict):
        raise MisuseError(f"{name} must be a dict")
    cwd, env = given.get("cwd"), given.get("env")
    if cwd is not None and not isinstance(cwd, str):
        raise MisuseError(f"{name}.cwd must be a string")
    if env is not None and not _is_environment(env):
        raise MisuseError(f"{name}.env must be a dict of strings")
    if given.get("worktree") is None:
        return given
    return {**given, "worktree": read_worktree(given["worktree"], caller)}


def _is_environment(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def mutation_session(
    given: Any, worker_id: str, session_id: str, caller: str, outer: Dict | None = None
) -> Dict:
    """In whose name a worker changes things: 08 §8.1's mutation session; ``session_id`` unless it has one.

    ``outer`` is that of the workflow that started the worker.
    """
    if given is not None and not isinstance(given, dict):
        raise MisuseError(f"{caller}: audit parse error: expected a dict")
    outer = outer or {}
    inherited = {
        "parent_session_id": outer.get("session_id"),
        "run_id": outer.get("run_id"),
        "mutation_scope": outer.get("mutation_scope", "read_only"),
        "approval_policy": outer.get("approval_policy"),
    }
    made = {**inherited, "execution_kind": "worker", **(given or {})}
    return {**made, "session_id": made.get("session_id") or session_id, "worker_id": worker_id}
