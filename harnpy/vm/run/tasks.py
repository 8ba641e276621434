"""Tasks: what one runs and owns, and `spawn`, `await`, `cancel`, `deadline` and `parallel`.

A task owns its output until somebody awaits it, its deadlines, its unawaited children, and the context it
works under. Spec: 05 §1-§3, §9, §11, §12.
"""

from __future__ import annotations

import sys
from collections import deque

from harnpy.faults import LOOK, look
from harnpy.vm.errors import FAILURES, Interrupted, TypeFault
from harnpy.vm.run.backtrace import describe
from harnpy.vm.run.calls import err
from harnpy.vm.values import Duration, EnumValue, Stream, TaskHandle, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextvars import Context
    from typing import Any, Protocol

    from harnpy.spans import Span, Spans
    from harnpy.vm.run.locks import Grant
    from harnpy.vm.run.scheduler import Scheduler, Timer
    from harnpy.vm.values import Value

    class Named(Protocol):
        """A thing that a message about a wait can name."""

        def display(self) -> str: ...

    #: ``("for a message on", [channel])``; a thing alone is waited "for".
    Wait = tuple[str, Sequence[Named]] | Named

    class TaskContext(Protocol):
        """The rules that a task works under. A task that it starts begins with a branch of it."""

        def branch(self) -> TaskContext: ...

        def refuses(self, builtin: str) -> str | None:
            """Return why the task may not call a builtin; None when it may."""

        def refuses_effect(self, effect: str, target: str) -> str | None:
            """Return why the task may not have an effect on the world; None when it may."""

        def refuses_path(self, effect: str, path: str, named: str) -> str | None:
            """The same for the file or directory ``path``, free of links, which ``named`` leads to."""

        @property
        def restricts(self) -> bool:
            """Return True if any effect may be refused."""

    class Group(Protocol):
        """The tasks that run together. ``name`` is what started them."""

        name: str

        def id_of(self, task: Task) -> str: ...
        def group_id(self, task: Task) -> str | None: ...
        def on_end(self, task: Task) -> None: ...


class Inherited:
    """An attribute of a task that it hands on to the tasks that it starts."""

    def __init__(self, default: Any) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, task: Task, owner: type) -> Any:
        inherited = task.inherited
        return self._default if inherited is None else inherited.get(self._name, self._default)

    def __set__(self, task: Task, value: Any) -> None:
        task.inherited = {**(task.inherited or {}), self._name: value}


