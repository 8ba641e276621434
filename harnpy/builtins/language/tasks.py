"""Tasks: sleeping, racing, cancelling, leaving, and the channels between tasks.

Spec: 02 §10.5, 05 §3.7, §4, §5, §13.
"""

from __future__ import annotations

from harnpy.builtins.language.arguments import seconds_of
from harnpy.faults import paced
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.errors import ExitRequest, RuntimeFault, Thrown, TypeFault
from harnpy.vm.run.channels import Channel, is_mailbox, select
from harnpy.vm.run.tasks import Batch, await_task, cancel_gracefully, cancel_task
from harnpy.vm.run.tasks import is_cancelled as is_asked_to_end
from harnpy.vm.values import Duration, EnumValue, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Never

    from harnpy.vm.run.tasks import Task
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    AnyValue = Any

# Sleeping, racing, leaving. Spec: 05 §3.7, §13; 02 §10.5.


# Calls of these four are recognised before any user function and go to the scheduler straight away (05 §2);
# as values, in help and in completion they are builtins like the others.


@builtin("await(handle: any) -> any", family="concurrency")
def await_(vm: Vm, handle: AnyValue) -> AnyValue:
    """Wait for a task; return its value or throw its error. Anything else is returned unchanged. Spec: 05 §2.

    Example:
        let task = spawn { 6 * 7 }
        await(task)  // 42
    """
    return await_task(vm.tasks, handle)


@builtin("cancel(handle: task_handle) -> nil", family="concurrency")
def cancel(vm: Vm, handle: AnyValue) -> None:
    """Abort a task at once; no more of its code runs. Spec: 05 §2.

    Example:
        let task = spawn { sleep(1h) }
        cancel(task)  // nil
    """
    cancel_task(vm.tasks, handle)


@builtin("cancel_graceful(handle: task_handle, timeout: any = 5000) -> Result", family="concurrency")
def cancel_graceful(vm: Vm, handle: AnyValue, timeout: AnyValue) -> AnyValue:
    """Ask a task to end; abort it if it hasn't ended within `timeout` (ms or duration). Spec: 05 §2.

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
    """Return true if the running task was asked to end. Spec: 05 §2.

    Example: is_cancelled()  // false
    """
    return is_asked_to_end(vm.tasks)


@builtin("sleep(d: any) -> nil", family="concurrency")
def sleep(vm: Vm, d: AnyValue) -> None:
    """Wait for a duration, or an int of milliseconds; other tasks run meanwhile. Spec: 05 §13.

    Example: sleep(10ms)  // nil
    """
    ms = d.ms if type(d) is Duration else d if type(d) is int else 0
    vm.tasks.sleep(ms / 1000)


@builtin("exit(code: int = 0) -> never", family="process")
def exit_(vm: Vm, code: int) -> Never:
    """End the program at once with this exit status, clamped to 0..255. Spec: 02 §10.5.

    Example: if env_or("MODE", "fine") == "broken" { exit(3) }  // nil
    """
    raise ExitRequest(max(0, min(code, 255)))


@builtin("parallel_race(items: list, f: callable, options?: any) -> any", family="collections")
def parallel_race(vm: Vm, items: AnyValue, f: AnyValue, options: AnyValue) -> AnyValue:
    """Return the result of the first `f(item)` that succeeds; abort the other calls. Spec: 05 §3.7.

    An `Err` counts as a failure, an `Ok` is unwrapped. When all fail, one error lists all of them.

    Example: parallel_race([200, 100], { n -> sleep_ms(n); "slept ${n}" })  // "slept 100"
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
    batch = Batch(vm.tasks, "parallel race", call, items, cap if cap > 0 else len(items))
    failures = []
    for task in batch:
        vm.tasks.take_output(task)
        failure = _failure(task)
        if failure is None:
            batch.stop()
            return _unwrapped(task.result)
        failures.append(failure)
    raise RuntimeFault(f"parallel_race: all {len(items)} task(s) failed: {'; '.join(failures)}")


def _cap(options: AnyValue) -> int:
    value = options.get("max_concurrent") if type(options) is dict else options
    if type(options) not in (dict, int, type(None)):
        wanted = "third argument must be max_concurrent int or options dict"
        raise TypeFault(f"parallel_race: {wanted}, got {type_name(options)}")
    if value is not None and type(value) is not int:
        raise TypeFault(f"parallel_race: max_concurrent must be an int, got {type_name(value)}")
    return value or 0


