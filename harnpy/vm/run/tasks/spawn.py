"""`spawn` and `await`, and tasks that are never awaited. Spec: 05 §2."""

from __future__ import annotations

from harnpy.vm.values.objects import TaskHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.run.tasks.scheduler import Scheduler
    from harnpy.vm.run.tasks.task import Task

    Value = Any


def spawn(tasks: Scheduler, body: Callable[[int], Value]) -> TaskHandle:
    """Start a child of the current task."""
    if tasks.vm.spans is not None:
        from harnpy.vm.run.spans import recorded_task

        body = recorded_task(tasks.vm, body)
    tasks.current.handles += 1
    task = tasks.create(body)
    task.index = tasks.current.handles
    return TaskHandle(task.handle_id(), task)


def start_beside(tasks: Scheduler, body: Callable[[int], Value], kind: str) -> Task:
    """Start a task that belongs to the run: it goes on when the current one ends, and is never awaited."""
    tasks.detached.handles += 1
    task = tasks.create(body, tasks.detached)
    task.index, task.kind = tasks.detached.handles, kind
    return task


def own_task(tasks: Scheduler, handle: Value) -> Task | None:
    """The task of a handle that the current task made and has not consumed."""
    task: Task | None = handle.task if type(handle) is TaskHandle else None
    return task if task and task.parent is tasks.current and not task.consumed else None


def await_task(tasks: Scheduler, handle: Value = None) -> Value:
    """The result of a task, waited for. Raises the error that it ended with."""
    if type(handle) is not TaskHandle:
        return handle
    task = own_task(tasks, handle)
    if task is None:
        return None
    tasks.join(task)
    tasks.release(task)
    if task.error:
        raise task.error
    tasks.take_output(task)
    return task.result
