"""What programs do with tasks: `spawn`, `await`, `cancel`, the `parallel` forms. Spec: 05 §2, §3."""

from __future__ import annotations

from collections import deque

from harnpy.vm.calls import err
from harnpy.vm.errors import TypeFault
from harnpy.vm.scheduler import Scheduler, Task
from harnpy.vm.values import Duration, EnumValue, Stream, TaskHandle, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Value = Any

_FORCED = "cancel_graceful: timeout, task forcefully aborted"


def applied(body: Callable[..., Value], item: Value) -> Callable[[int], Value]:
    """``body`` for one item."""
    return lambda depth: body(depth, item)


class Tasks(Scheduler):
    """The scheduler of one Vm, as generated code and builtins use it."""

    # --- spawn, await, cancel ---------------------------------------------------------------------

    def spawn(self, body: Callable[[int], Value]) -> TaskHandle:
        self.current.handles += 1
        return TaskHandle(f"vm_task_{self.current.handles}", self.create(body))

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

    def release(self, task: Task) -> None:
        task.consumed = True
        if task in self.current.children:
            self.current.children.remove(task)

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
        until = self.vm.host.monotonic() + max(ms, 0) / 1000
        task.cancel_requested = True
        if task.started and not task.done:
            self.resume(task)
        task.waiting_for_me.append(self.current)
        while not task.done and self.vm.host.monotonic() < until:
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
        if kind == "stream":
            return Stream(self.completions(calls, limit))
        tasks = self.run_all(calls, limit)
        return self.settled(tasks) if kind == "settle" else self.gathered(tasks)

    def run_all(self, calls: list[Callable[[int], Value]], limit: int) -> list[Task]:
        """Run every call to its end, at most ``limit`` at once, started in order."""
        tasks: list[Task] = []
        for call in calls:
            while sum(not task.done for task in tasks) >= limit:
                self.wait_for_any(tasks)
            tasks.append(self.create(call))
        for task in tasks:
            self.join(task)
            self.release(task)
        return tasks

    def wait_for_any(self, tasks: list[Task]) -> None:
        """Suspend until one of the running tasks ends."""
        running = [task for task in tasks if not task.done]
        for task in running:
            task.waiting_for_me.append(self.current)
        self.suspend()
        for task in running:
            if self.current in task.waiting_for_me:
                task.waiting_for_me.remove(self.current)

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

    def completions(self, calls: list[Callable[[int], Value]], limit: int) -> Iterator[Value]:
        """Results as tasks end; a finished task keeps its slot until its result is taken (05 §3.5)."""
        waiting = deque(calls)
        running: list[Task] = []
        while waiting or running:
            while waiting and len(running) < limit:
                running.append(self.create(waiting.popleft()))
            while not (finished := [task for task in running if task.done]):
                self.wait_for_any(running)
            first = min(finished, key=lambda task: task.finished_at)
            running.remove(first)
            self.release(first)
            self.take_output(first)
            if first.error:
                for task in running:
                    self.abort(task)
                raise first.error
            yield first.result
