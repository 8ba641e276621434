"""Tasks: greenlets on one thread that give way only where the language says so. Spec: reference 05 §1–3, §9.

The root task runs where `Vm.run` was called and is also the hub: while it waits, it runs the others. A
child runs in a pooled greenlet and switches back to the hub to wait. So a program without tasks never
imports greenlet, and evaluated code stays plain synchronous Python.

What a task owns: its output until somebody awaits it, its deadlines, its unawaited children, its
current-session stack.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from harnpy.vm.backtrace import describe
from harnpy.vm.calls import FAILURES, TaskAborted
from harnpy.vm.errors import OVERFLOW, PlainFault, RuntimeFault, Thrown
from harnpy.vm.values import Duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from harnpy.vm.aio import Bridge
    from harnpy.vm.machine import Vm

    Value = Any

CANCELLED = "kind:cancelled:VM cancelled by host"
DEADLINE = "Deadline exceeded"
#: Tasks in tasks in tasks: the same limit as for calls, since a task starts a call stack of its own.
MOST_NESTED = 512


class Task:
    """One task. ``output`` collects what it prints (None for the root, which prints at once)."""

    def __init__(self, body: Callable[[], Value] | None, parent: Task | None) -> None:
        self.body = body
        self.parent = parent
        self.nesting: int = parent.nesting + 1 if parent else 0
        self.output: list[str] | None = None if parent is None else []
        self.result: Value = None
        self.error: BaseException | None = None
        self.done = False
        self.started = False
        self.greenlet: Any = None
        self.waiting_for_me: list[Task] = []
        self.children: list[Task] = []
        self.handles = 0
        self.consumed = False
        self.cancel_requested = False
        self.deadlines: list[float] = []
        self.turn = 0
        """Counts resumptions, so that timers of an earlier wait are recognised as stale."""
        self.finished_at = 0
        self.aborter: Any = None
        """The greenlet to go back to when the task was aborted from there."""
        self.session_stack: Any = None

    def error_text(self) -> str:
        """The failed task's error as text, with the line it failed at."""
        if not isinstance(self.error, FAILURES):
            raise self.error or AssertionError("the task did not fail")
        return describe(self.error, 0)


