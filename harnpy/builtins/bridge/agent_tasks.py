"""The tasks of a Vm, as agents and model calls use them."""

from __future__ import annotations

from harnpy.agent.tasks import attempt
from harnpy.faults import Interruption
from harnpy.vm.errors import Interrupted
from harnpy.vm.run.tasks.parallel import Batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence
    from typing import Any

    from harnpy.agent.tasks import Attempt
    from harnpy.vm.vm import Vm

    Calls = Sequence[Callable[[], Any]]


class AgentTasks:
    """An `harnpy.agent.tasks.Tasks` over the scheduler of a Vm."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm

    def sleep(self, seconds: float) -> None:
        self._vm.tasks.sleep(seconds)

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        return self._vm.tasks.await_coroutine(awaitable)

    def go_on(self) -> None:
        if not self._vm.signal.pending:
            return
        try:
            self._vm.poll()
        except Interrupted as error:
            raise Interruption(str(error)) from error

    def together(self, calls: Calls) -> list[Any]:
        if len(calls) < 2:
            return [call() for call in calls]
        bodies = [lambda depth, call=call: call() for call in calls]
        return Batch(self._vm.tasks, "tools", bodies, len(bodies)).gathered()

    def as_they_end(self, calls: Calls, limit: int) -> Generator[Attempt, None, None]:
        bodies = [lambda depth, at=index, call=call: attempt(at, call) for index, call in enumerate(calls)]
        batch = Batch(self._vm.tasks, "branches", bodies, limit)
        try:
            for task in batch:
                self._vm.tasks.take_output(task)
                yield task.result
        finally:
            batch.stop()

    def when_idle(self, act: Callable[[], None]) -> None:
        self._vm.tasks.chores.append(act)
