"""The body of a generator: it stops at each `yield` until the next item is asked for. Spec: 02 §18.

The evaluator is deep in a recursion when it meets a `yield`. So the body has a greenlet, a stack of its own,
which takes part in whichever task asks for an item.
"""

from __future__ import annotations

from contextlib import suppress

from harnpy.vm.run.tasks.deadline import pause_deadlines, resume_deadlines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.run.tasks.scheduler import Scheduler
    from harnpy.vm.walk.activation import Activation

    Value = Any
    Enter = Callable[[Callable[[], None]], object]


class Coroutine:
    """An iterator over what ``body`` yields; ``body`` begins when the first item is asked for.

    Nothing in its greenlet refers to it: the garbage collector doesn't see into greenlets that wait.
    """

    def __init__(self, tasks: Scheduler, enter: Enter, body: Callable[[], Value]) -> None:
        from greenlet import greenlet

        self._tasks = tasks
        self._stack = greenlet(lambda: enter(lambda: _until_dropped(body)))
        self._busy = False

    def __iter__(self) -> Coroutine:
        return self

    def __next__(self) -> Value:
        if self._busy:
            raise ValueError("generator already executing")
        if self._stack.dead:
            raise StopIteration
        self._busy = True
        try:
            item = self._tasks.take_part(self._stack)
        finally:
            self._busy = False
        if self._stack.dead:
            raise StopIteration
        return item


def _until_dropped(body: Callable[[], Value]) -> None:
    with suppress(GeneratorExit):
        body()


def hand_over(a: Activation, item: Value) -> None:
    """Give ``item`` to whoever asked for it, and wait to be asked again.

    The consumer is not under the deadlines of the body (05 §9).
    """
    from greenlet import GreenletExit, getcurrent

    tasks = a.walker.vm.tasks
    paused = pause_deadlines(tasks, a.deadlines[0]) if a.deadlines else None
    try:
        consumer = getcurrent().parent
        assert consumer
        consumer.switch(item)
    except GreenletExit:
        # Nobody holds the generator any more. Nothing of the program runs on the way out.
        raise GeneratorExit from None
    if paused is not None:
        resume_deadlines(tasks, paused)
