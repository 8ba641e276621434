"""uvicorn within a loop that is not its own: no signal handlers, no logs, bounded heads of requests."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import tempfile
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from harnpy.world.connections import Application, Listener, Place

#: Says nothing, whatever becomes of uvicorn's own loggers, which belong to the process.
_SILENT = logging.Logger("harnpy.web_server", logging.CRITICAL + 1)

#: In so many turns of the loop asyncio makes a connection of what it has accepted.
_TURNS_TO_ACCEPT = 3


async def listen(application: Application, place: Place) -> Listener:
    """Serve ``application`` at ``place``. Raises OSError."""
    context = None if place.certificate is None else _tls(place.certificate, place.key or "")
    bound = await _bound(place.host, place.port)
    server = _Server(_config(application, place, context))
    running = asyncio.ensure_future(server.serve(sockets=[bound]))
    started = asyncio.ensure_future(server.up.wait())
    try:
        await asyncio.wait([running, started], return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        await _Listener(server, running, bound).abort()
        raise
    finally:
        started.cancel()
    if not server.started:
        bound.close()
        running.result()
    return _Listener(server, running, bound)


def _config(application: Application, place: Place, context: ssl.SSLContext | None) -> uvicorn.Config:
    class Protocol(_Protocol):
        head_seconds = place.head_seconds

    return uvicorn.Config(
        application,
        http=Protocol,
        ws="none" if place.message_bytes is None else _WebSocket,
        ws_max_size=place.message_bytes or 0,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        # Nothing that the environment may say otherwise.
        proxy_headers=False,
        forwarded_allow_ips=[],
        workers=1,
        server_header=False,
        timeout_keep_alive=place.keep_alive,  # type: ignore[arg-type]  # seconds for `call_later`
        limit_concurrency=place.connections,
        h11_max_incomplete_event_size=place.head_bytes,
        ssl_context_factory=None if context is None else lambda config, default: context,
    )


async def _bound(host: str, port: int) -> socket.socket:
    """Return a socket at the first address of a host. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.setblocking(False)
    except BaseException:
        bound.close()
        raise
    return bound


def _tls(certificate: str, key: str) -> ssl.SSLContext:
    """Return a context for a certificate. Raises OSError (`ssl.SSLError`) for texts that are none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # OpenSSL reads files only.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(f"{key}\n{certificate}")
        file.flush()
        context.load_cert_chain(file.name)
    return context


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()
        self.servers = []

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        # They belong to the process that the program runs in.
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


class _Protocol(H11Protocol):
    """A connection that says nothing, and that is closed when the head of a request takes too long."""

    head_seconds: float

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.logger, self.access_log = _SILENT, False
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._expect_head()
        elif self._late is not None:
            self._late.cancel()
            self._late = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        """From now on the head must come in time; further bytes don't begin the time anew."""
        if self._late is None:
            self._late = self.loop.call_later(self.head_seconds, self.transport.close)


class _WebSocket(WebSocketsSansIOProtocol):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.logger = _SILENT


class _Listener:
    def __init__(self, server: _Server, running: asyncio.Future[None], bound: socket.socket) -> None:
        self._server = server
        self._running = running
        self._bound = bound
        self.host, self.port = bound.getsockname()[:2]

    async def close(self, seconds: float) -> None:
        self._server.config.timeout_graceful_shutdown = seconds  # type: ignore[assignment]  # for `wait_for`
        self._accept_no_more()
        self._server.should_exit = True
        # Whoever waits may be cancelled; the server ends all the same.
        await asyncio.shield(self._running)

    def _accept_no_more(self) -> None:
        """To be done some turns before asyncio's server is closed.

        It forgets the connections that it is just accepting, and nobody closes them.
        """
        asyncio.get_running_loop().remove_reader(self._bound)

    async def abort(self) -> None:
        self._running.cancel()
        self._accept_no_more()
        for _ in range(_TURNS_TO_ACCEPT):
            await asyncio.sleep(0)
        for server in self._server.servers:
            server.close()
        self._bound.close()
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await asyncio.gather(self._running, return_exceptions=True)
        await asyncio.sleep(0)
