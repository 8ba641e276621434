"""Classes of clients that are careful with responses: with redirects, and with bodies without end.

Both make a subclass of an SDK's client. Spec: 07 §1.14.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

# Following redirects without handing credentials to whoever a response points to.
#
# httpx2 removes `Authorization` and `Cookie` when a redirect leaves the origin, but keys travel in many other
# headers, such as `x-api-key` or one that a user has configured. So another origin receives only headers that
# can't carry one, and the cookies that it has set itself. Spec: 07 §1.14.


HARMLESS = frozenset(
    "accept accept-charset accept-encoding accept-language cache-control connection content-encoding "
    "content-language content-length content-type date host range transfer-encoding user-agent".split()
)

#: Under this key a request's `extensions` may have how many redirects are followed.
MOST_REDIRECTS = "max_redirects"

_SCHEMES = ("http", "https", "ws", "wss")

#: The bytes of a response that redirects which are read to keep its connection; nobody needs them.
_READ = 1 << 16


def careful(client: type[Any]) -> type[Any]:
    """Return a subclass of an httpx2 async client that sends no credentials to another origin."""

    class CarefulClient(client):  # type: ignore[misc]
        async def send(
            self, request: Any, *, stream: bool = False, follow_redirects: Any = None, **options: Any
        ) -> Any:
            follows = follow_redirects if isinstance(follow_redirects, bool) else self.follow_redirects
            left = request.extensions.get(MOST_REDIRECTS, self.max_redirects)
            while True:
                response = await super().send(request, stream=True, follow_redirects=False, **options)
                following = response.next_request if follows and left else None
                if following is None:
                    return await _read(response, stream)
                await _pass_over(response)
                if following.url.scheme not in _SCHEMES:
                    raise _unsupported(following)
                if _origin(following.url) != _origin(request.url):
                    _drop_credentials(following.headers)
                    self.cookies.set_cookie_header(following)
                    options["auth"] = None
                request, left = following, left - 1

    return CarefulClient


async def _read(response: Any, stream: bool) -> Any:
    if not stream:
        try:
            await response.aread()
        finally:
            await response.aclose()
    return response


async def _pass_over(response: Any) -> None:
    """Read a short body, so that its connection can be used again; a long one ends with its connection."""
    left = _READ
    if response.is_stream_consumed:
        return
    try:
        async with aclosing(response.aiter_raw()) as pieces:
            async for piece in pieces:
                left -= len(piece)
                if left < 0:
                    return
    finally:
        await response.aclose()


def _unsupported(request: Any) -> Exception:
    import httpx2

    text = f"a redirect leads to a URL of the scheme {request.url.scheme!r}"
    return httpx2.UnsupportedProtocol(text, request=request)


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _drop_credentials(headers: Any) -> None:
    for name in [*headers]:
        if name.lower() not in HARMLESS:
            del headers[name]


# Responses of bounded size: a body without end, or a small one that unpacks to a huge one, is `TooLarge`.


class TooLarge(Exception):
    """A response has more than ``most`` of what ``unit`` names."""

    def __init__(self, most: int, unit: str = "bytes") -> None:
        super().__init__(f"the response has more than {most} {unit}")
        self.unit = unit


def capped(client: type[Any], most: int) -> type[Any]:
    """Return a subclass of an httpx2 async client whose responses have up to ``most`` bytes, unpacked."""

    class CappedClient(client):  # type: ignore[misc]
        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            response = await super().send(request, stream=True, **options)
            _cap(response, most)
            return await _read(response, stream)

    return CappedClient


def _cap(response: Any, most: int) -> None:
    """Have everything that reads the body, which goes through `aiter_bytes`, count what it gets."""
    unbounded = response.aiter_bytes

    async def aiter_bytes(chunk_size: int | None = None) -> Any:
        left = most
        async for chunk in unbounded(chunk_size):
            left -= len(chunk)
            if left < 0:
                await response.aclose()
                raise TooLarge(most)
            yield chunk

    response.aiter_bytes = aiter_bytes
