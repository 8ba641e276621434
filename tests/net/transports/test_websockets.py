"""WebSockets of a program, to a server on this machine: `websockets`', or bytes as a test says."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from harnpy import Vm
from harnpy.vm.errors import VmError
from harnpy.world.websocket import WebSocket
from tests.counts import COUNT
from tests.net.transports.loopback import Connection, served

#: How many messages are sent.
MESSAGES = COUNT.streamed_events


@contextmanager
def server(handle: Callable[[ServerConnection], object]) -> Iterator[str]:
    def quiet(connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            handle(connection)

    with serve(quiet, "127.0.0.1", 0, ping_interval=None, compression=None, max_size=None) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield "{}:{}".format(*running.socket.getsockname())
        finally:
            running.shutdown()
            thread.join(10)


def run(program: str, address: str, vm: Vm | None = None) -> Any:
    return (vm or Vm()).run_source(program.replace("URL", f"ws://{address}/chat"))


def frame(opcode: int, data: bytes, fin: bool = True) -> bytes:
    size = struct.pack("!B", len(data)) if len(data) < 126 else struct.pack("!BH", 126, len(data))
    return bytes([opcode | (0x80 if fin else 0)]) + size + data


def speaking(speak: Callable[[Connection], Awaitable[None]]) -> Callable[[Connection], Awaitable[None]]:
    """A server that has agreed to speak WebSocket."""

    async def handle(connection: Connection) -> None:
        await connection.switch()
        await speak(connection)

    return handle


def test_every_kind_of_message_both_ways() -> None:
    def handle(connection: ServerConnection) -> None:
        for message in connection:
            connection.send(message)
            if message == "ping":
                connection.ping(b"p").wait(10)
                connection.send("answered")

    program = """
      let socket = websocket_connect("URL")
      let big = "ü".repeat(200000)
      var seen = []
      for message in ["grüß", "", big, bytes_from_hex("00ff")] {
        websocket_send(socket, message)
        let echo = websocket_receive(socket)
        seen = seen + [if echo.data == big { "big" } else { echo.data ?? echo.data_base64 }]
      }
      websocket_send(socket, "ping")
      for i in 1 to 3 { seen = seen + [websocket_receive(socket)] }
      websocket_send(socket, "x", {type: "ping"})
      seen = seen + [websocket_receive(socket)]
      websocket_send(socket, nil, {type: "close", code: 4000, reason: "done"})
      return seen + [websocket_receive(socket), websocket_receive(socket), websocket_close(socket)]
    """
    with server(handle) as address:
        assert run(program, address) == [
            "grüß",
            "",
            "big",
            "AP8=",
            {"type": "text", "data": "ping"},
            {"type": "ping", "data_base64": "cA=="},
            {"type": "text", "data": "answered"},
            {"type": "pong", "data_base64": "eA=="},
            {"type": "close", "code": 4000, "reason": "done"},
            None,
            True,
        ]


def test_messages_come_in_order_to_a_program_that_is_slower() -> None:
    def handle(connection: ServerConnection) -> None:
        for number in range(MESSAGES):
            connection.send(f"message {number}")
        connection.close(1001, "that is all")

    program = """
      let socket = websocket_connect("URL")
      sleep_ms(20)
      var next = 0
      for message in websocket_messages(socket) {
        assert_eq(message.data, "message ${next}")
        next = next + 1
      }
      return next
    """
    with server(handle) as address:
        assert run(program, address) == MESSAGES


def test_a_program_s_end_closes_its_sockets() -> None:
    codes: list[int | None] = []
    closed = threading.Event()

    def handle(connection: ServerConnection) -> None:
        try:
            connection.recv()
        except ConnectionClosed as error:
            codes.append(error.rcvd.code if error.rcvd else None)
            closed.set()

    with server(handle) as address:
        assert run('websocket_connect("URL")\nreturn 1', address) == 1
        assert closed.wait(10)
    assert codes == [1000]


def test_waiting_ends_after_its_time_and_at_a_deadline() -> None:
    go_on = threading.Event()

    def handle(connection: ServerConnection) -> None:
        go_on.wait(30)
        connection.send("late")
        connection.recv()

    vm = Vm()
    vm.register("go_on() -> nil", go_on.set)
    program = """
      let socket = websocket_connect("URL")
      let first = [websocket_receive(socket, 0).type, websocket_receive(socket, 5).type]
      let late = try { deadline 10ms { websocket_receive(socket) } } catch (e) { "late" }
      go_on()
      return first + [late, websocket_receive(socket).data, websocket_close(socket)]
    """
    with server(handle) as address:
        assert run(program, address, vm) == ["timeout", "timeout", "late", "late", True]


def test_headers_and_bearer_are_sent() -> None:
    heads: list[list[str]] = []

    async def handle(connection: Connection) -> None:
        heads.append(connection.head)
        await connection.answer("403 Forbidden", body=b"")

    with served(handle) as address, pytest.raises(VmError, match="status 403, not with a WebSocket"):
        run('websocket_connect("URL", {auth: {bearer: "t"}, headers: {"X-A": 1}, query: {q: 2}})', address)
    assert heads[0][0] == "get /chat?q=2 http/1.1"
    assert {"authorization: bearer t", "x-a: 1", "upgrade: websocket", "sec-websocket-version: 13"} <= {
        *heads[0]
    }


@pytest.mark.parametrize(
    "headers",
    [
        ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: wrong"],
        ["Upgrade: websocket", "Connection: Upgrade"],
        ["Upgrade: other", "Connection: Upgrade"],
    ],
)
def test_a_server_that_speaks_something_else_is_refused(headers: list[str]) -> None:
    async def handle(connection: Connection) -> None:
        connection.writer.write("\r\n".join(["HTTP/1.1 101 Go", *headers, "", ""]).encode())
        await connection.reader.read()

    with served(handle) as address, pytest.raises(VmError, match="switched to something else"):
        run('websocket_connect("URL")', address)


def test_a_redirect_is_not_followed() -> None:
    async def handle(connection: Connection) -> None:
        await connection.answer("302 Found", "Location: /other", body=b"")

    with served(handle) as address, pytest.raises(VmError, match="status 302, not with a WebSocket"):
        run('websocket_connect("URL")', address)


CONTINUED, TEXT, CLOSE, PING = 0, 1, 8, 9
A_PART = frame(TEXT, b"a", False)
TOO_LONG = "websocket_receive: message exceeded max_message_bytes (1000)"


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([A_PART, frame(PING, b""), frame(CONTINUED, b"", False), frame(CONTINUED, b"b"), frame(CLOSE, b"")],
         ["ping", "ab", "close", "end"]),
        ([frame(TEXT, b"a"), frame(CLOSE, b"\x03\xe8bye")], ["a", "close", "end"]),
        ([frame(TEXT, b"a")], ["a", "transient_network", "connection closed"]),
        ([frame(TEXT, b"a"), frame(TEXT, b"x" * 1001)], ["a", "generic", TOO_LONG]),
        ([frame(TEXT, b"x" * 600, False), frame(CONTINUED, b"x" * 600)], ["generic", TOO_LONG]),
        ([frame(TEXT, b"\xff")], ["generic", "a text that is no UTF-8"]),
        ([frame(TEXT, b"a"), frame(3, b"a")], ["a", "generic", "malformed message"]),
        ([frame(CONTINUED, b"a")], ["generic", "malformed message"]),
        ([frame(TEXT, b"a"), b"\x81\x7e"], ["a", "transient_network", "connection closed"]),
    ],
)  # fmt: skip
def test_how_connections_end(sent: list[bytes], expected: list[str]) -> None:
    async def speak(connection: Connection) -> None:
        connection.writer.write(b"".join(sent))
        await connection.writer.drain()

    program = """
      let socket = websocket_connect("URL", {max_message_bytes: 1000})
      var seen = []
      while true {
        let message = try { websocket_receive(socket) } catch (e) { {failed: e} }
        if message == nil { return seen + ["end"] }
        if message?.failed != nil { return seen + [error_category(message.failed), message.failed] }
        seen = seen + [message?.data ?? message.type]
      }
    """
    with served(speaking(speak)) as address:
        found = run(program, address)
    assert found[: len(expected) - 1] == expected[:-1], found
    assert expected[-1] in str(found[-1])
    assert len(found) == len(expected)


def test_endless_empty_fragments_take_no_memory() -> None:
    async def speak(connection: Connection) -> None:
        connection.writer.write(A_PART + frame(CONTINUED, b"", False) * 50000)
        connection.writer.write(frame(CONTINUED, b"b") + frame(CLOSE, b""))
        await connection.writer.drain()

    with served(speaking(speak)) as address:
        assert run('return websocket_receive(websocket_connect("URL")).data', address) == "ab"


def test_tasks_share_a_socket() -> None:
    def handle(connection: ServerConnection) -> None:
        for message in connection:
            connection.send(message)

    program = """
      let socket = websocket_connect("URL")
      let texts = to_list(range(40)).map({ i -> "m${i}" })
      let reader = spawn { texts.map({ text -> websocket_receive(socket).data }) }
      parallel each texts { text -> websocket_send(socket, text) }
      return set(await(reader)) == set(texts)
    """
    with server(handle) as address:
        assert run(program, address) is True


class _Silent:
    """A response with a connection over which nothing ever comes."""

    def __init__(self) -> None:
        self.extensions = {"network_stream": self}
        self.reads = asyncio.Event()
        self.closed = 0

    async def write(self, data: bytes) -> None:
        pass

    async def read(self, most: int) -> bytes:
        self.reads.set()
        await asyncio.Event().wait()
        return b""

    async def aclose(self) -> None:
        self.closed += 1


def test_one_that_is_cancelled_while_it_says_goodbye_is_closed() -> None:
    async def close() -> int:
        silent = _Silent()
        closing = asyncio.ensure_future(WebSocket("h.test", silent, 1).aclose())  # type: ignore[arg-type]
        await silent.reads.wait()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        return silent.closed

    assert asyncio.run(close()) == 2
