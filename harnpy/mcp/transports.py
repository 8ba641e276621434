"""Transports: they carry messages to a server and back, over a program's streams or HTTP. Spec: 07 §15.1."""

from __future__ import annotations

import math
import os.path
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import httpx2
from anyio import BrokenResourceError, EndOfStream
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from harnpy.formats.json import JsonError, parse_json, to_json
from harnpy.mcp.server_spec import (
    ConnectionFault,
    NotStarted,
    ServerError,
    ServerSpec,
    SessionLost,
    Unreadable,
)
from harnpy.world.egress import redacted_url
from harnpy.world.files import system_reason
from harnpy.world.http_client import failure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import TaskGroup
    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.shared._stream_protocols import ReadStream, WriteStream

    from harnpy.formats.dicts import Dict
    from harnpy.world import World
    from harnpy.world.http import Http
    from harnpy.world.processes import Companion

    Streams = tuple[ReadStream[Any], WriteStream[SessionMessage]]
    Answer = JSONRPCResponse | JSONRPCError

# What moves messages to a server and back, whichever way.


class Transport(Protocol):
    """``session`` is the server's name for the session, ``version`` the protocol's that both agreed on;
    ``ended``: nothing comes any more.
    """

    session: str | None
    version: str
    ended: bool
    #: What a server that has ended said last, "" if nobody knows.
    last_words: str
    #: Whether it is one of a recorded run, which a branch of that hasn't: requests connect again.
    interrupted: bool
    #: What the server says of itself: `name`, `version`.
    about: Dict

    def open(self) -> AbstractAsyncContextManager[Streams]:
        """Return the streams of a new connection. What fails to answer a request is its error's ``data``."""


# JSON-RPC messages between their text and the SDK's types.


#: What an error is taken for that doesn't say which one it is. Spec: 07 §15.1.
_UNKNOWN_CODE, _UNKNOWN_MESSAGE = -1, "Unknown MCP error"


def read_message(text: str) -> JSONRPCMessage | None:
    """Return the message that a text is, None for one that is no JSON-RPC message. Raises `JsonError`."""
    data = parse_json(text)
    if isinstance(data, dict) and "id" in data and "method" not in data:
        data = _answer(data)
    try:
        return jsonrpc_message_adapter.validate_python(data, by_name=False)
    except ValidationError:
        return None


def _answer(data: Dict) -> Dict:
    """An answer as JSON-RPC has it: one that has no result is an error, so that nobody waits for another."""
    if "error" not in data and isinstance(data.get("result"), dict):
        return data
    error = data.get("error")
    if not isinstance(error, dict):
        error = {} if "error" in data else {"message": "the server's answer has no result object"}
    code, message = error.get("code"), error.get("message")
    read = {
        "code": code if type(code) is int else _UNKNOWN_CODE,
        "message": message if isinstance(message, str) else _UNKNOWN_MESSAGE,
        **({"data": error["data"]} if "data" in error else {}),
    }
    return {"jsonrpc": data.get("jsonrpc"), "id": data["id"], "error": read}


def write_message(message: JSONRPCMessage, **more: Any) -> str:
    """Return a message as one line of JSON, without its end; ``more`` are fields beside JSON-RPC's."""
    frame: dict[str, Any] = {"jsonrpc": "2.0", **more}
    if not isinstance(message, JSONRPCNotification):
        frame["id"] = message.id
    if isinstance(message, JSONRPCRequest | JSONRPCNotification):
        frame["method"] = message.method
        if message.params is not None:
            frame["params"] = message.params
    elif isinstance(message, JSONRPCResponse):
        frame["result"] = message.result
    else:
        frame["error"] = message.error.model_dump(exclude_unset=True)
    return to_json(frame)


# A server that is a program of ours: a message is a line of its input or output. Spec: 07 §15.1.


class Stdio:
    """Starts the program of ``spec`` with our environment; what it writes to standard error is written to
    the program's."""

    def __init__(self, spec: ServerSpec, world: World) -> None:
        self.session: str | None = None
        self.version = ""
        self.ended = self.interrupted = False
        self.last_words = ""
        self.about: Dict = {}
        self._spec = spec
        self._world = world

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        """Raises `NotStarted`."""
        program = await self._started()
        try:
            yield _Output(program, self), _Input(program, self)
        finally:
            await program.stop()

    async def end(self, program: Companion) -> None:
        """Note that nothing comes any more."""
        try:
            self.last_words = await program.last_words()
        except ConnectionAbortedError as error:  # one that a tape has, and its branch hasn't
            self.interrupted, self.last_words = True, str(error)
        self.ended = True

    async def _started(self) -> Companion:
        world, command, added = self._world, self._spec.command, self._spec.env
        env = {**world.environment.all(), **added} if added else None
        files = world.unguarded.files
        directory = os.path.join(files.cwd(), self._spec.cwd)
        if self._spec.cwd and not files.is_dir(directory):
            raise NotStarted(f"failed to spawn '{command[0]}': `cwd` {self._spec.cwd} is no directory")
        try:
            return await world.processes.start(command, directory, env, self._heard)
        except (OSError, ValueError) as error:  # or a text that no program can be given
            reason = system_reason(error)
        raise NotStarted(f"failed to spawn '{command[0]}': {reason}")

    def _heard(self, line: str) -> None:
        if not self._spec.quiet:
            self._world.unguarded.streams.write_err(line)


