"""Sleeping, racing, leaving. Spec: 05 §3.7, §13; 02 §10.5."""

from __future__ import annotations

from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import ExitRequest, RuntimeFault, TypeFault
from harnpy.vm.run.tasks.cancel import cancel_gracefully, cancel_task
from harnpy.vm.run.tasks.cancel import is_cancelled as is_asked_to_end
from harnpy.vm.run.tasks.parallel import Batch, applied
from harnpy.vm.run.tasks.spawn import await_task
from harnpy.vm.values.objects import Duration, EnumValue, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Never

    from harnpy.vm.run.tasks.task import Task
    from harnpy.vm.vm import Vm

    Value = Any


# Calls of these four are recognised before any user function and go to the scheduler straight away (05 §2);
# as values, in help and in completion they are builtins like the others.


@builtin("await(handle: any) -> any", family="concurrency")
def await_(vm: Vm, handle: Value) -> Value:
    """Wait for a task: its value or its error. Anything else is returned as it is. Spec: 05 §2.

    Example:
        let task = spawn { 6 * 7 }
        await(task)  // 42
    """
    return await_task(vm.tasks, handle)


@builtin("cancel(handle: task_handle) -> nil", family="concurrency")
def cancel(vm: Vm, handle: Value) -> None:
    """Abort a task at once; none of its code runs again. Spec: 05 §2.

    Example:
        let task = spawn { sleep(1h) }
        cancel(task)  // nil
    """
    cancel_task(vm.tasks, handle)


@builtin("cancel_graceful(handle: task_handle, timeout: any = 5000) -> Result", family="concurrency")
def cancel_graceful(vm: Vm, handle: Value, timeout: Value) -> Value:
    """Ask a task to end, and abort it if it has not ended within `timeout` (ms or duration). Spec: 05 §2.

    Example:
        let task = spawn {
          while !is_cancelled() { sleep(1ms) }
          "tidied up"
        }
        unwrap(cancel_graceful(task, 1s))  // "tidied up"
    """
    return cancel_gracefully(vm.tasks, handle, timeout)


@builtin("is_cancelled() -> bool", family="concurrency")
def is_cancelled(vm: Vm) -> bool:
    """Whether the running task was asked to end. Spec: 05 §2.

    Example:
        is_cancelled()  // false
    """
    return is_asked_to_end(vm.tasks)


@builtin("sleep(d: any) -> nil", family="concurrency")
def sleep(vm: Vm, d: Value) -> None:
    """Wait for a duration, or an int of milliseconds; other tasks run meanwhile. Spec: 05 §13.

    Example:
        sleep(10ms)  // nil
    """
    ms = d.ms if type(d) is Duration else d if type(d) is int else 0
    vm.tasks.sleep(ms / 1000)


@builtin("exit(code: int = 0) -> never", family="process")
def exit_(vm: Vm, code: int) -> Never:
    """End the program at once with this exit status, clamped to 0..255. Spec: 02 §10.5.

    Example:
        if env_or("MODE", "fine") == "broken" { exit(3) }  // nil
    """
    raise ExitRequest(max(0, min(code, 255)))


@builtin("parallel_race(items: list, f: callable, options?: any) -> any", family="collections")
def parallel_race(vm: Vm, items: Value, f: Value, options: Value) -> Value:
    """The result of the first `f(item)` that succeeds; the other calls are aborted. Spec: 05 §3.7.

    An `Err` counts as a failure, an `Ok` is unwrapped. When all fail, one error lists all of them.

    Example:
        parallel_race([2, 1], { n -> sleep_ms(n * 100); "task ${n}" })  // "task 1"
    """
    if type(items) is not list:
        raise TypeFault(f"parallel_race: first argument must be a list, got {type_name(items)}")
    call = vm.callback(f, 1)
    if call is None:
        missing = "missing argument 2" if f is None else f"argument 2 must be callable, got {type_name(f)}"
        raise TypeFault(f"parallel_race: {missing}")
    cap = _cap(options)
    if not items:
        raise RuntimeFault("parallel_race: expected at least one item")
    calls = [applied(call, item) for item in items]
    batch = Batch(vm.tasks, "parallel race", calls, cap if cap > 0 else len(items))
    failures = []
    for task in batch:
        vm.tasks.take_output(task)
        failure = _failure(task)
        if failure is None:
            batch.stop()
            return _unwrapped(task.result)
        failures.append(failure)
    raise RuntimeFault(f"parallel_race: all {len(items)} task(s) failed: {'; '.join(failures)}")


def _cap(options: Value) -> int:
    value = options.get("max_concurrent") if type(options) is dict else options
    if type(options) not in (dict, int, type(None)):
        wanted = "third argument must be max_concurrent int or options dict"
        raise TypeFault(f"parallel_race: {wanted}, got {type_name(options)}")
    if value is not None and type(value) is not int:
        raise TypeFault(f"parallel_race: max_concurrent must be an int, got {type_name(value)}")
    return value or 0


def _failure(task: Task) -> str | None:
    """Why a call failed; None when it succeeded."""
    if task.error:
        return task.error_text()
    result = task.result
    if type(result) is EnumValue and result.enum == "Result" and result.variant == "Err":
        return display(result.fields[0] if result.fields else None)
    return None


def _unwrapped(result: Value) -> Value:
    if type(result) is EnumValue and result.enum == "Result":
        return result.fields[0] if result.fields else None
    return result
