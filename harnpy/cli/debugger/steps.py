"""Steps: at which statement a program that goes on stops again. Spec: 09 §15.3.

A step belongs to a task: what other tasks do meanwhile doesn't end it. When its task has ended, the next
statement of any task does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.vm.run.tasks.task import Task
    from harnpy.vm.walk.activation import Activation


class Step:
    """``within`` are the calls in which the step ends; None: in any call."""

    def __init__(self, task: Task, within: Sequence[Activation] | None) -> None:
        self._task = task
        self._within = within

    def ends_at(self, a: Activation, task: Task) -> bool:
        if self._task.done:
            return True
        if task is not self._task:
            return False
        # A `defer` block is a run of its own, on the variables of its function.
        return self._within is None or any(call.slots is a.slots for call in self._within)


def into(task: Task, calls: Sequence[Activation]) -> Step:
    """To the task's next statement, in whatever function it is."""
    return Step(task, None)


def over(task: Task, calls: Sequence[Activation]) -> Step:
    """To the next statement of the innermost function or of its callers."""
    return Step(task, calls)


def out(task: Task, calls: Sequence[Activation]) -> Step:
    """To the next statement of the callers."""
    return Step(task, calls[1:])
