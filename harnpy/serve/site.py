"""`Site`: where a server listens, what it may be called, and the static keys that its clients may send.

What `harnpy serve` and `harnpy mcp serve` have in common. Spec: 09 §11.4, 11 §1.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.serve.program import NotServed
from harnpy.world.connections import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.world.connections import Application, Listener
    from harnpy.world.http import Listening

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_ANY = ("0.0.0.0", "::")
_BEARER = b"bearer "


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
    def is_local(self) -> bool:
        """Return whether only programs of this machine can reach it."""
        return _shown(self.host) in _LOOPBACK

    @property
    def is_exposed(self) -> bool:
        """Return whether anybody on the network may call it."""
        return not self.keys and not self.is_local

    @property
    def names(self) -> tuple[str, ...]:
        """The names that clients may call it by, in their `Host` headers, with any port or none."""
        own = () if self.host in _ANY else (_shown(self.host),)
        return tuple(dict.fromkeys((*_LOOPBACK, *own, *self.hosts)))

    def url(self, port: int) -> str:
        scheme = "http" if self.certificate is None else "https"
        host = "127.0.0.1" if self.host in _ANY else _shown(self.host)
        return f"{scheme}://{host}:{port}{self.path}"

    async def listen(
        self, app: Application, listening: Listening, message_bytes: int | None = None
    ) -> Listener:
        """Serve ``app`` until it is closed, with WebSockets if ``message_bytes`` says how long their messages
        may be. Raises NotServed."""
        place = Place(self.host, self.port, self.certificate, self.key, message_bytes=message_bytes)
        try:
            return await listening.listen(app, place)
        except OSError as error:
            reason = error.strerror or error
            raise NotServed(f"cannot listen at {_shown(self.host)}:{self.port}: {reason}") from None


def is_local_name(host: str) -> bool:
    """Return whether a `Host` header names this machine to itself, with any port or none."""
    return host_name(host) in _LOOPBACK


def host_name(host: str) -> str:
    """Return a `Host` header's value without its port, in lower case."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() and (":" not in name or name.endswith("]")) else host.lower()


def given_key(headers: Mapping[bytes, bytes]) -> bytes | None:
    """Return what a request authenticates with: `X-API-Key: KEY`, else `Authorization: Bearer KEY`."""
    key = headers.get(b"x-api-key")
    if key is None and (given := headers.get(b"authorization")) and given[: len(_BEARER)].lower() == _BEARER:
        return given[len(_BEARER) :].strip()
    return key


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
