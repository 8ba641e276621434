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

    def stop(self) -> None:
        """End what runs, and let nothing more begin. From any thread."""


class ChildCaller(Caller, Protocol):
    """Calls functions for work that goes on by itself."""

    def begin(self, work: Callable[[], object], name: str) -> None:
        """Have the work go on, and return at once."""


class ParentCaller(Caller, Protocol):
    """Calls functions of who may have work go on by itself."""

    def apart(self) -> ChildCaller:
        """Return what calls functions for such work: where this one does, stopped on its own."""


class ThreadCaller:
    """Runs what is async on a loop in a thread of its own, which begins with the first use.

    ``wake`` is called when one of its callers was stopped: somebody may wait on behalf of that.
    """

    def __init__(self, wake: Callable[[], object] | None = None) -> None:
        self._wake = wake
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        return self.one()(fn, *args)

    def one(self) -> LoopCaller:
        """Return a caller on the same loop for one action, which can be stopped."""
        return LoopCaller(self.loop, self._wake)

    @property
    def is_running(self) -> bool:
        """Whether the loop has begun, and hasn't been closed."""
        return self._loop is not None

    def check_outside(self) -> None:
        """Raise `SessionBusy` in the loop's own thread, which can't wait for what runs there."""
        if current_thread() is self._thread:
            raise SessionBusy(_NESTED)

    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop, which runs. Raises `SessionBusy` in its own thread."""
        self.check_outside()
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = Thread(target=_run, args=(self._loop,), name="session runtime", daemon=True)
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


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped. An interrupt in a task is for who waits for that, and ends no loop."""
    while True:
        try:
            return loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            continue


class LoopCaller:
    """Runs what is async on a loop, which waits for it; `stop` ends that.

    ``loop`` returns the loop. It is asked for when something async is first called. ``wake`` is called when
    it was stopped.
    """

    def __init__(
        self, loop: Callable[[], asyncio.AbstractEventLoop], wake: Callable[[], object] | None = None
    ) -> None:
        self._loop = loop
        self._wake = wake
        self._task: asyncio.Task[Any] | None = None
        self._stopped = False

    @classmethod
    def here(cls, wake: Callable[[], object] | None = None) -> LoopCaller:
        """Return one on the loop that runs."""
        loop = asyncio.get_running_loop()
        return cls(lambda: loop, wake)

    def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.check()
        found = fn(*args)
        if not inspect.isawaitable(found):
            return found
        try:
            loop = self._loop()
        except SessionBusy:
            if inspect.iscoroutine(found):
                found.close()
            raise
        done: Future[Any] = Future()
        loop.call_soon_threadsafe(self._begin, loop, found, done)
        try:
            return done.result()
        except KeyboardInterrupt:
            self.stop()  # it was this thread that was interrupted
            raise

    def check(self) -> None:
        if self._stopped:
            raise asyncio.CancelledError

    def apart(self) -> LoopCaller:
        return LoopCaller(self._loop, self._wake)

    def begin(self, work: Callable[[], object], name: str) -> None:
        """Have work go on in a thread of its own."""
        Thread(target=work, name=name, daemon=True).start()

    def stop(self) -> None:
        self._stopped = True
        task = self._task
        if task is not None and not task.done():
            task.get_loop().call_soon_threadsafe(task.cancel)
        if self._wake is not None:
            self._wake()

    def _begin(self, loop: asyncio.AbstractEventLoop, found: Awaitable[Any], done: Future[Any]) -> None:
        # A task that is cancelled before it begins has to be that of the coroutine itself: it closes it.
        self._task = loop.create_task(found if inspect.iscoroutine(found) else waited(found))
        self._task.add_done_callback(lambda task: _pass_on(task, done))
        if self._stopped:
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
