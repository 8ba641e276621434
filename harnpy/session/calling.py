"""Calling hooks, actions and agents, sync or async, from a thread, and streaming what they give.

Spec: 10 §C7.1, §C7.2.
"""

from __future__ import annotations

import inspect
import sys
from collections import deque
from contextvars import copy_context
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakSet, finalize

from harnpy.session.agents import RunEvent
from harnpy.session.errors import SessionBusy

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterator
    from concurrent.futures import Future

    from harnpy.session.agents import TurnResult

# A stream between who answers and who reads, each of which may be a thread or a task. Spec: 10 §C7.1.
#
# Who answers goes on once the reader asks for more: a reader that stops is never behind. Both wait for
# futures of `concurrent.futures`, which a loop can wait for, too.


class Pipe:
    """Items in order, and an end."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._items: deque[tuple[Any, Future[None]]] = deque()
        self._reader: Future[Any] | None = None
        self._shown: Future[None] | None = None
        self._is_closed = False
        self._error: BaseException | None = None

    def put(self, item: Any) -> Future[None]:
        """Give the reader an item. The future has a result when the reader asks for the next one."""
        from concurrent.futures import Future

        seen: Future[None] = Future()
        with self._lock:
            if self._is_closed:
                seen.set_result(None)
            else:
                self._items.append((item, seen))
                self._serve()
        return seen

    def get(self) -> Future[Any]:
        """Return the next item, None behind the last one, or the error that the pipe ended with."""
        from concurrent.futures import Future

        with self._lock:
            self._let_go_on()
            reader: Future[Any] = Future()
            self._reader = reader
            self._serve()
        return reader

    def end(self, error: BaseException | None = None) -> None:
        """Tell the reader that no more comes."""
        with self._lock:
            self._is_closed = True
            self._error = error
            self._serve()

    def close(self) -> None:
        """Tell who answers that nobody reads any more."""
        with self._lock:
            self._is_closed = True
            self._let_go_on()
            while self._items:
                _resolve(self._items.popleft()[1])

    def _let_go_on(self) -> None:
        shown, self._shown = self._shown, None
        if shown is not None:
            _resolve(shown)

    def _serve(self) -> None:
        """Give a waiting reader what there is."""
        if self._reader is None or not (self._items or self._is_closed):
            return
        reader, self._reader = self._reader, None
        if not reader.set_running_or_notify_cancel():
            return
        if self._items:
            item, self._shown = self._items.popleft()
            reader.set_result(item)
        elif self._error is not None:
            reader.set_exception(self._error)
        else:
            reader.set_result(None)


def _resolve(seen: Future[None]) -> None:
    if seen.set_running_or_notify_cancel():  # a cancelled task has cancelled what it waits for
        seen.set_result(None)


# Calling hooks and actions, which may be sync or async, from a thread. Spec: 10 §C7.2.


_NESTED = "an async call can't wait for another one in the same thread: use harnpy.session.aio inside it"


#: What most functions return: nothing that is waited for.
_ANSWERS: Final = (type(None), str, dict, list)


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
        self._callers: WeakSet[LoopCaller] = WeakSet()
        self._left: finalize[..., ThreadCaller] | None = None

    def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        return self.one()(fn, *args)

    def one(self) -> LoopCaller:
        """Return a caller on the same loop for one action, which can be stopped."""
        return LoopCaller(self.loop, self._wake, self._callers)

    @property
    def is_running(self) -> bool:
        """Return whether the loop has begun, and hasn't been closed."""
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
                import asyncio

                self._loop = asyncio.new_event_loop()
                self._thread = Thread(target=_run, args=(self._loop,), name="session runtime", daemon=True)
                self._thread.start()
                self._left = finalize(self, _leave, self._loop, self._thread, self._callers)
            return self._loop

    def close(self) -> None:
        """End the loop and its thread."""
        with self._lock:
            if self._loop is not None and self._thread is not None and self._left is not None:
                self._left.detach()
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop = self._thread = self._left = None


#: Seconds that a process, or the collector of garbage, waits for a loop that nobody has closed.
_LAST_SECONDS = 5.0


