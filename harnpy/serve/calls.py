"""One call of a served program, from the asyncio task that asked for it to the Harn task that runs it."""

from __future__ import annotations

from harnpy.vm.errors import FAILURES, ExitRequest, Leaving, VmError
from harnpy.vm.run.backtrace import finish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Awaitable, Callable
    from typing import Any, Protocol

    from harnpy.reading.dicts import Dict
    from harnpy.vm.run.tasks.scheduler import Scheduler
    from harnpy.vm.run.tasks.task import Task

    class Caller(Protocol):
        """Who makes a call, and can be reached while it runs."""

        def report(self, current: float, total: float | None, message: str) -> object:
            """How far the call is: a number that grows, what it grows to (if known), and a message."""

        def ask(self, request: Dict) -> Awaitable[Dict]:
            """Put a request to a person (07 §14.6). Raises HumanCancelled."""


class Call:
    """``work`` is done in a task of its own, and ``outcome`` is what comes of it.

    ``running`` holds the calls that have begun, by their tasks.
    """

    def __init__(self, work: Callable[[], Any], outcome: Future[Any], caller: Caller | None) -> None:
        self._work = work
        self._outcome = outcome
        self._task: Task | None = None
        self.caller = caller
        self.gauge = None if caller is None else Gauge(caller.report)

    def start(self, tasks: Scheduler, running: dict[Task, Call]) -> None:
        """Create the task, as a child of the current one, unless the call was cancelled meanwhile."""
        if not self._outcome.done():
            self._task = tasks.create(lambda depth: self._run(tasks, running))

    def cancel(self, tasks: Scheduler) -> None:
        """Ask the task to end, as `cancel_graceful` does (05 §11)."""
        if self._task is not None and not self._task.done:
            tasks.request_cancel(self._task)

    def _run(self, tasks: Scheduler, running: dict[Task, Call]) -> None:
        task = tasks.current
        running[task] = self
        try:
            value = self._work()
        except FAILURES as error:
            self._fail(finish(error))
        except ExitRequest as request:
            # It is the server's client that called, and not a person who may end the server.
            self._fail(VmError(f"the program called exit({request.code})"))
        except Exception as error:
            self._fail(error)  # a mistake in harnpy, which ends this call only
        except Leaving:
            self._outcome.cancel()
            raise
        else:
            if not self._outcome.done():
                self._outcome.set_result(value)
        finally:
            del running[task]
            output, task.output = task.output, ""
            tasks.release(task)
            if output:
                tasks.vm.unguarded.streams.write_out(output)

    def _fail(self, error: Exception) -> None:
        if not self._outcome.done():
            self._outcome.set_exception(error)


class Gauge:
    """Makes of a program's readings ones that only grow, as clients may rely on.

    A reading below the one before it begins a new phase, which counts on from there.
    """

    def __init__(self, report: Callable[[float, float | None, str], object]) -> None:
        self._report = report
        self._passed = self._last = 0.0

    def read(self, current: float | None, total: float | None, message: str) -> None:
        """Report a reading; one without a number counts as a step."""
        if current is None:
            current, total = self._last + 1, None
        elif current < self._last:
            self._passed += self._last
            self._last = 0.0
        elif current == self._last:
            return
        self._last = current
        known = None if total is None else self._passed + total
        self._report(self._passed + current, known, message)
