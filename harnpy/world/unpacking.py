"""Packed data that comes in pieces: gzip, HTTP's deflate and Brotli, to their end. Spec: 04 §21, §22."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Protocol

from harnpy.faults import NamedMisuse
from harnpy.version import install_command

#: `zlib`'s word for the gzip format.
GZIP = 31
#: The most that comes at once; of Brotli roughly.
_PIECE = 1 << 20


class DataError(NamedMisuse):
    """Data that is damaged, incomplete or not of the format; or entries that no archive can hold."""


class Unpacker(Protocol):
    """Unpacks data that comes in pieces."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield what a piece adds to the content. Raises DataError."""

    def end(self) -> None:
        """Raise DataError unless the data is complete."""


class GzipUnpacker:
    """gzip: the contents of all members."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(GZIP)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        left = piece
        while True:
            if self._member.eof:
                left = left.lstrip(b"\0")
                if not left:
                    return
                self._member = zlib.decompressobj(GZIP)
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
        out = stream.decompress(piece, _PIECE)
        yield out
        piece = stream.unconsumed_tail
        if len(out) < _PIECE:
            return


class DeflateUnpacker:
    """HTTP's ``deflate``: zlib's format (RFC 1950), or the data in it (RFC 1951), as some servers send it."""

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


def has_brotli() -> bool:
    """Return whether the package of the extra `brotli` is installed."""
    return find_spec("brotli") is not None


def require_brotli() -> None:
    """Raise DataError unless the package of the extra `brotli` is installed."""
    if not has_brotli():
        raise DataError(f"needs the package 'brotli': {install_command('brotli')}")


class BrotliUnpacker:
    """Brotli: the content of one stream."""

    def __init__(self) -> None:
        require_brotli()
        from brotli import Decompressor

        self._stream = Decompressor()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        from brotli import error

        given = piece
        try:
            while True:
                out = self._stream.process(given, output_buffer_limit=_PIECE)
                if not out and self._stream.can_accept_more_data():
                    return
                yield out
                given = b""
        except error:
            raise DataError("not brotli data, or damaged") from None

    def end(self) -> None:
        if not self._stream.is_finished():
            raise DataError("the data ends too early")
