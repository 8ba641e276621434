"""One log: its file, what is known of it, and the rows in it. Spec: 10 §C6.1.

Reading takes no lock. What has been read of a file is kept as a `State`, and checked against the file's
identity, size and time before each use.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_right
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from harnpy.storage.errors import CorruptLog
from harnpy.storage.jsonl import lines
from harnpy.storage.jsonl.cache import cached, discard, save
from harnpy.storage.jsonl.folders import disk_errors
from harnpy.storage.jsonl.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.storage.contract import Row
    from harnpy.storage.jsonl.folders import Folder
    from harnpy.storage.jsonl.state import Mark

    Append = list[Row]

SUFFIX = ".jsonl"
#: Seconds between two writes of a log's cache.
_OFTEN = 1.0


class Seen(NamedTuple):
    """What tells one state of a file from another without reading it."""

    inode: int
    size: int
    time: int

    @classmethod
    def of(cls, stat: os.stat_result) -> Seen:
        return cls(stat.st_ino, stat.st_size, stat.st_mtime_ns)


class Log:
    """The file ``<file>.jsonl`` in ``folder``; ``caches`` is where its state is kept between processes."""

    def __init__(self, folder: Folder, caches: Folder | None, file: str) -> None:
        self.folder = folder
        self.file = file
        self.path = folder.where(file + SUFFIX)
        #: Held by the thread that writes, before the lock that keeps other processes out.
        self.writing = threading.Lock()
        self._caches = caches
        self._loading = threading.RLock()
        self._seen: Seen | None = None
        self._state = State()
        self._saved: Seen | None = None
        self._saved_at = time.monotonic()

    def state(self) -> State:
        """What the log holds now. Raises `CorruptLog`."""
        with disk_errors(self.path):
            stat = self.folder.stat(self.file + SUFFIX)
            if stat is not None and Seen.of(stat) == self._seen:
                return self._state
            if stat is None:
                return self._forget()
            opened = self.open()
            if opened is None:
                return self._forget()
            file, state = opened
            file.close()
            return state

    def open(self) -> tuple[BinaryIO, State] | None:
        """Open the file to read what the state describes; None when there is none."""
        file = self.open_file()
        if file is None:
            return None
        try:
            with disk_errors(self.path):
                return file, self.load(file)
        except BaseException:
            file.close()
            raise

    def open_file(self) -> BinaryIO | None:
        """Open the file as it is; None when there is none."""
        with disk_errors(self.path):
            try:
                return os.fdopen(self.folder.open(self.file + SUFFIX), "rb")
            except FileNotFoundError:
                return None

    def load(self, file: BinaryIO) -> State:
        """Bring the state up to date with the open file."""
        seen = Seen.of(os.fstat(file.fileno()))
        with self._loading:
            if seen != self._seen:
                self._state = self._base(file, seen).advanced(file, self.path)
                self._seen = seen
            return self._state

    def _base(self, file: BinaryIO, seen: Seen) -> State:
        """Return the newest state known that the file still begins with."""
        known = self._seen
        if known is not None:
            if known.inode == seen.inode and seen.size != known.size and self._state.fits(file, seen.size):
                return self._state
            return State()
        found = cached(self._caches, self.file)
        if found is None:
            return State()
        if (found.size, found.time) == (seen.size, seen.time):
            self._saved = seen
        elif found.size == seen.size:
            return State()
        return found.state if found.state.fits(file, seen.size) else State()

    def _forget(self) -> State:
        with self._loading:
            self._seen, self._state, self._saved = None, State(), None
            return self._state

    def remove(self) -> None:
        """Delete the file, and what is kept of it."""
        with disk_errors(self.path):
            if self.folder.remove(self.file + SUFFIX):
                self.folder.sync()
            if self._caches is not None:
                discard(self._caches, self.file)
        self._forget()

    def content(self) -> bytes:
        """All bytes of the file."""
        with disk_errors(self.path):
            return self.folder.read(self.file + SUFFIX) or b""

    def known(self) -> State | None:
        """What was kept of the log, be it right or not."""
        found = cached(self._caches, self.file)
        return None if found is None else found.state

    def size(self) -> int:
        """The bytes of the file, complete or not."""
        with disk_errors(self.path):
            stat = self.folder.stat(self.file + SUFFIX)
            return 0 if stat is None else stat.st_size

    def exists(self) -> bool:
        with disk_errors(self.path):
            return self.folder.stat(self.file + SUFFIX) is not None

    def save_soon(self) -> None:
        """`save`, unless that was done within the last second."""
        now = time.monotonic()
        if now - self._saved_at >= _OFTEN:
            self._saved_at = now
            self.save()

    def save(self) -> None:
        """Keep the state for the next process that opens the log."""
        with self._loading:
            if self._caches is not None and self._seen is not None and self._seen != self._saved:
                save(self._caches, self.file, self._seen.size, self._seen.time, self._state)
                self._saved = self._seen


def scanned(log: Log) -> State:
    """Return the state of a log, read from its first byte whatever was known. Raises `CorruptLog`."""
    opened = log.open_file()
    if opened is None:
        return State()
    with opened as file, disk_errors(log.path):
        return State().advanced(file, log.path)


def appends(
    log: Log,
    file: BinaryIO,
    state: State,
    after: int,
    until: int,
    *,
    reverse: bool = False,
    wanted: Callable[[bytes], bool] | None = None,
) -> Iterator[Append]:
    """The appends that hold records ``after + 1`` … ``until``, each with all of its rows.

    Parts of the file that ``wanted`` refuses are passed over. Raises `CorruptLog`.
    """
    marks = state.marks
    if state.last is not None and state.last.offset > marks[-1].offset:
        marks = [*marks, state.last]  # so that the newest record is found without reading what is before it
    seqs = [mark.seq for mark in marks]
    numbers = range(max(0, bisect_right(seqs, after + 1) - 1), bisect_right(seqs, until))
    with disk_errors(log.path):
        for number in reversed(numbers) if reverse else numbers:
            end = marks[number + 1].offset if number + 1 < len(marks) else state.size
            block = _block(log, file, marks[number], end, wanted)
            for append in reversed(block) if reverse else block:
                if append[-1].seq > after and append[0].seq <= until:
                    yield append


def _block(
    log: Log, file: BinaryIO, begin: Mark, end: int, wanted: Callable[[bytes], bool] | None
) -> list[Append]:
    """Read the appends from a mark on."""
    file.seek(begin.offset)
    data = file.read(end - begin.offset)
    if wanted is not None and not wanted(data):
        return []
    block: list[Append] = []
    append: Append = []
    at, seq = begin.offset, begin.seq
    for number, line in enumerate(data.split(b"\n"), begin.line):
        if line and not line.isspace():
            try:
                row = lines.row(line, seq)
            except lines.BadLine as error:
                raise CorruptLog(log.path, str(error), number, at) from None
            if row is not None:
                seq = row.seq + 1
                append.append(row)
                if not row.more:
                    block.append(append)
                    append = []
        at += len(line) + 1
    return block
