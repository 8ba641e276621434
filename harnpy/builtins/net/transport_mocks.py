"""Streams of events and WebSockets without a network. Spec: 04 §21.5."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_transports import transports_of
from harnpy.net.transports.reading import mocked_events, mocked_socket
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="streaming")


@builtin("sse_mock(pattern: string, events: list) -> nil")
def sse_mock(vm: Vm, pattern: str, events: Value) -> None:
    """Have `sse_connect` give these events for URLs like `pattern`, in which `*` is any text.

    An event is `{event?, data, id?, retry_ms?}`, or a string, its data.

    Example:
        sse_mock("https://sse-mock.test/*", ["hi"])
        let feed = sse_connect("GET", "https://sse-mock.test/news")
        sse_events(feed).next().value.data  // "hi"
    """
    transports_of(vm).mocks.events.add(pattern, mocked_events(events))


@builtin("websocket_mock(pattern: string, messages: any) -> nil")
def websocket_mock(vm: Vm, pattern: str, messages: Value) -> None:
    """Have `websocket_connect` give these messages for URLs like `pattern`, in which `*` is any text.

    A list of messages, or `{messages, echo}`: with `echo: true` what is sent comes back. A message is a
    string, bytes, or a dict as of `websocket_receive`.

    Example:
        websocket_mock("wss://websocket-mock.test/*", ["hi"])
        websocket_receive(websocket_connect("wss://websocket-mock.test/chat")).data  // "hi"
    """
    transports_of(vm).mocks.sockets.add(pattern, mocked_socket(messages))


@builtin("transport_mock_calls() -> list")
def transport_mock_calls(vm: Vm) -> list[Value]:
    """What was done with mocks, in order: `{type, url, …}`.

    `type` is `sse_connect` (with `method`, `headers`), `websocket_connect` (`headers`), `websocket_send`
    (`message`) or `websocket_close`. Secrets are masked.

    Example:
        transport_mock_clear()
        websocket_mock("wss://transport-mock-calls.test/*", [])
        websocket_close(websocket_connect("wss://transport-mock-calls.test/chat"))
        transport_mock_calls().map({ call -> call.type })  // ["websocket_connect", "websocket_close"]
    """
    return [*transports_of(vm).mocks.calls]


@builtin("transport_mock_clear() -> nil")
def transport_mock_clear(vm: Vm) -> None:
    """Forget the mocks of events and WebSockets, and what was done with them.

    Example:
        sse_mock("https://transport-mock-clear.test/*", [])
        transport_mock_clear()
        transport_mock_calls()  // []
    """
    transports_of(vm).mocks.clear()
