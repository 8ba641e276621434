"""The tasks of a Vm, as agents and model calls use them."""

from __future__ import annotations

from contextlib import contextmanager

from harnpy.agent.tasks import attempt
from harnpy.faults import Interruption
from harnpy.vm.errors import Interrupted
from harnpy.vm.run.tasks.parallel import Batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
    from typing import Any

    from harnpy.agent.tasks import Attempt
    from harnpy.vm.run.tasks.task import Task
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
        bodies = [_body(call) for call in calls]
        with _interruptible():
            return Batch(self._vm.tasks, "tools", bodies, len(bodies)).gathered()

    def as_they_end(self, calls: Calls, limit: int) -> Generator[Attempt, None, None]:
        bodies = [lambda depth, at=index, call=call: attempt(at, call) for index, call in enumerate(calls)]
        batch = Batch(self._vm.tasks, "branches", bodies, limit)
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


def _body(call: Callable[[], Any]) -> Callable[[int], Any]:
    """Return ``call`` as the body of a task: what interrupts it ends that task, not the whole program."""

    def body(depth: int) -> Any:
        try:
            return call()
        except Interruption as interruption:
            stop = interruption.__cause__ or interruption
        raise stop

    return body
