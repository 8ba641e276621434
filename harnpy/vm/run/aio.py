"""Waiting for asyncio: how a task awaits a coroutine, and how a program runs in a loop. Spec: 09 §16.2.

Loaded when the first coroutine is awaited or `Vm.run_async` is called. Programs stay synchronous: the task
that awaits is suspended, the others go on, and while all of them wait the asyncio loop runs.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from math import inf
from weakref import WeakSet

from greenlet import getcurrent, greenlet

from harnpy.faults import LOOK
from harnpy.vm.errors import FAILURES, CalledOff, Grace, VmError, VmMisuse
from harnpy.vm.run.scheduler import Closers
from harnpy.vm.run.tasks import Beside, waits_until
from harnpy.world.loops import cancel_tasks, close_generators
from harnpy.world.threads import OfProcess, Stopwatch, Ticker, Wakeful

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from contextvars import Context
    from typing import Any

    from harnpy.vm.run.scheduler import Scheduler
    from harnpy.vm.run.tasks import Task

# Turns for the asyncio loop around a program that computes and doesn't wait. Spec: 09 §16.2.
#
# Between two waits a program has the thread to itself: a `while true { }` would block the asyncio loop, and
# nothing could cancel it. A second thread asks for a turn now and then. To start it costs more than most
# time slices between two waits take, so it is started only for one that has polled a thousand times.


#: Seconds for which a program computes before the loop has a turn.
_TIME_SLICE = 0.01
#: Turns of the loop between two time slices of calls: in so many it takes in a request, or sends a response.
_PASSES = 16
#: Coroutines that begin together: of those that a program awaits from hundreds of tasks, the first
#: have sent their requests when the last task begins.
_CROWD = 16
#: Polls of a time slice that look at the time themselves, before a thread does.
_FEW = 1000


class Turns:
    """The time slices of one run: `begin` when the program goes on, `end` when the loop does."""

    def __init__(self, scheduler: Scheduler, give_way: Callable[[], object]) -> None:
        """``give_way()`` lets the loop go on, and returns when it has had its turn."""
        self._scheduler = scheduler
        self._signal = scheduler.signal
        self._give_way = give_way
        self._left = 0
        self._watch = Stopwatch()
        self._ticker: Ticker | None = None
        """Runs while a time slice is timed."""
        self._due = False
        self.computing: Task | None = None
        """The task that computes, while the loop has its turn."""

    def begin(self) -> None:
        self._left, self._due, self._watch = _FEW, False, Stopwatch()
        self._have_polled()

    def end(self) -> None:
        if self._ticker is not None:
            self._ticker.stop()
            self._ticker = None
        self._signal.watched = self._scheduler.limited
        self._scheduler.refresh()

    def poll(self) -> None:
        """Between two turns of a loop of the program: give way if it is time to."""
        if self.is_due():
            self.take()

    def take(self) -> None:
        """Let the loop go on."""
        self.computing = self._scheduler.current
        self._give_way()
        self.computing = None
        self._scheduler.refresh()

    def is_due(self) -> bool:
        """Return True if the loop should have a turn; what asks is counted as a poll."""
        if self._due:
            return True
        if self._left:
            self._left -= 1
            self._due = self._watch.has_passed(_TIME_SLICE)
        elif self._ticker is None:
            self._signal.watched = self._scheduler.limited
            self._scheduler.refresh()
            # One that ticks again and again: a refresh of the flag at that very moment would undo a tick.
            self._ticker = Ticker(_TIME_SLICE, self._ask)
        return False

    def _ask(self) -> None:
        self._due = True
        self._have_polled()

    def _have_polled(self) -> None:
        self._signal.watch()


#: The task that waits for the coroutine that is running, and the bridge where it does.
_WAITING: ContextVar[tuple[Bridge, Task] | None] = ContextVar("waiting", default=None)

#: Whether the running code serves the program, without anything to do of its own.
_SERVING: ContextVar[bool] = ContextVar("serving", default=False)


class Bridge:
    """Between one scheduler and one asyncio loop."""

    def __init__(self, scheduler: Scheduler, loop: asyncio.AbstractEventLoop) -> None:
        self.scheduler = scheduler
        self.loop = loop
        self.stack = getcurrent()
        self.resting: asyncio.Future[None] | None = None
        self.fresh = 0
        """Coroutines that were awaited since the loop has had a turn: they begin in the next."""

    def wait_for(self, awaitable: Awaitable[Any]) -> Any:
        """The result of ``awaitable``; the current task is suspended until it is there."""
        task = self.scheduler.current
        until, now, is_wanted = waits_until(self.scheduler), self.scheduler.now, True

        def look(items: int) -> None:
            """End a coroutine that computes for too long: its task can't be stopped from there."""
            nonlocal is_wanted
            if is_wanted and now() >= until:
                is_wanted = False  # what it does to end, it does undisturbed
                raise asyncio.CancelledError

        context = copy_context()
        context.run(_WAITING.set, (self, task))
        context.run(LOOK.set, None if until == inf else look)
        future = context.run(asyncio.ensure_future, awaitable, loop=self.loop)
        future.add_done_callback(lambda _: self.arrived(task))
        self.scheduler.abroad += 1
        self.fresh += 1
        self.scheduler.crowded = self.fresh >= _CROWD
        try:
            while not future.done():
                self.scheduler.suspend()
        finally:
            self.scheduler.abroad -= 1
            is_wanted = False
            future.cancel()
        try:
            return future.result()
        finally:
            del future  # its error has this frame, and would make a circle with it, as in `run_inside`

    def serve(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine beside the program, and what it begins; cancelled where the loop ends.

        To be called inside the loop. A program whose tasks all wait for one another isn't helped by it.
        """
        return self.loop.create_task(coroutine)

    def waiting(self) -> Task | None:
        """The task on whose behalf the running code works; None outside any coroutine."""
        found = _WAITING.get()
        return found[1] if found is not None and found[0] is self else None

    @property
    def is_inside(self) -> bool:
        """Whether the loop itself is calling, and no task of the program."""
        return getcurrent() is self.stack

    def without_waiting(self, work: Callable[[], Any]) -> Any:
        """What ``work`` returns, done in the loop itself on behalf of the task that waits. Raises VmMisuse
        when it would wait: no task of the program could go on meanwhile, and no coroutine."""
        tasks, signal = self.scheduler, self.scheduler.signal
        before = tasks.current, tasks.in_loop, tasks.hub, tasks.turns, signal.watched
        tasks.current = tasks.in_loop = self.waiting() or tasks.root
        tasks.turns = None
        signal.watch()
        try:
            return work()
        finally:
            tasks.current, tasks.in_loop, tasks.hub, tasks.turns, signal.watched = before
            tasks.refresh()

    async def in_own_task(self, work: Callable[[], Any]) -> Any:
        """What ``work`` returns, done in a child of the task that waits for the coroutine that calls this.

        Raises VmMisuse where none does, VmError when the child is ended with its parent or with the run.
        """
        tasks, parent = self.scheduler, self.waiting()
        if parent is None or parent.done or asyncio.get_running_loop() is not self.loop:
            raise VmMisuse("this Vm runs a program, no task of which waits here in its loop; use another Vm")
        outcome = self.loop.create_future()
        with _as_of(parent, tasks):
            task = tasks.create(lambda depth: _settle(outcome, work))
        parent.handles += 1
        task.index, task.batch = parent.handles, _Begun(outcome)
        self.wake()
        try:
            value = await asyncio.shield(outcome)
        except asyncio.CancelledError:
            if not task.done:
                tasks.request_cancel(task)
                self.wake()
            while not task.done:
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([outcome])
            raise
        with _as_of(parent, tasks):
            tasks.take_output(task)
        return value

    def adapt(self, variables: Context) -> None:
        """Make the context variables of a coroutine, perhaps, those of a task that it starts: nobody waits
        for what that does, and it serves no other."""
        if variables.get(_WAITING) is not None or variables.get(_SERVING):
            variables.run(_WAITING.set, None)
            variables.run(_SERVING.set, False)

    def is_quiet(self) -> bool:
        """Return True if nothing in the loop can have a task of the program act; False if others use it."""
        return False

    def arrived(self, task: Task) -> None:
        self.scheduler.resume(task)
        self.wake()

    def wake(self) -> None:
        if self.resting and not self.resting.done():
            self.resting.set_result(None)

    def rouse(self) -> None:
        """`wake`, from any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self.wake)

    def rest(self, seconds: float | None) -> asyncio.Future[None]:
        """Done after ``seconds``, or as soon as a result arrives."""
        self.fresh = 0
        self.resting = self.loop.create_future()
        if seconds is not None:
            timer = self.loop.call_later(seconds, self.wake)
            self.resting.add_done_callback(lambda _: timer.cancel())
        return self.resting

    def close(self) -> None:
        """The program has ended. The loop belongs to the caller, and `run_inside` closes what is open."""

    async def close_all(self) -> None:
        """Close what the program left open in the loop."""
        closers = self.scheduler.vm.state(Closers).coroutines
        await asyncio.gather(*(close() for close in closers), return_exceptions=True)


