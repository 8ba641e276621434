"""Server-sent events and WebSockets, as a client has them, also mocked. Spec: 04 §21.5."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from harnpy.builtins.bridge.live_http import egress_of, http_of, response_bytes_of
from harnpy.builtins.net.http_requests import ProgramDisk, options_of
from harnpy.faults import Fault
from harnpy.net.errors import HttpError
from harnpy.net.sse import Event
from harnpy.net.transports import (
    EventStreams,
    TransportMocks,
    WebSockets,
    message_dict,
    message_to_send,
    mocked_events,
    mocked_socket,
    read_events,
    read_socket,
)
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import harn_error
from harnpy.vm.values import Duration, Stream, type_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from harnpy.net.inbox import Inbox, Script
    from harnpy.net.sse import Opened
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    T = TypeVar("T")
    Dict = dict[str, Value]

# The streams of events and the WebSockets of a Vm. Spec: 04 §21.5.


class Transports(NamedTuple):
    """The connections that one program has open."""

    mocks: TransportMocks
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
    http, egress, mocks = http_of(vm), egress_of(vm), TransportMocks()
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


# What the builtins for streams of events and WebSockets are given. Spec: 04 §21.5.


def seconds_of(name: str, timeout_ms: Value) -> float | None:
    """Return the seconds that milliseconds or a duration are; None (nil) is no limit."""
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
    """Return the messages of an inbox as a stream; ``described`` returns None for one to leave out.

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


# Server-sent events, as a client receives them. Spec: 04 §21.5.


builtin = partial(declare, family="streaming")


@builtin("sse_connect(method: string, url: string, opts?: dict) -> string", guarded=True)
def sse_connect(vm: Vm, method: str, url: str, opts: Value) -> str:
    """Return the handle of a stream of server-sent events, whose first connection is open.

    A broken connection is reopened where it ended; see the option `reconnect`.

    Example:
        sse_mock("https://sse-connect.test/news", [{event: "news", data: "hi", id: "1"}])
        let feed = sse_connect("GET", "https://sse-connect.test/news")
        [sse_receive(feed).type, sse_receive(feed).data, sse_receive(feed)]  // ["open", "hi", nil]
    """
    options = options_of(vm, "sse_connect", opts)
    if not method:
        raise HttpError("sse_connect: method is required")
    if not url:
        raise HttpError("sse_connect: URL is required")
    asked = read_events(
        method, url, options, ProgramDisk(vm, "sse_connect"), response_bytes_of(vm), vm.world.random.random
    )
    streams = transports_of(vm).events
    return streams.mocked(asked) or vm.tasks.await_coroutine(streams.open(asked))


@builtin("sse_receive(h: any, timeout_ms?: any) -> dict | nil")
def sse_receive(vm: Vm, h: Value, timeout_ms: Value) -> Dict | None:
    """Return the next item: `{type: "open"}` per connection, or `{type: "event", event, data, id, retry_ms}`.

    `{type: "timeout"}` when nothing came in `timeout_ms`, by default without end; nil after the last event.

    Example:
        sse_mock("https://sse-receive.test/*", ["hi"])
        let feed = sse_connect("GET", "https://sse-receive.test/news")
        sse_receive(feed, 1000)  // {type: "open"}
    """
    inbox = transports_of(vm).events.get("sse_receive", h)
    item = received(vm, inbox, seconds_of("sse_receive", timeout_ms))
    if isinstance(item, TimedOut):
        return {"type": "timeout"}
    return None if item is None else _described(item)


@builtin("sse_events(h: any) -> stream")
def sse_events(vm: Vm, h: Value) -> Stream:
    """Return the events as a stream: `{type: "event", event, data, id, retry_ms}`. `sse_close` ends it.

    Example:
        sse_mock("https://sse-events.test/*", ["a", "b"])
        let events = sse_events(sse_connect("GET", "https://sse-events.test/news"))
        stream.map(events, { event -> event.data }).to_list()  // ["a", "b"]
    """
    inbox = transports_of(vm).events.get("sse_events", h)
    return arriving(
        vm, "sse_events", inbox, lambda item: _described(item) if isinstance(item, Event) else None
    )


@builtin("sse_close(h: any) -> bool")
def sse_close(vm: Vm, h: Value) -> bool:
    """Close a stream of events; return whether it was open.

    Example:
        sse_mock("https://sse-close.test/*", ["a"])
        let feed = sse_connect("GET", "https://sse-close.test/news")
        [sse_close(feed), sse_close(feed)]  // [true, false]
    """
    inbox = transports_of(vm).events.take("sse_close", h)
    if inbox is None:
        return False
    vm.tasks.await_coroutine(inbox.aclose())
    return True


def _described(item: Opened | Event) -> Dict:
    if not isinstance(item, Event):
        return {"type": "open"}
    return {"type": "event", **item._asdict()}


# WebSockets, as a client has them. Spec: 04 §21.5.


@builtin("websocket_connect(url: string, opts?: dict) -> string", guarded=True)
def websocket_connect(vm: Vm, url: str, opts: Value) -> str:
    """Return the handle of an open WebSocket.

    Example:
        websocket_mock("wss://websocket-connect.test/chat", {messages: ["welcome"], echo: true})
        let socket = websocket_connect("wss://websocket-connect.test/chat")
        websocket_send(socket, "hi")
        [websocket_receive(socket).data, websocket_receive(socket).data]  // ["welcome", "hi"]
    """
    options = options_of(vm, "websocket_connect", opts)
    if not url:
        raise HttpError("websocket_connect: URL is required")
    asked = read_socket(url, options, ProgramDisk(vm, "websocket_connect"), response_bytes_of(vm))
    sockets = transports_of(vm).sockets
    return sockets.mocked(asked) or vm.tasks.await_coroutine(sockets.open(asked))


