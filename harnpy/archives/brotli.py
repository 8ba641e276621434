"""Brotli (RFC 7932), by `brotli`: its authors' own binding. Spec: 04 §22."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.archives.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The most that comes at once, roughly.
_PIECE = 1 << 20


def compressed(pieces: Iterable[bytes], quality: int) -> Iterator[bytes]:
    """Yield a stream that holds ``pieces``. ``quality``: 0 to 11."""
    from brotli import Compressor

    packer = Compressor(quality=quality)
    for piece in pieces:
        yield packer.process(piece)
    yield packer.finish()


def decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a stream, after which nothing may follow. Raises DataError."""
    from brotli import Decompressor, error

    unpacker = Decompressor()
    try:
        for piece in pieces:
            given = piece
            while True:
                out = unpacker.process(given, output_buffer_limit=_PIECE)
                if not out and unpacker.can_accept_more_data():
                    break
                yield out
                given = b""
    except error:
        raise DataError("not brotli data, or damaged") from None
    if not unpacker.is_finished():
        raise DataError("the data ends too early")
