"""The files of a store of JSON lines: names, open directories, locks, ``FORMAT`` and lines.

Spec: 10 §C4, §C6.1.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from stat import S_IMODE
from typing import Any

import msgspec

from harnpy.formats.json import refuse_depth
from harnpy.storage.contract import Row
from harnpy.storage.errors import NoStore, SchemaTooNew, StorageError, StoreBusy, StoreFull, StoreUnreachable
from harnpy.world.files import PRIVATE, SHARED, make_directories, open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.storage.opening import StoreUrl

# How streams are called on disk: any text as a file name that every system takes. Spec: 10 §C6.1.


#: Longer names are cut off and told apart by their hash.
_LONGEST = 180
_KEPT = 140

_LOWER = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_SAFE = _LOWER | frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def file_name(name: str, *, folded: bool = False) -> str:
    """Return the name of ``name``'s files, without a suffix.

    ``folded``: the file system takes ``A`` for ``a``, so capitals are encoded, too.
    """
    raw = name.encode("utf-8", "surrogatepass")
    safe = _LOWER if folded else _SAFE
    # An empty name is a lone "%", which no other name gives.
    encoded = "".join(chr(byte) if byte in safe else f"%{byte:02X}" for byte in raw) or "%"
    if len(encoded) <= _LONGEST:
        return encoded
    import hashlib

    return f"{encoded[:_KEPT]}~{hashlib.sha256(raw).hexdigest()[:32]}"


def name_of(file: str) -> str | None:
    """Return the name that `file_name` made ``file`` of; None when it was cut off, or for other files."""
    if "~" in file:
        return None
    if file == "%":
        return ""
    from urllib.parse import unquote_to_bytes

    try:
        name = unquote_to_bytes(file).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return name if file in (file_name(name), file_name(name, folded=True)) else None


# The directories of a store, and the system calls that make bytes last.
#
# A folder is held open and its files are opened relative to it, without following links: whatever somebody
# puts into a store's directory, nothing outside of it is read or written. Spec: 10 §C6.1, §C12 (Security).


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC


class Medium:
    """Writes to the disk. Tests have one that fails, or ends the process, where they want it."""

    def write(self, file: int, data: memoryview) -> int:
        """Write a part of ``data``, and return how many bytes."""
        return os.write(file, data)

    def truncate(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    def sync(self, file: int) -> None:
        os.fsync(file)

    def sync_data(self, file: int) -> None:
        """Like `sync`, without the times of the file."""
        getattr(os, "fdatasync", os.fsync)(file)


def write_all(medium: Medium, file: int, data: bytes) -> None:
    """Write all of ``data``, however little each call takes."""
    left = memoryview(data)
    while left:
        left = left[medium.write(file, left) :]


@contextmanager
def disk_errors(where: str | StoreUrl) -> Iterator[None]:
    """Raise what the system reports as a `StorageError` that names ``where``."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _FULL:
            raise StoreFull(str(where)) from error
        if error.errno == errno.ELOOP:
            raise StorageError(f"{where} is, or contains, a symbolic link: stores follow none") from error
        raise StoreUnreachable(str(where), reason) from error