def is_left_over(scheduler: Scheduler) -> bool:
    """Return whether this runs in a coroutine of a program that has ended, when none runs."""
    found = _WAITING.get()
    return found is not None and found[0].scheduler is scheduler


@contextmanager
def _as_of(task: Task, tasks: Scheduler) -> Iterator[None]:
    """What is done in the loop meanwhile is done for ``task``."""
    before, tasks.current = tasks.current, task
    try:
        yield
    finally:
        tasks.current = before


def _settle(outcome: asyncio.Future[Any], work: Callable[[], Any]) -> None:
    """Do the work of a coroutine's own task; what isn't an error of the program is the coroutine's, too."""
    try:
        value = work()
    except FAILURES:
        raise
    except Exception as error:
        outcome.set_exception(error)
    else:
        outcome.set_result(value)


class _Begun(Beside):
    """What a task is in that a coroutine has begun, which waits for the ``outcome``."""

    def __init__(self, outcome: asyncio.Future[Any]) -> None:
        super().__init__("call")
        self._outcome = outcome

    def on_end(self, task: Task) -> None:
        super().on_end(task)
        if not self._outcome.done():
            self._outcome.set_exception(task.error or VmError("the call was ended before it returned"))
        self._outcome.exception()  # whether the coroutine still asks or not


