"""The tasks of a stopped program, and the calls that each of them is in. Spec: 09 §15.3.

Tasks are greenlets: the one that stopped has its Python frames on this thread's stack, the others where
they wait. The body of a generator has a greenlet too, above that of the task that asked for an item.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from greenlet import getcurrent

from harnpy.cli.debugger.breakpoints import path_of
from harnpy.vm.run.frames import running
from harnpy.vm.run.tasks.scheduler import Scheduler
from harnpy.vm.walk.activation import Activation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from greenlet import greenlet

    from harnpy.vm.run.tasks.task import Task


class Call:
    """One Harn function that runs, and where it is. Lines and columns count from 1."""

    def __init__(self, activation: Activation) -> None:
        self.activation = activation
        self.name = activation.name
        self.unit = activation.unit
        self.path = path_of(self.unit)
        self.line, self.column = self.unit.lines.locate(activation.at)


def tasks(scheduler: Scheduler) -> list[Task]:
    """The root and every task that has not ended, in the order they were started in."""
    family = [*scheduler.root.family(), *scheduler.detached.family()]
    return [task for task in family if task is not scheduler.detached and not task.done]


def calls(scheduler: Scheduler, task: Task) -> list[Call]:
    """The calls that a task is in, innermost first; none before it has started."""
    return [Call(activation) for activation in activations(scheduler, task)]


def activations(scheduler: Scheduler, task: Task) -> list[Activation]:
    """The runs of functions that a task is in, innermost first."""
    found: list[Activation] = []
    for frame in _frames(*_top(scheduler, task)):
        function = running(frame)
        if isinstance(function, Activation) and (not found or function is not found[-1]):
            found.append(function)
    return found


def _top(scheduler: Scheduler, task: Task) -> tuple[FrameType | None, greenlet | None]:
    """The innermost frame of a task, and the greenlet that it is in."""
    if task is scheduler.current:
        return sys._getframe(), getcurrent()
    stack: greenlet | None = scheduler.hub if task is scheduler.root else task.greenlet
    return (stack.gr_frame if stack is not None else None), stack


def _frames(frame: FrameType | None, stack: greenlet | None) -> Iterator[FrameType]:
    """The frames of a task from the innermost outward, through the greenlets that it is in."""
    while stack is not None:
        while frame is not None:
            if frame.f_code is Scheduler.run_task.__code__:
                return
            yield frame
            frame = frame.f_back
        stack = stack.parent
        frame = None if stack is None else stack.gr_frame
