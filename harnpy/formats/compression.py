"""Compressed data: gzip, Brotli and Zstandard; bytes in, bytes out. Spec: 04 §22.

Compressors and decompressors take and yield pieces, so that a caller decides how much is too much and may
stop in the middle.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator
from types import ModuleType

from harnpy.world.unpacking import (
    GZIP,
    BrotliUnpacker,
    DataError,
    GzipUnpacker,
    Unpacker,
    require_brotli,
)


def too_much(most: int) -> DataError:
    """Return the error for data that would unpack to more than ``most`` bytes."""
    return DataError(f"the data unpacks to more than max_bytes = {most}")


# gzip (RFC 1952), by the standard library. Spec: 04 §22.


def gzip_compressed(pieces: Iterable[bytes], level: int) -> Iterator[bytes]:
    """Yield one member that holds ``pieces``, without time and name. ``level``: 0 to 9."""
    packer = zlib.compressobj(level, wbits=GZIP)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def _unpacked(unpacker: Unpacker, pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from unpacker.feed(piece)
    unpacker.end()


def gzip_decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the contents of all members, one after the other; zeros may follow each. Raises DataError."""
    return _unpacked(GzipUnpacker(), pieces)


# Brotli (RFC 7932), by `brotli`, an extra: its authors' own binding. Spec: 04 §22.


def brotli_compressed(pieces: Iterable[bytes], quality: int) -> Iterator[bytes]:
    """Yield a stream that holds ``pieces``. ``quality``: 0 to 11."""
    require_brotli()
    from brotli import Compressor

    packer = Compressor(quality=quality)
    for piece in pieces:
        yield packer.process(piece)
    yield packer.finish()


def brotli_decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a stream, after which nothing may follow. Raises DataError."""
    return _unpacked(BrotliUnpacker(), pieces)


# Zstandard (RFC 8878), by the standard library's module; before Python 3.14 by its backport. Spec: 04 §22.


#: The most that is unpacked at once.
_PIECE = 1 << 20


def zstd_compressed(pieces: Iterable[bytes], level: int, size: int) -> Iterator[bytes]:
    """Yield one frame that holds ``pieces``, ``size`` bytes, and their checksum. ``level``: -131072 to 22."""
    zstd = _zstd()
    options = {zstd.CompressionParameter.compression_level: level, zstd.CompressionParameter.checksum_flag: 1}
    packer = zstd.ZstdCompressor(options=options)
    packer.set_pledged_input_size(size)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def zstd_decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the contents of all frames, one after the other. Raises DataError."""
    zstd = _zstd()
    frame = zstd.ZstdDecompressor()
    try:
        for piece in pieces:
            left = piece
            while left or not (frame.needs_input or frame.eof):
                if frame.eof:
                    frame = zstd.ZstdDecompressor()
                yield frame.decompress(left, _PIECE)
                left = frame.unused_data
    except zstd.ZstdError:
        raise DataError("not zstd data, or damaged") from None
    if not frame.eof:
        raise DataError("the data ends too early")


def _zstd() -> ModuleType:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd
