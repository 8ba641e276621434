"""Following redirects without handing credentials to whoever a response points to. Spec: 07 §1.14.

httpx2 removes `Authorization` and `Cookie` when a redirect leaves the origin, but keys travel in many other
headers, such as `x-api-key` or one that a user has configured. So another origin receives only headers that
can't carry one, and the cookies that it has set itself.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from harnpy.world.response_bodies import read, unpack

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
                    unpack(response)
                    return await read(response, stream)
                await _pass_over(response)
                if following.url.scheme not in _SCHEMES:
                    raise _unsupported(following)
                if _origin(following.url) != _origin(request.url):
                    _drop_credentials(following.headers)
                    self.cookies.set_cookie_header(following)
                    options["auth"] = None
                request, left = following, left - 1

    return CarefulClient


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
