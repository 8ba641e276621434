"""What workers get of a Vm: tasks of the run to work in, and their jobs. Spec: 07 §11."""

from __future__ import annotations

from harnpy.agent.workers.delegation import SubAgentJob
from harnpy.agent.workers.worker import DELEGATED_STAGE, STAGE, SUB_AGENT, WORKFLOW
from harnpy.agent.workers.workers import Workers
from harnpy.agent.workers.worktrees import Worktrees
from harnpy.builtins.bridge.agent_runtime import runtime_of, tools_bound
from harnpy.vm.declare.builtin import ABSENT
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.run.calls import TaskAborted
from harnpy.vm.run.tasks.spawn import start_beside
from harnpy.workflow.workers.stage_job import StageJob
from harnpy.workflow.workers.workflow_job import WorkflowJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.agent.context import AgentContext
    from harnpy.agent.workers.worker import Job, Outcome, Worker
    from harnpy.vm.run.tasks.scheduler import Scheduler
    from harnpy.vm.run.tasks.task import Task
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


class _Slot:
    """Where a Vm keeps the workers of the program it runs."""

    workers: Workers | None = None


def workers_of(vm: Vm) -> Workers:
    slot = vm.state(_Slot)
    if slot.workers is None:
        runtime = runtime_of(vm)

        def stage(worker: Worker) -> Job:
            return _BoundJob(vm, StageJob(runtime, worker), worker.config["node"])

        jobs: dict[str, Callable[[Worker], Job]] = {
            STAGE: stage,
            DELEGATED_STAGE: stage,
            WORKFLOW: lambda worker: WorkflowJob(runtime, worker),
            SUB_AGENT: lambda worker: _BoundJob(vm, SubAgentJob(runtime, worker), worker.config["options"]),
        }
        slot.workers = Workers(
            runtime.sessions,
            runtime.hooks,
            runtime.context,
            Worktrees(runtime.sessions.world, runtime.workplace.run),
            BackgroundTasks(vm.tasks, "worker"),
            jobs,
        )
    return slot.workers


class _BoundJob:
    """A job whose tools are the bound ones while it works."""

    def __init__(self, vm: Vm, job: Job, options: Any) -> None:
        self._vm = vm
        self._job = job
        self._options = options

    @property
    def session_id(self) -> str | None:
        return self._job.session_id

    def run(self, worker: Worker) -> Outcome:
        with tools_bound(self._vm, self._options):
            return self._job.run(worker)


class BackgroundTasks:
    """Runs as tasks that belong to the program: they outlive the task that started them.

    ``kind`` is what the tasks' ids say they are.
    """

    def __init__(self, tasks: Scheduler, kind: str) -> None:
        self._tasks = tasks
        self._kind = kind

    def start(self, body: Callable[[], None], context: AgentContext) -> _Run:
        task = start_beside(self._tasks, lambda depth: body(), self._kind)
        task.context = context.branch()
        return _Run(self._tasks, task)

    def bell(self) -> _Bell:
        return _Bell(self._tasks)


class _Run:
    def __init__(self, tasks: Scheduler, task: Task) -> None:
        self._tasks = tasks
        self._task = task

    @property
    def ended(self) -> bool:
        return self._task.done

    def abort(self) -> None:
        if self._task is self._tasks.current:  # a worker that closes itself
            raise TaskAborted
        self._tasks.abort(self._task)

    def collect(self) -> None:
        self._tasks.take_output(self._task)


class _Bell:
    def __init__(self, tasks: Scheduler) -> None:
        self._tasks = tasks
        self._waiting: dict[Task, None] = {}

    def wait(self, outside: tuple[str, str] | None = None, seconds: float | None = None) -> None:
        tasks, task = self._tasks, self._tasks.current
        self._waiting[task] = None
        if seconds is not None:
            tasks.wake_at(task, tasks.vm.world.clock.monotonic() + seconds)
        try:
            if outside is None:
                tasks.suspend()
            else:
                tasks.wait_outside(*outside)
        finally:
            self._waiting.pop(task, None)

    def ring(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for task in waiting:
            self._tasks.resume(task)


def require(message: str, *arguments: Value) -> None:
    """Raise when one of the arguments was not written."""
    if ABSENT in arguments:
        raise RuntimeFault(message)
