"""Compressed data: gzip, Brotli and Zstandard; bytes in, bytes out. Spec: 04 §22.

Compressors and decompressors take and yield pieces, so that a caller decides how much is too much and may
stop in the middle.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from harnpy.world.unpacking import GZIP, BrotliUnpacker, DataError, GzipUnpacker, Unpacker


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


# Brotli (RFC 7932), by `brotli`: its authors' own binding. Spec: 04 §22.


def brotli_compressed(pieces: Iterable[bytes], quality: int) -> Iterator[bytes]:
    """Yield a stream that holds ``pieces``. ``quality``: 0 to 11."""
    from brotli import Compressor

    packer = Compressor(quality=quality)
    for piece in pieces:
        yield packer.process(piece)
    yield packer.finish()


def brotli_decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a stream, after which nothing may follow. Raises DataError."""
    return _unpacked(BrotliUnpacker(), pieces)


# Zstandard (RFC 8878), by `zstandard`, a binding of its authors' library. Spec: 04 §22.
#
# The standard library has one from Python 3.14 on.


#: Bytes that are unpacked at once. A block of four can hold 128 KiB: that bounds what one step makes.
_STEP = 512


def zstd_compressed(pieces: Iterable[bytes], level: int, size: int) -> Iterator[bytes]:
    """Yield one frame that holds ``pieces``, ``size`` bytes, and their checksum. ``level``: -131072 to 22."""
    from zstandard import ZstdCompressor

    packer = ZstdCompressor(level=level, write_checksum=True).compressobj(size=size)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def zstd_decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the contents of all frames, one after the other. Raises DataError."""
    from zstandard import ZstdDecompressor, ZstdError

    unpacker = ZstdDecompressor()
    frame = unpacker.decompressobj()
    try:
        for piece in pieces:
            for at in range(0, len(piece), _STEP):
                left = piece[at : at + _STEP]
                while left:
                    if frame.eof:
                        frame = unpacker.decompressobj()
                    yield frame.decompress(left)
                    left = frame.unused_data if frame.eof else b""
    except ZstdError:
        raise DataError("not zstd data, or damaged") from None
    if not frame.eof:
        raise DataError("the data ends too early")