class Folder:
    """One directory of a store; it is made when something is first written into it."""

    def __init__(
        self,
        path: str,
        parent: Folder | None = None,
        medium: Medium | None = None,
        modes: tuple[int, int] = PRIVATE,
    ) -> None:
        self.path = path
        self._modes: tuple[int, int] = parent._modes if parent else modes
        self.medium: Medium = (parent.medium if parent else Medium()) if medium is None else medium
        self._parent = parent
        self._descriptor: int | None = None
        self.forked()

    def forked(self) -> None:
        """Begin anew with its lock, in a process that was forked off."""
        self._opening = threading.Lock()

    def sub(self, name: str) -> Folder:
        """The folder ``name`` in this one."""
        return Folder(os.path.join(self.path, name), self)

    def where(self, file: str) -> str:
        """The path of a file in it, for people."""
        return os.path.join(self.path, file)

    def open(self, file: str, flags: int = os.O_RDONLY) -> int:
        """Open a file of the folder; `O_CREAT` among ``flags`` creates both."""
        folder = self._open(create=bool(flags & os.O_CREAT))
        return open_file(file, flags | _FILE, self._modes[0], folder)

    def read(self, file: str) -> bytes | None:
        """The content of a file, None when there is none."""
        try:
            descriptor = self.open(file)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as opened:
            return opened.read()

    def replace(self, file: str, content: bytes, *, lasting: bool = True) -> None:
        """Give a file new content, all of it or none. ``lasting``: it outlives a power cut, too."""
        temporary = f"{file}.{os.getpid()}-{threading.get_ident()}.tmp"
        descriptor = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            found = self.stat(file)
            if found is not None and S_IMODE(found.st_mode) != self._modes[0]:
                os.fchmod(descriptor, S_IMODE(found.st_mode))
            write_all(self.medium, descriptor, content)
            if lasting:
                self.medium.sync(descriptor)
            self.rename(temporary, file)
        except BaseException:
            self.remove(temporary)
            raise
        finally:
            os.close(descriptor)
        if lasting:
            self.sync()

    def overwrite(self, file: str, content: bytes) -> None:
        """Write over the beginning of a file; what is behind it stays."""
        descriptor = self.open(file, os.O_WRONLY | os.O_CREAT)
        try:
            write_all(self.medium, descriptor, content)
        finally:
            os.close(descriptor)

    def rename(self, file: str, name: str) -> None:
        """Give a file another name, in the place of the file that has it."""
        folder = self._open()
        os.rename(file, name, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self, file: str) -> bool:
        """Remove a file. Return False when there was none."""
        try:
            os.unlink(file, dir_fd=self._open())
        except FileNotFoundError:
            return False
        return True

    def stat(self, file: str) -> os.stat_result | None:
        """Return what the system knows of a file, None when there is none."""
        try:
            return os.stat(file, dir_fd=self._open(), follow_symlinks=False)
        except FileNotFoundError:
            return None

    def files(self, suffix: str = "") -> list[str]:
        """The names of its files with that suffix, without it, sorted."""
        try:
            names = os.listdir(self._open())
        except FileNotFoundError:
            return []
        return sorted(name[: len(name) - len(suffix)] for name in names if name.endswith(suffix))

    def folders(self) -> list[str]:
        """The names of the folders in it, sorted."""
        try:
            with os.scandir(self._open()) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []

    def sync(self) -> None:
        """Have the names of its files outlive a power cut."""
        self.medium.sync(self._open())

    def make(self) -> None:
        """Create the folder, if it isn't there."""
        self._open(create=True)

    def close(self) -> None:
        with self._opening:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _open(self, *, create: bool = False) -> int:
        with self._opening:
            if self._descriptor is None:
                self._descriptor = self._opened(create)
            return self._descriptor

    def _opened(self, create: bool) -> int:
        if self._parent is None:
            if create:
                make_directories(self.path, self._modes[1])
            return os.open(self.path, _DIRECTORY)
        parent, name = self._parent._open(create=create), os.path.basename(self.path)
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, self._modes[1], dir_fd=parent)
                if self._modes == SHARED:
                    os.chmod(name, self._modes[1], dir_fd=parent)
                self.medium.sync(parent)
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)


# Locks between processes: files of their own, locked with ``flock`` and never deleted.
#
# The log itself is never locked: it is replaced when records are dropped, and a lock on a replaced file
# holds nobody off. Spec: 10 §C6.1, §C14.


#: Seconds between two tries, at first and at most.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.01


