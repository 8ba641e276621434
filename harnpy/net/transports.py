"""Streams of events and WebSockets: what a program asks for, what it has open, its messages, and mocks.

Spec: 04 §21.5.
"""

from __future__ import annotations

import re
from asyncio import timeout
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from harnpy.faults import paced
from harnpy.formats.crypto.encodings import EncodingError, from_base64, to_base64
from harnpy.formats.display import display, type_name
from harnpy.formats.globs import glob_matches
from harnpy.net.errors import Broken, HttpError, Refused, WebSocketError
from harnpy.net.http_options import EVENT, SCRIPT, Given
from harnpy.net.http_replies import Response, masked_headers
from harnpy.net.http_request import Disk, Request, check_header, read_request
from harnpy.net.http_sessions import C, Clients, Closing
from harnpy.net.inbox import Inbox, Script
from harnpy.net.sse import Event, Opened, Reconnecting, Source
from harnpy.version import install_command
from harnpy.world.connections import Message
from harnpy.world.egress import Egress, redacted_url

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.net.inbox import Start
    from harnpy.world.http import Http
    from harnpy.world.websocket import WebSocket

# Messages as programs have them: dicts with a `type`. Spec: 04 §21.5.


MESSAGE_TYPES = ("text", "binary", "ping", "pong", "close")
#: Bytes of a ping, a pong, and of the reason of a close (RFC 6455, 5.5).
_MOST_CONTROL = 125
_MOST_REASON = 123


def message_dict(message: Message) -> Dict:
    """Return what a program receives."""
    match message.type:
        case "text":
            return {"type": "text", "data": message.data.decode("utf-8", "replace")}
        case "close" if message.code is None:
            return {"type": "close"}
        case "close":
            return {"type": "close", "code": message.code, "reason": message.reason}
        case other:
            return {"type": other, "data_base64": to_base64(message.data)}


def message_to_send(content: Any, type_: Any, code: Any, reason: Any) -> Message:
    """Return the message that a program sends; by default bytes are binary, and all else is text.

    Raises `WebSocketError`.
    """
    if type_ is None:
        type_ = "binary" if type(content) is bytes else "text"
    if type_ not in MESSAGE_TYPES:
        raise WebSocketError(f"type must be one of {', '.join(MESSAGE_TYPES)}, got {display(type_)}")
    if type_ == "close":
        return _close(code, reason)
    if code is not None or reason is not None:
        raise WebSocketError(f"only a close has a code and a reason, not a message of type {type_}")
    data = b"" if content is None else content
    if type(data) is not bytes:
        data = display(data).encode("utf-8", "surrogatepass")
    if type_ in ("ping", "pong") and len(data) > _MOST_CONTROL:
        raise WebSocketError(f"a {type_} has at most {_MOST_CONTROL} bytes, got {len(data)}")
    return Message(type_, data)


def _close(code: Any, reason: Any) -> Message:
    if code is None and reason is None:
        code = 1000
    if type(code) is not int or not (
        code in (1000, 1001, 1002, 1003) or 1007 <= code <= 1014 or 3000 <= code <= 4999
    ):
        raise WebSocketError(f"code must be 1000 to 1003, 1007 to 1014 or 3000 to 4999, got {display(code)}")
    text = "" if reason is None else display(reason)
    if len(text.encode("utf-8", "surrogatepass")) > _MOST_REASON:
        raise WebSocketError(f"the reason of a close has at most {_MOST_REASON} bytes")
    return Message("close", b"", code, text)


def mocked_message(value: Any) -> Message:
    """Return a message that a mock was given: a text, bytes, or a dict as programs receive it.

    Raises `WebSocketError`.
    """
    if type(value) is not dict:
        if type(value) not in (str, bytes):
            raise WebSocketError(f"a message must be a string, bytes or a dict, got {type_name(value)}")
        return message_to_send(value, None, None, None)
    data = value.get("data")
    if value.get("data_base64") is not None:
        try:
            data = from_base64(display(value["data_base64"]))
        except EncodingError as error:
            raise WebSocketError(f"data_base64 is no base64: {error}") from None
    return message_to_send(data, value.get("type"), value.get("code"), value.get("reason"))


