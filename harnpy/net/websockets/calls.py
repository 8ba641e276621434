"""The WebSockets that one program has open. Spec: 04 §21.5."""

from __future__ import annotations

from asyncio import timeout
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple, Protocol

from harnpy.net.http.clients import Clients
from harnpy.net.http.handles import Handles
from harnpy.net.transports.inbox import Inbox, Script
from harnpy.net.websockets.errors import WebSocketError
from harnpy.net.websockets.messages import as_dict

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from harnpy.net.http.request import Request
    from harnpy.net.transports.inbox import Start
    from harnpy.net.transports.mocks import MockedSocket, Mocks
    from harnpy.world.http import Http
    from harnpy.world.net.egress import Egress
    from harnpy.world.net.messages import Message
    from harnpy.world.net.websocket import WebSocket

SURFACE = "websocket_connect"


class Asked(NamedTuple):
    """What a program asks for; the request's URL is one of ws: or wss:. ``most``: bytes of a message."""

    request: Request
    most: int


class Socket(Protocol):
    """An open WebSocket, or a mocked one; ``inbox`` has the messages that have come."""

    @property
    def inbox(self) -> Inbox[Message] | Script[Message]: ...
    async def send(self, message: Message) -> None:
        """Raises `WebSocketError`."""

    async def aclose(self) -> None: ...


class WebSockets(Handles[Socket]):
    """The open WebSockets, by their handles."""

    def __init__(self, http: Http, egress: Egress, mocks: Mocks, start: Start) -> None:
        super().__init__("websocket", "WebSocket")
        self._clients = Clients(http)
        self._egress = egress
        self._mocks = mocks
        self._start = start

    async def aclose(self) -> None:
        for socket in self:
            await socket.aclose()
        self.clear()
        await self._clients.aclose()

    def mocked(self, asked: Asked) -> str | None:
        """Return the handle of a mocked one; None when no mock is there for it. Raises `EgressBlocked`."""
        request = asked.request
        self._egress.admit(SURFACE, request.canonical)
        mock = self._mocks.sockets.find(request.url, request.canonical)
        if mock is None:
            return None
        self._mocks.note_connect(SURFACE, request.url, request.headers)
        return self.add(_Mocked(request.url, mock, self._mocks))

    async def open(self, asked: Asked) -> str:
        """Return the handle of an open one.

        Raises `WebSocketError`, `EgressBlocked`, and what the permission to send does.
        """
        from harnpy.world.net.failed import Failed, too_slow
        from harnpy.world.net.websocket import NotSwitched, connect

        request = asked.request
        try:
            async with timeout(request.whole):
                connection = await connect(self._clients.of(request.settings), SURFACE, request, asked.most)
        except TimeoutError:
            problem = WebSocketError(too_slow("timeout_ms").text)
        except (Failed, NotSwitched) as error:
            problem = WebSocketError(str(error))
        else:
            return self.add(_Open(connection, asked.most, self._start))
        raise problem


class _Open:
    def __init__(self, connection: WebSocket, most: int, start: Start) -> None:
        self._connection = connection
        self._most = most
        self.inbox = Inbox(self._messages(), lambda message: len(message.data), most, start)

    async def _messages(self) -> AsyncGenerator[Message, None]:
        from harnpy.world.net.failed import Failed
        from harnpy.world.net.websocket import MessageTooLong

        try:
            async with aclosing(self._connection.messages()) as messages:
                async for message in messages:
                    yield message
        except MessageTooLong:
            problem = WebSocketError(f"message exceeded max_message_bytes ({self._most})")
        except Failed as error:
            problem = WebSocketError(error.text)
        else:
            return
        raise problem

    async def send(self, message: Message) -> None:
        from harnpy.world.net.failed import Failed
        from harnpy.world.net.websocket import NotSent

        try:
            await self._connection.send(message)
        except (Failed, NotSent) as error:
            problem = WebSocketError(str(error))
        else:
            return
        raise problem

    async def aclose(self) -> None:
        await self.inbox.aclose()
        await self._connection.aclose()


class _Mocked:
    def __init__(self, url: str, mock: MockedSocket, mocks: Mocks) -> None:
        self.inbox = Script(mock.messages)
        self._url = url
        self._echoes = mock.echo
        self._mocks = mocks
        self._is_closed = False

    async def send(self, message: Message) -> None:
        if self._is_closed:
            raise WebSocketError("the connection is closed")
        self._mocks.note("websocket_send", self._url, message=as_dict(message))
        self._is_closed = message.type == "close"
        if self._echoes or self._is_closed:
            self.inbox.add(message)

    async def aclose(self) -> None:
        self._mocks.note("websocket_close", self._url)
