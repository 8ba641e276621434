"""zip archives, by the standard library: stored and deflated entries. Spec: 04 §22."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from harnpy.archives.entries import MODE, Entry, check_entries, check_path, not_a_file
from harnpy.archives.errors import DataError, too_much

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from zipfile import ZipFile, ZipInfo

    Paced = Callable[[bytes], Iterable[bytes]]

_UNIX = 3
_ENCRYPTED = 0x1
_PIECE = 1 << 20


def packed(entries: Sequence[Entry], paced: Paced) -> bytes:
    """Return an archive of ``entries``, deflated, without times. Raises DataError.

    ``paced`` returns the pieces of a long content, and may stop in the middle.
    """
    from io import BytesIO
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    check_entries(entries)
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for path, content, _ in entries:
            info = ZipInfo(path)
            info.compress_type, info.create_system = ZIP_DEFLATED, _UNIX
            info.external_attr, info.file_size = (stat.S_IFREG | MODE) << 16, len(content)
            with archive.open(info, "w") as file:
                for piece in paced(content):
                    file.write(piece)
    return buffer.getvalue()


def unpacked(data: bytes, most: int, skip_special: bool) -> Iterator[Entry]:
    """Yield the files of an archive that unpacks to at most ``most`` bytes. Raises DataError.

    With ``skip_special`` links are left out.
    """
    import struct
    import zlib
    from io import BytesIO
    from zipfile import BadZipFile, ZipFile

    malformed = (BadZipFile, zlib.error, struct.error, EOFError, OSError, OverflowError, ValueError)
    try:
        with ZipFile(BytesIO(data)) as archive:
            # Entries may share their compressed data: the archive's own size says nothing.
            if sum(info.file_size for info in archive.infolist()) > most:
                raise too_much(most)
            for number, info in enumerate(archive.infolist()):
                check_path(number, info.orig_filename)
                if _is_file(number, info, skip_special):
                    yield Entry(info.filename, _content(archive, info))
    except (*malformed, NotImplementedError) as error:
        raise DataError(f"not a zip archive, or damaged: {error}") from None


def _is_file(number: int, info: ZipInfo, skip_special: bool) -> bool:
    if info.filename.endswith("/"):
        return False
    kind = stat.S_IFMT(info.external_attr >> 16) if info.create_system == _UNIX else 0
    if kind in (0, stat.S_IFREG):
        _check_readable(number, info)
        return True
    if skip_special:
        return False
    raise not_a_file(number, info.filename, "a symbolic link" if kind == stat.S_IFLNK else "no file")


def _check_readable(number: int, info: ZipInfo) -> None:
    from zipfile import ZIP_DEFLATED, ZIP_STORED

    if info.flag_bits & _ENCRYPTED:
        raise DataError(f"entry {number} {info.filename!r} is encrypted")
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise DataError(
            f"entry {number} {info.filename!r} is compressed by method {info.compress_type}, not deflate"
        )


def _content(archive: ZipFile, info: ZipInfo) -> bytes:
    with archive.open(info) as file:
        content = b"".join(iter(lambda: file.read(_PIECE), b""))
    if len(content) != info.file_size:
        raise ValueError(f"{info.filename!r} has {len(content)} bytes instead of {info.file_size}")
    return content
