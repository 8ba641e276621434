"""What the builtins for streams of events and WebSockets are given. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.builtins.bridge.live_transports import TimedOut, received
from harnpy.builtins.net.http_arguments import ProgramDisk, options_of
from harnpy.net.http.errors import HttpError

__all__ = ["Arriving", "cap_of", "disk_of", "options_of", "seconds_of"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.net.transports.inbox import Inbox, Script
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def disk_of(vm: Vm, name: str) -> ProgramDisk:
    """The files that the options of the builtin ``name`` may name."""
    return ProgramDisk(vm, name)


def cap_of(vm: Vm) -> int | None:
    """What the embedder lets a response have, in bytes."""
    return None if vm.meter is None else vm.meter.most("response_bytes")


def seconds_of(name: str, timeout_ms: int | None) -> float | None:
    if timeout_ms is None:
        return None
    if timeout_ms < 0:
        raise HttpError(f"{name}: timeout_ms must not be negative, got {timeout_ms}")
    return timeout_ms / 1000


class Arriving:
    """The messages of an inbox, as the source of a stream; ``described`` returns None for one to leave out.

    No generator: one that is interrupted while it waits would be over.
    """

    def __init__(
        self, vm: Vm, inbox: Inbox[Value] | Script[Value], described: Callable[[Value], Value]
    ) -> None:
        self._vm = vm
        self._inbox = inbox
        self._described = described

    def __iter__(self) -> Arriving:
        return self

    def __next__(self) -> Value:
        while True:
            message = received(self._vm, self._inbox, None)
            if message is None or isinstance(message, TimedOut):
                raise StopIteration
            found = self._described(message)
            if found is not None:
                return found
