"""Channels between tasks. Spec: 05 §4, §5."""

from __future__ import annotations

from harnpy.builtins.language.tasks.timeouts import seconds_of
from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.errors import Thrown
from harnpy.vm.run.tasks.channels import Channel
from harnpy.vm.run.tasks.mailboxes import is_mailbox
from harnpy.vm.run.tasks.select import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin('channel(name: string = "default", capacity: int = 256) -> channel', family="concurrency")
def channel(vm: Vm, name: str, capacity: int) -> Channel:
    """A new queue of at most `capacity` messages, for any number of senders and receivers.

    `for x in ch { }` takes messages until the channel is closed and drained. Spec: 05 §4.

    Example:
        let ch = channel("jobs", 10)
        send(ch, "a")
        receive(ch)  // "a"
    """
    return Channel(vm.tasks, name, capacity)


@builtin("send(ch: channel, value: any) -> bool", family="concurrency", counted=True)
def send(vm: Vm, ch: Value = ABSENT, value: Value = ABSENT) -> bool:
    """Put a message into a channel, waiting while it is full; false when it is closed.

    Example:
        let ch = channel("jobs")
        [send(ch, 1), close_channel(ch), send(ch, 2)]  // [true, nil, false]
    """
    if value is ABSENT:
        raise Thrown("send: requires channel and value")
    return _channel("send", ch).send(value)


@builtin("receive(ch: channel) -> any", family="concurrency", counted=True)
def receive(vm: Vm, ch: Value = ABSENT) -> Value:
    """The next message of a channel, waited for; nil when it is closed and drained.

    Example:
        let ch = channel("jobs")
        spawn { send(ch, "from a task") }
        receive(ch)  // "from a task"
    """
    return next(_channel("receive", ch), None)


@builtin("try_receive(ch: channel) -> any", family="concurrency", counted=True)
def try_receive(vm: Vm, ch: Value = ABSENT) -> Value:
    """The next message of a channel, or nil when none is ready; never waits.

    Example:
        try_receive(channel("jobs"))  // nil
    """
    source = _channel("try_receive", ch)
    return source.take() if source.readable else None


@builtin("close_channel(ch: channel) -> nil", family="concurrency", counted=True)
def close_channel(vm: Vm, ch: Value = ABSENT) -> None:
    """Close a channel for new messages; those already in it can still be received.

    Example:
        let ch = channel("jobs")
        send(ch, 1)
        close_channel(ch)
        [receive(ch), receive(ch)]  // [1, nil]
    """
    _channel("close_channel", ch).close()


@builtin("channel_select(channels: list, timeout?: any) -> dict | nil", family="concurrency")
def channel_select(vm: Vm, channels: Value, timeout: Value) -> Value:
    """The next message of the first channel or mailbox that has one, as `{channel, index, value}`.

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
    if any(type(item) is not Channel and not is_mailbox(item) for item in channels):
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
