"""Compressed data: gzip, Brotli and Zstandard; bytes in, bytes out. Spec: 04 §22.

Compressors and decompressors take and yield pieces, so that a caller decides how much is too much and may
stop in the middle.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Protocol

from harnpy.faults import NamedMisuse


class DataError(NamedMisuse):
    """Data that is damaged, incomplete or not of the format; or entries that no archive can hold."""


def too_much(most: int) -> DataError:
    """Return the error for data that would unpack to more than ``most`` bytes."""
    return DataError(f"the data unpacks to more than max_bytes = {most}")


# gzip (RFC 1952), by the standard library. Spec: 04 §22.


#: `zlib`'s word for the gzip format; it writes no time and no name into the header.
_GZIP = 31
#: The most that comes at once.
_GZIP_PIECE = 1 << 20


def gzip_compressed(pieces: Iterable[bytes], level: int) -> Iterator[bytes]:
    """Yield one member that holds ``pieces``. ``level``: 0 to 9."""
    packer = zlib.compressobj(level, wbits=_GZIP)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


class Unpacker(Protocol):
    """Unpacks data that comes in pieces."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield what a piece adds to the content. Raises DataError."""

    def end(self) -> None:
        """Raise DataError unless the data is complete."""


def _unpacked(unpacker: Unpacker, pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from unpacker.feed(piece)
    unpacker.end()


def gzip_decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the contents of all members, one after the other; zeros may follow each. Raises DataError."""
    return _unpacked(GzipUnpacker(), pieces)


class GzipUnpacker:
    """gzip: the contents of all members."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        left = piece
        while True:
            if self._member.eof:
                left = left.lstrip(b"\0")
                if not left:
                    return
                self._member = zlib.decompressobj(_GZIP)
            try:
                yield from _inflated(self._member, left)
            except zlib.error:
                raise DataError("not gzip data, or damaged") from None
            if not self._member.eof:
                return
            left = self._member.unused_data

    def end(self) -> None:
        if not self._member.eof:
            raise DataError("the data ends too early")


def _inflated(stream: zlib._Decompress, piece: bytes) -> Iterator[bytes]:
    """Yield what ``piece`` adds to the content of a stream. Raises zlib.error."""
    while True:
        out = stream.decompress(piece, _GZIP_PIECE)
        yield out
        piece = stream.unconsumed_tail
        if len(out) < _GZIP_PIECE:
            return


class DeflateUnpacker:
    """HTTP's ``deflate``: zlib's format (RFC 1950), or as some servers send it, what is in that (RFC 1951)."""

    def __init__(self) -> None:
        self._stream: zlib._Decompress | None = None

    def feed(self, piece: bytes) -> Iterator[bytes]:
        if not piece:
            return
        if self._stream is None:
            self._stream = zlib.decompressobj(15 if piece[0] & 0x0F == 8 else -15)
        try:
            yield from _inflated(self._stream, piece)
        except zlib.error:
            raise DataError("not deflate data, or damaged") from None

    def end(self) -> None:
        if self._stream is None or not self._stream.eof:
            raise DataError("the data ends too early")


# Brotli (RFC 7932), by `brotli`: its authors' own binding. Spec: 04 §22.


#: The most that comes at once, roughly.
_BROTLI_PIECE = 1 << 20


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


class BrotliUnpacker:
    """Brotli: the content of one stream."""

    def __init__(self) -> None:
        from brotli import Decompressor

        self._stream = Decompressor()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        from brotli import error

        given = piece
        try:
            while True:
                out = self._stream.process(given, output_buffer_limit=_BROTLI_PIECE)
                if not out and self._stream.can_accept_more_data():
                    return
                yield out
                given = b""
        except error:
            raise DataError("not brotli data, or damaged") from None

    def end(self) -> None:
        if not self._stream.is_finished():
            raise DataError("the data ends too early")


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
