"""`cancel`, `cancel_graceful` and `is_cancelled`. Spec: 05 §2, §11."""

from __future__ import annotations

from harnpy.vm.run.calls import err
from harnpy.vm.run.tasks.deadline import milliseconds
from harnpy.vm.run.tasks.spawn import own_task
from harnpy.vm.values.objects import EnumValue, TaskHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.run.tasks.scheduler import Scheduler

    Value = Any

_DEFAULT_MS = 5000
_FORCED = "cancel_graceful: timeout, task forcefully aborted"


def is_cancelled(tasks: Scheduler) -> bool:
    return tasks.current.cancel_requested


def cancel_task(tasks: Scheduler, handle: Value = None) -> None:
    task = own_task(tasks, handle)
    if task and not task.done:
        tasks.abort(task)
        tasks.release(task)


def cancel_gracefully(tasks: Scheduler, handle: Value = None, timeout: Value = _DEFAULT_MS) -> Value:
    """Ask a task to end, wait for it, abort it when it doesn't."""
    if type(handle) is not TaskHandle:
        return None
    task = own_task(tasks, handle)
    if task is None:
        return EnumValue("Result", "Ok", (None,))
    until = tasks.now() + milliseconds(timeout, _DEFAULT_MS) / 1000
    tasks.request_cancel(task)
    task.waiting += (tasks.current,)
    while not task.done and tasks.now() < until:
        tasks.wake_at(tasks.current, until)
        tasks.suspend()
    tasks.release(task)
    if not task.done:
        tasks.abort(task)
        return err(_FORCED)
    if task.error:
        return err(task.error_text())
    tasks.take_output(task)
    return EnumValue("Result", "Ok", (task.result,))