@contextmanager
def locked(folder: Folder, name: str, timeout: float, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock ``<name>.lock``. Raises `StoreBusy` when it isn't free within ``timeout`` seconds.

    Each call opens the file anew, so that threads, and processes forked from one another, keep each other
    out as strangers do.
    """
    file = folder.open(f"{name}.lock", os.O_RDWR | os.O_CREAT)
    try:
        _take(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, timeout, folder.where(name))
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)  # a process that was forked off meanwhile has the file open, too
        os.close(file)


def _take(file: int, how: int, timeout: float, where: str) -> None:
    pause = _SHORTEST_PAUSE
    gives_up = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                reason = f"its file system has no locks ({error.strerror}): keep stores on a local disk"
                raise StoreUnreachable(where, reason) from error
        else:
            return
        if time.monotonic() >= gives_up:
            raise StoreBusy(where, timeout)
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


# The file ``FORMAT``: what a store's version is, and on what file system it lies. Spec: 10 §C6.1.


_FORMAT_FILE = "FORMAT"
_NAME = "harn-sessions"
#: The newest version of the layout.
FORMAT_VERSION = 1


class Format(msgspec.Struct):
    """The content of the file. ``folded``: the file system takes ``A`` for ``a``."""

    format: str = ""
    version: int = 0
    folded: bool = False


def opened_format(root: Folder, url: StoreUrl) -> bool:
    """Return whether capitals must be encoded in names; make a store of a directory that is none.

    Raises `SchemaTooNew` for a store of a newer version, which isn't touched.
    """
    root.make()
    found = _found_format(root, url)
    if found is None:
        found = Format(_NAME, FORMAT_VERSION, _folds(root))
        root.replace(_FORMAT_FILE, msgspec.json.encode(found) + b"\n")
    return found.folded


def format_version(root: Folder, url: StoreUrl) -> int:
    """Return the version of a store.

    Raises `NoStore` for a directory that is none, and what `opened_format` does.
    """
    found = _found_format(root, url)
    if found is None:
        raise NoStore(str(url))
    return found.version


def _found_format(root: Folder, url: StoreUrl) -> Format | None:
    content = root.read(_FORMAT_FILE)
    if content is None:
        return None
    try:
        refuse_depth(content)
        found = msgspec.json.decode(content, type=Format)
    except (msgspec.DecodeError, ValueError):
        found = Format()
    if found.format != _NAME:
        raise StorageError(f"{url} is not a store: {root.where(_FORMAT_FILE)} is of something else")
    if found.version > FORMAT_VERSION:
        raise SchemaTooNew(str(url), found.version, FORMAT_VERSION)
    return found


def _folds(root: Folder) -> bool:
    """Return whether the file system takes capitals for small letters."""
    name = f"probe-{os.urandom(4).hex()}"
    os.close(root.open(name + "-A", os.O_WRONLY | os.O_CREAT))
    try:
        return root.stat(name + "-a") is not None
    finally:
        root.remove(name + "-A")


# A record as a line of JSON, and back.
#
# A line is an object: ``seq``, ``turn``, ``type``, ``timestamp``, ``data``, what the row keeps besides,
# ``cost``, ``more``, ``key``, then ``log``, what the store has to say about the log itself (`Facts`), then
# ``crc``, the CRC-32 of the text without it. A line without ``seq`` only has facts. Spec: 10 §C4, §C6.1.


#: ``,"crc":"0bc4b29f"}``
_CRC = 18
#: How the lines of this store begin. Those of other systems may do without a checksum.
_OURS = (b'{"seq":', b'{"log":')
#: The newest version of a line.
_VERSION = 1
#: How a turn begins that isn't a number.
_NAMED = b'"'
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The origin of a branch: the records 2 … ``at`` are those of the log ``uid``.

    Without a ``uid``, the branch has a copy of them, and the name is for people.
    """

    name: str
    at: int
    uid: str = ""


class Facts(msgspec.Struct, omit_defaults=True):
    """The facts that a line states about its log."""

    #: The stream's full name, and what distinguishes this log from an earlier one of that name.
    name: str | None = None
    uid: str | None = None
    branch: Origin | None = None
    #: How many records there are behind this line, where that isn't the line's ``seq``.
    version: int | None = None
    #: The records up to this number are gone.
    dropped: int = 0
    #: The times of the first and last record, where they are gone.
    created: str | None = None
    updated: str | None = None
    #: The new data of the head; ``set`` has only those members that changed.
    head: dict[str, Any] | None = None
    set: dict[str, Any] | None = None


class Brief(msgspec.Struct):
    """The facts that the state of a log depends on."""

    seq: int = 0
    timestamp: str = ""
    more: int = 0
    v: int = 1
    log: Facts | None = None


class _Members(msgspec.Struct):
    """The members of a row's line."""

    type: str
    timestamp: str
    seq: int = 0
    more: int = 0
    turn: Any = None
    cost: float = 0
    key: str = ""


class BadLine(Exception):
    """A line that can't be read, and why."""


_BRIEF = msgspec.json.Decoder(Brief)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_INT = msgspec.json.Decoder(int)
_FLOAT = msgspec.json.Decoder(float)


def written_lines(rows: Sequence[Row], facts: Facts | None = None) -> bytes:
    """Return the lines of one append. ``facts`` stand on the first one."""
    if not rows:
        return b"" if facts is None else _summed("{", facts)
    return b"".join(_summed(_opened(row), None if n else facts) for n, row in enumerate(rows))


def _opened(row: Row) -> str:
    """Return the object of a row without its end."""
    parts = [f'{{"seq":{row.seq}']
    if row.turn is not None:
        parts.append(f'"turn":{row.turn}')
    parts += [
        f'"type":{_json(row.type)}',
        f'"timestamp":"{timestamp(row.time)}"',
        f'"data":{_line(row.data)}',
    ]
    if row.rest is not None and len(row.rest) > 2:
        parts.append(_line(row.rest)[1:-1])
    if row.cost is not None:
        parts.append(f'"cost":{_json(row.cost)}')
    if row.more:
        parts.append(f'"more":{row.more}')
    if row.key is not None:
        parts.append(f'"key":{_json(row.key)}')
    return ",".join(parts)


def _summed(opened: str, facts: Facts | None) -> bytes:
    """Close an object: with facts, and with its checksum."""
    if facts is not None:
        comma = "," if len(opened) > 1 else ""
        opened += f'{comma}"log":{_json(facts)}'
    text = opened.encode("utf-8", "replace")
    return b'%b,"crc":"%08x"}\n' % (text, zlib.crc32(b"}", zlib.crc32(text)))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _line(text: str) -> str:
    """Return JSON text without line ends."""
    if "\n" not in text and "\r" not in text:
        return text
    return msgspec.json.format(text, indent=-1)


def checked_line(line: bytes) -> None:
    """Raise `BadLine` unless a line, without its end, is as it was written."""
    if line[-_CRC:-10] == b',"crc":"':
        if line[-10:-2] != b"%08x" % zlib.crc32(b"}", zlib.crc32(line[:-_CRC])):
            raise BadLine("bad checksum")
    elif line.startswith(_OURS):
        raise BadLine("no checksum")
    else:
        try:
            refuse_depth(line)
        except ValueError as error:
            raise BadLine(str(error)) from None


def brief_of(line: bytes) -> Brief:
    """Return what the state of a log depends on. Raises `BadLine`, or `SchemaTooNew` for a newer line."""
    checked_line(line)
    try:
        found = _BRIEF.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        from harnpy.formats.mismatch import unread

        raise BadLine(unread(line, Brief)) from error
    if found.v > _VERSION:
        raise SchemaTooNew("a line of the log", found.v, _VERSION)
    return found


def row_of(line: bytes, seq: int) -> Row | None:
    """Return the row of a line; None for one that has facts only. ``seq`` is for lines that have none.

    Raises `BadLine`.
    """
    checked_line(line)
    try:
        return _row(line, seq)
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
        from harnpy.formats.mismatch import unread

        raise BadLine(unread(line, _Members)) from error
    except ValueError as error:
        raise BadLine("`timestamp` is no time") from error


def _row(line: bytes, seq: int) -> Row | None:
    members = _MEMBERS.decode(line)
    if "type" not in members:
        return None
    pop = members.pop
    type = _TEXT.decode(pop("type"))
    time = microseconds(_TEXT.decode(pop("timestamp")))
    data = str(pop("data", b"null"), "utf-8")
    number = _INT.decode(pop("seq")) if "seq" in members else seq
    more = _INT.decode(pop("more")) if "more" in members else 0
    named = bytes(members.get("turn", _NAMED)).startswith(_NAMED)  # a name is kept among the rest
    turn = None if named else _INT.decode(pop("turn"))
    cost = _FLOAT.decode(pop("cost")) if "cost" in members else None
    key = _TEXT.decode(pop("key")) if "key" in members else None
    for mine in ("crc", "log", "v"):
        pop(mine, None)
    rest = None
    if members:
        rest = "{" + ",".join(f"{_json(name)}:{str(raw, 'utf-8')}" for name, raw in members.items()) + "}"
    return Row(number, type, time, data, more, turn, cost, key, rest)


def timestamp(time: int) -> str:
    """Microseconds since 1970 as RFC 3339 with 6 decimals."""
    return (_EPOCH + timedelta(microseconds=time)).isoformat(timespec="microseconds")[:-6] + "Z"


def microseconds(timestamp: str) -> int:
    """A time of RFC 3339, as other systems write it, too, in microseconds since 1970."""
    when = datetime.fromisoformat(timestamp)
    return ((when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
