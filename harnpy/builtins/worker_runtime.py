"""What workers get of a Vm: tasks of the run to work in, and their jobs. Spec: 07 §11."""

from __future__ import annotations

from harnpy.agent.delegation import SubAgentJob
from harnpy.agent.worker import STAGE, SUB_AGENT
from harnpy.agent.workers import Workers
from harnpy.builtins.agent_runtime import runtime_of, tools_bound
from harnpy.vm.calls import TaskAborted
from harnpy.workflow.stage_job import StageJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.agent.ambient import Ambient
    from harnpy.agent.worker import Job, Outcome, Worker
    from harnpy.vm.machine import Vm
    from harnpy.vm.scheduler import Task
    from harnpy.vm.tasks import Tasks


class _Slot:
    """Where a Vm keeps the workers of the program it runs."""

    workers: Workers | None = None


def workers_of(vm: Vm) -> Workers:
    slot = vm.state(_Slot)
    if slot.workers is None:
        runtime = runtime_of(vm)
        jobs: dict[str, Callable[[Worker], Job]] = {
            STAGE: lambda worker: _BoundJob(vm, StageJob(runtime, worker), worker.config["node"]),
            SUB_AGENT: lambda worker: _BoundJob(vm, SubAgentJob(runtime, worker), worker.config["options"]),
        }
        slot.workers = Workers(runtime, _TasksBeside(vm.tasks), jobs)
    return slot.workers


class _BoundJob:
    """A job whose tools are the bound ones while it works."""

    def __init__(self, vm: Vm, job: Job, options: Any) -> None:
        self._vm = vm
        self._job = job
        self._options = options

    @property
    def session_id(self) -> str:
        return self._job.session_id

    def run(self, worker: Worker) -> Outcome:
        with tools_bound(self._vm, self._options):
            return self._job.run(worker)


class _TasksBeside:
    """Runs as tasks that belong to the program: they outlive the task that started them."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def start(self, body: Callable[[], None], ambient: Ambient) -> _Run:
        task = self._tasks.start_beside(lambda depth: body(), "worker")
        task.session_stack = ambient.branch()
        return _Run(self._tasks, task)

    def bell(self) -> _Bell:
        return _Bell(self._tasks)


class _Run:
    def __init__(self, tasks: Tasks, task: Task) -> None:
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
    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._waiting: list[Task] = []

    def wait(self, outside: tuple[str, str] | None = None) -> None:
        self._waiting.append(self._tasks.current)
        if outside is None:
            self._tasks.suspend()
        else:
            self._tasks.wait_outside(*outside)

    def ring(self) -> None:
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self._tasks.resume(task)