class Task(TaskHandle):
    """One task, which is its own handle. Tasks are made by the thousand: what few of them have is a class
    attribute until then; all else is a slot, which `new_task` sets.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "awaiter",
        "batch",
        "body",
        "children",
        "consumed",
        "done",
        "error",
        "greenlet",
        "handles",
        "inherited",
        "nesting",
        "output",
        "parent",
        "result",
        "started",
        "variables",
        "wait",
    )

    cancel_requested = False
    #: Whether it, or a task of it, was made to give way in the middle of a computation.
    computes = False
    #: How many callbacks of builtins it is inside of.
    callbacks = 0
    #: How many batches it has started.
    groups = 0
    if TYPE_CHECKING:
        context: TaskContext | None
        runtime_context: dict[str, Value]
        span: Span | None
        open_spans: tuple[dict[str, Value], ...]
    else:
        #: What it works under; None until something is.
        context = Inherited(None)
        #: What it carries for its program; replaced, never changed, as children share it.
        runtime_context = Inherited({})
        #: The span that it is in, while spans are recorded; its children begin in it.
        span = Inherited(None)
        #: The spans that its program has opened by itself, outermost first; replaced, never changed.
        open_spans = Inherited(())
    #: What it waits for that must come from outside the program, and what to do when it cannot come.
    outside: tuple[str, str] | None = None
    #: The greenlet to go back to when the task was aborted from there.
    aborter: Any = None
    #: When its `deadline` blocks end, innermost last, and what it may do after the outermost that has passed.
    deadlines: tuple[float, ...] = ()
    overtime: Overtime | None = None
    #: What it may do after it was asked to end, and once more after that has been thrown.
    patience: Overtime | None = None
    overtime_of_end: Overtime | None = None
    #: The timers that end its wait when something is due in it.
    limits: tuple[Timer, ...] = ()
    #: The permits that it has acquired and not released, as the keys.
    held: dict[Grant, None] | None = None

    body: Any
    #: What it returned, once it has.
    result: Value
    error: BaseException | None
    parent: Task | None
    nesting: int
    #: How many tasks it has spawned.
    handles: int
    started: bool
    done: bool
    #: Its parent, when that waits for it to end.
    awaiter: Task | None
    #: Whether nobody can ask for its result any more.
    consumed: bool
    #: What it runs in, from its start to its end.
    greenlet: Any
    #: The context variables that it runs in: a copy of its starter's. The root has its caller's.
    variables: Context | None
    #: The attributes of `Inherited` that it has; replaced, never changed, as children share it.
    inherited: dict[str, Any] | None
    #: What runs it together with others and is notified of its end.
    batch: Group | None
    #: Its unawaited children, as the keys.
    children: dict[Task, None] | None
    #: What its last wait was for, once it has waited.
    wait: Wait | None
    #: What it printed and its parent has not taken yet; the root prints at once.
    output: str

    def inherit(self, starter: Task) -> None:
        """Begin with what ``starter`` hands on."""
        self.inherited = starter.inherited
        if self.context is not None:
            self.context = self.context.branch()

    def id(self) -> str:
        """Its place in the tree of tasks, as text (05 §12)."""
        if self.parent is None:
            return "task_root"
        if self.batch is not None:
            return self.batch.id_of(self)
        return f"{self.parent.id()}:spawn:{self.index}"

    def group_id(self) -> str | None:
        return None if self.batch is None else self.batch.group_id(self)

    def name(self) -> str:
        """Return what started it."""
        if self.batch:
            return self.batch.name
        return "spawn" if self.parent else "root"

    def family(self) -> Iterator[Task]:
        """The task, its unawaited children, theirs, …"""
        yield self
        for child in self.children or ():
            yield from child.family()

    def branch(self) -> Task:
        """Return the child of a root that it is, or descends from; a root itself."""
        task = self
        while task.parent is not None and task.parent.parent is not None:
            task = task.parent
        return task

    def is_limited(self) -> bool:
        """Return True if its wait ends by itself: at a deadline, or since it was asked to end."""
        return bool(self.deadlines) or self.cancel_requested

    def error_text(self) -> str:
        """The failed task's error as text, with the line it failed at."""
        if not isinstance(self.error, FAILURES):
            raise self.error or AssertionError("the task did not fail")
        return describe(self.error, 0)


def new_task(body: Callable[[int], Value] | None, parent: Task | None, nesting: int) -> Task:
    """Make a task, which isn't in the queue yet. An `__init__` would take half as long again: C calls it."""
    task = Task()
    task.body = body
    task.parent = parent
    task.nesting = nesting
    task.index = task.handles = 0
    task.started = task.done = task.consumed = False
    task.variables = task.inherited = task.batch = task.greenlet = None
    task.children = task.awaiter = task.error = None
    task.output = ""
    return task


# A task whose time is over: its deadline has passed, or it was asked to end. Spec: 05 §9, §11.
#
# What is due is thrown at every look until the block is left, or the task. Only code that is dealing with
# such a throw, in a `finally`, `defer` or `catch`, is left alone for a while, so that it can release what it
# holds.


CANCELLED = "kind:cancelled:VM cancelled by host"
DEADLINE = "Deadline exceeded"
#: How many turns of loops and calls code may still make, and for how many seconds it may go on or wait.
TURNS = 1024
SECONDS = 0.25
#: Seconds for one piece of work when there are none left.
_SHORTEST = 0.001


class Overtime:
    """The turns that a task has left. ``deadline`` is the one that has passed, None if it is cancelled."""

    __slots__ = ("deadline", "turns", "until")

    def __init__(self, now: float, deadline: float | None = None) -> None:
        self.deadline = deadline
        self.turns = TURNS
        self.until = now + SECONDS

    def lasts(self, now: float, turns: int) -> bool:
        """Return True if the task may go on for so many more turns."""
        self.turns -= turns
        return self.turns >= 0 and now < self.until


def interrupt(tasks: Scheduler, task: Task, turns: int) -> None:
    """Raise what is due in ``task``, which is about to take some turns, or none after a wait."""
    if task.deadlines:
        expire(tasks, task, turns)
    if task.cancel_requested:
        _stop(tasks, task, turns)


def expire(tasks: Scheduler, task: Task, turns: int = 0) -> None:
    """Raise Interrupted when a deadline of ``task`` has passed. Its children end the first time."""
    now = tasks.now()
    if now < min(task.deadlines):
        return
    outermost = next(when for when in task.deadlines if when <= now)
    overtime = task.overtime
    if overtime is None or overtime.deadline != outermost:
        task.overtime = Overtime(now, outermost)
        tasks.abort_children(task)
    elif is_cleaning_up() and overtime.lasts(now, turns):
        return
    raise Interrupted(DEADLINE, outermost)