class OwnLoop(Bridge, OfProcess):
    """A loop of the scheduler's own, which runs while every task waits, until the program ends, or goes on in
    a process that was forked off: that has a new one."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler, asyncio.new_event_loop())
        self.wakeful = Wakeful(self.loop)
        self.blocking = scheduler.idle
        self.serving: WeakSet[asyncio.Task[Any]] = WeakSet()
        scheduler.idle = self.run
        self.bind()

    @property
    def is_inside(self) -> bool:
        return asyncio._get_running_loop() is self.loop

    def run(self, seconds: float | None) -> None:
        """Let coroutines go on until a task can, or ``seconds`` are over."""
        self._until(self.rest(seconds))

    def _until(self, future: asyncio.Future[Any]) -> None:
        """Run the loop until ``future`` is done."""
        # Not `run_until_complete`: what an interrupt leaves of one would stop the next.
        future.add_done_callback(lambda _: self.loop.stop())
        while not future.done():
            self.loop.run_forever()

    def _whole(self, coroutine: Coroutine[Any, Any, object]) -> None:
        task = self.loop.create_task(coroutine)
        self._until(task)
        task.result()

    def forked(self) -> None:
        # What the system notifies the loop of it notifies both processes of, so this one leaves it as it is.
        self.wakeful.leave()
        self._inherited = self.loop
        self.scheduler.idle, self.scheduler.bridge = self.blocking, None

    def is_quiet(self) -> bool:
        return asyncio.all_tasks(self.loop) <= set(self.serving)

    def serve(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if self.loop.get_task_factory() is None:
            self.loop.set_task_factory(self._new_task)
        context = copy_context()
        context.run(_SERVING.set, True)
        return self.loop.create_task(coroutine, context=context)

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, context: Context | None = None
    ) -> asyncio.Task[Any]:
        """A task, noted where it is part of what serves the program."""
        task = asyncio.Task(coroutine, loop=loop, context=context)
        if _SERVING.get() if context is None else context.get(_SERVING, False):
            self.serving.add(task)
        return task

    def close(self) -> None:
        try:
            self._whole(self.finish())
        finally:
            # Also when a signal ends that: the next one would be written to whatever has our socket's number.
            self.wakeful.close()
            self.loop.close()
            self.scheduler.idle, self.scheduler.bridge = self.blocking, None

    async def finish(self) -> None:
        """Cancel the coroutines that no task waits for any more."""
        await cancel_tasks()
        await self.close_all()
        await close_generators()


def open_loop(scheduler: Scheduler, awaitable: Awaitable[Any]) -> OwnLoop:
    """A loop to wait for ``awaitable`` in. Raises VmMisuse inside a running loop."""
    if asyncio._get_running_loop():
        if asyncio.iscoroutine(awaitable):
            awaitable.close()
        raise VmMisuse("a program that awaits coroutines needs `run_async` inside a running loop")
    return OwnLoop(scheduler)


async def run_inside(scheduler: Scheduler, run: Callable[[], Any]) -> Any:
    """``run()`` in a greenlet of its own; where it would block, the running loop goes on instead."""
    outside = getcurrent()
    # The root task waits in its greenlet, or in that of a generator that it is in.
    waiting = runner = greenlet(lambda: _outcome(run))
    # The same context, not a copy: what the program sets stays set, as with `run` and with any coroutine.
    runner.gr_context = outside.gr_context

    def idle(seconds: float | None) -> None:
        nonlocal waiting
        waiting = getcurrent()
        outside.switch(seconds)

    def give_way() -> None:
        # Not in what the loop itself calls in its turn.
        if getcurrent() is not outside:
            task = scheduler.current
            idle(0)
            scheduler.current = task
            scheduler.take_turns()

    before = scheduler.idle, scheduler.bridge
    bridge, turns = Bridge(scheduler, asyncio.get_running_loop()), Turns(scheduler, give_way)
    scheduler.idle, scheduler.bridge, scheduler.turns = idle, bridge, turns
    scheduler.new_hub()
    try:
        turns.begin()
        given = runner.switch()
        while not runner.dead:
            turns.end()
            await bridge.rest(given)
            if given == 0 and scheduler.serves_calls:
                for _ in range(_PASSES):
                    await asyncio.sleep(0)
            turns.begin()
            given = waiting.switch()
    finally:
        turns.end()
        # The coroutine was cancelled: the program ends where it is, though what it closes may wait once more.
        if not runner.dead:
            scheduler.signal.cancelled = True
            scheduler.refresh()
        while not runner.dead:
            scheduler.grace = scheduler.grace or Grace()
            waiting.throw(CalledOff(scheduler.grace))
        scheduler.idle, scheduler.bridge = before
        scheduler.turns = None
        scheduler.new_hub()
        await bridge.close_all()
    value, error = given
    try:
        if error:
            raise error
        return value
    finally:
        # The error has this frame in its traceback: together they would keep what the program held, until
        # Python looks for such circles.
        del given, error


def _outcome(run: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return run(), None
    except BaseException as error:
        return None, error
