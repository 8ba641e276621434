"""What programs do with tasks: `spawn`, `await`, `cancel`, the `parallel` forms. Spec: 05 §2, §3."""

from __future__ import annotations

from harnpy.vm.errors import TypeFault
from harnpy.vm.run.calls import err
from harnpy.vm.run.tasks.scheduler import Batch, Scheduler, Task
from harnpy.vm.values.objects import Duration, EnumValue, Stream, TaskHandle, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Value = Any

#: What the tasks of a `parallel` are called, by its form (05 §12).
_NAMES = {
    "count": "parallel",
    "each": "parallel each",
    "stream": "parallel each as stream",
    "settle": "parallel settle",
}
_FORCED = "cancel_graceful: timeout, task forcefully aborted"


def applied(body: Callable[..., Value], item: Value) -> Callable[[int], Value]:
    """``body`` for one item."""
    return lambda depth: body(depth, item)


class Tasks(Scheduler):
    """The scheduler of one Vm, as generated code and builtins use it."""

    # --- spawn, await, cancel ---------------------------------------------------------------------

    def spawn(self, body: Callable[[int], Value]) -> TaskHandle:
        self.current.handles += 1
        task = self.create(body)
        task.index = self.current.handles
        return TaskHandle(task.handle_id(), task)

    def start_beside(self, body: Callable[[int], Value], kind: str) -> Task:
        """A task that belongs to the run: it goes on when the current one ends, and nobody awaits it."""
        self.detached.handles += 1
        task = self.create(body, self.detached)
        task.index, task.kind = self.detached.handles, kind
        return task

    def own(self, handle: Value) -> Task | None:
        """The task of a handle that the current task made and has not consumed."""
        task: Task | None = handle.task if type(handle) is TaskHandle else None
        return task if task and task.parent is self.current and not task.consumed else None

    def await_task(self, handle: Value = None) -> Value:
        if type(handle) is not TaskHandle:
            return handle
        task = self.own(handle)
        if task is None:
            return None
        self.join(task)
        self.release(task)
        if task.error:
            raise task.error
        self.take_output(task)
        return task.result

    def cancel_task(self, handle: Value = None, _: Value = None) -> None:
        task = self.own(handle)
        if task and not task.done:
            self.abort(task)
            self.release(task)

    def cancel_gracefully(self, handle: Value = None, timeout: Value = 5000) -> Value:
        """Ask a task to end, wait for it, abort it when it doesn't (05 §2)."""
        if type(handle) is not TaskHandle:
            return None
        task = self.own(handle)
        if task is None:
            return EnumValue("Result", "Ok", (None,))
        ms = timeout.ms if type(timeout) is Duration else timeout if type(timeout) is int else 5000
        until = self.vm.world.clock.monotonic() + max(ms, 0) / 1000
        self.request_cancel(task)
        task.waiting += (self.current,)
        while not task.done and self.vm.world.clock.monotonic() < until:
            self.wake_at(self.current, until)
            self.suspend()
        self.release(task)
        if not task.done:
            self.abort(task)
            return err(_FORCED)
        if task.error:
            return err(task.error_text())
        self.take_output(task)
        return EnumValue("Result", "Ok", (task.result,))

    # --- select -----------------------------------------------------------------------------------

    def select(self, sources: Sequence[Value], seconds: float | None) -> tuple[int, Value]:
        """The arm of a `select` statement that runs, and its item; see `channels.select`."""
        from harnpy.vm.run.tasks.channels import select

        return select(self, sources, seconds)

    def select_limit(self, limit: Value) -> float:
        """Seconds that a `timeout` arm gives: a duration or ms, anything else is 5 s (05 §5)."""
        ms = limit.ms if type(limit) is Duration else limit if type(limit) is int else 5000
        return max(ms, 0) / 1000

    # --- parallel ---------------------------------------------------------------------------------

    def parallel(
        self, kind: str, source: Value, body: Callable[..., Value], takes: bool, cap: Value
    ) -> Value:
        """The forms of 05 §3; ``body(depth, item)`` or, when it takes none, ``body(depth)``."""
        if cap is not None and type(cap) is not int:
            raise TypeFault(f"parallel max_concurrent must be an int; got {type_name(cap)}")
        if kind == "count":
            items: list[Value] = list(range(source)) if type(source) is int else []
        elif type(source) is not list:
            return None
        else:
            items = source
        calls = [applied(body, x) if takes else body for x in items]
        limit = cap if cap and cap > 0 else len(calls)
        batch = Batch(self, _NAMES[kind], calls, limit)
        if kind == "stream":
            return self.vm.calls.generator(Stream, self.completions(batch))
        tasks = sorted(batch, key=lambda task: task.index)
        return self.settled(tasks) if kind == "settle" else self.gathered(tasks)

    def gathered(self, tasks: list[Task]) -> list[Value]:
        """All results in order, or the error of the first failing index (05 §3.4)."""
        for task in tasks:
            if task.error:
                raise task.error
            self.take_output(task)
        return [task.result for task in tasks]

    def settled(self, tasks: list[Task]) -> dict[str, Value]:
        results = []
        for task in tasks:
            self.take_output(task)
            ok = EnumValue("Result", "Ok", (task.result,))
            results.append(err(task.error_text()) if task.error else ok)
        failed = sum(task.error is not None for task in tasks)
        return {"results": results, "succeeded": len(tasks) - failed, "failed": failed}

    def completions(self, batch: Batch) -> Iterator[Value]:
        """Results as tasks end; the first error ends them all (05 §3.5)."""
        for task in batch:
            self.take_output(task)
            if task.error:
                batch.stop()
                raise task.error
            yield task.result
