"""Zstandard (RFC 8878), by `zstandard`, a binding of its authors' library. Spec: 04 §22.

The standard library has one from Python 3.14 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.archives.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Bytes that are unpacked at once. A block of four can hold 128 KiB: that bounds what one step makes.
_STEP = 512


def compressed(pieces: Iterable[bytes], level: int, size: int) -> Iterator[bytes]:
    """Yield one frame that holds ``pieces``, ``size`` bytes, and their checksum. ``level``: -131072 to 22."""
    from zstandard import ZstdCompressor

    packer = ZstdCompressor(level=level, write_checksum=True).compressobj(size=size)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
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
    except ZstdError as error:
        raise DataError(f"not zstd data, or damaged: {str(error).rpartition(': ')[2]}") from None
    if not frame.eof:
        raise DataError("the data ends too early")
