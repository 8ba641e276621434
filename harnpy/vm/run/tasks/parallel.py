"""`parallel` in its forms, and the batches of tasks behind them. Spec: 05 §3."""

from __future__ import annotations

from collections import deque

from harnpy.vm.errors import TypeFault
from harnpy.vm.run.calls import err
from harnpy.vm.values.objects import EnumValue, Stream, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from harnpy.spans import Spans
    from harnpy.vm.run.tasks.scheduler import Scheduler
    from harnpy.vm.run.tasks.task import Task

    Value = Any

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
    if kind == "count":
        count = source if type(source) is int else 0
        tasks.vm.sizes.check_items(count)
        items: list[Value] = list(range(count))
    elif type(source) is not list:
        return None
    else:
        items = source
    calls = [applied(body, x) if takes else body for x in tasks.vm.paced(items)]
    limit = cap if cap and cap > 0 else len(calls)
    if tasks.vm.spans is not None and tasks.vm.spans.on:
        return _recorded(tasks, tasks.vm.spans, kind, calls, limit)
    return _outcome(Batch(tasks, _NAMES[kind], calls, limit), kind)


def _outcome(batch: Batch, kind: str) -> Value:
    if kind == "stream":
        return batch.scheduler.vm.calls.generator(Stream, batch.completions())
    return batch.settled() if kind == "settle" else batch.gathered()


def _recorded(
    tasks: Scheduler, spans: Spans, kind: str, calls: list[Callable[[int], Value]], limit: int
) -> Value:
    """The same in a span, which is that of a stream until nobody draws from it any more (04 §25)."""
    from harnpy.vm.run.spans import inside, until_drawn

    span = spans.begin("parallel", _NAMES[kind])
    if kind != "stream":
        try:
            return _outcome(Batch(tasks, _NAMES[kind], calls, limit), kind)
        finally:
            spans.end(span, tasks=len(calls))
    spans.leave(span)
    within = [inside(spans, span, call) for call in calls]
    items = Batch(tasks, _NAMES[kind], within, limit).completions()
    return tasks.vm.calls.generator(Stream, until_drawn(spans, span, items, tasks=len(calls)))


def applied(body: Callable[..., Value], item: Value) -> Callable[[int], Value]:
    """``body`` for one item."""
    return lambda depth: body(depth, item)


class Batch:
    """Calls that run at the same time, at most ``limit`` of them, started in order.

    Iterating returns the tasks as they end. A task that ended keeps its slot until it is asked for.
    """

    def __init__(
        self, scheduler: Scheduler, name: str, calls: Sequence[Callable[[int], Value]], limit: int
    ) -> None:
        self.scheduler = scheduler
        self.name = name
        scheduler.current.groups += 1
        self.number = scheduler.current.groups
        self._calls = calls
        self._limit = limit
        self._started = 0
        self._running: dict[Task, None] = {}
        self._ended: deque[Task] = deque()
        self._reader: Task | None = None

    def display(self) -> str:
        """How messages name it."""
        return f"the tasks of `{self.name}`"

    def __iter__(self) -> Iterator[Task]:
        while self._started < len(self._calls) or self._running:
            while self._started < len(self._calls) and len(self._running) < self._limit:
                self._start_next()
            while not self._ended:
                self._wait()
            task = self._ended.popleft()
            del self._running[task]
            self.scheduler.release(task)
            yield task

    def _wait(self) -> None:
        self._reader = self.scheduler.current
        try:
            self.scheduler.suspend(("for", (self,)))
        except BaseException:
            self.stop()  # nobody asks for the rest any more
            raise

    def _start_next(self) -> None:
        task = self.scheduler.create(self._calls[self._started])
        task.index, task.batch = self._started, self
        if self.scheduler.current.cancel_requested:
            self.scheduler.request_cancel(task)
        self._started += 1
        self._running[task] = None

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
            ok = EnumValue("Result", "Ok", (task.result,))
            results.append(err(task.error_text()) if task.error else ok)
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
