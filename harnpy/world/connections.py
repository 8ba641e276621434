"""Connections as data: how they are made, where a server listens, WebSocket messages, and failures.

Imports no client and no server, so that programs with mocks load neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    AsgiMessage = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[AsgiMessage]]
    Send = Callable[[AsgiMessage], Awaitable[None]]
    #: As the ASGI specification has it, version 3.
    Application = Callable[[AsgiMessage, Receive, Send], Awaitable[None]]

    class Listener(Protocol):
        host: str
        """The address itself, such as ``127.0.0.1``."""
        port: int

        async def close(self, seconds: float) -> None:
            """Accept nothing more; let running requests go on for so many seconds, then cancel them."""

        async def abort(self) -> None:
            """Close the address and all connections at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``proxy`` is a URL without user and password; None leaves it to the environment (`HTTPS_PROXY`, …).

    ``no_proxy``: hosts that are reached without it, their subdomains too. ``ca``, ``certificate`` and ``key``
    are paths of PEM files: whom to trust instead of the system's roots, and what a server receives that asks.
    ``pins``: the SHA-256 of the certificates that a server may have, in lower-case hex.
    """

    proxy: str | None = None
    proxy_auth: tuple[str, str] | None = None
    no_proxy: tuple[str, ...] = ()
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    pins: frozenset[str] = frozenset()

    @property
    def has_tls(self) -> bool:
        return bool(self.ca or self.certificate or self.pins)


#: The usual ones.
USUAL = Settings()


# A request without a complete response. Spec: 04 §21.1, 02 §19.8.


class Failed(Exception):
    """There is no complete response. ``category`` is one of 02 §19.8, ``text`` says what happened."""

    def __init__(self, category: str, text: str) -> None:
        super().__init__(text)
        self.category = category
        self.text = text


class TooMuch(Failed):
    """A body of more than ``most`` bytes."""

    def __init__(self, most: int) -> None:
        super().__init__("generic", "the response has more bytes than max_bytes allows")
        self.most = most


def too_slow(option: str) -> Failed:
    """The failure for a response that wasn't complete in time; ``option`` is the one that says how long."""
    return Failed("timeout", f"Deadline exceeded: the response wasn't complete within {option}")


def cut_off() -> Failed:
    return Failed("generic", "its connections were closed meanwhile")


def misled() -> Failed:
    return Failed("generic", "a redirect leads to no http or https URL")


def too_many_redirects() -> Failed:
    return Failed("generic", "more redirects than max_redirects allows")


class Place(NamedTuple):
    """An address to listen at, and its bounds. ``certificate`` and ``key`` are PEM texts, for TLS."""

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
    #: The longest message of a WebSocket, in bytes; None: there are no WebSockets.
    message_bytes: int | None = None


class Message(NamedTuple):
    """``type``: text (``data`` is UTF-8), binary, ping, pong or close; only a close has a code, perhaps."""

    type: str
    data: bytes = b""
    code: int | None = None
    reason: str = ""
