"""The streamable HTTP transport of MCP, and the keys that its clients must send. Spec: 09 §11.4.

Requests that a browser sends on behalf of some web page are refused: the request's host, and its origin if it
has one, must be this machine's, the address that is listened on, or a name that was allowed.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from harnpy.net.admission import CALLER, Admission, Bounds
from harnpy.serve.site import given_key

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from mcp.server.lowlevel import Server

    from harnpy.net.admission import Incoming
    from harnpy.serve.site import Site
    from harnpy.world.connections import Application, AsgiMessage, Receive, Send
    from harnpy.world.http import Listening

# Keys that a server's clients must show: `Authorization: Bearer KEY` or `X-API-Key: KEY`. Spec: 09 §11.4.


_REFUSAL = b"auth failed"


class Keyed:
    """An ASGI application that serves only requests with one of ``keys``; without keys all of them.

    No client keeps the others waiting: requests are handled within ``bounds``, in turn of their keys.
    """

    def __init__(self, app: Application, keys: Iterable[str], bounds: Bounds | None = None) -> None:
        self._app = app
        self._keys = [key.encode() for key in keys]
        # A body is read before its request takes a slot, all of it.
        bounds = Bounds(read_ahead=DEFAULT_MAX_REQUEST_BODY_SIZE + 1) if bounds is None else bounds
        # Without keys only addresses tell clients apart, and all may have the same.
        alone = bounds._replace(slots_per_caller=bounds.slots, waiting_per_caller=bounds.waiting)
        self._admission = Admission(bounds if self._keys else alone)

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        caller = self._key_of(headers) if self._keys else (scope["client"] or ("",))[0]
        if caller is None:
            await _refuse(send)
            return
        # The calls of older clients go on when the response has begun; other streams stay open while nothing
        # happens.
        calls = scope["method"] == "POST" and not (_is_modern(headers) and headers.get(_METHOD) == _LISTEN)

        async def handle(request: Incoming) -> None:
            known = {**scope, CALLER: caller}
            await self._admission.serve(self._app, known, request, send, caller, to_the_end=calls)

        await self._admission.receive(receive, send, handle)

    def _key_of(self, headers: dict[bytes, bytes]) -> bytes | None:
        """Return the key that a request was sent with, None if it is none of ours."""
        given = given_key(headers)
        if given is None:
            return None
        # All of them are compared: how long it takes says nothing about the keys.
        found = [compare_digest(given, key) for key in self._keys]
        return given if any(found) else None


async def _refuse(send: Send) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(_REFUSAL)).encode()),
        (b"www-authenticate", b"Bearer"),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": _REFUSAL})


_METHOD, _LISTEN = MCP_METHOD_HEADER.encode(), b"subscriptions/listen"


def _headers(scope: AsgiMessage) -> dict[bytes, bytes]:
    """Return the headers by name; of a repeated one the first, which is what the SDK reads."""
    return dict(reversed(scope["headers"]))


def _is_modern(headers: dict[bytes, bytes]) -> bool:
    """Return whether a request is of the protocol without sessions."""
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER.encode(), b"").decode("latin-1")
    return bool(version) and version not in HANDSHAKE_PROTOCOL_VERSIONS


# The sessions of clients of the protocol before 2026-07-28. Spec: 09 §11.4.


#: Seconds after which one is freed that isn't used, and how many there may be.
_IDLE, _MOST = 1800.0, 1000
_SESSION = MCP_SESSION_ID_HEADER.encode()


class Sessions:
    """An ASGI application that ends a session when there would be too many.

    It is the one that was unused for longest, of the client that has most.
    """

    def __init__(self, app: Application, most: int = _MOST) -> None:
        self._app = app
        self._most = most
        #: How many requests of each are running; those that were used last come last.
        self.running: dict[bytes, int] = {}
        self._callers: dict[bytes, Hashable] = {}

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        headers = _headers(scope) if scope["type"] == "http" else {}
        id = headers.get(_SESSION)
        if scope["type"] != "http" or _is_modern(headers):
            await self._app(scope, receive, send)
            return
        if id is None:
            await self._make_room(scope)
        elif id in self.running:
            self.running[id] = self.running.pop(id) + 1

        async def sent(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                self._look(scope, id, message)
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            if id in self.running:
                self.running[id] -= 1

    def _look(self, scope: AsgiMessage, id: bytes | None, start: AsgiMessage) -> None:
        """Notice which sessions begin and end."""
        given = dict(start["headers"]).get(_SESSION)
        if id is not None and (start["status"] == 404 or scope["method"] == "DELETE"):
            self._forget(id)
        elif id is None and given is not None and start["status"] < 400:
            self.running[given] = 0
            self._callers[given] = scope.get(CALLER)

    def _forget(self, id: bytes) -> None:
        self.running.pop(id, None)
        self._callers.pop(id, None)

    async def _make_room(self, scope: AsgiMessage) -> None:
        if len(self.running) < self._most:
            return
        most = Counter(self._callers.values())
        unused = [id for id, count in self.running.items() if not count]
        # Of equals it is the first: the one that was unused for longest.
        victim = max(unused, key=lambda id: most[self._callers[id]], default=None)
        if victim is not None:
            self._forget(victim)
            kept = [pair for pair in scope["headers"] if pair[0] in (b"host", b"origin")]
            ending = {**scope, "method": "DELETE", "headers": [*kept, (_SESSION, victim)]}
            await self._app(ending, _nothing_more, _unheard)


# Long results. A client may take only short events, as the official SDK's does, whose limit is 1 MiB.
#
# From 2026-07-28 on the SDK's server answers with JSON when there was nothing to say before the result.


#: Bytes of the longest result that is sent as an event.
_LONGEST_EVENT = 256 * 1024
_EVENTS, _JSON = b"text/event-stream", b"application/json"
_RESULT = re.compile(rb"event: message\r?\n(?:id: [^\r\n]*\r?\n)?data: (\{[^\r\n]*\})\s*")


class LongResults:
    """An ASGI application that sends a long result as JSON if it would be the first event."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            send = _Response(send)
        await self._app(scope, receive, send)