class _Stream:
    """A stream as the SDK's dispatcher needs it: the program ends with the transport."""

    def __init__(self, program: Companion, transport: Stdio) -> None:
        self._program = program
        self._transport = transport

    async def aclose(self) -> None:
        """Nothing to be done."""

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing to be done."""


class _Output(_Stream):
    """The messages that the program writes; other lines are skipped."""

    async def receive(self) -> SessionMessage:
        with suppress(ConnectionAbortedError):
            while line := await self._program.line():
                message = _stdio_message(line)
                if message is not None:
                    return message
        await self._transport.end(self._program)
        raise EndOfStream

    def __aiter__(self) -> _Output:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None


class _Input(_Stream):
    async def send(self, item: SessionMessage) -> None:
        try:
            await self._program.write(write_message(item.message).encode("utf-8", "surrogatepass") + b"\n")
        except ConnectionError:
            await self._transport.end(self._program)
            raise BrokenResourceError from None


def _stdio_message(line: bytes) -> SessionMessage | None:
    try:
        message = read_message(line.decode())
    except (JsonError, UnicodeDecodeError):
        return None
    return None if message is None else SessionMessage(message)


# A server at a URL: a message is a request of its own, and so is its answer. Spec: 07 §15.1.


#: What these requests are called where it is decided what may be reached. Spec: 04 §21.4.
SURFACE = "mcp_connect"

_SESSION = "MCP-Session-Id"
_EVENTS = "text/event-stream"

#: How long a request may take is for the connection to say; only connecting is limited here.
_TIMEOUT = httpx2.Timeout(None, connect=30.0)

#: Seconds that the server has to hear that the session is over.
_FAREWELL = 1.0

#: Bytes that a body or an event may have.
_MOST = 64 * 1024 * 1024

#: Seconds that a stream has to end after its answer.
_LINGER = 0.2

#: How often a stream of events that broke off is continued, and how long is waited, unless it says so itself.
_RESUMPTIONS = 2
_PAUSE_MS = 1000


class StreamableHttp:
    """Sends messages to the URL of ``spec``."""

    def __init__(self, spec: ServerSpec, http: Http) -> None:
        self.session: str | None = None
        self.version = ""
        self.ended = self.interrupted = False
        self.last_words = ""
        self.about: Dict = {}
        self._spec = spec
        self._http = http

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        arriving, incoming = anyio.create_memory_object_stream[SessionMessage](math.inf)
        async with arriving, self._http.client(SURFACE) as client, anyio.create_task_group() as tasks:
            outgoing = _Outgoing(self, client, tasks, arriving)
            try:
                yield incoming, outgoing
            finally:
                tasks.cancel_scope.cancel()
                await self._say_farewell(client)

    async def _say_farewell(self, client: httpx2.AsyncClient) -> None:
        if self.session is None:
            return
        with anyio.CancelScope(shield=True), suppress(Exception):
            await client.delete(self._spec.url, headers=self.headers(), timeout=_FAREWELL)

    @property
    def url(self) -> str:
        return self._spec.url

    def body(self, message: JSONRPCMessage) -> str:
        server = self._spec.proxy_server_name
        return write_message(message) if server is None else write_message(message, serverName=server)

    def headers(self) -> dict[str, str]:
        headers = {
            "Accept": f"application/json, {_EVENTS}",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": self.version,
        }
        if self.session is not None:
            headers[_SESSION] = self.session
        if self._spec.auth_token:
            headers["Authorization"] = f"Bearer {self._spec.auth_token}"
        return headers


class _Outgoing:
    """Sends each message; answers go where messages arrive.

    Requests are made in tasks that begin where they are sent, under the rules in force there.
    """

    def __init__(
        self,
        server: StreamableHttp,
        client: httpx2.AsyncClient,
        tasks: TaskGroup,
        arriving: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        self._server = server
        self._client = client
        self._tasks = tasks
        self._arriving = arriving
        self._running: dict[RequestId, anyio.CancelScope] = {}

    async def send(self, item: SessionMessage) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._tasks.start_soon(self._request, message, item)
            return
        cancels = isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled"
        if not (
            cancels and self._server.version in MODERN_PROTOCOL_VERSIONS
        ):  # there the end of a request says it
            with suppress(Exception):  # nobody waits for an answer, and the next request fails as well
                async with self._posted(item):
                    pass
        if isinstance(message, JSONRPCNotification) and cancels:
            self._abort((message.params or {}).get("requestId"))

    def _abort(self, request: Any) -> None:
        scope = self._running.get(request)
        if scope is not None:
            scope.cancel()

    async def _request(self, request: JSONRPCRequest, item: SessionMessage) -> None:
        with anyio.CancelScope() as scope:
            self._running[request.id] = scope
            try:
                answer = await self._answer(request, item)
            except Exception as error:
                found = ErrorData(
                    code=INTERNAL_ERROR, message=str(error), data=_failure(error, self._server.url)
                )
                answer = JSONRPCError(jsonrpc="2.0", id=request.id, error=found)
            finally:
                del self._running[request.id]
            self._arriving.send_nowait(SessionMessage(answer))

    @asynccontextmanager
    async def _posted(self, item: SessionMessage) -> AsyncIterator[httpx2.Response]:
        metadata = item.metadata
        more = (metadata.headers if isinstance(metadata, ClientMessageMetadata) else None) or {}
        async with self._client.stream(
            "POST",
            self._server.url,
            content=self._server.body(item.message).encode("utf-8", "surrogatepass"),
            headers={**self._server.headers(), **more},
            timeout=_TIMEOUT,
        ) as response:
            yield response

    async def _answer(self, request: JSONRPCRequest, item: SessionMessage) -> Answer:
        session = self._server.session
        async with self._posted(item) as response:
            if response.status_code == 401:
                raise ServerError("MCP authorization required")
            if response.status_code == 404 and session is not None and request.method != "initialize":
                raise SessionLost(_unreadable(response, "the server has lost the session").message)
            self._server.session = response.headers.get(_SESSION, self._server.session)
            if response.headers.get("content-type", "").startswith(_EVENTS):
                return await self._streamed(response, request)
            body = await _body(response)
            try:
                message = read_message(body.decode("utf-8", "replace"))
            except JsonError as error:
                raise _unreadable(response, str(error)) from None
        if not isinstance(message, JSONRPCResponse | JSONRPCError):
            raise _unreadable(response, "the body is no JSON-RPC response")
        return _answering(request, message)

    async def _streamed(self, response: httpx2.Response, request: JSONRPCRequest) -> Answer:
        """Read events until the answer. A stream that breaks off is continued where its last event was."""
        place = _Place()
        answer = await self._read(response, request, place)
        for _ in range(_RESUMPTIONS):
            if answer is not None or not place.last:
                break
            await anyio.sleep(place.pause_ms / 1000)
            headers = {**self._server.headers(), "Accept": _EVENTS, "Last-Event-ID": place.last}
            async with self._client.stream(
                "GET", self._server.url, headers=headers, timeout=_TIMEOUT
            ) as continued:
                if continued.is_success:
                    answer = await self._read(continued, request, place)
        if answer is None:
            raise _unreadable(response, "the event stream ended without an answer")
        return answer

    async def _read(self, response: httpx2.Response, request: JSONRPCRequest, place: _Place) -> Answer | None:
        """Read events: an answer ends them, whatever else arrives is passed on."""
        with suppress(httpx2.TransportError, httpx2.SSEError):  # the stream broke off
            events = aiter(httpx2.EventSource(response, max_event_size=_MOST))
            async for event in events:
                place.note(event)
                message = _http_message(event.data)
                if isinstance(message, JSONRPCResponse | JSONRPCError):
                    await _drained(events)
                    return _answering(request, message)
                if message is not None:
                    self._arriving.send_nowait(SessionMessage(message))
        return None

    async def aclose(self) -> None:
        """Nothing to be done: requests end with the transport."""

    async def __aenter__(self) -> _Outgoing:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing to be done."""


