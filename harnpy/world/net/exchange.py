"""One request and its response, redirects included. Spec: 04 §21.1."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import httpx2

from harnpy.world.net.client import SURFACE
from harnpy.world.net.failed import TooMuch, cut_off, misled, too_many_redirects
from harnpy.world.net.failures import FAILURES, failure
from harnpy.world.redirects import MOST_REDIRECTS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping


class Outgoing(Protocol):
    """A request as it is sent. Seconds to ``connect``, and between two pieces that are sent or ``read``.

    ``redirects``: how many are followed; None returns the response that redirects. ``decompress`` unpacks
    the body as its `content-encoding` says.
    """

    @property
    def method(self) -> str: ...
    @property
    def canonical(self) -> str:
        """The URL."""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def body(self) -> bytes | None: ...
    @property
    def connect(self) -> float | None: ...
    @property
    def read(self) -> float | None: ...
    @property
    def redirects(self) -> int | None: ...
    @property
    def decompress(self) -> bool: ...


class Incoming:
    """A response whose body has yet to be read. `aclose` it."""

    def __init__(self, response: httpx2.Response, decompress: bool) -> None:
        self.status = response.status_code
        self.headers = _joined(response.headers)
        self.charset = response.charset_encoding
        self._response = response
        self._decompress = decompress

    async def pieces(self, most: int | None) -> AsyncGenerator[bytes, None]:
        """Yield the body. Raises `Failed`, also when there are more than ``most`` bytes, unpacked or not."""
        read = self._response.aiter_bytes if self._decompress else self._response.aiter_raw
        left = most
        try:
            async with aclosing(read()) as pieces:
                async for piece in pieces:
                    if left is not None:
                        left -= len(piece)
                        if left < 0:
                            raise TooMuch(most or 0)
                    yield piece
        except FAILURES as error:
            problem = failure(error)
        else:
            return
        raise problem

    async def aclose(self) -> None:
        """Give the connection back; one with an unread body is closed."""
        await self._response.aclose()


async def exchange(client: httpx2.AsyncClient, surface: str, outgoing: Outgoing) -> Incoming:
    """Send a request and return the response to it.

    Raises `Failed`, `EgressBlocked`, and what the client's ``permit`` does.
    """
    times = {"connect": outgoing.connect, "pool": outgoing.connect}
    follows = outgoing.redirects is not None
    try:
        request = httpx2.Request(
            outgoing.method,
            outgoing.canonical,
            headers=encoded_headers(outgoing.headers),
            content=outgoing.body,
            extensions={
                "timeout": {**times, "read": outgoing.read, "write": outgoing.read},
                SURFACE: surface,
                MOST_REDIRECTS: outgoing.redirects or 0,
            },
        )
        client.cookies.set_cookie_header(request)
        response = await client.send(request, stream=True, follow_redirects=follows)
    except FAILURES as error:
        problem = cut_off() if client.is_closed else failure(error)
    except RuntimeError:
        # httpx2's word for a client that another task has closed.
        if not client.is_closed:
            raise
        problem = cut_off()
    else:
        if not follows or not response.has_redirect_location:
            return Incoming(response, outgoing.decompress)
        await response.aclose()
        problem = misled() if response.next_request is None else too_many_redirects()
    # Without its cause, which may hold what the request did.
    raise problem


def encoded_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Return headers as they are sent: values in UTF-8, also where they are no ASCII."""
    return [(name.encode(), value.encode("utf-8", "surrogatepass")) for name, value in headers]


def _joined(headers: httpx2.Headers) -> Mapping[str, str]:
    """The headers by their names in lower case; the values of one that is there several times are joined."""
    found: dict[str, str] = {}
    for raw_name, raw_value in headers.raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("utf-8", "replace")
        between = "\n" if name == "set-cookie" else ", "
        found[name] = f"{found[name]}{between}{value}" if name in found else value
    return found
