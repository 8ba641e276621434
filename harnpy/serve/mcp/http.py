"""The streamable HTTP transport, on uvicorn. Spec: 09 §11.4.

What a browser sends on behalf of some web page is refused: the request's host, and its origin if it has one,
must be this machine's, the address that is listened on, or a name that was allowed.
"""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from harnpy.serve.errors import NotServed
from harnpy.serve.keys import Keyed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mcp.server.lowlevel import Server

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_ANY = ("0.0.0.0", "::", "")
#: Seconds that connections have to end once the server stops.
_GRACE = 1


class Site(NamedTuple):
    """Where a server listens and whom it serves. ``hosts``: names that clients may call it by."""

    host: str
    port: int
    path: str = "/mcp"
    keys: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def is_exposed(self) -> bool:
        """Whether anybody on the network may call it."""
        return not self.keys and _shown(self.host) not in _LOOPBACK

    def listen(self) -> socket.socket:
        """Raises NotServed."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=2048)
        except OSError as error:
            # Python adds the address to the system's words.
            reason = (error.strerror or str(error)).partition(" (while")[0]
            raise NotServed(f"cannot listen at {_shown(self.host)}:{self.port}: {reason}") from None

    def url(self, listener: socket.socket) -> str:
        host = "127.0.0.1" if self.host in _ANY else _shown(self.host)
        return f"http://{host}:{listener.getsockname()[1]}{self.path}"

    def security(self) -> TransportSecuritySettings:
        own = () if self.host in _ANY else (_shown(self.host),)
        names = dict.fromkeys((*_LOOPBACK, *own, *self.hosts))
        hosts = [form for name in names for form in (name, f"{name}:*")]
        origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
        return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


async def serve_http(server: Server[Any], site: Site, announce: Callable[[str], object]) -> None:
    """Serve clients until this is cancelled; ``announce`` receives the URL. Raises NotServed."""
    app = server.streamable_http_app(streamable_http_path=site.path, transport_security=site.security())
    listener = site.listen()
    with listener:
        config = uvicorn.Config(
            Keyed(app, site.keys),
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
        )
        announce(site.url(listener))
        await _Uvicorn(config).serve(sockets=[listener])


class _Uvicorn(uvicorn.Server):
    """Leaves signals to the command (09 §2.4)."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
