"""The body of a generator: it stops at each `yield` until the next item is asked for. Spec: 02 §18.

The evaluator is deep in a recursion when it meets a `yield`. So the body has a greenlet, a stack of its own,
which takes part in whichever task asks for an item.
"""

from __future__ import annotations

from harnpy.vm.run.tasks.deadline import pause_deadlines, resume_deadlines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.walk.activation import Activation

    Value = Any


class Coroutine:
    """An iterator over what ``body`` yields; ``body`` begins when the first item is asked for."""

    def __init__(self, a: Activation, body: Callable[[], Value]) -> None:
        from greenlet import greenlet

        a.coroutine = self
        self._activation = a
        self._tasks = a.walker.vm.tasks
        self._stack = greenlet(lambda: a.walker.vm.enter_worker(lambda: self._run(body)))
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

    def _run(self, body: Callable[[], Value]) -> None:
        try:
            body()
        except GeneratorExit:
            return

    def hand_over(self, item: Value) -> None:
        """Give ``item`` to whoever asked, and wait to be asked again.

        The consumer is not under the deadlines of the body (05 §9).
        """
        from greenlet import GreenletExit

        a = self._activation
        paused = pause_deadlines(self._tasks, a.deadlines[0]) if a.deadlines else None
        try:
            consumer = self._stack.parent
            assert consumer
            consumer.switch(item)
        except GreenletExit:
            # Nobody holds the generator any more. Nothing of the program runs on the way out.
            raise GeneratorExit from None
        if paused is not None:
            resume_deadlines(self._tasks, paused)