async def _drained(events: AsyncIterator[object]) -> None:
    """Read what follows the answer, which is nothing, so that the connection can be used again."""
    with anyio.move_on_after(_LINGER), suppress(httpx2.TransportError, httpx2.SSEError):
        async for _ in events:
            pass


class _Place:
    """A place in a stream of events: the ``last`` event's id, and how long to wait before it is continued."""

    def __init__(self) -> None:
        self.last = ""
        self.pause_ms = _PAUSE_MS

    def note(self, event: httpx2.ServerSentEvent) -> None:
        self.last = event.id or self.last
        if event.retry is not None:
            self.pause_ms = event.retry


async def _body(response: httpx2.Response) -> bytearray:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _MOST:
            raise _unreadable(response, f"the body has more than {_MOST} bytes")
    return body


def _http_message(text: str) -> JSONRPCMessage | None:
    try:
        return read_message(text)
    except JsonError:
        return None


def _answering(request: JSONRPCRequest, answer: Answer) -> Answer:
    """The answer under the request's id: one to a message that the server couldn't read has none."""
    return answer.model_copy(update={"id": request.id})


def _failure(error: Exception, url: str) -> Exception:
    """Return the error that the caller gets."""
    if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL | httpx2.StreamError | OSError):
        return ConnectionFault(f"MCP HTTP request error: {failure(error).text} ({redacted_url(url)})")
    return error


def _unreadable(response: httpx2.Response, detail: str) -> Unreadable:
    return Unreadable(f"MCP HTTP response parse error (status {response.status_code}): {detail}")
