"""WebSockets (RFC 6455), over the connections of an HTTP client. Spec: 04 §21.5.

The protocol is `websockets`'; its connections aren't: ours are asked for before they are made.
Not `httpx2.AsyncClient.websocket`: it keeps pings and pongs to itself, and drops a connection whose messages
aren't taken fast enough.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import suppress
from secrets import token_bytes

import httpcore2
import httpx2
from websockets.exceptions import InvalidState, PayloadTooBig, ProtocolError
from websockets.frames import DATA_OPCODES, Close, CloseCode, Frame, Opcode
from websockets.protocol import Protocol, Side, State
from websockets.utils import accept_key

from harnpy.world.connections import Failed, Message
from harnpy.world.http_client import FAILURES, SURFACE, Outgoing, encoded_headers, failure

_SWITCHED = 101
#: Under this key a response's `extensions` may have what makes the connection of it that is used, in the
#: place of `WebSocket`: for one that is had elsewhere.
MAKER = "websocket"
_PIECE = 1 << 16
#: Seconds that the other side has to say goodbye, too.
_PATIENCE = 1.0
#: What goes wrong on an open connection.
_BROKEN = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, OSError)
_KINDS = {Opcode.TEXT: "text", Opcode.BINARY: "binary", Opcode.PING: "ping", Opcode.PONG: "pong"}


class NotSwitched(Exception):
    """The server doesn't speak WebSocket there; ``status`` is that of its response."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class MessageTooLong(Exception):
    """A message that came has more bytes than it may."""


class NotSent(Exception):
    """A message can't be sent; the text says why."""


class WebSocket:
    """An open connection to ``host``. ``most``: the bytes that a message may have that comes."""

    def __init__(self, host: str, response: httpx2.Response, most: int) -> None:
        self._host = host
        self._response = response
        self._stream: httpcore2.AsyncNetworkStream = response.extensions["network_stream"]
        self._protocol = Protocol(Side.CLIENT, max_size=most)
        self._writing = asyncio.Lock()
        self._kind = ""
        self._parts: list[bytes] = []

    async def messages(self) -> AsyncGenerator[Message, None]:
        """Yield what comes, up to the message that closes the connection. Pings are answered.

        Raises `Failed` and `MessageTooLong`.
        """
        while self._protocol.close_rcvd is None:
            data = await self._read()
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            frames = self._protocol.events_received()
            with suppress(Failed):  # what has come counts, even if nothing can be sent any more
                await self._flush()
            for frame in frames:
                assert isinstance(frame, Frame)
                message = self._message(frame)
                if message is not None:
                    yield message
            self._check()
            if not data and self._protocol.close_rcvd is None:
                raise Failed(
                    "transient_network", f"connection closed by {self._host} without a close message"
                )

    async def send(self, message: Message) -> None:
        """Raises `NotSent` and `Failed`."""
        protocol, (kind, data, code, reason) = self._protocol, message
        try:
            match kind:
                case "text":
                    protocol.send_text(data)
                case "binary":
                    protocol.send_binary(data)
                case "ping":
                    protocol.send_ping(data)
                case "pong":
                    protocol.send_pong(data)
                case _:
                    protocol.send_close(code, reason)
        except InvalidState:
            raise NotSent("the connection is closed") from None
        except ProtocolError:
            raise NotSent("the protocol doesn't allow it") from None
        await self._flush()

    async def aclose(self) -> None:
        """Say goodbye, and close the connection. Nobody reads the `messages` any more."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)
        try:
            with suppress(TimeoutError, Failed):
                async with asyncio.timeout(_PATIENCE):
                    await self._flush()
                    while self._protocol.close_rcvd is None and (data := await self._read()):
                        self._protocol.receive_data(data)
                        self._protocol.events_received()
        finally:
            await self._response.aclose()
            await self._stream.aclose()

    async def _read(self) -> bytes:
        try:
            return await self._stream.read(_PIECE)
        except _BROKEN as error:
            problem = self._failed(error)
        raise problem

    async def _flush(self) -> None:
        # Who sends may be cancelled; half a frame would garble all that comes after it.
        await asyncio.shield(asyncio.ensure_future(self._write()))

    async def _write(self) -> None:
        try:
            async with self._writing:
                for data in self._protocol.data_to_send():
                    if data:
                        await self._stream.write(data)
        except _BROKEN as error:
            problem = self._failed(error)
        else:
            return
        raise problem

    def _failed(self, error: Exception) -> Failed:
        return Failed("transient_network", str(error) or f"connection reset by {self._host}")

    def _message(self, frame: Frame) -> Message | None:
        if frame.opcode in DATA_OPCODES:
            return self._part(frame)
        if frame.opcode is Opcode.CLOSE:
            close = Close.parse(bytes(frame.data)) if frame.data else None
            return Message("close") if close is None else Message("close", b"", int(close.code), close.reason)
        return Message(_KINDS[frame.opcode], bytes(frame.data))

    def _part(self, frame: Frame) -> Message | None:
        if frame.opcode is not Opcode.CONT:
            self._kind = _KINDS[frame.opcode]
        if frame.data:
            self._parts.append(bytes(frame.data))
        if not frame.fin:
            return None
        data, self._parts = b"".join(self._parts), []
        if self._kind == "text" and not _is_text(data):
            self._protocol.fail(CloseCode.INVALID_DATA)
            raise Failed("generic", f"malformed message from {self._host}: a text that is no UTF-8")
        return Message(self._kind, data)

    def _check(self) -> None:
        """Raise what the parser found wrong with what came."""
        match self._protocol.parser_exc:
            case None | EOFError():
                return
            case PayloadTooBig():
                raise MessageTooLong
            case error:
                raise Failed("generic", f"malformed message from {self._host}: {error}")


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


async def connect(client: httpx2.AsyncClient, surface: str, outgoing: Outgoing, most: int) -> WebSocket:
    """Open a WebSocket; the outgoing request's URL is one of ws: or wss:. No redirect is followed.

    Raises `NotSwitched`, `Failed`, `EgressBlocked`, and what the client's ``permit`` does.
    """
    key = b64encode(token_bytes(16)).decode()
    times = {"connect": outgoing.connect, "pool": outgoing.connect, "read": outgoing.read, "write": None}
    upgrade = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": key,
    }
    try:
        request = httpx2.Request(
            "GET",
            outgoing.canonical,
            headers=encoded_headers({**dict(outgoing.headers), **upgrade}.items()),
            extensions={"timeout": times, SURFACE: surface},
        )
        response = await client.send(request, stream=True, follow_redirects=False)
    except FAILURES as error:
        problem: Exception = failure(error)
    else:
        refusal = _refusal(response, key)
        if refusal is None:
            make: type[WebSocket] = response.extensions.get(MAKER, WebSocket)
            return make(request.url.host, response, most)
        await response.aclose()
        problem = refusal
    # Without its cause, which may hold what the request did.
    raise problem


def _refusal(response: httpx2.Response, key: str) -> NotSwitched | None:
    status, headers = response.status_code, response.headers
    if status != _SWITCHED:
        return NotSwitched(status, f"the server answered with status {status}, not with a WebSocket")
    if (
        headers.get("upgrade", "").lower() != "websocket"
        or headers.get("sec-websocket-accept") != accept_key(key)
        or "sec-websocket-extensions" in headers
    ):
        return NotSwitched(status, "the server switched to something else than the WebSocket asked for")
    return None