def _stop(tasks: Scheduler, task: Task, turns: int) -> None:
    """Raise Interrupted when ``task``, which was asked to end, has not done so for too long."""
    now = tasks.now()
    assert task.patience
    if task.patience.lasts(now, turns):
        return
    if task.overtime_of_end is None:
        task.overtime_of_end = Overtime(now)
    elif is_cleaning_up() and task.overtime_of_end.lasts(now, turns):
        return
    raise Interrupted(CANCELLED)


def is_cleaning_up() -> bool:
    """Return True if the code that runs now was called to deal with an interruption."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, Interrupted):
        error = error.__context__
    return error is not None


def is_over(task: Task, now: float) -> bool:
    """Return True if something is due in ``task``."""
    if task.deadlines and now >= min(task.deadlines):
        return True
    return task.patience is not None and not task.patience.lasts(now, 0)


def time_left(tasks: Scheduler) -> float:
    """The seconds until something is due in the current task or one above it; infinity without a limit."""
    ends = [tasks.ends_at]
    task: Task | None = tasks.current
    while task:
        end = end_of_wait(task)
        if end is not None:
            ends.append(end)
        task = task.parent
    return max(min(ends) - tasks.now(), _SHORTEST)


def waits_until(tasks: Scheduler) -> float:
    """When the current task stops waiting: it, or one above it that has time left, is over; else infinity."""
    ends, task = [tasks.ends_at, end_of_wait(tasks.current)], tasks.current.parent
    while task:
        if task.overtime is None and task.overtime_of_end is None:
            ends.append(end_of_wait(task))
        task = task.parent
    return min(end for end in ends if end is not None)


def end_of_wait(task: Task) -> float | None:
    """When a wait that ``task`` begins now is over at the latest."""
    ends = []
    if task.deadlines:
        overtime = task.overtime
        passed = overtime is not None and overtime.deadline in task.deadlines
        ends.append(_end(min(task.deadlines), overtime if passed else None))
    if task.patience:
        ends.append(_end(task.patience.until, task.overtime_of_end))
    return min(ends) if ends else None


def _end(due: float, overtime: Overtime | None) -> float:
    return overtime.until if overtime and is_cleaning_up() else due


# `deadline` blocks: a stack of times at which a task's work is over. Spec: 05 §9.


_DEADLINE_MS = 30_000


def milliseconds(limit: Value, default: int) -> int:
    """A duration, or a number of milliseconds, as such a number; ``default`` for anything else."""
    ms = limit.ms if type(limit) is Duration else limit if type(limit) is int else default
    return max(ms, 0)


def deadline_begin(tasks: Scheduler, limit: Value) -> float:
    """Start a `deadline` block; the result is its token, the time when it ends."""
    ms = limit.ms if type(limit) is Duration else milliseconds(limit, _DEADLINE_MS)
    when = tasks.now() + max(ms, 0) / 1000
    tasks.current.deadlines += (when,)
    tasks.expect_interruption()
    tasks.signal.pending = True
    tasks.unseen = 0
    LOOK.set(tasks.looker)
    return when


def deadline_end(tasks: Scheduler, token: float) -> None:
    task = tasks.current
    task.deadlines = task.deadlines[: _place(task, token)]
    if task.overtime and task.overtime.deadline not in task.deadlines:
        task.overtime = None
    tasks.refresh()


def pause_deadlines(tasks: Scheduler, token: float) -> tuple[float, ...]:
    """A generator that hands out an item takes its deadlines with it, from ``token`` on."""
    deadlines = tasks.current.deadlines
    at = _place(tasks.current, token)
    tasks.current.deadlines = deadlines[:at]
    tasks.refresh()
    return deadlines[at:]


def resume_deadlines(tasks: Scheduler, paused: tuple[float, ...]) -> None:
    """… and brings them back when it is asked for the next."""
    tasks.current.deadlines += paused
    tasks.refresh()
    if paused:
        expire(tasks, tasks.current)


def _place(task: Task, token: float) -> int:
    """Return where ``token`` is among the deadlines of ``task``: the innermost of equal ones."""
    for place in reversed(range(len(task.deadlines))):
        if task.deadlines[place] == token:
            return place
    return len(task.deadlines)


# `spawn` and `await`, and tasks that are never awaited. Spec: 05 §2.


def spawn(tasks: Scheduler, body: Callable[[int], Value]) -> Task:
    """Start a child of the current task."""
    if tasks.vm.spans is not None:
        from harnpy.vm.run.spans import recorded_task

        body = recorded_task(tasks.vm, body)
    task, current = tasks.create(body), tasks.current
    task.index = current.handles = current.handles + 1
    return task


def start_beside(tasks: Scheduler, body: Callable[[int], Value], kind: str) -> Task:
    """Start a task that belongs to the run: it goes on when the current one ends, and is never awaited."""
    tasks.detached.handles += 1
    task = tasks.create(body, tasks.detached)
    task.index, task.batch = tasks.detached.handles, Beside(kind)
    return task


class Beside:
    """What a task that belongs to the run is in, alone."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    def id_of(self, task: Task) -> str:
        assert task.parent
        return f"{task.parent.id()}:{self.name}:{task.index}"

    def group_id(self, task: Task) -> None:
        return None

    def on_end(self, task: Task) -> None:
        assert task.parent
        if task.parent.children:
            task.parent.children.pop(task, None)


