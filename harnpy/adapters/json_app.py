"""`JsonApp`: a plain ASGI application that takes JSON and answers with JSON, or with a stream of events.

What harnpy's adapters for front ends stand on. A request that is refused gets ``{"error": "<one sentence>"}``
with the status that says why. Whoever calls is let through: wrap the application in `BearerAuth` (10 §C22).
Spec: 10 §C20.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.json import ordered_json
from harnpy.net.server_events import Event
from harnpy.session.errors import (
    EventRejected,
    InvalidArgument,
    InvalidSessionId,
    LaneFull,
    LaneTimeout,
    RewindError,
    SessionBusy,
    SessionConflict,
    SessionNotFound,
    TransferError,
)
from harnpy.session.transfer.listed import read_document

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from harnpy.net.admission import Receive, Send

    Scope = Mapping[str, Any]
    Json = dict[str, Any]

#: Bytes that a request's body may have, unless the application says otherwise.
MAX_BODY = 4 * 1024 * 1024
#: What errors of sessions are over HTTP.
_STATUSES: dict[type[Exception], int] = {
    InvalidSessionId: 400,
    TransferError: 400,
    EventRejected: 400,
    InvalidArgument: 400,
    SessionNotFound: 404,
    SessionConflict: 409,
    SessionBusy: 409,
    LaneTimeout: 409,
    RewindError: 409,
    LaneFull: 503,
}


class Problem(Exception):
    """A request that is refused: its status, and why in one sentence."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.headers = headers or {}


class Request(NamedTuple):
    """``parts`` are those of the path below the application, ``scope`` is ASGI's."""

    scope: Scope
    method: str
    parts: tuple[str, ...]
    body: bytes

    def json(self) -> Any:
        """Return the body's value. Raises `Problem` when it isn't JSON."""
        try:
            return read_document(self.body)
        except TransferError as error:
            raise Problem(400, f"the body: {error}") from error

    def only(self, *methods: str) -> str:
        """Return the method. Raises `Problem` unless it is one of these."""
        if self.method not in methods:
            allowed = ", ".join(methods)
            raise Problem(405, f"this takes {allowed}, not {self.method}", {"allow": allowed})
        return self.method


class Events:
    """A response that is a stream of server-sent events, begun with the first of them."""

    def __init__(self, send: Send, headers: Mapping[str, str]) -> None:
        self._send = send
        self._headers = {
            "content-type": "text/event-stream",
            "cache-control": "no-cache",
            "x-accel-buffering": "no",  # nginx would keep events back
            **headers,
        }
        self.has_begun = False

    async def put(self, data: Json | str) -> None:
        """Send an event; data that is no text as JSON."""
        if not self.has_begun:
            self.has_begun = True
            await self._send(_start(200, self._headers))
        text = data if isinstance(data, str) else ordered_json(data)
        await self._send(
            {"type": "http.response.body", "body": Event(text).frame().encode(), "more_body": True}
        )

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})


class JsonApp:
    """An ASGI application. Subclasses say in `handle` what they answer, as a value, or None for no content;
    or send `Events` themselves, and return the same."""

    def __init__(self, *, max_body: int = MAX_BODY) -> None:
        """``max_body``: bytes that a request's body may have."""
        self._max_body = max_body

    async def handle(self, request: Request, events: Callable[..., Events]) -> Any:
        """Return what answers a request: JSON, None, or what ``events(**headers)`` has returned.

        It is cancelled when the client leaves. Raises `Problem`.
        """
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1003})
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        made: list[Events] = []

        def events(**headers: str) -> Events:
            made.append(Events(send, headers))
            return made[-1]

        try:
            body = await self._body(receive)
            if body is None:
                return
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            request = Request(scope, scope["method"], tuple(path.strip("/").split("/")), body)
            found = await _unless_gone(self.handle(request, events), receive)
        except Exception as error:
            if any(each.has_begun for each in made):
                await made[-1].end()
                raise
            problem = _problem(error)
            if problem is None:
                raise
            await _reply(send, problem.status, {"error": problem.why}, problem.headers)
            return
        if isinstance(found, Events):
            await found.end()
        elif found is not _GONE:
            await _reply(send, 204 if found is None else 200, found, {})

    async def _body(self, receive: Receive) -> bytes | None:
        """Return the body; None when the client has left. Raises `Problem` when it is too long."""
        pieces, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self._max_body:
                raise Problem(413, f"the body has more than {self._max_body} bytes", {"connection": "close"})
            if not message.get("more_body"):
                return b"".join(pieces)


def _problem(error: Exception) -> Problem | None:
    """Return what an error is over HTTP; None for one that is no fault of the caller's."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RecursionError):
        return Problem(400, "the body is nested too deeply")
    status = next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), None)
    return None if status is None else Problem(status, str(error))


_GONE: Any = object()


async def _unless_gone(work: Awaitable[Any], receive: Receive) -> Any:
    """Return what the work returns; `_GONE` when the client left, and the work was cancelled."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        return _GONE
    finally:
        for task in (working, leaving):
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


async def _live(receive: Receive, send: Send) -> None:
    while (message := await receive())["type"] != "lifespan.shutdown":
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})


async def _reply(send: Send, status: int, value: Any, headers: Mapping[str, str]) -> None:
    body = b"" if status == 204 else ordered_json(value).encode()
    own = {} if status == 204 else {"content-type": "application/json", "content-length": str(len(body))}
    await send(_start(status, {**own, **headers}))
    await send({"type": "http.response.body", "body": body})


def _start(status: int, headers: Mapping[str, str]) -> Json:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": pairs}
