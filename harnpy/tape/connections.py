"""HTTP connections on a tape that stay open: bodies that come in pieces, WebSockets. Spec: 13 §3.

Loads the client, which takes its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

from harnpy.durable.journal import HTTP, PIECE, SEND
from harnpy.durable.transport import (
    EVENTS,
    RecordedTransport,
    is_upgrade,
    noting_ends,
    showing_ends,
    takes_events,
    told_request,
)
from harnpy.durable.values import told
from harnpy.tape.holding import LEFT_BEHIND, Held
from harnpy.world.connections import Failed, Message
from harnpy.world.http_client import SURFACE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from harnpy.durable.journal import Journal
    from harnpy.workflow.engines.contract import Json
    from harnpy.world.websocket import WebSocket

    Headers = list[tuple[bytes, bytes]]

#: How much of a body is read in one effect. What is longer, or has no end, goes on in pieces.
_MOST_AT_ONCE = 1 << 22
#: What asks for a body that the program reads piece by piece.
_STREAMED = "http_stream_open"
_ACCEPTED = b"sec-websocket-accept"
#: What is on the tape for the right answer to a key, which is another one each time.
_RIGHT = b"right"


class TapedTransport(RecordedTransport):
    """A response is one effect; where the program reads its body as it comes, the head is, and each piece."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._journal.passes():
            return await self._real.handle_async_request(request)
        if is_upgrade(request):
            return await self._upgraded(request)
        await request.aread()
        held = _held(self._journal)
        pieces: AsyncIterator[bytes] | None = None

        async def exchange() -> list[Any]:
            nonlocal pieces
            response = await held.open(lambda: self._sent(request))
            head = [response.status_code, response.headers.raw]
            stream: Any = response.stream
            pieces = aiter(stream)
            if _goes_on(request, response):
                return [*head, b"", True]
            body = await _beginning(pieces)
            if len(body) > _MOST_AT_ONCE:
                return [*head, body, True]
            await held.close()
            return [*head, body]

        with showing_ends():
            status, headers, body, *goes_on = await self._journal.waited(
                HTTP, exchange, lambda: told_request(request)
            )
        stream = _Body(self._journal, held, body, pieces) if goes_on else httpx2.ByteStream(body)
        return httpx2.Response(status, headers=headers, stream=stream, request=request)

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        with noting_ends():
            return await self._real.handle_async_request(request)

    async def _upgraded(self, request: httpx2.Request) -> httpx2.Response:
        from websockets.utils import accept_key

        from harnpy.world.websocket import MAKER

        right = accept_key(request.headers["sec-websocket-key"]).encode()
        held = _held(self._journal)

        async def exchange() -> tuple[int, Headers]:
            response = await held.open(lambda: self._sent(request))
            return response.status_code, _replaced(response.headers.raw, right, _RIGHT)

        asked = lambda: ["websocket", told(str(request.url))]  # noqa: E731
        status, headers = await self._journal.waited(HTTP, exchange, asked)
        return httpx2.Response(
            status,
            headers=_replaced(headers, _RIGHT, right),
            stream=_Body(self._journal, held),
            request=request,
            extensions={MAKER: lambda host, response, most: TapedWebSocket(self._journal, held, host, most)},
        )


def _held(journal: Journal) -> Held[httpx2.Response]:
    return Held(journal, lambda response: response.aclose())


async def _beginning(pieces: AsyncIterator[bytes]) -> bytes:
    """Return a body, or as much of it as is read at once."""
    found: list[bytes] = []
    size = 0
    with noting_ends():
        async for piece in pieces:
            found.append(piece)
            size += len(piece)
            if size > _MOST_AT_ONCE:
                break
    return b"".join(found)


def _goes_on(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Return whether the program reads the body as it comes: it asked for that, or for events."""
    if request.extensions.get(SURFACE) == _STREAMED:
        return True
    is_whole = "content-length" in response.headers
    return takes_events(request) and (not is_whole or EVENTS in response.headers.get("content-type", ""))


def _replaced(headers: Headers, former: bytes, new: bytes) -> Headers:
    """Return headers in which the answer to a WebSocket's key is ``new`` if it was ``former``."""
    return [
        (name, new if name.lower() == _ACCEPTED and value == former else value) for name, value in headers
    ]


class _Body(httpx2.AsyncByteStream):
    """A body that comes in pieces."""

    def __init__(
        self,
        journal: Journal,
        held: Held[httpx2.Response],
        beginning: bytes = b"",
        pieces: AsyncIterator[bytes] | None = None,
    ) -> None:
        self._journal = journal
        self._held = held
        self._beginning = beginning
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._beginning:
            yield self._beginning
        while True:
            with showing_ends():
                piece: bytes | None = await self._journal.waited(PIECE, self._next)
            if piece is None:
                return
            yield piece

    async def _next(self) -> bytes | None:
        """Outside: return the next piece; None at the end, where the connection is given back."""
        if self._held.real is None or self._pieces is None:
            raise httpx2.ReadError(f"the connection is gone: {LEFT_BEHIND}")
        with noting_ends():
            piece = await anext(self._pieces, None)
        if piece is None:
            await self._held.close()
        return piece

    async def aclose(self) -> None:
        self._held.end()


class TapedWebSocket:
    """A WebSocket over a connection outside, as `harnpy.world.websocket.WebSocket` is one."""

    def __init__(self, journal: Journal, held: Held[httpx2.Response], host: str, most: int) -> None:
        self._journal = journal
        self._held = held
        self._host = host
        self._most = most
        self._opened: WebSocket | None = None
        self._incoming: AsyncGenerator[Message, None] | None = None

    async def messages(self) -> AsyncGenerator[Message, None]:
        """Yield what comes, up to the message that closes the connection.

        Raises `Failed` and `MessageTooLong`.
        """
        while True:
            came: list[Any] | None = await self._journal.waited(PIECE, self._next)
            if came is None:
                return
            yield Message(*came)

    async def _next(self) -> list[Any] | None:
        if self._incoming is None:
            self._incoming = self._real().messages()
        message = await anext(self._incoming, None)
        return None if message is None else list(message)

    async def send(self, message: Message) -> None:
        """Raises `NotSent` and `Failed`."""
        await self._journal.waited(SEND, lambda: self._real().send(message), lambda: _told(message))

    async def aclose(self) -> None:
        """Say goodbye, and close the connection."""
        await self._journal.waited(SEND, self._close, lambda: ["close"])

    async def _close(self) -> None:
        if self._held.real is not None:
            await self._real().aclose()
        await self._held.close()

    def _real(self) -> WebSocket:
        """Outside: return the connection. Raises `Failed` for one that a branch doesn't have."""
        from harnpy.world.websocket import WebSocket

        if self._held.real is None:
            raise Failed("transient_network", f"the connection to {self._host} is gone: {LEFT_BEHIND}")
        if self._opened is None:
            self._opened = WebSocket(self._host, self._held.real, self._most)
        return self._opened


def _told(message: Message) -> Json:
    if message.type == "close":
        return ["close", message.code, message.reason]
    is_text = message.type == "text"
    return [message.type, told(message.data.decode("utf-8", "replace") if is_text else message.data)]
