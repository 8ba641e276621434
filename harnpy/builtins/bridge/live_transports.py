"""The streams of events and the WebSockets of a Vm. Spec: 04 §21.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.builtins.bridge.live_http import egress_of, http_of
from harnpy.net.sse.calls import EventStreams
from harnpy.net.transports.mocks import Mocks
from harnpy.net.websockets.calls import WebSockets

if TYPE_CHECKING:
    from typing import TypeVar

    from harnpy.net.transports.inbox import Inbox, Script
    from harnpy.vm.vm import Vm

    T = TypeVar("T")


class Transports(NamedTuple):
    """What one program has open."""

    mocks: Mocks
    events: EventStreams
    sockets: WebSockets

    async def aclose(self) -> None:
        await self.events.aclose()
        await self.sockets.aclose()


class TimedOut(NamedTuple):
    """Nothing came in time."""


def transports_of(vm: Vm) -> Transports:
    return vm.state(Transports, lambda: _new_transports(vm))


def _new_transports(vm: Vm) -> Transports:
    http, egress, mocks = http_of(vm), egress_of(vm), Mocks()
    # What is read ahead has no task go on that waits for something else.
    start = vm.tasks.serve
    transports = Transports(
        mocks, EventStreams(http, egress, mocks, start), WebSockets(http, egress, mocks, start)
    )
    vm.tasks.at_end(transports.aclose)
    return transports


def received(vm: Vm, inbox: Inbox[T] | Script[T], seconds: float | None) -> T | TimedOut | None:
    """Return the next message, None after the last one; `TimedOut` when none came in so many seconds.

    Only the calling task waits. One that is cancelled, or whose deadline passes, has taken nothing.
    """
    while not inbox.is_ready:
        if not vm.tasks.await_coroutine(inbox.wait(seconds)):
            return TimedOut()
    return inbox.take()
