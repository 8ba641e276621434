"""The context that the running task works under."""

from __future__ import annotations

from harnpy.agent.context import AgentContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.vm import Vm


def context_of(vm: Vm) -> AgentContext:
    """The running task's context, an empty one if it had none."""
    task = vm.tasks.current
    if task.context is None:
        task.context = AgentContext()
    assert isinstance(task.context, AgentContext)
    return task.context


def under_rules_of_now(vm: Vm, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callback that obeys the rules in force now besides those of whoever calls it."""
    rules = context_of(vm).rules
    if not rules.restricts:
        return function

    def governed(*args: Any) -> Any:
        context = context_of(vm)
        with context.govern(context.rules.met(rules)):
            return function(*args)

    return governed
