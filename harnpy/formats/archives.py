"""Archives, tar and zip: files in, bytes out, and back; nothing here touches a file. Spec: 04 §22.

What comes from outside is assumed to be hostile: sizes are looked at before memory is taken, names that lead
out of the archive and what is no file are refused.
"""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING, NamedTuple

from harnpy.faults import pieces
from harnpy.formats.compression import too_much
from harnpy.world.unpacking import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from zipfile import ZipFile, ZipInfo


# The files of an archive, and the names that they may have. Spec: 04 §22.


#: The permissions of a file that says nothing of them.
MODE = 0o644

_OUTSIDE = re.compile(r"[/\\]|[A-Za-z]:|(?:.*[/\\])?\.\.(?:[/\\]|\Z)", re.DOTALL)


class Entry(NamedTuple):
    path: str
    content: bytes
    mode: int = MODE


def check_path(number: int, path: str) -> None:
    """Raise DataError for a path that leads out of the directory into which an archive is unpacked.

    Both kinds of slashes count, and drive letters: an archive may be unpacked on another system.
    """
    if not path:
        raise DataError(f"entry {number} path must not be empty")
    if "\0" in path:
        raise DataError(f"entry {number} path contains a NUL: {path!r}")
    if _OUTSIDE.match(path):
        raise DataError(f"entry {number} path must lead to a file within the archive, got {path!r}")


def check_entries(entries: Iterable[Entry]) -> None:
    """Raise DataError when an archive of ``entries`` could not be unpacked to the same entries."""
    numbers: dict[str, int] = {}
    for number, (path, _, _) in enumerate(entries):
        check_path(number, path)
        if path.endswith("/"):
            raise DataError(f"entry {number} path is a directory's: {path!r}")
        if not path.isascii():
            _check_unicode(number, path)
        if numbers.setdefault(path, number) != number:
            raise DataError(f"entry {number} has the path of entry {numbers[path]}: {path!r}")


def _check_unicode(number: int, path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise DataError(f"entry {number} path is not valid Unicode: {path!r}") from None


def not_a_file(number: int, path: str, what: str) -> DataError:
    """Return the error for an entry that is ``what``, "a symbolic link"."""
    return DataError(f"entry {number} {path!r} is {what}; pass {{skip_special: true}} to leave it out")


# tar archives: POSIX ustar and pax, and GNU's long names. Spec: 04 §22.
#
# Written by the standard library, read by ourselves: `tarfile` takes a damaged header for the end of the
# archive, and some versions run for ever on hostile ones.


_BLOCK = 512
_FILES = (b"0", b"\0", b"7")
_DIRECTORY = b"5"
#: Links, devices, directories and pipes have no content, whatever size they state.
_WITHOUT_CONTENT = (b"1", b"2", b"3", b"4", b"5", b"6")
#: Types that describe the next entry, all following ones, or the archive.
_PAX, _PAX_OF_ALL, _LONG_NAME, _LONG_LINK, _LABEL = b"x", b"g", b"L", b"K", b"V"
_DESCRIBING = (_PAX, _PAX_OF_ALL, _LONG_NAME, _LONG_LINK, _LABEL)
#: Where a header has the type.
_TYPE = slice(156, 157)
_SPECIAL = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a named pipe",
    b"S": "a sparse file",
}
#: What counts of a pax header; of a sparse file only that it is one.
_SPARSE = b"GNU.sparse."
_KEYS = (b"path", b"size", _SPARSE)
_RECORD = re.compile(rb"([1-9][0-9]{0,19}) ([^=]+)=")


def tar_packed(entries: Sequence[Entry]) -> Iterator[bytes]:
    """Yield an archive of ``entries``, which belongs to nobody and has no time. Raises DataError."""
    from tarfile import PAX_FORMAT, TarInfo

    check_entries(entries)
    for path, content, mode in entries:
        header = TarInfo(path)
        header.size, header.mode = len(content), mode
        yield header.tobuf(PAX_FORMAT, "utf-8", "strict")
        yield content
        yield bytes(-len(content) % _BLOCK)
    yield bytes(2 * _BLOCK)


def tar_size(entries: Sequence[Entry]) -> int:
    """Return about how many bytes an archive of ``entries`` has, never more."""
    return sum(_BLOCK + len(content) for _, content, _ in entries)


def tar_unpacked(data: bytes, skip_special: bool) -> Iterator[Entry]:
    """Yield the files of an archive, without links and devices if ``skip_special``. Raises DataError."""
    for number, member in enumerate(_members(data)):
        check_path(number, member.path)
        if member.type == _DIRECTORY:
            continue
        if member.type in _FILES:
            yield Entry(member.path, member.content, member.mode)
        elif not skip_special:
            raise not_a_file(number, member.path, _SPECIAL.get(member.type, f"of the type {member.type!r}"))


class _Member(NamedTuple):
    path: str
    type: bytes
    mode: int
    content: bytes


