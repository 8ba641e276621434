"""WebSockets, as a client has them. Spec: 04 §21.5."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_http import response_bytes_of
from harnpy.builtins.bridge.live_transports import TimedOut, received, transports_of
from harnpy.builtins.net.http_arguments import ProgramDisk, options_of
from harnpy.builtins.net.transport_arguments import arriving, seconds_of
from harnpy.net.http.errors import HttpError
from harnpy.net.transports.reading import read_socket
from harnpy.net.websockets.messages import as_dict, to_send
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Stream, Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Value]

#: What all declarations here have in common.
builtin = partial(declare, family="streaming")


@builtin("websocket_connect(url: string, opts?: dict) -> string", guarded=True)
def websocket_connect(vm: Vm, url: str, opts: Value) -> str:
    """The handle of an open WebSocket.

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
    """Send a message: bytes as a binary one, anything else as text; true.

    `opts.type` may be `text`, `binary`, `ping`, `pong` or `close`, the last one with a `code` and a `reason`.

    Example:
        websocket_mock("wss://websocket-send.test/*", {echo: true})
        let socket = websocket_connect("wss://websocket-send.test/chat")
        websocket_send(socket, nil, {type: "close", code: 1001})
        websocket_receive(socket)  // {type: "close", code: 1001, reason: ""}
    """
    options = options_of(vm, "websocket_send", opts)
    socket = transports_of(vm).sockets.get("websocket_send", h)
    message = to_send(msg, options.get("type"), options.get("code"), options.get("reason"))
    vm.tasks.await_coroutine(socket.send(message))
    return True


@builtin("websocket_receive(h: any, timeout_ms?: any) -> dict")
def websocket_receive(vm: Vm, h: Value, timeout_ms: Value) -> Dict | None:
    """What comes next: `{type: "text", data}`, or with `data_base64` a binary message, a ping or a pong.

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
    return None if message is None else as_dict(message)


@builtin("websocket_messages(h: any) -> stream")
def websocket_messages(vm: Vm, h: Value) -> Stream:
    """The text and binary messages that come, as a stream, until the connection is closed.

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
        lambda message: as_dict(message) if message.type in ("text", "binary") else None,
    )


@builtin("websocket_close(h: any) -> bool")
def websocket_close(vm: Vm, h: Value) -> bool:
    """Close a WebSocket; whether it was open.

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
