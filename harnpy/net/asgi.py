"""A server as an ASGI application: requests are read, handled by tasks of the program, and answered.

Spec: 04 §21.5.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from harnpy.net import server_messages
from harnpy.net.admission import RETRY_AFTER
from harnpy.net.server_messages import Request, body_to_send, has_no_body, plain_response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.net.server import Server
    from harnpy.net.server_events import EventStream
    from harnpy.net.server_messages import Response
    from harnpy.world.connections import AsgiMessage, Receive, Send

    class Running(Protocol):
        """A task of the program that handles a request."""

        response: asyncio.Future[Response | None]
        """The response; None when the task was stopped before it had one."""
        stream: EventStream | None
        """The events that the response consists of, if it does."""

        def cancel(self) -> None:
            """Ask the task to end: nobody waits for it any more."""

    class Tasks(Protocol):
        def start(self, respond: Callable[[], Response]) -> Running | None:
            """Start a task that calls ``respond``; None when there may be no more of them."""


class Application:
    """``headers`` go with every response that has none of that name. A request may have a head of
    ``head_bytes``, and take ``body_seconds`` for its body.
    """

    def __init__(
        self, server: Server, tasks: Tasks, headers: Mapping[str, str], head_bytes: int, body_seconds: float
    ) -> None:
        self._server = server
        self._tasks = tasks
        self._headers = headers
        self._head_bytes = head_bytes
        self._body_seconds = body_seconds
        self._streams: set[EventStream] = set()

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        request = _request(scope)
        # The parser below measures heads only while they are incomplete.
        if _head_size(scope) > self._head_bytes:
            await self._answer(lambda: self._server.refuse(request, 400, _LONG), receive, _last(send))
            return
        found = self._server.find(request)
        try:
            async with asyncio.timeout(self._body_seconds):
                body = await _body(request, self._server.max_body_of(found), receive)
        except TimeoutError:
            await self._answer(lambda: self._server.refuse(request, 408, _SLOW), receive, _last(send))
        except _Gone:
            return
        except _TooLong as long:
            size, limit = long.size, long.limit
            await _pass_over(request, receive, self._body_seconds)
            await self._answer(lambda: self._server.too_large(request, size, limit), receive, _last(send))
        else:
            whole = request._replace(body=body)
            await self._answer(lambda: self._server.handled(whole, found), receive, send)

    def end_streams(self) -> None:
        """End the responses that would go on for ever."""
        for stream in list(self._streams):
            stream.cancel("shutdown")

    async def _answer(self, respond: Callable[[], Response], receive: Receive, send: Send) -> None:
        """Send the response, unless the client goes first: then the task is asked to end."""
        running = self._tasks.start(respond)
        if running is None:
            busy = plain_response(503, "the server is busy")
            busy["headers"]["retry-after"] = str(RETRY_AFTER)
            await self._send(busy, send)
            return
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            response = await _first_of(running.response, gone)
        except asyncio.CancelledError:
            running.cancel()
            gone.cancel()
            await self._send(plain_response(503, "the server is shutting down"), send)
            return
        if response is None:
            running.cancel()
        elif running.stream is not None:
            await self._send_events(response, running.stream, gone, send)
        else:
            await self._send(response, send)
        gone.cancel()

    async def _send(self, response: Response, send: Send) -> None:
        body = body_to_send(response)
        headers = self._headers_of(response)
        if not has_no_body(response["status"]):
            headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": response["status"], "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _send_events(
        self, response: Response, stream: EventStream, gone: asyncio.Future[None], send: Send
    ) -> None:
        """Send events as they come, until the program ends the stream or the client is gone."""
        self._streams.add(stream)
        gone.add_done_callback(lambda _: stream.disconnect())
        try:
            headers = self._headers_of(response)
            await send({"type": "http.response.start", "status": response["status"], "headers": headers})
            async for frames in stream.frames():
                await send({"type": "http.response.body", "body": frames.encode(), "more_body": True})
            if not stream.disconnected:
                await send({"type": "http.response.body", "body": b""})
        finally:
            stream.disconnect()
            self._streams.discard(stream)

    def _headers_of(self, response: Response) -> list[tuple[bytes, bytes]]:
        return list(server_messages.headers_to_send({**self._headers, **response["headers"]}))


class _Gone(Exception):
    """The client left before its request was complete."""


class _TooLong(Exception):
    """A body has, or would have, ``size`` bytes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit


#: Bytes of a body that is too long that are read all the same, and the longest pause between two pieces in s.
_PASSED_OVER = 1 << 25
_PAUSE = 0.1

_LONG = "the head of the request is too long"
_SLOW = "the request took too long to arrive"


async def _body(request: Request, limit: int, receive: Receive) -> bytes:
    """Return the body of a request. Raises _Gone, and _TooLong as soon as it is known to be."""
    stated = next((value for name, value in request.headers if name == "content-length"), "")
    if stated.isdigit() and int(stated) > limit:
        raise _TooLong(int(stated), limit)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _TooLong(size, limit)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _pass_over(request: Request, receive: Receive, seconds: float) -> None:
    """Read what is coming of a body that nobody wants, up to a bound.

    A client whose connection is closed while it sends may never see the response.
    """
    if any(name == "expect" for name, _ in request.headers):
        # It waits for the response before it sends.
        return
    left = _PASSED_OVER
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while left > 0:
                async with asyncio.timeout(_PAUSE):
                    message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


async def _first_of(response: asyncio.Future[Response | None], gone: asyncio.Future[None]) -> Response | None:
    """Return the response; None when the client leaves before it is there."""
    waiting: list[asyncio.Future[Any]] = [response, gone]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    return response.result() if response.done() else None


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _last(send: Send) -> Send:
    """Return ``send`` for the last response of a connection: what is left of the request won't be read."""

    async def closing(message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            message["headers"].append((b"connection", b"close"))
        await send(message)

    return closing


def _head_size(scope: AsgiMessage) -> int:
    target = len(scope["raw_path"]) + len(scope["query_string"])
    return target + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


def _request(scope: AsgiMessage) -> Request:
    host, port = scope["client"] or (None, None)
    name = f"[{host}]" if host and ":" in host else host
    return Request(
        scope["method"].upper(),
        scope["raw_path"].decode("ascii", "replace"),
        scope["query_string"].decode("ascii", "replace"),
        [(name.decode("ascii"), value.decode("utf-8", "replace")) for name, value in scope["headers"]],
        b"",
        None if host is None else f"{name}:{port}",
        host,
    )
