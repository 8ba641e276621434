"""Tasks: greenlets on one thread that give way only where the language says so. Spec: 05 §1–3, §9.

The root task runs where `Vm.run` was called and is also the hub: while it waits, it runs the others. A
child runs in a pooled greenlet and switches back to the hub to wait. So a program without tasks never
imports greenlet, and evaluated code stays plain synchronous Python.

What a task owns: its output until somebody awaits it, its deadlines, its unawaited children, its
current-session stack.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from harnpy.vm.errors import OVERFLOW, Interrupted, PlainFault, RuntimeFault
from harnpy.vm.run.backtrace import describe
from harnpy.vm.run.calls import FAILURES, TaskAborted
from harnpy.vm.run.tasks.chaos import VARIABLE, Shuffled, seed_of
from harnpy.vm.values.objects import Duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from typing import Any

    from harnpy.vm.run.tasks.aio import Bridge
    from harnpy.vm.vm import Vm

    Value = Any

CANCELLED = "kind:cancelled:VM cancelled by host"
DEADLINE = "Deadline exceeded"
#: After a request to end: seconds that a wait may go on, turns of loops that code may go on (05 §11).
GRACE = 0.25
TURNS_AFTER_CANCEL = 1024
#: Tasks in tasks in tasks: the same limit as for calls, since a task starts a call stack of its own.
MOST_NESTED = 512


class Task:
    """One task. What few tasks ever have is a class attribute until then: tasks are made by the thousand."""

    result: Value = None
    error: BaseException | None = None
    done = False
    started = False
    consumed = False
    cancel_requested = False
    greenlet: Any = None
    #: How many callbacks of builtins it is inside of.
    callbacks = 0
    #: How many tasks and how many batches it has started.
    handles = 0
    groups = 0
    #: What started it, when that is no batch.
    kind = "spawn"
    #: Its number among the tasks that its parent spawned (from 1), or in its batch (from 0).
    index = 0
    #: What runs it together with others and hears of its end.
    batch: Batch | None = None
    session_stack: Any = None
    #: What it carries for its program; replaced, never changed, as children share it.
    context: dict[str, Value] = {}  # noqa: RUF012
    #: What it waits for that only somebody outside can bring, and what to do when nobody is there.
    outside: tuple[str, str] | None = None
    #: The greenlet to go back to when the task was aborted from there.
    aborter: Any = None
    #: Counts resumptions, so that timers of an earlier wait are recognised as stale.
    turn = 0
    #: What it printed and nobody took yet; the root prints at once.
    output = ""
    #: The tasks that wait for it to end.
    waiting: tuple[Task, ...] = ()
    #: Its unawaited children, as the keys.
    children: dict[Task, None] | None = None
    #: When it was asked to end, and how many turns of loops it has left.
    cancelled_at = 0.0
    turns_left = 0
    #: When its `deadline` blocks end, innermost last.
    deadlines: tuple[float, ...] = ()

    def __init__(self, body: Callable[[int], Value] | None, parent: Task | None) -> None:
        self.body = body
        self.parent = parent
        self.nesting: int = parent.nesting + 1 if parent else 0

    def id(self) -> str:
        """Its place in the tree of tasks, as text (05 §12)."""
        if self.parent is None:
            return "task_root"
        return f"{self.group_id() or f'{self.parent.id()}:{self.kind}'}:{self.index}"

    def group_id(self) -> str | None:
        if self.batch is None or self.parent is None:
            return None
        kind = self.batch.name.replace(" as ", " ").replace(" ", "_")
        return f"{self.parent.id()}:{kind}:{self.batch.group}"

    def name(self) -> str:
        """What started it."""
        if self.batch:
            return self.batch.name
        return self.kind if self.parent else "root"

    def family(self) -> Iterator[Task]:
        """The task, its unawaited children, theirs, …"""
        yield self
        for child in self.children or ():
            yield from child.family()

    def is_limited(self) -> bool:
        """Whether its wait ends by itself: at a deadline, or since it was asked to end."""
        return bool(self.deadlines) or self.cancel_requested

    def handle_id(self) -> str:
        """How its handle shows."""
        return f"vm_task_{self.index}"

    def error_text(self) -> str:
        """The failed task's error as text, with the line it failed at."""
        if not isinstance(self.error, FAILURES):
            raise self.error or AssertionError("the task did not fail")
        return describe(self.error, 0)


