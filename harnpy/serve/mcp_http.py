"""The streamable HTTP transport of MCP, and the keys that its clients must send. Spec: 09 §11.4.

Requests that a browser sends on behalf of some web page are refused: the request's host, and its origin if it
has one, must be this machine's, the address that is listened on, or a name that was allowed.
"""

from __future__ import annotations

import asyncio
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp.server.transport_security import TransportSecuritySettings

from harnpy.serve.program import NotServed
from harnpy.world.connections import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp.server.lowlevel import Server

    from harnpy.world.connections import Application, AsgiMessage, Listener, Receive, Send
    from harnpy.world.http import Listening

# Keys that a server's clients must show: `Authorization: Bearer KEY` or `X-API-Key: KEY`. Spec: 09 §11.4.


_BEARER = b"bearer "
_REFUSAL = b"auth failed"


class Keyed:
    """An ASGI application that serves only requests with one of ``keys``; without keys all of them."""

    def __init__(self, app: Application, keys: Iterable[str]) -> None:
        self._app = app
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._keys or self._admits(dict(scope["headers"])):
            await self._app(scope, receive, send)
            return
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(_REFUSAL)).encode()),
            (b"www-authenticate", b"Bearer"),
        ]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": _REFUSAL})

    def _admits(self, headers: dict[bytes, bytes]) -> bool:
        given = headers.get(b"x-api-key")
        if given is None:
            authorization = headers.get(b"authorization", b"")
            if authorization[: len(_BEARER)].lower() != _BEARER:
                return False
            given = authorization[len(_BEARER) :].strip()
        # All of them are compared: how long it takes says nothing about the keys.
        found = [compare_digest(given, key) for key in self._keys]
        return any(found)


_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_ANY = ("0.0.0.0", "::")
#: Seconds that requests have to end once the server stops.
_GRACE = 1.0


class Site(NamedTuple):
    """The address of a server and its clients. ``hosts``: names that clients may call it by.

    ``certificate`` and ``key`` are PEM texts, for TLS.
    """

    host: str
    port: int
    path: str = "/mcp"
    keys: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    certificate: str | None = None
    key: str | None = None

    @property
    def is_exposed(self) -> bool:
        """Return whether anybody on the network may call it."""
        return not self.keys and _shown(self.host) not in _LOOPBACK

    def place(self) -> Place:
        return Place(self.host, self.port, self.certificate, self.key)

    def url(self, port: int) -> str:
        scheme = "http" if self.certificate is None else "https"
        host = "127.0.0.1" if self.host in _ANY else _shown(self.host)
        return f"{scheme}://{host}:{port}{self.path}"

    def security(self) -> TransportSecuritySettings:
        own = () if self.host in _ANY else (_shown(self.host),)
        names = dict.fromkeys((*_LOOPBACK, *own, *self.hosts))
        hosts = [form for name in names for form in (name, f"{name}:*")]
        origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
        return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


async def serve_http(
    server: Server[Any], site: Site, listening: Listening, announce: Callable[[str], object]
) -> None:
    """Serve clients until this is cancelled; ``announce`` receives the URL. Raises NotServed."""
    app = server.streamable_http_app(streamable_http_path=site.path, transport_security=site.security())
    listener = await _listener(Keyed(app, site.keys), site, listening)
    try:
        async with server.session_manager.run():
            announce(site.url(listener.port))
            await asyncio.get_running_loop().create_future()
    finally:
        await listener.close(_GRACE)


async def _listener(app: Application, site: Site, listening: Listening) -> Listener:
    """Raises NotServed."""
    try:
        return await listening.listen(app, site.place())
    except OSError as error:
        reason = error.strerror or error
        raise NotServed(f"cannot listen at {_shown(site.host)}:{site.port}: {reason}") from None


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
