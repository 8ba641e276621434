"""Running tasks: greenlets on one thread that give way only where the language allows it. Spec: 05 §1, §9.

The root task runs where `Vm.run` was called and is also the hub: while it waits, it runs the others. A
child runs in a pooled greenlet and switches back to the hub to wait. So a program without tasks never
imports greenlet, and evaluated code stays plain synchronous Python.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock, get_ident
from collections import deque
from contextvars import copy_context
from heapq import heappop, heappush
from math import inf

from harnpy.faults import BATCH, LOOK, Interruption
from harnpy.vm.errors import (
    FAILURES,
    OVERFLOW,
    CalledOff,
    Grace,
    Interrupted,
    Leaving,
    PlainFault,
    RuntimeFault,
    VmMisuse,
    in_domain,
)
from harnpy.vm.run.backtrace import Walking, calling, place_of, unit_of
from harnpy.vm.run.calls import TaskAborted
from harnpy.vm.run.tasks import (
    CANCELLED,
    Overtime,
    Task,
    end_of_wait,
    interrupt,
    is_over,
    new_task,
    time_left,
)
from harnpy.world.clock import RealClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
    from contextvars import Context
    from types import FrameType
    from typing import Any, Protocol

    from harnpy.vm.run.aio import Turns
    from harnpy.vm.run.tasks import Named, Wait
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    #: When, a number that orders timers of one time, and the task to wake; None once it is forgotten.
    Timer = list[Any]

    class Bridge(Protocol):
        """A bridge to an event loop, which waits for coroutines on behalf of tasks."""

        @property
        def is_inside(self) -> bool: ...
        def without_waiting(self, work: Callable[[], Any]) -> Any: ...
        async def in_own_task(self, work: Callable[[], Any]) -> Any: ...
        def wait_for(self, awaitable: Awaitable[Any]) -> Any: ...
        def serve(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...
        def waiting(self) -> Task | None: ...
        def adapt(self, variables: Context) -> None: ...
        def wake(self) -> None: ...
        def rouse(self) -> None: ...
        def is_quiet(self) -> bool: ...
        def close(self) -> None: ...

# Ready tasks in a random order, the same for the same seed: for tests of concurrent programs.
#
# Sleepers still wake in the order of their times, receivers keep their place in the line of a channel, and
# output keeps its order. What is given up is "first ready, first run" (05 §1.2).


VARIABLE = "HARNPY_CHAOS_SCHED"


class Shuffled(deque["Task"]):
    """A queue whose left end is at a random place."""

    def __init__(self, seed: int) -> None:
        from harnpy.world.random import seeded

        super().__init__()
        self._random = seeded(seed)
        self._due: dict[Task, int] = {}

    def woken(self, task: Task, when: float) -> None:
        """``task``, which is in the queue, slept until ``when``."""
        self._due[task] = int(when * 1000)

    def popleft(self) -> Task:
        task = self._random.choice(self)
        if task in self._due:
            first = min(self._due.values())
            task = self._random.choice([task for task, when in self._due.items() if when == first])
            del self._due[task]
        self.remove(task)
        return task

    def clear(self) -> None:
        super().clear()
        self._due.clear()


def seed_of(setting: str | None) -> int | None:
    """The seed that the environment variable sets; None when it is unset, empty or 0."""
    if not setting or setting == "0":
        return None
    try:
        return int(setting)
    except ValueError:
        raise RuntimeFault(f"{VARIABLE} must be an int, the seed; got `{setting}`") from None


# The report when all tasks wait and nothing can wake one: who waits for what, and where. Spec: 05 §1.5.


#: How many tasks the report names.
_MOST_NAMED = 8


def deadlock(tasks: Scheduler) -> RuntimeFault:
    """The error for the root task, which runs the scheduler when nothing can go on."""
    waiting = [task for task in _family(tasks) if not task.done]
    lines = [_line(tasks, task, waiting) for task in waiting[:_MOST_NAMED]]
    left_out = len(waiting) - len(lines)
    if left_out:
        lines.append(f"and {left_out} more")
    return RuntimeFault(f"deadlock: every task waits, and nothing can wake one: {'; '.join(lines)}")


def _family(tasks: Scheduler) -> Iterator[Task]:
    yield from tasks.root.family()
    yield from (task for task in tasks.detached.family() if task is not tasks.detached)


def _line(tasks: Scheduler, task: Task, others: Sequence[Task]) -> str:
    # The root runs this very code, deep in its wait; the others stand where they gave way.
    frame = sys._getframe() if task is tasks.root else task.greenlet.gr_frame
    wait = task.wait or ("for something", ())
    verb, things = wait if isinstance(wait, tuple) else ("for", (wait,))
    names = ", ".join(_name(thing) + _holders(thing, others) for thing in things)
    return f"{task.id()} waits {verb}{' ' if names else ''}{names}{place_in_program(frame)}"


def _name(thing: Named) -> str:
    return thing.id() if isinstance(thing, Task) else thing.display()


def _holders(thing: object, others: Sequence[Task]) -> str:
    """Return who holds permits of a lock."""
    holders = [task.id() for task in others if any(grant.lock is thing for grant in task.held or ())]
    return f", held by {' and '.join(holders)}," if holders else ""


def place_in_program(frame: FrameType | None) -> str:
    """Return where the innermost Harn function of a stack is: `` at main.harn:3:5``, or nothing."""
    return next((f" at {place}" for place, _ in places_in_program(frame)), "")


def places_in_program(frame: FrameType | None) -> Iterator[tuple[str, bool]]:
    """Yield where the Harn functions of a stack are, from the innermost outward, ``main.harn:3:5``, and
    whether each is of the program: not in a bundled module."""
    for function in calling(frame):
        python = frame if isinstance(function, Walking) else function
        assert python
        line, column = place_of(function, python.f_lineno, python.f_lasti)
        unit = unit_of(function)
        yield f"{unit.file}:{line}:{column}", unit.module is None or unit.directory is not None


#: Tasks in tasks in tasks: the same limit as for calls, since a task starts a call stack of its own.
MOST_NESTED = 512


def forget(timers: Iterable[Timer]) -> None:
    """Have timers wake nobody: the wait that they limited is over."""
    for timer in timers:
        timer[2] = None


def is_leaving() -> bool:
    """Return True if the code that runs now was called to clean up after what is being left."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, Leaving):
        error = error.__context__
    return error is not None


