"""Calling hooks and actions, which may be sync or async, from a thread. Spec: 10 §C7.2."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import Future
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, Protocol

from harnpy.session.errors import SessionBusy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_NESTED = "an async call can't wait for another one in the same thread: use harnpy.session.aio inside it"


class Caller(Protocol):
    """Calls functions of the user."""

    def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Return what ``fn`` returns, waited for when that is awaitable."""

    def check(self) -> None:
        """Raise `asyncio.CancelledError` once nobody wants the result any more."""


class ThreadCaller:
    """Runs what is async on a loop in a thread of its own, which begins with the first use."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        found = fn(*args)
        if not inspect.isawaitable(found):
            return found
        loop = self._running()
        if current_thread() is self._thread:
            if inspect.iscoroutine(found):
                found.close()
            raise SessionBusy(_NESTED)
        future = asyncio.run_coroutine_threadsafe(waited(found), loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # if it was this thread that was interrupted
            raise

    def check(self) -> None:
        """Nobody can cancel a sync call."""

    def stoppable(self) -> LoopCaller:
        """Return a caller on the same loop that another thread can `stop`."""
        loop = self._running()
        if current_thread() is self._thread:
            raise SessionBusy(_NESTED)
        return LoopCaller(loop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = Thread(target=self._loop.run_forever, name="session runtime", daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """End the loop and its thread."""
        with self._lock:
            if self._loop is not None and self._thread is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()
                self._loop = self._thread = None


class LoopCaller:
    """Runs what is async on the loop of the task that waits for the result; `cancel` ends that."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False

    def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.check()
        found = fn(*args)
        if not inspect.isawaitable(found):
            return found
        done: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._begin, found, done)
        return done.result()

    def check(self) -> None:
        if self._cancelled:
            raise asyncio.CancelledError

    def cancel(self) -> None:
        """End what runs, and let nothing more begin. To be called on the loop."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()

    def stop(self) -> None:
        """`cancel`, from any thread."""
        self._cancelled = True
        self._loop.call_soon_threadsafe(self.cancel)

    def _begin(self, found: Awaitable[Any], done: Future[Any]) -> None:
        self._task = self._loop.create_task(waited(found))
        self._task.add_done_callback(lambda task: _pass_on(task, done))
        if self._cancelled:
            self._task.cancel()


def _pass_on(task: asyncio.Task[Any], done: Future[Any]) -> None:
    if task.cancelled():
        done.set_exception(asyncio.CancelledError())
    elif (error := task.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())


async def waited(found: Awaitable[Any]) -> Any:
    return await found