def own_task(tasks: Scheduler, handle: Value) -> Task | None:
    """The task of a handle that the current task made and has not consumed."""
    is_own = type(handle) is Task and handle.parent is tasks.current and not handle.consumed
    return handle if is_own else None


def await_task(tasks: Scheduler, handle: Value = None) -> Value:
    """The result of a task, waited for. Raises the error that it ended with."""
    if type(handle) is not Task:
        return handle
    current = tasks.current
    if handle.parent is not current or handle.consumed:
        return None
    if not handle.done:
        handle.awaiter = current
        while not handle.done:
            tasks.suspend(handle)
    handle.consumed = True
    if current.children:
        current.children.pop(handle, None)
    if handle.error is not None:
        raise handle.error
    if handle.output:
        tasks.take_output(handle)
    return handle.result


# `cancel`, `cancel_graceful` and `is_cancelled`. Spec: 05 §2, §11.


_CANCEL_MS = 5000
_FORCED = "cancel_graceful: timeout, task forcefully aborted"


def is_cancelled(tasks: Scheduler) -> bool:
    return tasks.current.cancel_requested


def cancel_task(tasks: Scheduler, handle: Value = None) -> None:
    task = own_task(tasks, handle)
    if task and not task.done:
        tasks.abort(task)
        tasks.release(task)


def cancel_gracefully(tasks: Scheduler, handle: Value = None, timeout: Value = _CANCEL_MS) -> Value:
    """Ask a task to end, wait for it, abort it when it doesn't."""
    if type(handle) is not Task:
        return None
    task = own_task(tasks, handle)
    if task is None:
        return EnumValue("Result", "Ok", (None,))
    until = tasks.now() + milliseconds(timeout, _CANCEL_MS) / 1000
    tasks.request_cancel(task)
    task.awaiter = tasks.current
    while not task.done and tasks.now() < until:
        tasks.suspend_until(until)
    tasks.release(task)
    if not task.done:
        tasks.abort(task)
        return err(_FORCED)
    if task.error:
        return err(task.error_text())
    tasks.take_output(task)
    return EnumValue("Result", "Ok", (task.result,))


# `parallel` in its forms, and the batches of tasks behind them. Spec: 05 §3.


#: What the tasks of a `parallel` are called, by its form (05 §12).
_NAMES = {
    "count": "parallel",
    "each": "parallel each",
    "stream": "parallel each as stream",
    "settle": "parallel settle",
}


def parallel(
    tasks: Scheduler, kind: str, source: Value, body: Callable[..., Value], takes: bool, cap: Value
) -> Value:
    """The forms of 05 §3; ``body(depth, item)`` or, when it takes none, ``body(depth)``."""
    if cap is not None and type(cap) is not int:
        raise TypeFault(f"parallel max_concurrent must be an int; got {type_name(cap)}")
    items: Sequence[Value]
    if kind == "count":
        count = source if type(source) is int else 0
        tasks.vm.sizes.check_items(count)
        items = range(count)
    elif type(source) is not list:
        return None
    else:
        items = source
    limit = cap if cap and cap > 0 else len(items)
    run = body if takes else lambda depth, _: body(depth)
    if tasks.vm.spans is not None and tasks.vm.spans.on:
        return _recorded(tasks, tasks.vm.spans, kind, run, items, limit)
    return _outcome(Batch(tasks, _NAMES[kind], run, items, limit), kind)


def _outcome(batch: Batch, kind: str) -> Value:
    if kind == "stream":
        return batch.scheduler.vm.calls.generator(Stream, batch.completions())
    return batch.settled() if kind == "settle" else batch.gathered()