class Batch:
    """Calls that run at the same time, at most ``limit`` of them, started in order; iterate for the tasks as
    they end.

    A task that ended keeps its slot until it is asked for.
    """

    def __init__(
        self, scheduler: Scheduler, name: str, calls: Sequence[Callable[[int], Value]], limit: int
    ) -> None:
        self.scheduler = scheduler
        self.name = name
        scheduler.current.groups += 1
        self.group = scheduler.current.groups
        self.calls = calls
        self.limit = limit
        self.started = 0
        self.running: dict[Task, None] = {}
        self.ended: deque[Task] = deque()
        self.reader: Task | None = None

    def __iter__(self) -> Iterator[Task]:
        while self.started < len(self.calls) or self.running:
            while self.started < len(self.calls) and len(self.running) < self.limit:
                self.start_next()
            while not self.ended:
                self.reader = self.scheduler.current
                self.scheduler.suspend()
            task = self.ended.popleft()
            del self.running[task]
            self.scheduler.release(task)
            yield task

    def start_next(self) -> None:
        task = self.scheduler.create(self.calls[self.started])
        task.index, task.batch = self.started, self
        if self.scheduler.current.cancel_requested:
            self.scheduler.request_cancel(task)
        self.started += 1
        self.running[task] = None

    def hear(self, task: Task) -> None:
        """``task`` has ended."""
        self.ended.append(task)
        if self.reader and not self.reader.done:
            self.scheduler.resume(self.reader)

    def stop(self) -> None:
        """Abort what still runs."""
        for task in self.running:
            self.scheduler.abort(task)


class Closers:
    """What awaits to be closed when a program ends; it belongs to the program, as all state of a Vm."""

    def __init__(self) -> None:
        self.coroutines: list[Callable[[], Awaitable[None]]] = []


