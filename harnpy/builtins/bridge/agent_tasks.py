"""Calls of agents as tasks of the program, at the same time."""

from __future__ import annotations

from harnpy.agent.runtime import attempt
from harnpy.vm.run.tasks.parallel import Batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from harnpy.agent.runtime import Attempt
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def together(vm: Vm, calls: Sequence[Callable[[], Value]]) -> list[Value]:
    """The results of the calls, which run as tasks at the same time."""
    if len(calls) < 2:
        return [call() for call in calls]
    bodies = [lambda depth, call=call: call() for call in calls]
    return Batch(vm.tasks, "tools", bodies, len(bodies)).gathered()


def as_they_end(vm: Vm, calls: Sequence[Callable[[], Value]], limit: int) -> Generator[Attempt, None, None]:
    """What came of the calls, which run as tasks."""
    bodies = [lambda depth, at=index, call=call: attempt(at, call) for index, call in enumerate(calls)]
    batch = Batch(vm.tasks, "branches", bodies, limit)
    try:
        for task in batch:
            vm.tasks.take_output(task)
            yield task.result
    finally:
        batch.stop()