def _failure(task: Task) -> str | None:
    """Return why a call failed; None when it succeeded."""
    if task.error:
        return task.error_text()
    result = task.result
    if type(result) is EnumValue and result.enum == "Result" and result.variant == "Err":
        return display(result.fields[0] if result.fields else None)
    return None


def _unwrapped(result: AnyValue) -> AnyValue:
    if type(result) is EnumValue and result.enum == "Result":
        return result.fields[0] if result.fields else None
    return result


# Channels between tasks. Spec: 05 §4, §5.


@builtin('channel(name: string = "default", capacity: int = 256) -> channel', family="concurrency")
def channel(vm: Vm, name: str, capacity: int) -> Channel:
    """Return a new queue of at most `capacity` messages, for any number of senders and receivers.

    `for x in ch { }` takes messages until the channel is closed and drained. Spec: 05 §4.

    Example:
        let ch = channel("jobs", 10)
        send(ch, "a")
        receive(ch)  // "a"
    """
    return Channel(vm.tasks, name, capacity)


@builtin("send(ch: channel, value: any) -> bool", family="concurrency", counted=True)
def send(vm: Vm, ch: Value = ABSENT, value: Value = ABSENT) -> bool:
    """Put a message into a channel, waiting while it is full; false if it is closed.

    Example:
        let ch = channel("jobs")
        [send(ch, 1), close_channel(ch), send(ch, 2)]  // [true, nil, false]
    """
    if value is ABSENT:
        raise Thrown("send: requires channel and value")
    return _channel("send", ch).send(value)


@builtin("receive(ch: channel) -> any", family="concurrency", counted=True)
def receive(vm: Vm, ch: Value = ABSENT) -> Value:
    """Wait for the next message of a channel; nil once it is closed and empty.

    Example:
        let ch = channel("jobs")
        spawn { send(ch, "from a task") }
        receive(ch)  // "from a task"
    """
    return next(_channel("receive", ch), None)


@builtin("try_receive(ch: channel) -> any", family="concurrency", counted=True)
def try_receive(vm: Vm, ch: Value = ABSENT) -> Value:
    """Return the next message of a channel, or nil without waiting.

    Example: try_receive(channel("jobs"))  // nil
    """
    source = _channel("try_receive", ch)
    return source.take() if source.readable else None


@builtin("close_channel(ch: channel) -> nil", family="concurrency", counted=True)
def close_channel(vm: Vm, ch: Value = ABSENT) -> None:
    """Close a channel to new messages; those already in it can still be received.

    Example:
        let ch = channel("jobs")
        send(ch, 1)
        close_channel(ch)
        [receive(ch), receive(ch)]  // [1, nil]
    """
    _channel("close_channel", ch).close()


@builtin("channel_select(channels: list, timeout?: any) -> dict | nil", family="concurrency")
def channel_select(vm: Vm, channels: Value, timeout: Value) -> Value:
    """Return the next message of the first channel or mailbox that has one, as `{channel, index, value}`.

    Waits at most `timeout`: ms, a duration, or a dict with `timeout_ms`; nil when the time is up or all
    channels are closed and drained. Spec: 05 §5.

    Example:
        let a = channel("a")
        let b = channel("b")
        send(b, "hello")
        channel_select([a, b]).value  // "hello"
    """
    if type(channels) is not list:
        raise Thrown("channel_select: first argument must be a list of channels")
    if any(type(item) is not Channel and not is_mailbox(item) for item in paced(channels)):
        raise Thrown("channel_select: channel list must contain only channels")
    index, value = select(vm.tasks, channels, seconds_of("channel_select", timeout))
    if index < 0:
        return None
    source = channels[index]
    name = source.name if type(source) is Channel else source["key"]
    return {"channel": name, "index": index, "value": value}


def _channel(caller: str, value: Value) -> Channel:
    if value is ABSENT:
        raise Thrown(f"{caller}: requires a channel")
    if type(value) is not Channel:
        raise Thrown(f"{caller}: first argument must be a channel")
    return value
