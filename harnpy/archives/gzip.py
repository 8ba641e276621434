"""gzip (RFC 1952), by the standard library. Spec: 04 §22."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from harnpy.archives.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: `zlib`'s word for the gzip format; it writes no time and no name into the header.
_GZIP = 31
#: The most that comes at once.
_PIECE = 1 << 20


def compressed(pieces: Iterable[bytes], level: int) -> Iterator[bytes]:
    """Yield one member that holds ``pieces``. ``level``: 0 to 9."""
    packer = zlib.compressobj(level, wbits=_GZIP)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the contents of all members, one after the other; zeros may follow each. Raises DataError."""
    member = zlib.decompressobj(_GZIP)
    for piece in pieces:
        left = piece
        while True:
            if member.eof:
                left = left.lstrip(b"\0")
                if not left:
                    break
                member = zlib.decompressobj(_GZIP)
            yield from _unpacked(member, left)
            if not member.eof:
                break
            left = member.unused_data
    if not member.eof:
        raise DataError("the data ends too early")


def _unpacked(member: zlib._Decompress, piece: bytes) -> Iterator[bytes]:
    """Yield what ``piece`` adds to the member's content."""
    try:
        while True:
            out = member.decompress(piece, _PIECE)
            yield out
            piece = member.unconsumed_tail
            if len(out) < _PIECE:
                return
    except zlib.error as error:
        raise DataError(f"not gzip data, or damaged: {str(error).rpartition(': ')[2]}") from None
