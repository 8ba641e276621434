"""The workers of a Vm, and the job that each kind of worker does. Spec: 07 §11."""

from __future__ import annotations

from harnpy.agent.subagents import SubAgentJob
from harnpy.agent.worker import DELEGATED_STAGE, STAGE, SUB_AGENT, WORKFLOW
from harnpy.agent.workers import Workers
from harnpy.agent.workplace import Worktrees
from harnpy.builtins.bridge.agent_tasks import BackgroundTasks
from harnpy.workflow.worker_jobs import StageJob, WorkflowJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.agent.runtime import Runtime
    from harnpy.agent.worker import Job, Outcome, Worker
    from harnpy.vm.vm import Vm


def workers_of(vm: Vm, runtime: Runtime) -> Workers:
    """Return the workers of the program, whose jobs use ``runtime``."""
    return vm.state(Workers, lambda: _new_workers(vm, runtime))


def _new_workers(vm: Vm, runtime: Runtime) -> Workers:
    def stage(worker: Worker) -> Job:
        return _BoundJob(runtime, StageJob(runtime, worker), worker.config["node"])

    jobs: dict[str, Callable[[Worker], Job]] = {
        STAGE: stage,
        DELEGATED_STAGE: stage,
        WORKFLOW: lambda worker: WorkflowJob(runtime, worker),
        SUB_AGENT: lambda worker: _BoundJob(runtime, SubAgentJob(runtime, worker), worker.config["options"]),
    }
    return Workers(
        runtime.sessions,
        runtime.hooks,
        runtime.context,
        Worktrees(runtime.sessions.world, runtime.workplace.run),
        BackgroundTasks(vm.tasks, "worker"),
        jobs,
        runtime.record_child,
    )


class _BoundJob:
    """A job whose tools are the bound ones while it works."""

    def __init__(self, runtime: Runtime, job: Job, options: Any) -> None:
        self._runtime = runtime
        self._job = job
        self._options = options

    @property
    def session_id(self) -> str | None:
        return self._job.session_id

    def run(self, worker: Worker) -> Outcome:
        with self._runtime.tools_bound(self._options):
            return self._job.run(worker)