class Scheduler:
    """Runs the tasks of one Vm."""

    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        self.signal = vm.signal
        self.root = Task(None, None)
        self.detached = Task(None, None)
        """The parent of the tasks that outlive the one that started them. It never runs."""
        self.current = self.root
        seed = seed_of(vm.world.environment.get(VARIABLE))
        self.shuffled = None if seed is None else Shuffled(seed)
        self.ready: deque[Task] = deque() if self.shuffled is None else self.shuffled
        self.timers: list[tuple[float, int, Task, int]] = []
        self.sequence = 0
        self.pool: list[Any] = []
        self.hub: Any = None
        self.root_is_next = False
        self.fatal: BaseException | None = None
        """What a child ended with that ends the run."""
        self.idle: Callable[[float | None], object] = vm.world.clock.sleep
        self.chores: list[Callable[[], object]] = []
        """What is done, once, when no task can go on."""
        self.bridge: Bridge | None = None
        self.abroad = 0
        """Coroutines that asyncio is running for tasks of ours."""

    def new_hub(self) -> None:
        """Forget the greenlets made under another root: a run begins or ends somewhere else."""
        self.hub = None
        self.pool.clear()

    # --- waiting ----------------------------------------------------------------------------------

    def suspend(self) -> None:
        """Give way until `resume` is called for the current task; may return early, so look again."""
        task = self.current
        if task.deadlines:
            self.wake_at(task, task.deadlines[-1])
        if task.cancel_requested:
            self.wake_at(task, task.cancelled_at + GRACE)
        try:
            if task is self.root:
                self.run_others()
            else:
                self.pass_on(task)
        finally:
            self.current = task
            task.turn += 1
        self.refresh()
        if self.signal.pending:
            self.interrupt(task)

    def run_others(self) -> None:
        """As the root: run whatever is ready until it is the root's turn."""
        self.root_is_next = False
        while not self.root_is_next:
            if self.fatal:
                error, self.fatal = self.fatal, None
                raise error
            if self.timers:
                self.fire_timers()
            if not self.ready:
                self.rest()
                continue
            task = self.ready.popleft()
            if task is self.root:
                return
            if not task.done:
                self.switch_to(task)

    def pass_on(self, task: Task) -> None:
        """As a child: switch to the next ready task straight away, or to the root."""
        if self.timers:
            self.fire_timers()
        while self.ready:
            following = self.ready.popleft()
            if following is task:
                return
            if following is self.root:
                self.root_is_next = True
                break
            if following.done:
                continue
            if not following.started and not self.pool:
                # A greenlet's stack lies where it was made: made by one another, they would pile up.
                self.ready.appendleft(following)
                break
            self.switch_to(following)
            return
        self.hub.switch()

    def rest(self) -> None:
        """Nothing is ready: wait for the first timer, or for news from asyncio.

        Tasks that wait for one another alone do so until a signal comes (05 §4); somebody outside who isn't
        there is waited for in vain, so the run fails.
        """
        if not self.abroad and not any(self.is_awaited(timer) for timer in self.timers):
            self.refuse_to_wait_in_vain()
        while self.chores:
            self.chores.pop()()
        now = self.vm.world.clock.monotonic()
        self.idle(max(self.timers[0][0] - now, 0) if self.timers else None)

    def is_awaited(self, timer: tuple[float, int, Task, int]) -> bool:
        """Whether a task is going to act at that time, rather than give up on somebody outside."""
        _, _, task, turn = timer
        return turn == task.turn and not task.done and (task.outside is None or task.is_limited())

    def refuse_to_wait_in_vain(self) -> None:
        """Nothing can go on: raise, if tasks have said whom they wait for."""
        tasks = (*self.root.family(), *self.detached.family())
        waits = [task.outside for task in tasks if task.outside]
        if waits:
            what = "; ".join(what for what, _ in waits)
            remedies = " ".join(dict.fromkeys(remedy for _, remedy in waits))
            raise RuntimeFault(f"waiting for somebody, and nobody is there: {what}. {remedies}")

    def wait_outside(self, what: str, remedy: str, until: float | None = None) -> None:
        """Suspend the current task until it is resumed, or the time ``until`` has come; may return early.

        What it waits for comes from outside the program. When no task can go on by itself, the run fails and
        says ``what`` was waited for, and the ``remedy``.
        """
        if self.current.cancel_requested:
            raise Interrupted(CANCELLED)
        self.current.outside = what, remedy
        try:
            if until is not None:
                self.wake_at(self.current, until)
            self.suspend()
        finally:
            self.current.outside = None

    def switch_to(self, task: Task) -> None:
        self.current = task
        self.signal.pending = task.cancel_requested or bool(task.deadlines)
        if task.started:
            task.greenlet.switch()
        else:
            self.start(task)

    def resume(self, task: Task) -> None:
        self.ready.append(task)

    def wake_at(self, task: Task, when: float) -> None:
        self.sequence += 1
        heappush(self.timers, (when, self.sequence, task, task.turn))

    def fire_timers(self) -> None:
        """Make the tasks ready whose time has come."""
        now = self.vm.world.clock.monotonic()
        while self.timers:
            when, _, task, turn = self.timers[0]
            live = turn == task.turn and not task.done
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
        until = self.vm.world.clock.monotonic() + seconds
        while self.vm.world.clock.monotonic() < until:
            if self.current.cancel_requested:
                raise Interrupted(CANCELLED)
            self.wake_at(self.current, until)
            self.suspend()

    def await_coroutine(self, awaitable: Awaitable[Value]) -> Value:
        """The result of a coroutine; other tasks run meanwhile."""
        if self.bridge is None:
            from harnpy.vm.run.tasks.aio import open_loop

            self.bridge = open_loop(self, awaitable)
        return self.bridge.wait_for(awaitable)

    def at_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have ``close()`` awaited at the end of every run of the program that awaited a coroutine."""
        self.vm.state(Closers).coroutines.append(close)

    def awaited(self, answer: Value | Awaitable[Value]) -> Value:
        """What a function of the embedder answered, which may be a coroutine."""
        return self.await_coroutine(answer) if hasattr(answer, "__await__") else answer

    # --- deadlines and cancellation ---------------------------------------------------------------

    def refresh(self) -> None:
        self.signal.pending = self.current.cancel_requested or bool(self.current.deadlines)

    def poll(self) -> None:
        """Between two turns of a loop, or entering a function: raise what is due in the current task.

        After a request to end, code that does not wait has some turns left to do so (05 §11).
        """
        task = self.current
        self.expire(task)
        if task.cancel_requested:
            task.turns_left -= 1
            if task.turns_left < 0:
                task.turns_left = TURNS_AFTER_CANCEL
                raise Interrupted(CANCELLED)

    def interrupt(self, task: Task) -> None:
        """The same after a wait, which has a time to end instead."""
        self.expire(task)
        if task.cancel_requested and self.vm.world.clock.monotonic() >= task.cancelled_at + GRACE:
            raise Interrupted(CANCELLED)

    def expire(self, task: Task) -> None:
        if not task.deadlines:
            return
        now = self.vm.world.clock.monotonic()
        if now >= min(task.deadlines):
            outermost = next(when for when in task.deadlines if when <= now)
            task.deadlines = tuple(when for when in task.deadlines if when > now)
            self.abort_children(task)
            raise Interrupted(DEADLINE, outermost)

    def request_cancel(self, task: Task) -> None:
        """Ask a task, and the parts of a `parallel` it waits for, to end."""
        task.cancel_requested, task.cancelled_at = True, self.vm.world.clock.monotonic()
        task.turns_left = TURNS_AFTER_CANCEL
        if task.started and not task.done:
            self.resume(task)
        for child in task.children or ():
            if child.batch:
                self.request_cancel(child)

    def pause_deadlines(self, token: float) -> tuple[float, ...]:
        """A generator that hands out an item takes its deadlines with it, from ``token`` on."""
        deadlines = self.current.deadlines
        at = deadlines.index(token) if token in deadlines else len(deadlines)
        self.current.deadlines = deadlines[:at]
        self.refresh()
        return deadlines[at:]

    def resume_deadlines(self, paused: tuple[float, ...]) -> None:
        """… and brings them back when it is asked for the next."""
        self.current.deadlines += paused
        self.refresh()
        self.expire(self.current)

    def deadline_begin(self, limit: Value) -> float:
        """Start a `deadline` block; a duration or ms, anything else is 30 s (05 §9)."""
        ms = limit.ms if type(limit) is Duration else limit if type(limit) is int else 30_000
        when = self.vm.world.clock.monotonic() + max(ms, 0) / 1000
        self.current.deadlines += (when,)
        self.signal.pending = True
        return when

    def deadline_end(self, token: float) -> None:
        deadlines = self.current.deadlines
        if token in deadlines:
            self.current.deadlines = deadlines[: deadlines.index(token)]
        self.refresh()

    def is_cancelled(self) -> bool:
        return self.current.cancel_requested

    def nested(self, callback: Callable[[], Value]) -> Value:
        """What ``callback`` answers, a call by a builtin. Each has a call stack of its own, so that their
        number must have a limit too: it is that of calls."""
        task = self.current
        if task.callbacks >= MOST_NESTED:
            raise PlainFault(OVERFLOW)
        task.callbacks += 1
        try:
            return callback()
        finally:
            task.callbacks -= 1

    # --- life of a child --------------------------------------------------------------------------

    def create(self, body: Callable[[int], Value], parent: Task | None = None) -> Task:
        """A child, queued, of the current task or of ``parent``: it starts when the current one gives way."""
        starter = self.current
        parent = parent or starter
        if parent.nesting >= MOST_NESTED:
            raise PlainFault(OVERFLOW)
        task = Task(body, parent)
        if starter.session_stack is not None:
            task.session_stack = starter.session_stack.branch()
        if starter.context:
            task.context = starter.context
        if parent.children is None:
            parent.children = {}
        parent.children[task] = None
        self.ready.append(task)
        return task

    def detach(self, body: Callable[[int], Value]) -> None:
        """Run ``body`` as a task that nobody awaits; it ends with the program at the latest."""

        def run(depth: int) -> None:
            try:
                body(depth)
            finally:
                self.release(task)

        task = self.create(run, self.root)

    def start(self, task: Task) -> None:
        """Run ``task`` in a pooled greenlet until it first gives way."""
        if self.pool:
            worker = self.pool.pop()
        else:
            from greenlet import getcurrent, greenlet

            if self.hub is None:
                self.hub = getcurrent()
            worker = greenlet(lambda first: self.vm.enter_worker(lambda: self.work(first)), self.hub)
        task.greenlet = worker
        worker.switch(task)

    def work(self, task: Task) -> None:
        """A pooled greenlet's life: one task after another.

        Its frame must not refer to it: the garbage collector doesn't see into greenlets that wait.
        """
        while True:
            self.run_task(task)
            self.pool.append(task.greenlet)
            back = task.aborter or self.hub
            task.greenlet = None
            task = back.switch()

    def run_task(self, task: Task) -> None:
        assert task.body
        try:
            # Said here and not by `start`: a signal may come between the two.
            task.started = True
            task.result = task.body(1)
        except TaskAborted:
            task.consumed = True
        except FAILURES as error:
            task.error = error
        except BaseException as error:
            # `exit`, Ctrl-C, a failure that is not the program's: the whole run is over.
            self.fatal = error
        self.finish(task)

    def finish(self, task: Task) -> None:
        task.done, task.body = True, None
        if task.children:
            self.abort_children(task)
        if task.parent is self.detached and self.detached.children:
            del self.detached.children[task]
        self.ready.extend(task.waiting)
        if task.batch:
            task.batch.hear(task)

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
            self.finish(task)
            return
        from greenlet import getcurrent

        current = self.current
        task.aborter = getcurrent()
        task.greenlet.throw(TaskAborted())
        self.current = current
        self.refresh()

    def join(self, task: Task) -> None:
        """Suspend the current task until ``task`` is done."""
        if not task.done:
            task.waiting += (self.current,)
        while not task.done:
            self.suspend()

    def release(self, task: Task) -> None:
        """The task's result is taken: its parent need not think of it any more."""
        task.consumed = True
        if task.parent and task.parent.children:
            task.parent.children.pop(task, None)

    def write(self, text: str) -> None:
        """Program output of the current task."""
        if self.current is self.root:
            self.vm.world.streams.write_out(text)
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
        self.ready.clear()
        self.timers.clear()
        self.root.deadlines = ()
        self.refresh()
        # The next run may begin elsewhere: in another thread, inside an asyncio loop.
        self.new_hub()
        if self.bridge:
            self.bridge.close()