def _claim() -> None:
    """Do nothing, in a frame that claims so many stack slots."""


_claim.__code__ = _claim.__code__.replace(co_stacksize=17_000)


def on_own_stack(run: Callable[[], Value]) -> Generator[Value, None, None]:
    """Call ``run`` in a greenlet, ``greenlet(on_own_stack(run).send)``, all of whose frames are in one chunk.

    A generator's own frame is in none. So the chunk that `_claim` asks for is the first one, which stays when
    that returns, and the frames of ``run`` begin where it begins: a greenlet that waits has touched one page
    (docs/internals/vm.md, "Host frames").
    """
    _claim()
    yield run()


class Closers:
    """The things to close when a program ends; it belongs to the program, like all state of a Vm."""

    def __init__(self) -> None:
        self.coroutines: list[Callable[[], Awaitable[None]]] = []


class Scheduler:
    """Runs the tasks of one Vm. ``open_bridge`` makes a bridge to asyncio for the first coroutine."""

    # Slots, as Python is slower with objects of thirty attributes and more. The dict is for the debugger,
    # which puts functions of its own before some methods.
    __slots__ = (
        "__dict__",
        "abroad",
        "bell",
        "bridge",
        "chores",
        "crowded",
        "current",
        "detached",
        "fatal",
        "grace",
        "hub",
        "idle",
        "limited",
        "looker",
        "may_interrupt",
        "meter",
        "now",
        "open_bridge",
        "pool",
        "ready",
        "root",
        "root_is_next",
        "sequence",
        "serves_calls",
        "shuffled",
        "signal",
        "thread",
        "timers",
        "turns",
        "unseen",
        "vm",
        "worker",
    )

    def __init__(self, vm: Vm, open_bridge: Callable[[Scheduler, Awaitable[Any]], Bridge]) -> None:
        self.vm = vm
        self.signal = vm.signal
        self.meter = vm.meter
        self.limited = self.signal.watched = self.signal.alert = self.meter is not None and self.meter.polls
        self.turns: Turns | None = None
        """Those of the asyncio loop that the run is inside of."""
        self.root = new_task(None, None, 0)
        self.root.started = True
        self.detached = new_task(None, None, 0)
        """The parent of the tasks that outlive the one that started them. It never runs."""
        self.current = self.root
        # One bound method for all. A task finds the look in its context, unless a coroutine started it.
        self.worker, self.looker = self.run_tasks, self.look
        seed = seed_of(vm.unguarded.environment.get(VARIABLE))
        self.shuffled = None if seed is None else Shuffled(seed)
        self.ready: deque[Task] = deque() if self.shuffled is None else self.shuffled
        self.timers: list[Timer] = []
        self.sequence = 0
        self.unseen = 0
        """The items that a builtin has worked on since it looked at the time."""
        self.thread = get_ident()
        self.pool: list[Any] = []
        self.hub: Any = None
        self.root_is_next = False
        self.fatal: BaseException | None = None
        """What a child ended with that ends the run."""
        self.may_interrupt = False
        """Whether any task has had a deadline or was asked to end, in this run."""
        self.now: Callable[[], float] = vm.unguarded.clock.monotonic
        self.bell = allocate_lock()
        """Held while nobody from outside wants the thread to go on that waits."""
        self.bell.acquire()
        clock = vm.unguarded.clock
        self.idle: Callable[[float | None], object] = clock.sleep
        if type(clock) is RealClock:
            self.idle = lambda seconds: RealClock.doze(seconds, self.bell)
        self.grace: Grace | None = None
        """What is left to the blocks that clean up after a cancelled run."""
        self.chores: list[Callable[[], object]] = []
        """What is done, once, when no task can go on."""
        self.serves_calls = False
        """Whether the root's children are calls of a served program, which take turns while they compute."""
        self.open_bridge = open_bridge
        self.bridge: Bridge | None = None
        self.abroad = 0
        """Coroutines that asyncio is running for tasks of ours."""
        self.in_loop: Task | None = None
        """The task for which a coroutine calls the program, in the loop itself: it can't wait."""
        self.crowded = False
        """Whether so many of them have not begun that the loop has a turn before the next task."""

    @property
    def ends_at(self) -> float:
        """When the run must end, on the clock that `now` reads; infinity when it need not."""
        return inf if self.meter is None else self.meter.ends_at

    def new_hub(self) -> None:
        """Forget the greenlets made under another root: a run begins or ends somewhere else."""
        self.thread = get_ident()
        self.hub = None
        self.pool.clear()

    def dismiss_workers(self) -> None:
        """Let the idle workers end by returning: one that is dropped ends by an exception, at twice the cost
        of all its life."""
        if self.pool:
            from greenlet import getcurrent

            while self.pool and getcurrent() is self.hub:
                worker = self.pool.pop()
                # It was made on the stack of a walked generator, perhaps, which nobody asks to go on.
                worker.parent = self.hub
                worker.switch()

    # --- waiting ----------------------------------------------------------------------------------

    def suspend(self, wait: Wait | None = None) -> None:
        """Give way until `resume` is called for the current task; may return early, so look again.

        ``wait`` is what for, as the report of a deadlock says it.
        """
        task = self.current
        task.wait = wait
        if self.signal.alert:
            self.limit_wait(task)
        try:
            if self.timers:
                self.fire_timers()
            ready = self.ready
            if not ready or self.crowded:
                self.pass_on(task, None)
            else:
                following = ready.popleft()
                if following.greenlet is not None:
                    following.greenlet.switch()
                elif self.pool and not following.started:
                    self.start(following, self.pool.pop())
                else:
                    self.pass_on(task, following)
            if task is self.root:
                self.run_others()
        finally:
            self.current = task
        if self.signal.alert:
            self.end_wait(task)

    def suspend_until(self, when: float, wait: Wait | None = None) -> None:
        """`suspend`, and go on at the time ``when`` at the latest."""
        timer = self.wake_at(self.current, when)
        try:
            self.suspend(wait)
        finally:
            forget((timer,))

    def give_way(self) -> None:
        """Let the tasks go on that are ready."""
        task, signal = self.current, self.signal
        self.ready.append(task)
        if self.timers or signal.alert or task is self.root:
            self.suspend()
            return
        # `suspend`, without what has been asked already: tasks that compute do this all the time.
        following = self.ready.popleft()
        try:
            if following.greenlet is not None:
                following.greenlet.switch()
            else:
                self.pass_on(task, following)
        finally:
            self.current = task
        if self.signal.alert:
            self.end_wait(task)

    def limit_wait(self, task: Task) -> None:
        """Leave a cancelled run; else have ``task`` go on when something is due in it."""
        if self.signal.cancelled:
            self.leave(0)
        if self.in_loop is task:
            raise VmMisuse("a coroutine can't wait for what it calls with `call`: use `await vm.call_async`")
        until = end_of_wait(task)
        if until is not None:
            task.limits += (self.wake_at(task, until),)
        if self.limited and self.ends_at != inf:
            task.limits += (self.wake_at(task, self.ends_at),)

    def end_wait(self, task: Task) -> None:
        """Raise what became due in ``task`` while it waited."""
        if task.limits:
            forget(task.limits)
            task.limits = ()
        self.refresh()
        if not self.signal.pending:
            return
        if self.signal.cancelled:
            self.leave(0)
        if self.meter is not None:
            self.meter.check_time()
        interrupt(self, task, 0)

    def take_turns(self) -> None:
        """In a call of a served program: let the other calls go first, and of them those that compute little.

        No other task of this call runs before the current one: they take turns where they wait (05 §1.1).
        """
        task = self.current
        if not self.serves_calls or self.shuffled is not None:
            return
        if self.timers:
            self.fire_timers()
        call = task.branch()
        others = [each for each in self.ready if each.branch() is not call]
        if others:
            call.computes = True
            own = [each for each in self.ready if each.branch() is call]
            self.ready.clear()
            self.ready.extend((*sorted(others, key=lambda each: each.branch().computes), task, *own))
            self.suspend()

    def pass_on(self, task: Task, following: Task | None) -> None:
        """Switch from ``task`` to the next that can go on: ``following``, or one behind it in the queue."""
        while following is not None and following is not task:
            if following is self.root:
                self.root_is_next = True
                break
            if following.greenlet is not None:
                following.greenlet.switch()
                return
            if not following.started:
                # A greenlet's stack lies where it was made: if one made another, they would pile up.
                self.ready.appendleft(following)
                break
            following = self.ready.popleft() if self.ready else None
        if following is task:
            self.root_is_next = task is self.root
        elif task is not self.root:
            self.hub.switch()

    def run_others(self) -> None:
        """As the root: run whatever is ready until it is the root's turn."""
        while not self.root_is_next:
            if self.fatal is not None:
                error, self.fatal = self.fatal, None
                raise error
            if self.signal.cancelled:
                self.leave(0)
            if self.crowded:
                self.crowded = False
                self.idle(0)
            if self.timers:
                self.fire_timers()
            if not self.ready:
                self.rest()
                continue
            task = self.ready.popleft()
            if task is self.root:
                return
            if task.greenlet is not None:
                task.greenlet.switch()
            elif not task.started:
                self.start(task, self.pool.pop() if self.pool else self.new_worker())
        self.root_is_next = False

    def rest(self) -> None:
        """Nothing is ready: wait for the first timer, or for a result from asyncio.

        The run fails when that would be for ever: tasks wait for something from outside that cannot come, or
        for one another.
        """
        if not self.abroad and not any(self.is_awaited(timer) for timer in self.timers):
            self.refuse_to_wait_in_vain()
        while self.chores:
            self.chores.pop()()
        now = self.now()
        self.idle(max(self.timers[0][0] - now, 0) if self.timers else None)

    def is_awaited(self, timer: Timer) -> bool:
        """Return True if a task is going to act at that time, rather than stop waiting for the outside."""
        when, _, task = timer
        lives = task is not None and not task.done and when != self.ends_at
        return lives and (task.outside is None or task.is_limited())

    def refuse_to_wait_in_vain(self) -> None:
        """Nothing can go on: raise RuntimeFault, unless the asyncio loop may have a task act."""
        tasks = (*self.root.family(), *self.detached.family())
        waits = [task.outside for task in tasks if task.outside]
        if waits:
            what = "; ".join(what for what, _ in waits)
            remedies = " ".join(dict.fromkeys(remedy for _, remedy in waits))
            raise RuntimeFault(f"waiting for somebody, and nobody is there: {what}. {remedies}")
        if not self.chores and (self.bridge is None or self.bridge.is_quiet()):
            raise deadlock(self)

    def wait_outside(self, what: str, remedy: str, until: float | None = None) -> None:
        """Suspend the current task until it is resumed, or the time ``until`` has come; may return early.

        What it waits for comes from outside the program. When no task can go on by itself, the run fails
        and reports ``what`` was waited for, and the ``remedy``.
        """
        if self.current.cancel_requested:
            raise Interrupted(CANCELLED)
        self.current.outside = what, remedy
        try:
            if until is not None:
                self.suspend_until(until)
            else:
                self.suspend()
        finally:
            self.current.outside = None

    def take_part(self, stack: Any) -> Any:
        """Switch to a greenlet that runs as part of the current task until it ends or switches back."""
        from greenlet import getcurrent

        here, task = getcurrent(), self.current
        stack.parent, stack.gr_context = here, here.gr_context
        if self.hub is None:
            self.hub = here
        # The hub is the root's: other tasks come and go while a child is in a greenlet of its part.
        holder, name = (self, "hub") if task is self.root else (task, "greenlet")
        own = getattr(holder, name)
        setattr(holder, name, stack)
        try:
            return stack.switch()
        finally:
            setattr(holder, name, own)
            del here, own, stack  # as in `abort`

    def resume(self, task: Task) -> None:
        self.ready.append(task)

    def wake(self) -> None:
        """Have the program go on while the asyncio loop runs: a task of it may act."""
        if self.bridge is not None:
            self.bridge.wake()

    def rouse(self) -> None:
        """Have the thread that runs the program look up, from any thread."""
        from contextlib import suppress

        with suppress(RuntimeError):  # released already
            self.bell.release()
        bridge = self.bridge
        if bridge is not None:
            bridge.rouse()

    def wake_at(self, task: Task, when: float) -> Timer:
        """Make ``task`` ready at a time, unless the timer is forgotten before."""
        self.sequence += 1
        timer = [when, self.sequence, task]
        heappush(self.timers, timer)
        return timer

    def fire_timers(self) -> None:
        """Make the tasks ready whose time has come."""
        now = self.now()
        while self.timers:
            when, _, task = self.timers[0]
            live = task is not None and not task.done
            if live and when > now:
                return
            heappop(self.timers)
            if live:
                self.ready.append(task)
                if self.shuffled is not None:
                    self.shuffled.woken(task, when)

    def sleep(self, seconds: float) -> None:
        """Suspend the current task for ``seconds``; zero or less returns at once."""
        if seconds <= 0:
            return
        until = self.now() + seconds
        while self.now() < until:
            if self.current.cancel_requested:
                raise Interrupted(CANCELLED)
            self.suspend_until(until)

    def await_coroutine(self, awaitable: Awaitable[Value]) -> Value:
        """The result of a coroutine; other tasks run meanwhile."""
        if self.bridge is None:
            self.bridge = self.open_bridge(self, awaitable)
        return self.bridge.wait_for(awaitable)

    def awaited(self, result: Value | Awaitable[Value]) -> Value:
        """Return what a function of the embedder returned, which may be a coroutine."""
        return self.await_coroutine(result) if hasattr(result, "__await__") else result

    def at_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have ``close()`` awaited at the end of every run of the program that awaited a coroutine."""
        self.vm.state(Closers).coroutines.append(close)

    def serve(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine beside the program, for one that a task waits for; until the run ends, at most."""
        assert self.bridge is not None
        return self.bridge.serve(coroutine)

    def responsible(self) -> Task:
        """The current task, or the one for which the coroutine runs that is asking."""
        return (self.bridge and self.bridge.waiting()) or self.current

    # --- deadlines and cancellation ---------------------------------------------------------------

    def refresh(self) -> None:
        """Have the current task poll if it, or one that may wait for it, can be interrupted."""
        task: Task | None = self.current if self.may_interrupt else None
        while task and not task.is_limited():
            task = task.parent
        self.signal.pending = self.signal.watched or task is not None
        self.signal.alert = self.signal.watched or self.may_interrupt
        if self.signal.cancelled:  # asked for only now: another thread sets it first, and then what it undoes
            self.signal.pending = self.signal.alert = True
        self.unseen = 0  # a durable run counts from where a task goes on

    def poll(self) -> None:
        """Between two turns of a loop, or entering a function: raise what is due in the current task."""
        if self.signal.cancelled:
            self.leave(1)
            return
        if self.turns is not None:
            self.turns.poll()
        if self.meter is not None:
            self.meter.poll()
        interrupt(self, self.current, 1)
        if self.may_interrupt and self.current.parent:
            self.give_way_to_ancestors()

    def look(self, items: int) -> None:
        """In the middle of a builtin: the same, as an `Interruption` inside a domain package.

        There the asyncio loop has no turn either: it could meet what is half done.
        """
        if not self.signal.pending or get_ident() != self.thread:
            return
        self.unseen += items
        if self.unseen < BATCH:
            return
        self.unseen = 0
        if self.signal.cancelled:
            self.leave(1)
            return
        try:
            if self.turns is not None and self.turns.is_due() and not in_domain(sys._getframe(1)):
                self.turns.take()
            if self.meter is not None:
                self.meter.check_time()
            interrupt(self, self.current, 0)
            if self.may_interrupt and self.current.parent:
                self.give_way_to_ancestors()
        except Interrupted as error:
            if in_domain(sys._getframe(1)):
                raise Interruption(str(error)) from error
            raise

    def leave(self, turns: int) -> None:
        """Leave the run that was cancelled, unless what cleans up after it may make so many more turns.

        It may not wait, which is no turn.
        """
        if self.grace is None:
            self.grace = Grace()
        elif turns and is_leaving() and self.grace.takes(turns):
            return
        raise CalledOff(self.grace)

    def time_left(self) -> float:
        """For work that cannot be interrupted: the seconds that it may take at most."""
        return time_left(self)

    def give_way_to_ancestors(self) -> None:
        """When something is due in a task that waits for the current one, let that run next."""
        now, task = self.now(), self.current
        ancestor = task.parent
        while ancestor and not is_over(ancestor, now):
            ancestor = ancestor.parent
        if ancestor:
            self.ready.appendleft(ancestor)
            self.ready.append(task)
            self.suspend()

    def expect_interruption(self) -> None:
        """Note that tasks may be interrupted from now on, so that they poll."""
        self.may_interrupt = self.signal.alert = True

    def request_cancel(self, task: Task) -> None:
        """Ask a task, and the parts of a `parallel` it waits for, to end."""
        task.cancel_requested, task.patience = True, Overtime(self.now())
        self.expect_interruption()
        if task is self.current:
            self.refresh()
        if task.started and not task.done:
            self.resume(task)
        for child in task.children or ():
            if child.batch:
                self.request_cancel(child)

    def nested(self, callback: Callable[[], Value]) -> Value:
        """The result of ``callback``, a call that a builtin makes.

        Each has a call stack of its own, so their number is limited like that of calls.
        """
        task = self.current
        if task.callbacks >= MOST_NESTED:
            raise PlainFault(OVERFLOW)
        task.callbacks += 1
        try:
            if self.bridge is not None and self.bridge.is_inside:
                return self.bridge.without_waiting(callback)
            return callback()
        finally:
            task.callbacks -= 1

    # --- life of a child --------------------------------------------------------------------------

    def create(self, body: Callable[[int], Value], parent: Task | None = None) -> Task:
        """A child, queued, of the current task or of ``parent``: it starts when the current one gives way."""
        starter = self.current
        if parent is None:
            parent = starter
        nesting = parent.nesting + 1
        if nesting > MOST_NESTED:
            raise PlainFault(OVERFLOW)
        if self.meter is not None:
            self.meter.spend("tasks")
        task = new_task(body, parent, nesting)
        task.variables = copy_context()
        if self.bridge is not None or LOOK.get() is not self.looker:
            self.adapt(task.variables)
        if starter.inherited is not None:
            task.inherit(starter)
        if parent.children is None:
            parent.children = {}
        parent.children[task] = None
        self.ready.append(task)
        return task

    def adapt(self, variables: Context) -> None:
        """Make a copy of the context variables of whatever starts a task those of the task."""
        if self.bridge is not None:
            self.bridge.adapt(variables)
        variables.run(LOOK.set, self.looker)

    def detach(self, body: Callable[[int], Value]) -> None:
        """Run ``body`` as a task that is never awaited; it ends with the program at the latest."""

        def run(depth: int) -> None:
            try:
                body(depth)
            finally:
                self.release(task)

        task = self.create(run, self.root)

    def new_worker(self) -> Any:
        """A greenlet for the pool, of which the hub is the parent. Only the hub makes one."""
        from greenlet import getcurrent, greenlet

        if self.hub is None:
            self.hub = getcurrent()
        return greenlet(on_own_stack(self.worker).send, self.hub)

    def start(self, task: Task, worker: Any) -> None:
        """Run ``task`` in ``worker``, a greenlet of the pool, until it first gives way."""
        task.greenlet, worker.gr_context, self.current = worker, task.variables, task
        if self.signal.alert:
            self.refresh()
        worker.switch(None)

    def run_tasks(self) -> None:
        """A pooled greenlet's life: one task after another, until it is switched to and there is none.

        Its frame must refer neither to it nor to where it gives way to. The garbage collector doesn't see
        into greenlets that wait; and when a thread ends, greenlet releases references to the thread's own
        that it believes to be lost, while tracebacks may keep this frame.
        """
        # Python makes a loop fast as it goes round only if it is one that tests nothing.
        while True:
            task = self.current
            if task.started:
                return
            try:
                # Set here and not in `start`: a signal may come between the two.
                task.started = True
                body, task.body = task.body, None
                task.result = body(1)
            except TaskAborted:
                task.consumed, task.result = True, None
            except FAILURES as error:
                task.error = error
            except BaseException as error:
                # `exit`, Ctrl-C, a failure that is not the program's: the whole run is over.
                self.fatal = error
            # However it ended, what it captured is let go of: a permit, say.
            body = None
            self.finish(task)
            if self.ready and self.begins_next(task):
                continue
            self.pool.append(task.greenlet)
            task.greenlet = None
            (task.aborter if task.consumed and task.aborter else self.hub).switch()

    def begins_next(self, task: Task) -> bool:
        """Have the next ready task begin on the stack of ``task``, which has ended; False if it has begun."""
        if self.timers or self.signal.alert or task.consumed or self.fatal is not None:
            return False
        following = self.ready.popleft()
        if following is self.root:
            self.root_is_next = True
            return False
        if following.started:
            # By way of the hub: the frame of a pooled greenlet would keep a greenlet that it switched to.
            self.ready.appendleft(following)
            return False
        following.greenlet, task.greenlet = task.greenlet, None
        following.greenlet.gr_context, self.current = following.variables, following
        return True

    def finish(self, task: Task) -> None:
        task.done = True
        if self.meter is not None:
            self.meter.give_back("tasks")
        if task.children:
            self.abort_children(task)
        if (task.consumed or task.error is not None) and task.held:
            # Of a task that failed or was aborted nobody else can release them.
            for grant in tuple(task.held):
                grant.release()
        if task.awaiter is not None:
            self.ready.append(task.awaiter)
        if task.batch is not None:
            task.batch.on_end(task)

    def abort_children(self, task: Task) -> None:
        children, task.children = task.children or (), None
        for child in children:
            self.abort(child)

    def abort(self, task: Task) -> None:
        """Stop a task where it is: none of its code runs again (05 §2)."""
        if task.done or task is self.current:
            return
        task.consumed = True
        if not task.started:
            task.started, task.greenlet, task.body, task.result = True, None, None, None
            self.finish(task)
            return
        from greenlet import getcurrent

        current = self.current
        task.aborter = getcurrent()
        aborted = TaskAborted()
        aborted.grace = self.grace
        try:
            task.greenlet.throw(aborted)
        finally:
            # An error's traceback may keep the task beyond its thread, whose greenlets must not be kept.
            task.aborter = None
        self.current = current
        self.refresh()

    def release(self, task: Task) -> None:
        """The task's result is taken: its parent forgets it."""
        task.consumed = True
        if task.parent and task.parent.children:
            task.parent.children.pop(task, None)

    def write(self, text: str) -> None:
        """Program output of the current task."""
        if self.current is self.root:
            self.vm.unguarded.streams.write_out(text)
        else:
            self.current.output += text

    def take_output(self, task: Task) -> None:
        """Append a finished child's output to the current task's."""
        if task.output:
            self.write(task.output)
            task.output = ""

    def shut_down(self) -> None:
        """At the program's end: its unawaited tasks stop without a trace."""
        self.abort_children(self.root)
        self.abort_children(self.detached)
        if self.signal.cancelled:
            self.signal.cancelled, self.grace, self.fatal = False, None, None
            self.bell.acquire(blocking=False)
        self.ready.clear()
        self.timers.clear()
        self.crowded = False
        self.root.deadlines, self.root.limits, self.root.overtime, self.may_interrupt = (), (), None, False
        self.refresh()
        # The next run may begin elsewhere: in another thread, inside an asyncio loop.
        self.dismiss_workers()
        self.new_hub()
        if self.bridge:
            self.bridge.close()