def _recorded(
    tasks: Scheduler, spans: Spans, kind: str, body: Callable[..., Value], items: Sequence[Value], limit: int
) -> Value:
    """The same in a span, which is that of a stream until nobody draws from it any more (04 §25)."""
    from harnpy.vm.run.spans import inside, until_drawn

    span = spans.begin("parallel", _NAMES[kind])
    if kind != "stream":
        try:
            return _outcome(Batch(tasks, _NAMES[kind], body, items, limit), kind)
        finally:
            spans.end(span, tasks=len(items))
    spans.leave(span)
    results = Batch(tasks, _NAMES[kind], inside(spans, span, body), items, limit).completions()
    return tasks.vm.calls.generator(Stream, until_drawn(spans, span, results, tasks=len(items)))


#: What it costs to start a task, in items.
_START = 8


class Batch:
    """Calls of ``body``, one for each item, that run at the same time: at most ``limit``, started in order.

    Iterating returns the tasks as they end. A task that ended keeps its slot until it is asked for.
    """

    def __init__(
        self, scheduler: Scheduler, name: str, body: Callable[..., Value], items: Sequence[Value], limit: int
    ) -> None:
        self.scheduler = scheduler
        self.name = name
        scheduler.current.groups += 1
        self.number = scheduler.current.groups
        self._body = body
        self._items = items
        self._limit = limit
        self._started = 0
        self._running: dict[Task, None] = {}
        self._ended: deque[Task] = deque()
        self._reader: Task | None = None

    def display(self) -> str:
        """Return how messages name it."""
        return f"the tasks of `{self.name}`"

    def __iter__(self) -> Iterator[Task]:
        run = self._run  # one method for all of them
        while self._started < len(self._items) or self._running:
            try:
                while self._started < len(self._items) and len(self._running) < self._limit:
                    self._start_next(run)
                while not self._ended:
                    self._wait()
            except BaseException:
                self.stop()  # nobody asks for the rest any more
                raise
            task = self._ended.popleft()
            del self._running[task]
            self.scheduler.release(task)
            yield task

    def _wait(self) -> None:
        self._reader = self.scheduler.current
        self.scheduler.suspend(self)

    def _start_next(self, run: Callable[[int], Value]) -> None:
        look(_START)
        task = self.scheduler.create(run)
        task.index, task.batch = self._started, self
        if self.scheduler.current.cancel_requested:
            self.scheduler.request_cancel(task)
        self._started += 1
        self._running[task] = None

    def _run(self, depth: int) -> Value:
        """The body of each task."""
        return self._body(depth, self._items[self.scheduler.current.index])

    def id_of(self, task: Task) -> str:
        return f"{self.group_id(task)}:{task.index}"

    def group_id(self, task: Task) -> str:
        assert task.parent
        kind = self.name.replace(" as ", " ").replace(" ", "_")
        return f"{task.parent.id()}:{kind}:{self.number}"

    def on_end(self, task: Task) -> None:
        """Receive a task that has ended."""
        self._ended.append(task)
        if self._reader and not self._reader.done:
            self.scheduler.resume(self._reader)

    def stop(self) -> None:
        """Abort what still runs."""
        for task in tuple(self._running):
            self.scheduler.abort(task)
            self.scheduler.release(task)

    # --- what comes of it -------------------------------------------------------------------------

    def _in_order(self) -> list[Task]:
        """All tasks, when the last has ended."""
        return sorted(self, key=lambda task: task.index)

    def gathered(self) -> list[Value]:
        """All results in order, or the error of the first failing index (05 §3.4)."""
        tasks = self._in_order()
        for task in tasks:
            if task.error:
                raise task.error
            self.scheduler.take_output(task)
        return [task.result for task in tasks]

    def settled(self) -> dict[str, Value]:
        """Each result or error, and how many there are of both (05 §3.4)."""
        tasks, results = self._in_order(), []
        for task in tasks:
            self.scheduler.take_output(task)
            if task.error is None:
                results.append(EnumValue("Result", "Ok", (task.result,)))
            else:
                results.append(err(task.error_text()))
        failed = sum(task.error is not None for task in tasks)
        return {"results": results, "succeeded": len(tasks) - failed, "failed": failed}

    def completions(self) -> Iterator[Value]:
        """Results as tasks end; the first error ends them all (05 §3.5)."""
        for task in self:
            self.scheduler.take_output(task)
            if task.error:
                self.stop()
                raise task.error
            yield task.result
