"""Classes of clients that are careful with responses: with redirects, and with bodies without end.

Both make a subclass of an SDK's client. Spec: 07 §1.14.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from harnpy.world.unpacking import (
    BrotliUnpacker,
    DataError,
    DeflateUnpacker,
    GzipUnpacker,
    Unpacker,
    has_brotli,
)

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

#: How the codings of `content-encoding` are unpacked; others are left as they are, and so is
#: Brotli without its package.
_UNPACKERS: Mapping[str, Callable[[], Unpacker]] = {
    "gzip": GzipUnpacker,
    "x-gzip": GzipUnpacker,
    "deflate": DeflateUnpacker,
    "br": BrotliUnpacker,
}
#: Codings of one body that are unpacked; nobody who means well uses more.
_MOST_CODINGS = 5

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
                    _unpack(response)
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


def _unpack(response: Any) -> None:
    """Have everything that reads the body get it unpacked to its end, unless it does already.

    httpx2 itself takes the first member of gzip data for all of it, and data that ends too early for whole.
    """
    codings = response.headers.get_list("content-encoding", split_commas=True)
    names = [name for name in map(str.strip, map(str.lower, reversed(codings))) if _is_known(name)]
    if not names or hasattr(response, "_content") or "aiter_bytes" in vars(response):
        return

    async def aiter_bytes(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        unpackers = [_UNPACKERS[name]() for name in names[:_MOST_CODINGS]]
        is_empty = True
        try:
            async with aclosing(response.aiter_raw()) as pieces:
                async for piece in pieces:
                    is_empty = is_empty and not piece
                    for unpacked in _through(unpackers, piece):
                        for at in range(0, len(unpacked), chunk_size or len(unpacked) or 1):
                            yield unpacked[at : at + (chunk_size or len(unpacked))]
            if not is_empty:
                for unpacker in unpackers:
                    unpacker.end()
        except DataError as error:
            import httpx2

            raise httpx2.DecodingError(str(error), request=response.request) from None

    response.aiter_bytes = aiter_bytes


def _is_known(coding: str) -> bool:
    return coding in _UNPACKERS and (coding != "br" or has_brotli())


def _through(unpackers: Sequence[Unpacker], piece: bytes) -> Iterator[bytes]:
    if not unpackers:
        yield piece
        return
    for unpacked in unpackers[0].feed(piece):
        yield from _through(unpackers[1:], unpacked)


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
            _unpack(response)
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
