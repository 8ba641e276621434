"""`deadline` blocks: a stack of times at which a task's work is over. Spec: 05 §9."""

from __future__ import annotations

from harnpy.vm.run.tasks.overtime import expire
from harnpy.vm.values.objects import Duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.run.tasks.scheduler import Scheduler
    from harnpy.vm.run.tasks.task import Task

    Value = Any

_DEFAULT_MS = 30_000


def milliseconds(limit: Value, default: int) -> int:
    """A duration, or a number of milliseconds, as such a number; ``default`` for anything else."""
    ms = limit.ms if type(limit) is Duration else limit if type(limit) is int else default
    return max(ms, 0)


def deadline_begin(tasks: Scheduler, limit: Value) -> float:
    """Start a `deadline` block; the result is its token, the time when it ends."""
    ms = limit.ms if type(limit) is Duration else milliseconds(limit, _DEFAULT_MS)
    when = tasks.now() + max(ms, 0) / 1000
    tasks.current.deadlines += (when,)
    tasks.may_interrupt = tasks.signal.pending = True
    return when


def deadline_end(tasks: Scheduler, token: float) -> None:
    task = tasks.current
    task.deadlines = task.deadlines[: _place(task, token)]
    if task.overtime and task.overtime.deadline not in task.deadlines:
        task.overtime = None
    tasks.refresh()


def pause_deadlines(tasks: Scheduler, token: float) -> tuple[float, ...]:
    """A generator that hands out an item takes its deadlines with it, from ``token`` on."""
    deadlines = tasks.current.deadlines
    at = _place(tasks.current, token)
    tasks.current.deadlines = deadlines[:at]
    tasks.refresh()
    return deadlines[at:]


def resume_deadlines(tasks: Scheduler, paused: tuple[float, ...]) -> None:
    """… and brings them back when it is asked for the next."""
    tasks.current.deadlines += paused
    tasks.refresh()
    if paused:
        expire(tasks, tasks.current)


def _place(task: Task, token: float) -> int:
    """Where ``token`` is among the deadlines of ``task``: the innermost of equal ones."""
    for place in reversed(range(len(task.deadlines))):
        if task.deadlines[place] == token:
            return place
    return len(task.deadlines)
