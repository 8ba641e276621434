"""A Harn file that stays loaded, and whose functions are called from the asyncio loop around it.

One Vm runs the file: its top level once, when it is opened, then each call in a task of its own. So calls
share what the file's variables, sessions and stores hold, and take turns only where one of them waits (05
§1.1): between two waits a call sees nothing of another.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from harnpy.builtins import settings_of
from harnpy.serve.calls import Call
from harnpy.vm.modules.library import Library
from harnpy.vm.run.tasks.aio import run_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from harnpy import Vm
    from harnpy.serve.calls import Progress
    from harnpy.vm.modules.program_modules import Module
    from harnpy.vm.run.tasks.task import Task


class Program:
    """An asynchronous context manager: entered, the file is loaded and can be called."""

    def __init__(self, vm: Vm, file: str) -> None:
        """Raises OSError when the file can't be read, SourceFault when it can't be run."""
        files = vm.unguarded.files
        source = files.read_text(file, "replace")
        self.vm = vm
        self.library = Library(vm, source, file, files.real_path(file))
        self._asked: asyncio.Queue[Call | None] = asyncio.Queue()
        self._running: dict[Task, Call] = {}
        self._run: asyncio.Task[None] | None = None
        settings_of(vm).on_progress = self._progress

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
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the calls that are running, and the program."""
        assert self._run is not None
        self._asked.put_nowait(None)
        await self._run

    async def call(
        self, function: Callable[..., Any], args: Sequence[Any], progress: Progress | None = None
    ) -> Any:
        """Return what a Harn function or a builtin returns for ``args``; ``progress`` receives how far it is.

        Raises VmError. Cancelling this ends the call.
        """
        return await self.do(lambda: self.vm.call(function, *args), progress)

    async def do(self, work: Callable[[], Any], progress: Progress | None = None) -> Any:
        """Return what ``work`` returns, called in a task of the program."""
        outcome = asyncio.get_running_loop().create_future()
        call = Call(work, outcome, progress)
        self._asked.put_nowait(call)
        try:
            return await outcome
        finally:
            if outcome.cancelled():
                self._cancel(call)

    def _serve(self, loaded: asyncio.Future[None]) -> None:
        """The program's root task."""
        tasks = self.vm.tasks
        self.library.load()
        loaded.set_result(None)
        while (call := tasks.await_coroutine(self._asked.get())) is not None:
            call.start(tasks, self._running)

    def _progress(self, current: float | None, total: float | None, message: str) -> None:
        """What the builtin `progress` reports, for the call that it is in."""
        task: Task | None = self.vm.tasks.current
        while task is not None and task not in self._running:
            task = task.parent
        gauge = None if task is None else self._running[task].gauge
        if gauge is not None:
            gauge.read(current, total, message)

    def _cancel(self, call: Call) -> None:
        tasks = self.vm.tasks
        call.cancel(tasks)
        if tasks.bridge is not None:
            tasks.bridge.wake()