class _Response:
    """Sends a response; one of events begins with its first event."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: AsgiMessage | None = None
        self._is_over = False

    async def __call__(self, message: AsgiMessage) -> None:
        if self._is_over:
            return
        if message["type"] == "http.response.start" and _type_of(message).startswith(_EVENTS):
            self._start = message
            return
        if self._start is not None:
            start, self._start = self._start, None
            found = _RESULT.fullmatch(message["body"]) if len(message["body"]) > _LONGEST_EVENT else None
            if found is not None:
                self._is_over = True
                kept = [pair for pair in start["headers"] if pair[0] != b"content-type"]
                await self._send({**start, "headers": [*kept, (b"content-type", _JSON)]})
                await self._send({"type": "http.response.body", "body": found[1]})
                return
            await self._send(start)
        await self._send(message)


def _type_of(start: AsgiMessage) -> bytes:
    return next((value for name, value in start["headers"] if name == b"content-type"), b"")


async def _nothing_more() -> AsgiMessage:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(message: AsgiMessage) -> None:
    """Nobody is there to receive the response."""


#: Seconds that requests have to end once the server stops.
_GRACE = 1.0


def _security(site: Site) -> TransportSecuritySettings:
    hosts = [form for name in site.names for form in (name, f"{name}:*")]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


async def serve_http(
    server: Server[Any], site: Site, listening: Listening, announce: Callable[[str], object]
) -> None:
    """Serve clients until this is cancelled; ``announce`` receives the URL. Raises NotServed."""
    app = server.streamable_http_app(
        streamable_http_path=site.path,
        transport_security=_security(site),
        session_idle_timeout=_IDLE,
        # `Sessions` makes room before that many are open, unless all of them are in use.
        max_sessions=_MOST,
    )
    listener = await site.listen(Keyed(Sessions(LongResults(app)), site.keys), listening)
    try:
        async with server.session_manager.run():
            announce(site.url(listener.port))
            await asyncio.get_running_loop().create_future()
    finally:
        await listener.close(_GRACE)
