"""The report when all tasks wait and nothing can wake one: who waits for what, and where. Spec: 05 §1.5."""

from __future__ import annotations

import sys

from harnpy.vm.errors import RuntimeFault
from harnpy.vm.run.frames import Walking, calling, place_of, unit_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from harnpy.vm.run.tasks.scheduler import Scheduler
    from harnpy.vm.run.tasks.task import Task

#: How many tasks the report names.
_MOST_NAMED = 8


def deadlock(tasks: Scheduler) -> RuntimeFault:
    """The error for the root task, which runs the scheduler when nothing can go on."""
    waiting = [task for task in _family(tasks) if not task.done]
    lines = [_line(tasks, task, waiting) for task in waiting[:_MOST_NAMED]]
    left_out = len(waiting) - len(lines)
    if left_out:
        lines.append(f"and {left_out} more")
    return RuntimeFault(f"deadlock: every task waits, and nothing can wake one: {'; '.join(lines)}")


def _family(tasks: Scheduler) -> Iterator[Task]:
    yield from tasks.root.family()
    yield from (task for task in tasks.detached.family() if task is not tasks.detached)


def _line(tasks: Scheduler, task: Task, others: Sequence[Task]) -> str:
    # The root runs this very code, deep in its wait; the others stand where they gave way.
    frame = sys._getframe() if task is tasks.root else task.greenlet.gr_frame
    verb, things = task.wait or ("for something", ())
    names = ", ".join(thing.display() + _holders(thing, others) for thing in things)
    return f"{task.id()} waits {verb}{' ' if names else ''}{names}{_place(frame)}"


def _holders(thing: object, others: Sequence[Task]) -> str:
    """Who holds permits of a lock."""
    holders = [task.id() for task in others if any(grant.lock is thing for grant in task.held or ())]
    return f", held by {' and '.join(holders)}," if holders else ""


def _place(frame: FrameType | None) -> str:
    """Where the innermost Harn function of a stack is."""
    for function in calling(frame):
        python = frame if isinstance(function, Walking) else function
        assert python
        line, column = place_of(function, python.f_lineno, python.f_lasti)
        return f" at {unit_of(function).file}:{line}:{column}"
    return ""
