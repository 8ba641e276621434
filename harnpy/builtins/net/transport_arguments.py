"""What the builtins for streams of events and WebSockets are given. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.builtins.bridge.live_transports import received
from harnpy.faults import Fault
from harnpy.net.http.errors import HttpError
from harnpy.vm.declare.failures import harn_error
from harnpy.vm.values.objects import Duration, Stream, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.net.transports.inbox import Inbox, Script
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def seconds_of(name: str, timeout_ms: Value) -> float | None:
    """The seconds that milliseconds or a duration are; None (nil) is no limit."""
    if timeout_ms is None:
        return None
    ms = timeout_ms.ms if type(timeout_ms) is Duration else timeout_ms
    if type(ms) is not int:
        raise HttpError(f"{name}: timeout_ms must be an int or a duration, got {type_name(ms)}")
    if ms < 0:
        raise HttpError(f"{name}: timeout_ms must not be negative, got {ms}")
    return ms / 1000


def arriving(
    vm: Vm, name: str, inbox: Inbox[Value] | Script[Value], described: Callable[[Value], Value]
) -> Stream:
    """The messages of an inbox as a stream; ``described`` returns None for one to leave out.

    ``name`` is the builtin whose failures they are: it has returned when the stream is read.
    """
    stream = vm.calls.generator(Stream, _Arriving(vm, name, inbox, described))
    assert isinstance(stream, Stream)
    return stream


class _Arriving:
    """No generator: one that is interrupted while it waits would be over."""

    def __init__(
        self, vm: Vm, name: str, inbox: Inbox[Value] | Script[Value], described: Callable[[Value], Value]
    ) -> None:
        self._vm = vm
        self._name = name
        self._inbox = inbox
        self._described = described

    def __iter__(self) -> _Arriving:
        return self

    def __next__(self) -> Value:
        while True:
            message = self._received()
            if message is None:
                raise StopIteration
            found = self._described(message)
            if found is not None:
                return found

    def _received(self) -> Value:
        try:
            return received(self._vm, self._inbox, None)
        except Fault as fault:
            problem = harn_error(fault, self._name)
        raise problem
