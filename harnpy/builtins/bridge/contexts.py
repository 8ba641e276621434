"""The context that the running task works under."""

from __future__ import annotations

from harnpy.agent.context import AgentContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm


def context_of(vm: Vm) -> AgentContext:
    """The running task's context, an empty one if it had none."""
    task = vm.tasks.current
    if task.context is None:
        task.context = AgentContext()
    assert isinstance(task.context, AgentContext)
    return task.context
