"""A task whose time is over: its deadline has passed, or it was asked to end. Spec: 05 §9, §11.

What is due is thrown at every look until the block is left, or the task. Only code that is dealing with such
a throw, in a `finally`, `defer` or `catch`, is left alone for a while, so that it can release what it holds.
"""

from __future__ import annotations

import sys

from harnpy.vm.errors import Interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.run.tasks.scheduler import Scheduler
    from harnpy.vm.run.tasks.task import Task


CANCELLED = "kind:cancelled:VM cancelled by host"
DEADLINE = "Deadline exceeded"
#: How many turns of loops and calls code may still make, and for how many seconds it may go on or wait.
TURNS = 1024
SECONDS = 0.25
#: Seconds for one piece of work when there are none left.
_SHORTEST = 0.001


class Overtime:
    """What a task may still do. ``deadline`` is the one that has passed, None when the task is cancelled."""

    __slots__ = ("deadline", "turns", "until")

    def __init__(self, now: float, deadline: float | None = None) -> None:
        self.deadline = deadline
        self.turns = TURNS
        self.until = now + SECONDS

    def lasts(self, now: float, turns: int) -> bool:
        """Whether the task may go on for so many more turns."""
        self.turns -= turns
        return self.turns >= 0 and now < self.until


def interrupt(tasks: Scheduler, task: Task, turns: int) -> None:
    """Raise what is due in ``task``, which is about to take some turns, or none after a wait."""
    if task.deadlines:
        expire(tasks, task, turns)
    if task.cancel_requested:
        _stop(tasks, task, turns)


def expire(tasks: Scheduler, task: Task, turns: int = 0) -> None:
    """Raise Interrupted when a deadline of ``task`` has passed. Its children end the first time."""
    now = tasks.now()
    if now < min(task.deadlines):
        return
    outermost = next(when for when in task.deadlines if when <= now)
    overtime = task.overtime
    if overtime is None or overtime.deadline != outermost:
        task.overtime = Overtime(now, outermost)
        tasks.abort_children(task)
    elif is_cleaning_up() and overtime.lasts(now, turns):
        return
    raise Interrupted(DEADLINE, outermost)


def _stop(tasks: Scheduler, task: Task, turns: int) -> None:
    """Raise Interrupted when ``task``, which was asked to end, has not done so for too long."""
    now = tasks.now()
    assert task.patience
    if task.patience.lasts(now, turns):
        return
    if task.overtime_of_end is None:
        task.overtime_of_end = Overtime(now)
    elif is_cleaning_up() and task.overtime_of_end.lasts(now, turns):
        return
    raise Interrupted(CANCELLED)


def is_cleaning_up() -> bool:
    """Whether the code that runs now was called to deal with an interruption."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, Interrupted):
        error = error.__context__
    return error is not None


def is_over(task: Task, now: float) -> bool:
    """Whether something is due in ``task``."""
    if task.deadlines and now >= min(task.deadlines):
        return True
    return task.patience is not None and not task.patience.lasts(now, 0)


def time_left(tasks: Scheduler) -> float:
    """The seconds until something is due in the current task or one above it; infinity without a limit."""
    ends = [tasks.ends_at]
    task: Task | None = tasks.current
    while task:
        end = end_of_wait(task)
        if end is not None:
            ends.append(end)
        task = task.parent
    return max(min(ends) - tasks.now(), _SHORTEST)


def end_of_wait(task: Task) -> float | None:
    """When a wait that ``task`` begins now is over at the latest."""
    ends = []
    if task.deadlines:
        overtime = task.overtime
        passed = overtime is not None and overtime.deadline in task.deadlines
        ends.append(_end(min(task.deadlines), overtime if passed else None))
    if task.patience:
        ends.append(_end(task.patience.until, task.overtime_of_end))
    return min(ends) if ends else None


def _end(due: float, overtime: Overtime | None) -> float:
    return overtime.until if overtime and is_cleaning_up() else due