# Streams of events and WebSockets without a network, and the calls that they got. Spec: 04 §21.5.


T = TypeVar("T")


class MockedSocket(NamedTuple):
    """``messages`` come at once; with ``echo`` what is sent comes back."""

    messages: Sequence[Message]
    echo: bool


class Patterns(Generic[T]):
    """Answers by patterns of URLs; the first pattern that was registered and matches counts."""

    def __init__(self) -> None:
        self._known: dict[str, T] = {}

    def add(self, pattern: str, answer: T) -> None:
        """Register an answer in the place of one for the same pattern."""
        self._known[pattern] = answer

    def find(self, *urls: str) -> T | None:
        """Return the answer for any of these spellings of a URL."""
        return next(
            (
                answer
                for pattern, answer in self._known.items()
                if any(glob_matches(pattern, url) for url in urls)
            ),
            None,
        )

    def clear(self) -> None:
        self._known.clear()


class TransportMocks:
    """The mocks of one program, and what was done with them."""

    def __init__(self) -> None:
        self.events: Patterns[Sequence[Event]] = Patterns()
        self.sockets: Patterns[MockedSocket] = Patterns()
        self.calls: list[Dict] = []

    def clear(self) -> None:
        """Forget mocks and calls."""
        self.events.clear()
        self.sockets.clear()
        self.calls.clear()

    def note(self, type_: str, url: str, **more: object) -> None:
        self.calls.append({"type": type_, "url": redacted_url(url), **more})

    def note_connect(self, type_: str, url: str, headers: Iterable[tuple[str, str]], **more: object) -> None:
        self.note(type_, url, headers=masked_headers(headers), **more)


# The streams of events that one program has open. Spec: 04 §21.5.


EVENTS_SURFACE = "sse_connect"
_MEDIA_TYPE = "text/event-stream"


class AskedEvents(NamedTuple):
    """A stream that a program asks for. ``most``: bytes of an event; ``last_id``: of the event before."""

    request: Request
    most: int
    last_id: str | None
    reconnecting: Reconnecting


class _Connected(Closing[C]):
    """Things that are open over connections of their own, by their handles."""

    def __init__(self, http: Http, egress: Egress, mocks: TransportMocks, start: Start) -> None:
        super().__init__()
        self._clients = Clients(http)
        self._egress = egress
        self._mocks = mocks
        self._start = start

    async def aclose(self) -> None:
        await super().aclose()
        await self._clients.aclose()


class EventStreams(_Connected[Inbox[Opened | Event] | Script[Opened | Event]]):
    """The open streams, by their handles."""

    kind, noun = "sse", "stream"

    def mocked(self, asked: AskedEvents) -> str | None:
        """Return the handle of a mocked stream; None when no mock is there for it. Raises `EgressBlocked`."""
        request = asked.request
        self._egress.admit(EVENTS_SURFACE, request.canonical)
        events = self._mocks.events.find(request.url, request.canonical)
        if events is None:
            return None
        self._mocks.note_connect(EVENTS_SURFACE, request.url, request.headers, method=request.method)
        return self.add(Script([Opened(), *events]))

    async def open(self, asked: AskedEvents) -> str:
        """Return the handle of a stream whose first connection is open.

        Raises `Refused`, `Broken`, `EgressBlocked`, and what the permission to send does.
        """

        async def connect(last_id: str | None) -> Response:
            return await self._connected(asked.request, last_id)

        response = await connect(asked.last_id)
        source = Source(connect, asked.most, asked.reconnecting, asked.last_id)
        return self.add(Inbox(source.items(response), _size, asked.most, self._start))

    async def _connected(self, request: Request, last_id: str | None) -> Response:
        from harnpy.world.connections import Failed, too_slow
        from harnpy.world.http_client import exchange

        if last_id is not None:
            check_header("last-event-id", last_id)
            request = replace(request, headers=(*request.headers, ("last-event-id", last_id)))
        client = self._clients.of(request.settings)
        try:
            async with timeout(request.whole):
                response = await exchange(client, EVENTS_SURFACE, request)
        except TimeoutError:
            problem: Exception = Broken(too_slow("timeout_ms"))
        except Failed as error:
            problem = Broken(error)
        else:
            refusal = _refusal(response)
            if refusal is None:
                return response
            await response.aclose()
            problem = refusal
        raise problem


