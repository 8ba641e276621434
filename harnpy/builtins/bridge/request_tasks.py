"""Requests that came, as tasks of the program. Spec: 04 §21.5."""

from __future__ import annotations

import asyncio

from harnpy.builtins.bridge.event_streams import streams_of
from harnpy.faults import Interruption
from harnpy.vm.limits import LimitReached
from harnpy.vm.run.tasks.spawn import start_beside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.net.server.event_streams import EventStream
    from harnpy.net.server.responses import Response
    from harnpy.vm.run.tasks.task import Task
    from harnpy.vm.vm import Vm

#: What the ids of such tasks say they are.
_KIND = "request"


class RequestTasks:
    """Tasks under the rules, and with the context, of the task that makes this: the one that listens."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._tasks = vm.tasks
        starter = vm.tasks.current
        self._context = None if starter.context is None else starter.context.branch()
        self._runtime_context = starter.runtime_context
        #: Those that run, as the keys.
        self.running: dict[Task, None] = {}

    def start(self, respond: Callable[[], Response]) -> _Running | None:
        running = _Running(self)
        try:
            task = self.beside(lambda: self._handle(running, respond))
        except LimitReached:
            return None
        running.task = task
        self.running[task] = None
        return running

    def beside(self, body: Callable[[], None]) -> Task:
        """Start a task that belongs to the program and not to one of its tasks.

        Raises LimitReached when there may be no more tasks; it counts for nothing.
        """
        try:
            task = start_beside(self._tasks, lambda depth: self._run(body), _KIND)
        except LimitReached:
            assert self._tasks.meter is not None
            self._tasks.meter.give_back("tasks")
            raise
        task.context = None if self._context is None else self._context.branch()
        task.runtime_context = self._runtime_context
        self.wake()
        return task

    def wake(self) -> None:
        """Have the program go on: a task of it may act."""
        if self._tasks.bridge is not None:
            self._tasks.bridge.wake()

    def is_within(self) -> bool:
        """Return whether the current task handles a request, or one of its ancestors does."""
        task: Task | None = self._tasks.current
        while task is not None and task not in self.running:
            task = task.parent
        return task is not None

    def _handle(self, running: _Running, respond: Callable[[], Response]) -> None:
        """Respond. The task, and those that it started, go on until a response of events has ended."""
        try:
            response = respond()
            if response.get("streaming"):
                running.stream = streams_of(self._vm).get(response.get("id"))
            running.settle(response)
            if running.stream is not None:
                streams_of(self._vm).follow(running.stream)
            return
        except Interruption as interruption:
            stop = interruption.__cause__ or interruption
        finally:
            running.settle(None)
            self.running.pop(self._tasks.current, None)
        raise stop

    def _run(self, body: Callable[[], None]) -> None:
        """Run the body of a task, and write what it printed: nobody awaits it."""
        try:
            body()
        finally:
            task = self._tasks.current
            if task.output:
                output, task.output = task.output, ""
                self._vm.unguarded.streams.write_out(output)
                show_output(self._vm)


def show_output(vm: Vm) -> None:
    """Have what was printed be seen now: a service may print nothing more for hours."""
    vm.unguarded.streams.write_err("")


class _Running:
    task: Task | None = None
    stream: EventStream | None = None

    def __init__(self, tasks: RequestTasks) -> None:
        self._tasks = tasks
        self.response: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()

    def settle(self, response: Response | None) -> None:
        if not self.response.done():
            self.response.set_result(response)

    def cancel(self) -> None:
        if self.task is not None and not self.task.done:
            self._tasks._tasks.request_cancel(self.task)
            self._tasks.wake()
