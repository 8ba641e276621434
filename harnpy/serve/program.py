"""A Harn file that stays loaded, and whose functions are called from the asyncio loop around it.

One Vm runs the file: its top level once, when it is opened, then each call in a task of its own. So calls
share the file's variables, sessions and stores. They take turns where one of them waits, and where it has
computed for a while; the tasks within a call only where one of them waits (05 §1.1).
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context

from harnpy.agent.people import HumanCancelled
from harnpy.builtins import settings_of
from harnpy.vm.errors import FAILURES, ExitRequest, Leaving, VmError
from harnpy.vm.modules import Library, Module
from harnpy.vm.run.aio import run_inside
from harnpy.vm.run.backtrace import finish
from harnpy.world.host import People

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any, Protocol, Self

    from harnpy import Vm
    from harnpy.formats.dicts import Dict
    from harnpy.vm.run.scheduler import Scheduler
    from harnpy.vm.run.tasks import Task

    class Caller(Protocol):
        """The client that makes a call, and can be reached while it runs."""

        def report(self, current: float, total: float | None, message: str) -> object:
            """Report progress: a number that grows, what it grows to (if known), and a message."""

        def ask(self, request: Dict) -> Awaitable[Dict]:
            """Put a request to a person (07 §14.6). Raises HumanCancelled."""


class NotServed(Exception):
    """The message is one sentence for who starts the server."""


# One call of a served program, from the asyncio task that asked for it to the Harn task that runs it.


class Call:
    """``work`` is done in a task of its own, and ``outcome`` is what comes of it.

    ``running`` holds the calls that have begun, by their tasks.
    """

    def __init__(self, work: Callable[[], Any], outcome: Future[Any], caller: Caller | None) -> None:
        self._work = work
        self._outcome = outcome
        self._task: Task | None = None
        self._variables = copy_context()
        self.caller = caller
        self.gauge = None if caller is None else Gauge(caller.report)

    def start(self, tasks: Scheduler, running: dict[Task, Call]) -> None:
        """Create the task, as a child of the current one, unless the call was cancelled meanwhile."""
        if not self._outcome.done():
            # In the context variables of whoever asked for it.
            self._task = self._variables.run(tasks.create, lambda depth: self._run(tasks, running))

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


class Program:
    """An asynchronous context manager: entered, the file is loaded and can be called.

    A program that ends by itself, by `exit` in a task that a call has started or by a limit, ends the block,
    which raises what it ended with.
    """

    def __init__(self, vm: Vm, file: str) -> None:
        """Raises OSError when the file can't be read, SourceFault when it can't be run."""
        files = vm.unguarded.files
        source = files.read_text(file, "replace")
        self.vm = vm
        self.library = Library(vm, source, file, files.real_path(file))
        self._asked: asyncio.Queue[Call | None] = asyncio.Queue()
        self._running: dict[Task, Call] = {}
        self._run: asyncio.Task[None] | None = None
        self._inside: asyncio.Task[Any] | None = None
        settings_of(vm).on_progress = self._progress
        vm.tasks.serves_calls = True
        vm.unguarded.people = People(self._ask)

    @property
    def module(self) -> Module:
        return self.library.module

    async def __aenter__(self) -> Self:
        """Raises VmError when the file's top level fails."""
        loaded = asyncio.get_running_loop().create_future()
        self._run = asyncio.create_task(
            run_inside(self.vm.tasks, lambda: self.vm.start(lambda: self._serve(loaded)))
        )
        await asyncio.wait((loaded, self._run), return_when=asyncio.FIRST_COMPLETED)
        if self._run.done():
            await self._run
        self._inside = asyncio.current_task()
        self._run.add_done_callback(self._end_block)
        return self

    def _end_block(self, run: asyncio.Task[None]) -> None:
        if self._inside is not None:
            self._inside.cancel()

    async def __aexit__(self, *_: object) -> None:
        """End the calls that are running, and the program."""
        assert self._run is not None
        inside, self._inside = self._inside, None
        if inside is not None and self._run.done():
            inside.uncancel()
        self._asked.put_nowait(None)
        await self._run

    async def call(
        self, function: Callable[..., Any], args: Sequence[Any], caller: Caller | None = None
    ) -> Any:
        """Return what a Harn function or a builtin returns for ``args``. Raises VmError.

        ``caller`` receives the progress of the call and what it asks people. Cancelling this ends the call.
        """
        return await self.do(lambda: self.vm.call(function, *args), caller)

    async def do(self, work: Callable[[], Any], caller: Caller | None = None) -> Any:
        """Return what ``work`` returns, called in a task of the program."""
        outcome = asyncio.get_running_loop().create_future()
        call = Call(work, outcome, caller)
        self._asked.put_nowait(call)
        try:
            return await outcome
        finally:
            if outcome.cancelled():
                self._cancel(call)

    def is_busy(self, caller: Caller) -> bool:
        """Return whether a task of the caller's calls goes on as soon as the program does."""
        tasks = self.vm.tasks
        computing = tasks.turns and tasks.turns.computing
        calls = (self._running.get(task.branch()) for task in (*tasks.ready, computing) if task)
        return any(call is not None and call.caller is caller for call in calls)

    def _serve(self, loaded: asyncio.Future[None]) -> None:
        """The program's root task."""
        tasks = self.vm.tasks
        self.library.load()
        loaded.set_result(None)
        while (call := tasks.await_coroutine(self._asked.get())) is not None:
            call.start(tasks, self._running)

    def _current(self) -> Call | None:
        """The call that the running task belongs to; None for one that a call has left behind."""
        task: Task | None = self.vm.tasks.current
        while task is not None and task not in self._running:
            task = task.parent
        return None if task is None else self._running[task]

    def _progress(self, current: float | None, total: float | None, message: str) -> None:
        """Report what the builtin `progress` shows to the call that it is in."""
        call = self._current()
        if call is not None and call.gauge is not None:
            call.gauge.read(current, total, message)

    def _ask(self, request: Dict) -> Awaitable[Dict]:
        """Put a request of the program to whoever makes the call. Raises HumanCancelled."""
        call = self._current()
        if call is None or call.caller is None:
            raise HumanCancelled("nobody is there to ask")
        return call.caller.ask(request)

    def _cancel(self, call: Call) -> None:
        call.cancel(self.vm.tasks)
        self.vm.tasks.wake()