class _Described:
    """The facts from headers before an entry: pax ones for all and for the next, and GNU's long name."""

    def __init__(self) -> None:
        self._of_all: dict[bytes, bytes] = {}
        self._of_next: dict[bytes, bytes] = {}
        self._long_name = b""

    def size(self, header: bytes, at: int) -> int:
        """Return how many bytes follow the header, which is an entry's or describes one."""
        if header[_TYPE] in _WITHOUT_CONTENT:
            return 0
        stated = None if header[_TYPE] in _DESCRIBING else self._known().get(b"size")
        return _number(header[124:136], at) if stated is None else _decimal(stated, at)

    def take(self, kind: bytes, content: bytes, at: int) -> None:
        """Take the content of a header that describes."""
        if kind == _PAX:
            self._of_next = _records(content, at)
        elif kind == _PAX_OF_ALL:
            self._of_all.update(_records(content, at))
        elif kind == _LONG_NAME:
            self._long_name = content.partition(b"\0")[0]

    def entry(self, header: bytes, content: bytes, at: int) -> _Member:
        """Return the entry that is described."""
        known = self._known()
        path = known.get(b"path") or self._long_name or _path(header)
        kind = _type(header[_TYPE], path, known)
        self._of_next, self._long_name = {}, b""
        return _Member(path.decode("utf-8", "replace"), kind, _number(header[100:108], at) & 0o7777, content)

    def check_nothing_waits(self, at: int) -> None:
        if self._of_next or self._long_name:
            raise DataError(f"the archive ends at byte {at}, after a header without its entry")

    def _known(self) -> dict[bytes, bytes]:
        return {**self._of_all, **self._of_next}


def _members(data: bytes) -> Iterator[_Member]:
    """Yield the entries of any type."""
    if not data:
        raise DataError("the data is empty: not a tar archive")
    at, described = 0, _Described()
    while (header := data[at : at + _BLOCK]).strip(b"\0"):
        start = at
        _check(header, start)
        size = described.size(header, start)
        at = start + _BLOCK + size + -size % _BLOCK
        if at > len(data):
            raise DataError(f"the data ends too early: {size} bytes should follow the header at byte {start}")
        content = data[start + _BLOCK : start + _BLOCK + size]
        if header[_TYPE] in _DESCRIBING:
            described.take(header[_TYPE], content, start)
        else:
            yield described.entry(header, content, start)
    described.check_nothing_waits(at)


def _check(header: bytes, at: int) -> None:
    """Raise DataError for a header whose checksum is wrong. Spaces stand for the checksum itself."""
    if len(header) < _BLOCK:
        raise DataError(f"the data ends too early: in the header at byte {at}")
    stated = _number(header[148:156], at)
    if stated != sum(header[:148]) + sum(header[156:]) + 8 * ord(" "):
        raise DataError(f"not a tar archive, or damaged: the header at byte {at} has a wrong checksum")


def _number(field: bytes, at: int) -> int:
    """Return an octal number, or one in GNU's base 256."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ") or b"0"
    if not re.fullmatch(rb"[0-7]+", digits):
        raise DataError(f"not a tar archive, or damaged: the header at byte {at} has {field!r} for a number")
    return int(digits, 8)


def _decimal(text: bytes, at: int) -> int:
    if not re.fullmatch(rb"[0-9]{1,20}", text):
        raise DataError(f"not a tar archive, or damaged: the header at byte {at} has {text!r} for a size")
    return int(text)


def _path(header: bytes) -> bytes:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _type(kind: bytes, path: bytes, known: dict[bytes, bytes]) -> bytes:
    """Return the type of an entry, which not only its header says."""
    if _SPARSE in known:
        return b"S"
    return _DIRECTORY if kind in _FILES and path.endswith(b"/") else kind


def _records(content: bytes, at: int) -> dict[bytes, bytes]:
    """Return those of the `length key=value` lines of a pax header that count here."""
    content = content.rstrip(b"\0")
    records, begin = {}, 0
    while begin < len(content):
        found = _RECORD.match(content, begin)
        end = begin + int(found[1]) if found else 0
        if not found or not found.end() < end <= len(content) or content[end - 1 : end] != b"\n":
            raise DataError(f"not a tar archive, or damaged: the header at byte {at} has a malformed record")
        key = _SPARSE if found[2].startswith(_SPARSE) else found[2]
        if key in _KEYS:
            records[key] = content[found.end() : end - 1]
        begin = end
    return records


# zip archives, by the standard library: stored and deflated entries. Spec: 04 §22.


_UNIX = 3
_ENCRYPTED = 0x1
#: Bytes of a name.
_LONGEST_NAME = 0xFFFF
_PIECE = 1 << 20


def zip_packed(entries: Sequence[Entry]) -> bytes:
    """Return an archive of ``entries``, deflated, without times. Raises DataError."""
    from io import BytesIO
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    check_entries(entries)
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for number, (path, content, _) in enumerate(entries):
            if len(path.encode()) > _LONGEST_NAME:
                raise DataError(f"entry {number} path is too long for a zip archive")
            info = ZipInfo(path)
            info.compress_type, info.create_system = ZIP_DEFLATED, _UNIX
            info.external_attr, info.file_size = (stat.S_IFREG | MODE) << 16, len(content)
            with archive.open(info, "w") as file:
                for piece in pieces(content, _PIECE):
                    file.write(piece)
    return buffer.getvalue()


def zip_unpacked(data: bytes, most: int, skip_special: bool) -> Iterator[Entry]:
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
    except (*malformed, NotImplementedError):
        raise DataError("not a zip archive, or damaged") from None


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
        found = f"{info.filename!r} has {len(content)} bytes instead of {info.file_size}"
        raise DataError(f"not a zip archive, or damaged: {found}")
    return content