class Scheduler:
    """Runs the tasks of one Vm."""

    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        self.signal = vm.signal
        self.root = Task(None, None)
        self.current = self.root
        self.ready: deque[Task] = deque()
        self.timers: list[tuple[float, int, Task, int]] = []
        self.sequence = 0
        self.pool: list[Any] = []
        self.hub: Any = None
        self.idle: Callable[[float | None], object] = vm.host.sleep
        self.bridge: Bridge | None = None
        self.abroad = 0
        """Coroutines that asyncio is running for tasks of ours."""

    def new_hub(self) -> None:
        """Forget the greenlets made under another root: a run begins or ends somewhere else."""
        self.hub = None
        self.pool.clear()

    # --- waiting ----------------------------------------------------------------------------------

    def suspend(self) -> None:
        """Give way until `resume` is called for the current task."""
        task = self.current
        if task.deadlines:
            self.wake_at(task, task.deadlines[-1])
        if task is self.root:
            self.run_others()
        else:
            self.hub.switch()
        self.current = task
        task.turn += 1
        self.refresh()
        if self.signal.pending:
            self.poll()

    def run_others(self) -> None:
        """As the hub: run whatever is ready until it is the root's turn."""
        while True:
            self.fire_timers()
            if not self.ready:
                if not self.timers and not self.abroad:
                    raise RuntimeFault("deadlock: every task is waiting for another")
                now = self.vm.host.monotonic()
                self.idle(max(self.timers[0][0] - now, 0) if self.timers else None)
                continue
            task = self.ready.popleft()
            if task is self.root:
                return
            if not task.done:
                self.switch_to(task)

    def switch_to(self, task: Task) -> None:
        self.current = task
        self.refresh()
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
        now = self.vm.host.monotonic() if self.timers else 0
        while self.timers:
            when, _, task, turn = self.timers[0]
            if turn == task.turn and not task.done and when > now:
                return
            heappop(self.timers)
            if turn == task.turn and not task.done and task not in self.ready:
                self.ready.append(task)

    def sleep(self, seconds: float) -> None:
        """Suspend the current task for ``seconds``; zero or less returns at once."""
        if seconds > 0:
            until = self.vm.host.monotonic() + seconds
            self.wake_at(self.current, until)
            self.suspend()
            while self.vm.host.monotonic() < until:
                self.wake_at(self.current, until)
                self.suspend()

    def wait_until(self, met: Callable[[], bool]) -> None:
        """Suspend until ``met()``; whoever may change that must `resume` the task."""
        while not met():
            self.suspend()

    def await_coroutine(self, awaitable: Awaitable[Value]) -> Value:
        """The result of a coroutine; other tasks run meanwhile."""
        if self.bridge is None:
            from harnpy.vm.aio import OwnLoop

            self.bridge = OwnLoop(self)
        return self.bridge.wait_for(awaitable)

    # --- deadlines and cancellation ---------------------------------------------------------------

    def refresh(self) -> None:
        self.signal.pending = bool(self.current.deadlines) or self.current.cancel_requested

    def poll(self) -> None:
        """Raise in the current task what is due there: an expired deadline, a cancellation."""
        task = self.current
        if task.deadlines and self.vm.host.monotonic() >= min(task.deadlines):
            task.deadlines[:] = [d for d in task.deadlines if d > self.vm.host.monotonic()]
            self.abort_children(task)
            raise Thrown(DEADLINE)
        if task.cancel_requested and task.parent is not None:
            raise Thrown(CANCELLED)

    def deadline_begin(self, limit: Value) -> float:
        """Start a `deadline` block; a duration or ms, anything else is 30 s (05 §9)."""
        ms = limit.ms if type(limit) is Duration else limit if type(limit) is int else 30_000
        when = self.vm.host.monotonic() + max(ms, 0) / 1000
        self.current.deadlines.append(when)
        self.signal.pending = True
        return when

    def deadline_end(self, token: float) -> None:
        deadlines = self.current.deadlines
        if token in deadlines:
            del deadlines[deadlines.index(token) :]
        self.refresh()

    def is_cancelled(self) -> bool:
        return self.current.cancel_requested

    # --- life of a child --------------------------------------------------------------------------

    def create(self, body: Callable[[int], Value]) -> Task:
        """A child of the current task, queued: it starts when the current one gives way."""
        if self.current.nesting >= MOST_NESTED:
            raise PlainFault(OVERFLOW)
        task = Task(lambda: body(1), self.current)
        task.session_stack = self.vm.branch_stack(self.current.session_stack)
        self.current.children.append(task)
        self.ready.append(task)
        return task

    def start(self, task: Task) -> None:
        """Run ``task`` in a pooled greenlet until it first gives way."""
        task.started = True
        if not self.pool:
            from greenlet import getcurrent, greenlet

            if self.hub is None:
                self.hub = getcurrent()
            worker = greenlet(self.vm.enter_worker, self.hub)
            worker.switch(self.worker)
            self.pool.append(worker)
        task.greenlet = self.pool.pop()
        task.greenlet.switch(task)

    def worker(self) -> None:
        """A pooled greenlet: runs one task after another."""
        from greenlet import getcurrent

        me = getcurrent()
        task = self.hub.switch()
        while True:
            self.run_task(task)
            self.pool.append(me)
            task = (task.aborter or self.hub).switch()

    def run_task(self, task: Task) -> None:
        assert task.body
        try:
            task.result = task.body()
        except TaskAborted:
            task.consumed = True
        except BaseException as error:
            task.error = error
        self.finish(task)

    def finish(self, task: Task) -> None:
        self.sequence += 1
        task.done, task.finished_at, task.body = True, self.sequence, None
        self.abort_children(task)
        for waiter in task.waiting_for_me:
            self.resume(waiter)
        task.waiting_for_me.clear()

    def abort_children(self, task: Task) -> None:
        children, task.children = task.children, []
        for child in children:
            if not child.done and not child.consumed:
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
        while not task.done:
            task.waiting_for_me.append(self.current)
            self.suspend()

    def write(self, text: str) -> None:
        """Program output of the current task."""
        output = self.current.output
        if output is None:
            self.vm.host.write_out(text)
        else:
            output.append(text)

    def take_output(self, task: Task) -> None:
        """Append a finished child's output to the current task's."""
        if task.output:
            self.write("".join(task.output))
            task.output = []

    def shut_down(self) -> None:
        """At the program's end: its unawaited tasks stop without a trace."""
        self.abort_children(self.root)
        self.ready.clear()
        self.timers.clear()
        self.root.deadlines.clear()
        self.refresh()
        if self.bridge:
            self.bridge.close()
