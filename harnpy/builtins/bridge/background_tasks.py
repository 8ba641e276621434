"""Runs of agents beside the program, as tasks of the Vm. Spec: 07 §11, §12."""

from __future__ import annotations

from harnpy.vm.run.calls import TaskAborted
from harnpy.vm.run.tasks.spawn import start_beside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.context import AgentContext
    from harnpy.vm.run.tasks.scheduler import Scheduler
    from harnpy.vm.run.tasks.task import Task


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