def _refusal(response: Response) -> Refused | None:
    status, headers = response.status, response.headers
    if status != 200:
        return Refused(status, f"the server answered with status {status}, not with events")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _MEDIA_TYPE:
        return Refused(status, f"expected a response of type {_MEDIA_TYPE}, got `{kind}`")
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        return Refused(status, f"the events are encoded as {encoding}, which nobody asked for")
    return None


def _size(item: Opened | Event) -> int:
    return 0 if isinstance(item, Opened) else len(item.data)


# The WebSockets that one program has open. Spec: 04 §21.5.


SOCKET_SURFACE = "websocket_connect"


class AskedSocket(NamedTuple):
    """A socket that a program asks for; its URL is one of ws: or wss:. ``most``: bytes of a message."""

    request: Request
    most: int


class Socket(Protocol):
    """An open WebSocket, or a mocked one; ``inbox`` has the messages that have come."""

    @property
    def inbox(self) -> Inbox[Message] | Script[Message]: ...
    async def send(self, message: Message) -> None:
        """Raises `WebSocketError`."""

    async def aclose(self) -> None: ...


class WebSockets(_Connected[Socket]):
    """The open WebSockets, by their handles."""

    kind, noun = "websocket", "WebSocket"

    def mocked(self, asked: AskedSocket) -> str | None:
        """Return the handle of a mocked one; None when no mock is there for it. Raises `EgressBlocked`."""
        request = asked.request
        self._egress.admit(SOCKET_SURFACE, request.canonical)
        mock = self._mocks.sockets.find(request.url, request.canonical)
        if mock is None:
            return None
        self._mocks.note_connect(SOCKET_SURFACE, request.url, request.headers)
        return self.add(_MockedSocket(request.url, mock, self._mocks))

    async def open(self, asked: AskedSocket) -> str:
        """Return the handle of an open one.

        Raises `WebSocketError`, `EgressBlocked`, and what the permission to send does.
        """
        from harnpy.world.connections import Failed, too_slow

        try:
            from harnpy.world.websocket import NotSwitched, connect
        except ModuleNotFoundError as error:
            if error.name != "websockets":
                raise
            raise WebSocketError(f"needs the package 'websockets': {install_command('websocket')}") from None
        request = asked.request
        try:
            async with timeout(request.whole):
                connection = await connect(
                    self._clients.of(request.settings), SOCKET_SURFACE, request, asked.most
                )
        except TimeoutError:
            problem = WebSocketError(too_slow("timeout_ms").text)
        except (Failed, NotSwitched) as error:
            problem = WebSocketError(str(error))
        else:
            return self.add(_OpenSocket(connection, asked.most, self._start))
        raise problem


class _OpenSocket:
    def __init__(self, connection: WebSocket, most: int, start: Start) -> None:
        self._connection = connection
        self._most = most
        self.inbox = Inbox(self._messages(), lambda message: len(message.data), most, start)

    async def _messages(self) -> AsyncGenerator[Message, None]:
        from harnpy.world.connections import Failed
        from harnpy.world.websocket import MessageTooLong

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
        from harnpy.world.connections import Failed
        from harnpy.world.websocket import NotSent

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


class _MockedSocket:
    def __init__(self, url: str, mock: MockedSocket, mocks: TransportMocks) -> None:
        self.inbox = Script(mock.messages)
        self._url = url
        self._echoes = mock.echo
        self._mocks = mocks
        self._is_closed = False

    async def send(self, message: Message) -> None:
        if self._is_closed:
            raise WebSocketError("the connection is closed")
        self._mocks.note("websocket_send", self._url, message=message_dict(message))
        self._is_closed = message.type == "close"
        if self._echoes or self._is_closed:
            self.inbox.add(message)

    async def aclose(self) -> None:
        self._mocks.note("websocket_close", self._url)


# What a program asks for when it opens a stream of events or a WebSocket. Spec: 04 §21.5.


