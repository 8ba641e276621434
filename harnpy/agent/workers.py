"""The workers of one program: start, wait, restart, end. Spec: 07 §11, 08 §13.1, 10 §A1.15, §C16.1.

           spawn                  send_input, worker_trigger
  (none) ────────▶ running ◀──────────────────────────────────┐
                      ├──▶ completed ─────────────────────────┤
                      ├──▶ awaiting   (retriggerable) ────────┤
                      ├──▶ failed ────────────────────────────┤
    close: any ───────┴──▶ cancelled ─────────────────────────┤
    resume: a snapshot of a running one ──▶ interrupted ──────┘

The session log of a worker's parent records each of these. A sub-agent writes its own beginnings and ends
(`SubAgent`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.agent.context import WorkerName, place_of
from harnpy.agent.rules.policy import PolicyError, read_policy
from harnpy.agent.tasks import id_of_handle
from harnpy.agent.tool_registry import failure_reason
from harnpy.agent.worker import (
    AWAITING,
    CANCELLED,
    CARRY_COMPACT,
    COMPLETED,
    DELEGATED_STAGE,
    FAILED,
    INTERRUPTED,
    RUNNING,
    SUB_AGENT,
    Snapshots,
    Worker,
    compacted_transcript,
    mutation_session,
    restored_worker,
)
from harnpy.agent.workplace import is_worktree, mutation, real_path_in
from harnpy.faults import Interruption, MisuseError
from harnpy.formats.dicts import errors_after
from harnpy.session.artifacts import recorded
from harnpy.session.errors import SessionError
from harnpy.session.info import FRESH, Child
from harnpy.storage.errors import StorageError
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.agent.context import AgentContext, Rules
    from harnpy.agent.rules.hooks import Hooks
    from harnpy.agent.rules.policy import Policy
    from harnpy.agent.tasks import Background
    from harnpy.agent.worker import Carry, Job, Outcome
    from harnpy.agent.workplace import Worktrees
    from harnpy.formats.dicts import Dict
    from harnpy.session.info import Fact
    from harnpy.session.registry import SessionRegistry

    Facts = list[Fact]


def child_requested(worker: Worker) -> Facts:
    """Return the facts of a worker that is asked for; only the stage that waits for one ends with it."""
    if worker.mode == SUB_AGENT:
        return []
    metadata: Dict = {"worker": worker.mode}
    if worker.mode != DELEGATED_STAGE:
        metadata["detached"] = True
    return [_child(worker).requested(worker.name, FRESH, worker.task, metadata=metadata)]


def child_progressed(worker: Worker) -> Facts:
    """Return the facts of a worker that got another task."""
    return [] if worker.mode == SUB_AGENT else [_child(worker).progressed(worker.task, RUNNING)]


def child_started(worker: Worker) -> Facts:
    return [] if worker.mode == SUB_AGENT else [_child(worker).started(worker.name)]


def child_blocked(worker: Worker) -> Facts:
    return [_child(worker).blocked("awaiting a trigger")]


def child_completed(worker: Worker) -> Facts:
    if worker.mode == SUB_AGENT:
        return []
    child = _child(worker)
    kept = recorded(worker.artifacts, worker.session_id or "", child.id)
    return [*kept, child.completed(_summary(worker.result or {}), _artifact_ids(worker))]


def child_failed(worker: Worker) -> Facts:
    return [] if worker.mode == SUB_AGENT else [_child(worker).failed(worker.error or "")]


def child_canceled(worker: Worker, reason: str) -> Facts:
    return [_child(worker).canceled(reason)]


def child_merged(worker: Worker) -> Facts:
    """Return the facts of a worker whose outcome somebody has taken."""
    return [_child(worker).merged(_artifact_ids(worker))]


def _child(worker: Worker) -> Child:
    """Return who it is: a sub-agent is its session, a whole graph has none of its own."""
    if worker.mode == SUB_AGENT and worker.session_id is not None:
        return Child(worker.session_id, worker.session_id)
    return Child(worker.id, worker.session_id)


def _artifact_ids(worker: Worker) -> list[str]:
    return [artifact["id"] for artifact in worker.artifacts]


def _summary(result: Dict) -> str:
    """Return what a worker has to say: its stage's text, or its workflow's."""
    inner: Any = result.get("result")
    said = inner if isinstance(inner, dict) else result
    return str(said.get("visible_text") or said.get("text") or "")


#: The name of a worker's status in reports to the host and the hooks, by event.
_REPORTED_STATUS = {
    "WorkerSpawned": "running",
    "WorkerProgressed": "progressed",
    "WorkerWaitingForInput": "awaiting_input",
    "WorkerCompleted": "completed",
    "WorkerFailed": "failed",
    "WorkerCancelled": "cancelled",
}
_CLOSED = "worker cancelled"


class Workers:
    """``context`` returns the running task's. ``background`` runs workers at the same time; ``jobs`` makes a
    worker's job, by its mode; ``record`` appends facts of a child to its parent's log.
    """

    def __init__(
        self,
        sessions: SessionRegistry,
        hooks: Hooks,
        context: Callable[[], AgentContext],
        worktrees: Worktrees,
        background: Background,
        jobs: Mapping[str, Callable[[Worker], Job]],
        record: Callable[[str, Facts], None] = lambda session_id, facts: None,
    ) -> None:
        self._sessions = sessions
        self._hooks = hooks
        self._running_context = context
        self._worktrees = worktrees
        self._background = background
        self._jobs = jobs
        self._record = record
        self._world = sessions.world
        self._snapshots = Snapshots(self._world)
        self._workers: dict[str, Worker] = {}

    # Called by programs.

    def spawn(
        self,
        mode: str,
        task: str,
        *,
        name: str,
        config: Dict,
        request: Dict,
        carry: Carry,
        policies: Sequence[Policy] = (),
        execution: Dict | None = None,
        audit: Any = None,
        caller: str = "spawn_agent",
    ) -> Worker:
        """Start a worker on ``task``. ``policies`` are the ceilings that it asks for.

        Raises `MisuseError` and `OptionError`, which name ``caller``.
        """
        new_id, outer = self._world.ids.new, self._running_context()
        id, workflow = f"worker_{new_id()}", outer.workflow
        execution = self._worktrees.named(execution or {}, id)
        inherited = {**(workflow.mutation if workflow else {}), **mutation(execution)}
        worker = Worker(
            id=id,
            name=name,
            task=task,
            mode=mode,
            request=request,
            config=config,
            carry=carry,
            context=self._context_for(id, name, _below(outer.rules, policies, caller), execution),
            created_at=self._now(),
            bell=self._background.bell(),
            audit=mutation_session(audit, id, f"session_{new_id()}", caller, inherited),
            execution=execution,
            history=[task],
            parent_session_id=outer.sessions.current(),
            parent_worker_id=outer.worker.id if outer.worker else None,
            parent_stage_id=workflow.stage_id if workflow else None,
            snapshot_path=self._snapshots.path(id) if carry.persist_state else None,
        )
        self._employ(worker)
        if is_worktree(execution):
            self._worktrees.create(execution, caller)
        self._snapshots.save(worker)
        self._workers[id] = worker
        self._tell(worker, child_requested(worker))
        self._start(worker, "WorkerSpawned")
        return worker

    def wait(self, worker: Worker, cycle: bool = False) -> None:
        """Wait until the worker rests, or with ``cycle`` until its run has ended.

        Raises the error of a failed run to all who waited for it, or to the first who asks later.
        """
        if worker.context.worker == self._running_context().worker and worker.status == RUNNING:
            raise MisuseError(f"wait_agent: worker {worker.id} can't wait for itself")
        if worker.status == FAILED and worker.failure_raised:
            return
        while worker.status == RUNNING or (worker.status == AWAITING and not cycle):
            worker.bell.wait(_outside(worker))
        if worker.activity is not None:
            worker.activity.collect()
        if worker.failure is not None:
            worker.failure_raised = True
            raise worker.failure
        if worker.status == COMPLETED and not worker.merged:
            worker.merged = True
            self._tell(worker, child_merged(worker))

    def send(self, worker: Worker, text: str) -> None:
        """Give an idle worker another task."""
        if not text.strip():
            raise MisuseError("send_input: task text must not be empty")
        if worker.status == RUNNING:
            raise MisuseError(f"send_input: worker {worker.id} is still running")
        self._restart(worker, text, result=None)

    def trigger(self, worker: Worker, payload: str) -> None:
        """Start the next cycle of a worker that awaits a trigger."""
        caller = "worker_trigger"
        if not payload.strip():
            raise MisuseError(f"{caller}: payload must not be empty")
        if not worker.carry.retriggerable:
            raise MisuseError(f"{caller}: worker {worker.id} is not retriggerable")
        if worker.status == RUNNING:
            raise MisuseError(f"{caller}: worker {worker.id} is still running")
        if worker.status != AWAITING:
            raise MisuseError(f"{caller}: worker {worker.id} is not awaiting (status={worker.status})")
        self._restart(worker, payload, result=worker.result)

    def close(self, worker: Worker) -> None:
        """End the worker, whatever it is doing."""
        worker.turn += 1
        self._call_off(worker, _CLOSED)
        worker.status, worker.error, worker.failure = CANCELLED, _CLOSED, None
        worker.finished_at = self._now()
        self._settled(worker, "WorkerCancelled")
        if worker.activity is not None:
            activity, worker.activity = worker.activity, None
            activity.abort()
        self._worktrees.clean_up(worker.execution)

    def resume(self, id_or_path: str) -> Worker:
        """Restore the worker of a snapshot, at rest."""
        path = self._snapshots.locate(id_or_path)
        snapshot = self._snapshots.load(path)
        if snapshot is None:
            raise MisuseError(f"unknown worker: {id_or_path}")
        id, name = snapshot["id"], snapshot["name"]
        given = snapshot.get("policy")
        with errors_after("resume_agent: "):
            policies = [] if given is None else [read_policy(given)]
        rules = _below(self._running_context().rules, policies, "resume_agent")
        context = self._context_for(id, name, rules, snapshot["execution"])
        worker = restored_worker(snapshot, path, context, self._background.bell())
        live = self._workers.get(id)
        self._workers[id] = worker
        if live is not None:
            worker.job, worker.config = live.job, live.config
            self._replace(live)
        return worker

    def all(self) -> list[Worker]:
        """Return all workers, the oldest first."""
        return [self._up_to_date(self._workers[id]) for id in sorted(self._workers)]

    def find(self, handle: Any) -> Worker:
        """Return the worker of a handle: its id, or a dict with the id."""
        id = id_of_handle(handle, "agent", "worker")
        if id not in self._workers:
            raise MisuseError(f"unknown worker: {id}")
        return self._up_to_date(self._workers[id])

    # A run.

    def _up_to_date(self, worker: Worker) -> Worker:
        """Return the worker, marked interrupted if its run was ended from outside."""
        if worker.status == RUNNING and worker.activity is not None and worker.activity.ended:
            worker.status = INTERRUPTED
        return worker

    def _restart(self, worker: Worker, task: str, result: Dict | None) -> None:
        self._worktrees.recreate(worker.execution, f"worker {worker.id}")
        self._employ(worker)
        worker.task, worker.result = task, result
        worker.history = [*worker.history, task]
        worker.error = worker.finished_at = worker.awaiting_started_at = worker.failure = None
        worker.failure_raised = worker.merged = False
        self._tell(worker, child_progressed(worker))
        self._start(worker, "WorkerProgressed")

    def _employ(self, worker: Worker) -> None:
        """Make the worker's job, under its own rules."""
        if worker.job is None:
            if worker.mode not in self._jobs:
                raise MisuseError(f"{worker.mode} workers are not supported yet: worker {worker.id}")
            with self._running_context().govern(worker.context.rules):
                worker.job = self._jobs[worker.mode](worker)
        worker.session_id = worker.job.session_id

    def _start(self, worker: Worker, event: str) -> None:
        worker.turn += 1
        worker.status, worker.started_at = RUNNING, self._now()
        turn = worker.turn
        self._settled(worker, event)
        context = worker.context.branch()
        context.rules = context.rules.met(self._running_context().rules)
        worker.activity = self._background.start(lambda: self._run(worker, turn), context)

    def _run(self, worker: Worker, turn: int) -> None:
        """Run the job once. The result of a worker that was closed meanwhile is dropped."""
        assert worker.job is not None
        self._tell(worker, child_started(worker))
        try:
            outcome = self._stored(worker, worker.job.run(worker))
        except (Exception, Interruption) as error:
            if worker.turn == turn:
                self._failed(worker, error)
            return
        if worker.turn == turn:
            self._ended(worker, outcome)

    def _stored(self, worker: Worker, outcome: Outcome) -> Outcome:
        """Return the outcome with the transcript that the next run continues from."""
        assert worker.job is not None
        worker.session_id = worker.job.session_id
        if worker.carry.transcript_mode != CARRY_COMPACT or outcome.transcript is None:
            return outcome
        transcript = compacted_transcript(outcome.transcript, self._world)
        if worker.session_id is not None:
            self._sessions.store_transcript(worker.session_id, transcript)
        return outcome._replace(transcript=transcript)

    def _ended(self, worker: Worker, outcome: Outcome) -> None:
        worker.result, worker.transcript, worker.artifacts = outcome
        if worker.carry.retriggerable:
            worker.status, worker.awaiting_started_at = AWAITING, self._now()
            self._tell(worker, child_blocked(worker))
            self._settled(worker, "WorkerWaitingForInput")
        else:
            self._worktrees.clean_up(worker.execution)
            worker.status, worker.finished_at = COMPLETED, self._now()
            self._tell(worker, child_completed(worker))
            self._settled(worker, "WorkerCompleted")

    def _failed(self, worker: Worker, error: BaseException) -> None:
        self._worktrees.clean_up(worker.execution)
        worker.failure = error
        worker.error = failure_reason(error)
        worker.status, worker.finished_at = FAILED, self._now()
        self._tell(worker, child_failed(worker))
        self._settled(worker, "WorkerFailed")

    def _replace(self, live: Worker) -> None:
        """End a live worker that a snapshot replaces."""
        live.turn += 1
        self._call_off(live, "replaced by its snapshot")
        if live.activity is not None:
            live.activity.abort()
        live.status = CANCELLED
        live.bell.ring()

    # Reports.

    def _call_off(self, worker: Worker, reason: str) -> None:
        """Record that a worker is ended that doesn't rest; a running sub-agent says so itself."""
        if worker.status == AWAITING or (worker.status == RUNNING and worker.mode != SUB_AGENT):
            self._tell(worker, child_canceled(worker, reason))

    def _tell(self, worker: Worker, facts: Facts) -> None:
        """Record facts in the log of the session that employs the worker."""
        if worker.parent_session_id is None or not facts:
            return
        try:
            self._record(worker.parent_session_id, facts)
        except (StorageError, SessionError) as error:
            self._world.warn("agent.worker", str(error))

    def _settled(self, worker: Worker, event: str) -> None:
        """Save the worker's changed state, and notify everybody."""
        try:
            self._snapshots.save(worker)
        except MisuseError as error:
            self._world.warn("agent.worker", error.message)
        self._report(worker, event)
        worker.bell.ring()

    def _report(self, worker: Worker, event: str) -> None:
        metadata = {
            "provenance": worker.provenance(),
            "error": worker.error,
            "artifact_count": len(worker.artifacts),
        }
        status = _REPORTED_STATUS[event]
        id = worker.parent_session_id or worker.session_id or ""
        update = {"type": "worker_update", "session_id": id, "event": event, "status": status}
        facts = {"id": worker.id, "name": worker.name, "task": worker.task, "mode": worker.mode}
        named = {f"worker_{key}": value for key, value in facts.items()}
        sessions = self._sessions
        sessions.report(id, {**update, **named, "metadata": metadata, "audit": worker.audit})
        try:
            self._hooks.run(event, worker={**facts, "status": status, "metadata": metadata})
        except Exception as error:
            self._world.warn("agent.hook", str(error))

    def _context_for(self, id: str, name: str, rules: Rules, execution: Dict) -> AgentContext:
        context = self._running_context().branch()
        context.worker, context.place = WorkerName(id, name), place_of(execution, context.place)
        files = self._world.unguarded.files
        directory = (context.place and context.place.cwd) or files.cwd()
        context.rules = rules.placed(partial(real_path_in, files, directory))
        return context

    def _now(self) -> str:
        return rfc3339(self._world.clock.now())


def _below(rules: Rules, policies: Sequence[Policy], caller: str) -> Rules:
    try:
        for policy in policies:
            rules = rules.below(policy)
        return rules
    except PolicyError as error:
        raise PolicyError(f"{caller}: {error.message}") from error


def _outside(worker: Worker) -> tuple[str, str] | None:
    """Return how to describe waiting for a worker that only another trigger wakes."""
    if worker.status == RUNNING:
        return None
    return f"worker {worker.id} awaits a trigger", "Trigger it with worker_trigger, or close it."
