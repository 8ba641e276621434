"""Bodies of responses: unpacked to their end, and of bounded size. Spec: 07 §1.14."""

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


def unpack(response: Any) -> None:
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


async def read(response: Any, stream: bool) -> Any:
    """Return the response, with its body unless it is to be a ``stream``."""
    if not stream:
        try:
            await response.aread()
        finally:
            await response.aclose()
    return response


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
            unpack(response)
            _cap(response, most)
            return await read(response, stream)

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