#: The bytes of an event or a message, unless an option says it.
_MOST = 1 << 20
_NO_RECONNECTING = Reconnecting(most=0)
_WEBSOCKET = re.compile("ws(?=s?://)", re.IGNORECASE)


def read_events(
    method: str, url: str, options: Dict, disk: Disk, cap: int | None, chance: Callable[[], float]
) -> AskedEvents:
    """``cap``: bytes that the embedder lets a response have. Raises `HttpError`."""
    name = "sse_connect"
    given = Given(name, options)
    headers = {"accept": "text/event-stream", "cache-control": "no-store", "accept-encoding": "identity"}
    request = read_request(
        name, method, url, _with_headers(options, headers, given.mapping("headers")), disk, None
    )
    return AskedEvents(
        request,
        _most(given, "max_event_bytes", cap),
        given.text("last_id"),
        _reconnecting(given, request.method, chance),
    )


def read_socket(url: str, options: Dict, disk: Disk, cap: int | None) -> AskedSocket:
    """``cap``: bytes that the embedder lets a response have. Raises `HttpError`."""
    name = "websocket_connect"
    given = Given(name, options)
    if not _WEBSOCKET.match(url):
        raise HttpError(f"{name}: URL must start with ws:// or wss://, got '{redacted_url(url)}'")
    request = read_request(
        name,
        "GET",
        _WEBSOCKET.sub("http", url, 1),
        _with_headers(options, {}, given.mapping("headers")),
        disk,
        None,
    )
    request = replace(request, url=_to_websocket(request.url), canonical=_to_websocket(request.canonical))
    return AskedSocket(request, _most(given, "max_message_bytes", cap))


def _to_websocket(url: str) -> str:
    return "ws" + url[len("http") :]


def _with_headers(options: Dict, usual: Dict, given: Dict) -> Dict:
    return {**options, "decompress": False, "headers": {**usual, **given}}


def _most(given: Given, key: str, cap: int | None) -> int:
    most = given.count(key, default=_MOST)
    return most if cap is None else min(most, cap)


def _reconnecting(given: Given, method: str, chance: Callable[[], float]) -> Reconnecting:
    value = given.value("reconnect")
    if value is None:
        # To ask for it again may be to do it again.
        return Reconnecting(chance=chance) if method == "GET" else _NO_RECONNECTING
    if type(value) is bool:
        return Reconnecting(always=True, chance=chance) if value else _NO_RECONNECTING
    if type(value) is not dict:
        raise given.wrong("reconnect", "a bool or a dict", value)
    inner = given.inner("reconnect")
    backoff = inner.seconds("backoff_ms", least=0)
    return Reconnecting(
        inner.count("max", default=5), 1.0 if backoff is None else backoff, always=True, chance=chance
    )


def mocked_events(events: Any) -> Sequence[Event]:
    """Return the events that `sse_mock` was given. Raises `HttpError`."""
    if type(events) is not list:
        raise HttpError(f"sse_mock: events must be a list, got {type_name(events)}")
    return [_event(event) for event in paced(events)]


def _event(value: Any) -> Event:
    if type(value) is str:
        return Event("message", value)
    if type(value) is not dict:
        raise HttpError(f"sse_mock: an event must be a string or a dict, got {type_name(value)}")
    EVENT.check("sse_mock", value)
    given = Given("sse_mock", value)
    return Event(
        given.text("event") or "message",
        given.text("data") or "",
        given.text("id"),
        None if given.value("retry_ms") is None else given.count("retry_ms", default=0),
    )


def mocked_socket(script: Any) -> MockedSocket:
    """Return what `websocket_mock` was given: messages, or `{messages, echo}`. Raises `HttpError`."""
    echo = False
    if type(script) is dict:
        SCRIPT.check("websocket_mock", script)
        given = Given("websocket_mock", script)
        script, echo = given.items("messages") or [], given.flag("echo", False)
    if type(script) is not list:
        raise HttpError(f"websocket_mock: messages must be a list, got {type_name(script)}")
    return MockedSocket([mocked_message(message) for message in paced(script)], echo)