@builtin("websocket_send(h: any, msg: any, opts?: dict) -> bool", guarded=True)
def websocket_send(vm: Vm, h: Value, msg: Value, opts: Value) -> bool:
    """Send a message, bytes as binary and anything else as text; return true.

    `opts.type` may be `text`, `binary`, `ping`, `pong` or `close`, the last one with a `code` and a `reason`.

    Example:
        websocket_mock("wss://websocket-send.test/*", {echo: true})
        let socket = websocket_connect("wss://websocket-send.test/chat")
        websocket_send(socket, nil, {type: "close", code: 1001})
        websocket_receive(socket)  // {type: "close", code: 1001, reason: ""}
    """
    options = options_of(vm, "websocket_send", opts)
    socket = transports_of(vm).sockets.get("websocket_send", h)
    message = message_to_send(msg, options.get("type"), options.get("code"), options.get("reason"))
    vm.tasks.await_coroutine(socket.send(message))
    return True


@builtin("websocket_receive(h: any, timeout_ms?: any) -> dict | nil")
def websocket_receive(vm: Vm, h: Value, timeout_ms: Value) -> Dict | None:
    """Return the next item: `{type: "text", data}`, or with `data_base64` a binary message, a ping or a pong.

    `{type: "close", code?, reason?}`, and nil after it. `{type: "timeout"}` when nothing came in
    `timeout_ms`, which has no end by default. Pings are answered as they come.

    Example:
        websocket_mock("wss://websocket-receive.test/*", ["hi"])
        websocket_receive(websocket_connect("wss://websocket-receive.test/"))  // {type: "text", data: "hi"}
    """
    socket = transports_of(vm).sockets.get("websocket_receive", h)
    message = received(vm, socket.inbox, seconds_of("websocket_receive", timeout_ms))
    if isinstance(message, TimedOut):
        return {"type": "timeout"}
    return None if message is None else message_dict(message)


@builtin("websocket_messages(h: any) -> stream")
def websocket_messages(vm: Vm, h: Value) -> Stream:
    """Return incoming text and binary messages as a stream, until the connection is closed.

    Example:
        websocket_mock("wss://websocket-messages.test/*", ["a", "b"])
        let messages = websocket_messages(websocket_connect("wss://websocket-messages.test/chat"))
        stream.map(messages, { message -> message.data }).to_list()  // ["a", "b"]
    """
    inbox = transports_of(vm).sockets.get("websocket_messages", h).inbox
    return arriving(
        vm,
        "websocket_messages",
        inbox,
        lambda message: message_dict(message) if message.type in ("text", "binary") else None,
    )


@builtin("websocket_close(h: any) -> bool")
def websocket_close(vm: Vm, h: Value) -> bool:
    """Close a WebSocket; return whether it was open.

    Example:
        websocket_mock("wss://websocket-close.test/*", [])
        let socket = websocket_connect("wss://websocket-close.test/chat")
        [websocket_close(socket), websocket_close(socket)]  // [true, false]
    """
    socket = transports_of(vm).sockets.take("websocket_close", h)
    if socket is None:
        return False
    vm.tasks.await_coroutine(socket.aclose())
    return True


# Streams of events and WebSockets without a network. Spec: 04 §21.5.


@builtin("sse_mock(pattern: string, events: list) -> nil")
def sse_mock(vm: Vm, pattern: str, events: Value) -> None:
    """Make `sse_connect` return these events for URLs that match `pattern`, in which `*` is any text.

    An event is `{event?, data, id?, retry_ms?}`, or a string, its data.

    Example:
        sse_mock("https://sse-mock.test/*", ["hi"])
        let feed = sse_connect("GET", "https://sse-mock.test/news")
        sse_events(feed).next().value.data  // "hi"
    """
    transports_of(vm).mocks.events.add(pattern, mocked_events(events))


@builtin("websocket_mock(pattern: string, messages: any) -> nil")
def websocket_mock(vm: Vm, pattern: str, messages: Value) -> None:
    """Make `websocket_connect` return these messages for URLs that match `pattern`, in which `*` is any text.

    A list of messages, or `{messages, echo}`: with `echo: true`, sent messages are returned. A message is a
    string, bytes, or a dict as of `websocket_receive`.

    Example:
        websocket_mock("wss://websocket-mock.test/*", ["hi"])
        websocket_receive(websocket_connect("wss://websocket-mock.test/chat")).data  // "hi"
    """
    transports_of(vm).mocks.sockets.add(pattern, mocked_socket(messages))


@builtin("transport_mock_calls() -> list")
def transport_mock_calls(vm: Vm) -> list[Value]:
    """Return the operations on mocks, in order: `{type, url, …}`.

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
    """Forget the mocks of events and WebSockets, and the operations on them.

    Example:
        sse_mock("https://transport-mock-clear.test/*", [])
        transport_mock_clear()
        transport_mock_calls()  // []
    """
    transports_of(vm).mocks.clear()
