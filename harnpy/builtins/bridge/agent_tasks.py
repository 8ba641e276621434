"""The tasks of a Vm, as agents and model calls use them: in the foreground and in the background.

Spec: 07 §11, §12.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import get_ident

from harnpy.agent.tasks import attempt
from harnpy.faults import Interruption
from harnpy.vm.errors import Interrupted
from harnpy.vm.run.calls import TaskAborted
from harnpy.vm.run.tasks import Batch, start_beside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from harnpy.agent.context import AgentContext
    from harnpy.agent.tasks import Attempt
    from harnpy.session.lanes import Ticket
    from harnpy.session.open_sessions import SessionStack
    from harnpy.vm.run.scheduler import Scheduler
    from harnpy.vm.run.tasks import Task
    from harnpy.vm.vm import Vm

    Calls = Sequence[Callable[[], Any]]


class AgentTasks:
    """An `harnpy.agent.tasks.Tasks` over the scheduler of a Vm."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm

    def sleep(self, seconds: float) -> None:
        with _interruptible():
            self._vm.tasks.sleep(seconds)

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        with _interruptible():
            return self._vm.tasks.await_coroutine(awaitable)

    def go_on(self) -> None:
        if not self._vm.signal.pending:
            return
        with _interruptible():
            self._vm.poll()

    def together(self, calls: Calls) -> list[Any]:
        if len(calls) < 2:
            return [call() for call in calls]
        with _interruptible():
            return Batch(self._vm.tasks, "tools", _called, calls, len(calls)).gathered()

    def as_they_end(self, calls: Calls, limit: int) -> Generator[Attempt, None, None]:
        batch = Batch(self._vm.tasks, "branches", _attempted, tuple(enumerate(calls)), limit)
        try:
            for task in _interruptibly(batch):
                self._vm.tasks.take_output(task)
                yield task.result
        finally:
            batch.stop()

    def when_idle(self, act: Callable[[], None]) -> None:
        self._vm.tasks.chores.append(act)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise what ends the task as an `Interruption`, which nobody takes for a failure."""
    try:
        yield
    except Interrupted as error:
        raise Interruption(str(error)) from error


def _interruptibly(batch: Batch) -> Iterator[Task]:
    with _interruptible():
        yield from batch


def _called(depth: int, call: Callable[[], Any]) -> Any:
    """Run ``call`` as a task: what interrupts it ends that task, not the whole program."""
    try:
        return call()
    except Interruption as interruption:
        stop = interruption.__cause__ or interruption
    raise stop


def _attempted(depth: int, call: tuple[int, Callable[[], Any]]) -> Attempt:
    return attempt(*call)


# Runs of agents beside the program, as tasks of the Vm. Spec: 07 §11, §12.


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
        until = None if seconds is None else tasks.vm.world.clock.monotonic() + seconds
        try:
            if outside is not None:
                tasks.wait_outside(*outside, until)
            elif until is None:
                tasks.suspend()
            else:
                tasks.suspend_until(until)
        finally:
            self._waiting.pop(task, None)

    def ring(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for task in waiting:
            self._tasks.resume(task)


#: How often a task that waits for a session looks whether another thread has let go of it. Seconds.
_LOOK = 0.05


class TaskWaiter:
    """Waits for sessions as a task, while other tasks go on: a `harnpy.session.lanes.Waiter`.

    ``stack`` returns the running task's.
    """

    blocks = False

    def __init__(self, vm: Vm, stack: Callable[[], SessionStack]) -> None:
        self._vm = vm
        self._stack = stack

    def now(self) -> float:
        return self._vm.tasks.now()

    def pause(self) -> _TaskPause:
        return _TaskPause(self._vm)

    def mine(self) -> tuple[Ticket, ...]:
        return self._stack().turns

    def inside(self, ticket: Ticket) -> AbstractContextManager[None]:
        return self._stack().inside(ticket)


class _TaskPause:
    """``set`` from another thread is noticed after a moment."""

    def __init__(self, vm: Vm) -> None:
        self._bell = BackgroundTasks(vm.tasks, "session").bell()
        self._thread = get_ident()
        self._is_set = False

    def wait(self, seconds: float) -> None:
        if not self._is_set:
            self._bell.wait(seconds=min(seconds, _LOOK))
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        if get_ident() == self._thread:
            self._bell.ring()
