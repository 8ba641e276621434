"""Where a server listens, what it serves, and what stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import Any, Protocol

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    #: As the ASGI specification has it, version 3.
    Application = Callable[[Message, Receive, Send], Awaitable[None]]

    class Listener(Protocol):
        host: str
        """The address itself, such as ``127.0.0.1``."""
        port: int

        async def close(self, seconds: float) -> None:
            """Accept nothing more; let running requests go on for so many seconds, then cancel them."""

        async def abort(self) -> None:
            """Close the address and all connections at once."""


class Place(NamedTuple):
    """Where to listen and within which bounds. ``certificate`` and ``key`` are PEM texts, for TLS."""

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None
    #: Seconds that a connection may wait between two requests, and take for the head of one.
    keep_alive: float = 5
    head_seconds: float = 10
    #: How many bytes the head of a request may have.
    head_bytes: int = 65_536
    #: How many connections there may be; beyond, requests are refused with 503. None: any number.
    connections: int | None = None