def _leave(loop: asyncio.AbstractEventLoop, thread: Thread, callers: WeakSet[LoopCaller]) -> None:
    """End a loop that nobody has closed: what is pending on one that vanishes is reported.

    Not while somebody may wait for it, whose thread ends with the process and needs no news of that.
    """
    if callers or loop.is_closed() or thread is current_thread():
        return
    loop.call_soon_threadsafe(loop.stop)
    thread.join(_LAST_SECONDS)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, then end it. An interrupt in a task is for who waits for that, and ends
    no loop."""
    try:
        while _interrupted(loop.run_forever):
            pass
        while _interrupted(lambda: loop.run_until_complete(_ended())):
            pass
    finally:
        loop.close()


def _interrupted(run: Callable[[], object]) -> bool:
    try:
        run()
    except (KeyboardInterrupt, SystemExit):
        return True
    return False


async def _ended() -> None:
    from harnpy.world.loops import close_generators, end_tasks

    await end_tasks()
    await close_generators()
    await end_tasks()


class LoopCaller:
    """Runs what is async on a loop, which waits for it; `stop` ends that.

    ``loop`` returns the loop. It is asked for when something async is first called. ``wake`` is called when
    it was stopped. ``callers`` are all on the loop.
    """

    def __init__(
        self,
        loop: Callable[[], asyncio.AbstractEventLoop],
        wake: Callable[[], object] | None = None,
        callers: WeakSet[LoopCaller] | None = None,
    ) -> None:
        self._loop = loop
        self._wake = wake
        self._callers: WeakSet[LoopCaller] = WeakSet() if callers is None else callers
        self._callers.add(self)
        self._task: asyncio.Task[Any] | None = None
        self._stopped = False

    @classmethod
    def here(cls, wake: Callable[[], object] | None = None) -> LoopCaller:
        """Return one on the loop that runs."""
        import asyncio

        loop = asyncio.get_running_loop()
        return cls(lambda: loop, wake)

    def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.check()
        found = fn(*args)
        if type(found) in _ANSWERS or not inspect.isawaitable(found):
            return found
        try:
            loop = self._loop()
        except SessionBusy:
            if inspect.iscoroutine(found):
                found.close()
            raise
        from concurrent.futures import Future

        done: Future[Any] = Future()
        loop.call_soon_threadsafe(self._begin, loop, found, done)
        try:
            return done.result()
        except KeyboardInterrupt:
            self.stop()  # it was this thread that was interrupted
            raise

    def check(self) -> None:
        if self._stopped:
            import asyncio

            raise asyncio.CancelledError

    def apart(self) -> LoopCaller:
        return LoopCaller(self._loop, self._wake, self._callers)

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
        import asyncio

        done.set_exception(asyncio.CancelledError())
    elif (error := task.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())


async def waited(found: Awaitable[Any]) -> Any:
    return await found


# `SessionRuntime.stream`: a turn in a thread, and its answer piece by piece. Spec: 10 §C7.1.


def pieces_to(pipe: Pipe) -> Callable[[str], Future[None]]:
    """Return what puts the pieces of an answer into a pipe."""
    return lambda text: pipe.put(RunEvent("chunk", text))


def streamed(calls: ThreadCaller, send: Callable[..., TurnResult]) -> Iterator[RunEvent]:
    """Give what ``send`` streams, and its result. Closing the iterator cancels the turn."""
    pipe = Pipe()
    calls.check_outside()
    caller = calls.one()

    def work() -> None:
        try:
            result = send(stream=pieces_to(pipe), caller=caller)
        except BaseException as error:
            pipe.end(error)
        else:
            pipe.put(RunEvent("result", result=result))
            pipe.end()

    context: Any = copy_context()
    thread = Thread(target=context.run, args=(work,), name="session turn", daemon=True)
    thread.start()
    try:
        while (event := pipe.get().result()) is not None:
            yield event
    finally:
        caller.stop()
        pipe.close()
        if not sys.is_finalizing():  # by then no thread goes on, and from Python 3.13 on this one would wait
            thread.join()
