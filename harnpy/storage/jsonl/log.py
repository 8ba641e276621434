"""One log: its file, what is known of it, and the rows in it; and all logs of a store. Spec: 10 §C6.1.

Reading takes no lock. What has been read of a file is kept as a `State`, and checked against the file's
identity, size and time before each use.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from typing import Any, BinaryIO, NamedTuple

import msgspec

from harnpy.formats.json import refuse_depth
from harnpy.storage.contract import Row
from harnpy.storage.errors import CorruptLog, SchemaTooNew
from harnpy.storage.jsonl import layout
from harnpy.storage.jsonl.layout import (
    BadLine,
    Brief,
    Facts,
    Folder,
    Origin,
    brief_of,
    disk_errors,
    file_name,
    name_of,
)

Append = list[Row]

# What is known of a log's file, brought up to date by reading what has come since. Spec: 10 §C6.1.
#
# The state ends behind the last complete append. What lies behind that is a *tail*: an append that is being
# written, or one that a crash has cut off.


#: At least this many lines lie between two marks.
SPACING = 256
#: So many of the state's last bytes are remembered, to notice a log that isn't the one it was.
_END = 18


class Mark(NamedTuple):
    """The begin of an append: its line, counted from 1, its offset in bytes, and its first ``seq``."""

    line: int
    offset: int
    seq: int


class State(msgspec.Struct, omit_defaults=True):
    """The complete appends of a log: ``size`` bytes in ``lines`` lines, the last bytes being ``end``.

    A state that somebody holds doesn't change; newer ones are copies.
    """

    size: int = 0
    lines: int = 0
    end: bytes = b""
    version: int = 0
    dropped: int = 0
    #: Timestamps of the first and the last record.
    created: str = ""
    updated: str = ""
    name: str = ""
    uid: str = ""
    branch: Origin | None = None
    head: dict[str, Any] = {}
    #: Appends at some distance from each other, from the first one on.
    marks: list[Mark] = []
    #: The last append with records.
    last: Mark | None = None

    def fits(self, file: BinaryIO, size: int) -> bool:
        """Return whether the file still begins with what this state describes."""
        if size < self.size:
            return False
        file.seek(self.size - len(self.end))
        return file.read(len(self.end)) == self.end

    def advanced(self, file: BinaryIO, path: str) -> State:
        """Return the state of the file as it is now. Raises `CorruptLog`."""
        state = copy(self)
        state._advance(file, path)
        return state

    def _advance(self, file: BinaryIO, path: str) -> None:
        """Take in the complete appends behind the state.

        Raises `CorruptLog` for a line that can't be read although it has an end, or doesn't fit.
        """
        file.seek(self.size)
        at = self.size
        number = self.lines
        found: list[Brief] = []
        problem: str | None = None
        for line in file:
            if not line.endswith(b"\n"):
                break
            if problem is not None:
                raise CorruptLog(path, problem, number, at)
            number += 1
            if not line.isspace():
                try:
                    found.append(brief_of(line[:-1]))
                except BadLine as error:
                    problem = str(error)
                    if UNWRITTEN not in line:
                        raise CorruptLog(path, problem, number, at) from error
                    continue
                except SchemaTooNew as error:
                    raise SchemaTooNew(path, error.found, error.known) from None
                misfit = self._misfit(found)
                if misfit is not None:
                    raise CorruptLog(path, misfit, number, at)
            at += len(line)
            if not found or not found[-1].more:
                self._take(found, number, at, line)
                found = []

    def _misfit(self, found: list[Brief]) -> str | None:
        """Return what is wrong with the last line of an append, seen from those before it."""
        line = found[-1]
        due = self.version + len(found)
        if line.timestamp and not line.seq:
            line.seq = due
        if line.seq not in (due, 0):
            return f"record {line.seq} where {due} was due"
        if len(found) > 1 and line.more != found[-2].more - 1:
            return f"{found[-2].more} more records were due in this append"
        return None

    def _take(self, found: list[Brief], lines: int, size: int, end: bytes) -> None:
        """Take in one append, that ends with line number ``lines`` and at byte ``size``."""
        if found and found[0].seq:
            mark = Mark(self.lines + 1, self.size, found[0].seq)
            if not self.marks or mark.line - self.marks[-1].line >= SPACING:
                self.marks = [*self.marks, mark]
            self.last = mark
            self.version = found[-1].seq
            self.updated = found[-1].timestamp
            self.created = self.created or found[0].timestamp
        if found and found[0].log is not None:
            self.learn(found[0].log)
        self.lines = lines
        self.size = size
        self.end = end[-_END:]

    def learn(self, facts: Facts) -> None:
        """Take in what a line says of the log."""
        self.name = facts.name if facts.name is not None else self.name
        self.uid = facts.uid or self.uid
        self.branch = facts.branch or self.branch
        self.dropped = max(self.dropped, facts.dropped)
        self.created = facts.created or self.created
        self.updated = facts.updated or self.updated
        if facts.version is not None:
            self.version = facts.version
        if facts.head is not None:
            self.head = facts.head
        if facts.set is not None:
            self.head = self.head | facts.set

    def change(self, head: dict[str, Any] | None) -> Facts | None:
        """Return what a line must say so that ``head`` becomes the head's data; None if it is already."""
        if head is None:
            return None
        if not self.head or self.head.keys() - head.keys():
            return None if _same(head, self.head) else Facts(head=head)
        changed = {
            key: value
            for key, value in head.items()
            if key not in self.head or not _same(value, self.head[key])
        }
        return Facts(set=changed) if changed else None

    @property
    def points(self) -> Origin | None:
        """The origin, if records are still read from there."""
        return self.branch if self.branch is not None and self.branch.uid else None


def _same(one: object, other: object) -> bool:
    """Return whether two values are the same JSON; to Python, True equals 1."""
    return msgspec.json.encode(one) == msgspec.json.encode(other)


# The states of logs, kept beside them so that a store opens without reading every log.
#
# A cache: each file says for which size and time of the log it was made, and is ignored otherwise, unless
# the log still begins with what it describes. Spec: 10 §C6.1 (``heads/``).


CACHE_SUFFIX = ".json"


class Cached(msgspec.Struct):
    """The state of a log whose file had this size and time of change."""

    size: int
    time: int
    state: State


_CACHED = msgspec.json.Decoder(Cached)


def cached_state(folder: Folder | None, file: str) -> Cached | None:
    """Return what was kept of a log; None when there is nothing of use."""
    if folder is None:
        return None
    try:
        content = folder.read(file + CACHE_SUFFIX)
        if content is None:
            return None
        refuse_depth(content)
        return _CACHED.decode(content)
    except (OSError, msgspec.DecodeError, ValueError):
        return None


#: A sector that a power cut left unwritten, though the line's end was written: nobody was told of the append.
UNWRITTEN = bytes(512)
SUFFIX = ".jsonl"
#: Seconds between two writes of a log's cache.
_OFTEN = 1.0


class Seen(NamedTuple):
    """A mark that tells one state of a file from another without reading it."""

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
        self.caches = caches
        self._loading = threading.RLock()
        self.forked()
        self._seen: Seen | None = None
        self._state = State()
        self._saved: Seen | None = None
        self._saved_at = time.monotonic()

    def forked(self) -> None:
        """Begin anew with its locks, and with what a thread was loading, in a process that was forked off."""
        #: Held by the thread that writes, before the lock that keeps other processes out.
        self.writing = threading.Lock()
        if not self._loading.acquire(blocking=False):
            self._loading = threading.RLock()
            self._seen = None
        else:
            self._loading.release()

    def state(self) -> State:
        """Return what the log holds now. Raises `CorruptLog`."""
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
        found = cached_state(self.caches, self.file)
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
            if self.caches is not None:
                with suppress(OSError):
                    self.caches.remove(self.file + CACHE_SUFFIX)
        self._forget()

    def content(self) -> bytes:
        """All bytes of the file."""
        with disk_errors(self.path):
            return self.folder.read(self.file + SUFFIX) or b""

    def known(self) -> State | None:
        """Return what was kept of the log, be it right or not."""
        found = cached_state(self.caches, self.file)
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
            seen = self._seen
            if self.caches is not None and seen is not None and seen != self._saved:
                kept = msgspec.json.encode(Cached(seen.size, seen.time, self._state))
                with suppress(OSError):  # a store that can't be written to does without
                    self.caches.replace(self.file + CACHE_SUFFIX, kept, lasting=False)
                self._saved = seen


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
                row = layout.row_of(line, seq)
            except layout.BadLine as error:
                raise CorruptLog(log.path, str(error), number, at) from None
            if row is not None:
                seq = row.seq + 1
                append.append(row)
                if not row.more:
                    block.append(append)
                    append = []
        at += len(line) + 1
    return block


# All logs of a store, found by name or by what a branch points to. Spec: 10 §C6, "Branching is one record".
#
# A stream's log is ``logs/<name>.jsonl``, for kinds other than ``session`` ``logs/<kind>/<name>.jsonl``. What
# a deleted stream's branches still read is a *stem*, ``stems/<uid>.jsonl``.


#: The kind whose logs need no folder of their own.
_PLAIN = "session"
#: More records than a log has.
_ALL = 2**62


class Segment(NamedTuple):
    """Records ``after + 1`` … ``until`` of a stream, and the log that they are in."""

    log: Log
    uid: str
    after: int
    until: int


class Logs:
    """The logs below ``root``. ``folded``: its file system takes ``A`` for ``a``."""

    def __init__(self, root: Folder, *, folded: bool) -> None:
        self._folded = folded
        self._logs = root.sub("logs")
        self._heads = root.sub("heads")
        self.stems = root.sub("stems")
        self._folders: dict[str, tuple[Folder, Folder]] = {_PLAIN: (self._logs, self._heads)}
        self._known: dict[tuple[str, str], Log] = {}
        self._stems: dict[str, Log] = {}
        self._guard = threading.Lock()

    def forked(self) -> None:
        """Begin anew with all locks, in a process that was forked off."""
        self._guard = threading.Lock()
        for folder in (self.stems, *(folder for pair in self._folders.values() for folder in pair)):
            folder.forked()
        for log in (*self._known.values(), *self._stems.values()):
            log.forked()

    def log(self, kind: str, name: str) -> Log:
        """The log of a stream, be it written or not."""
        return self._log(kind, file_name(name, folded=self._folded))

    def _log(self, kind: str, file: str) -> Log:
        with self._guard:
            found = self._known.get((kind, file))
            if found is None:
                found = self._known[kind, file] = Log(*self._folder(kind), file)
            return found

    def _folder(self, kind: str) -> tuple[Folder, Folder]:
        """The folders of a kind: of its logs, and of their caches."""
        found = self._folders.get(kind)
        if found is None:
            name = file_name(kind, folded=self._folded)
            found = self._folders[kind] = self._logs.sub(name), self._heads.sub(name)
        return found

    def kinds(self) -> list[str]:
        """The kinds that there are logs of."""
        names = (name_of(folder) for folder in self._logs.folders())
        return [_PLAIN, *(name for name in names if name is not None)]

    def all(self, kind: str) -> list[Log]:
        """The logs of a kind that there are, in the order of their files."""
        with self._guard:
            folder, _ = self._folder(kind)
        return [self._log(kind, file) for file in folder.files(SUFFIX)]

    def all_stems(self) -> list[Log]:
        return [self.stem(uid) for uid in self.stems.files(SUFFIX)]

    def stem(self, uid: str) -> Log:
        """The log of a deleted stream's shared records."""
        with self._guard:
            found = self._stems.get(uid)
            if found is None:
                found = self._stems[uid] = Log(self.stems, None, uid)
            return found

    def origin(self, kind: str, origin: Origin) -> tuple[Log, State]:
        """Find the log that a branch points to. Raises `CorruptLog` when it is gone."""
        log = self.log(kind, origin.name)
        state = log.state()
        if state.uid != origin.uid:  # the stream was deleted, or is another one of that name by now
            log = self.stem(origin.uid)
            state = log.state()
            if state.uid != origin.uid:
                raise CorruptLog(log.path, f"the records that were shared with '{origin.name}' are gone")
        return log, state

    def has(self, kind: str, origin: Origin) -> bool:
        """Return whether the stream that a branch points to is there, or a damaged log that may be it."""
        try:
            return self.log(kind, origin.name).state().uid == origin.uid
        except CorruptLog:
            return True

    def segments(self, kind: str, log: Log, state: State, after: int, until: int) -> list[Segment]:
        """Return where the records ``after + 1`` … ``until`` of a stream are, oldest first."""
        found: list[Segment] = []
        first = state.points is not None and after < 1 <= until and state.dropped < 1
        own = log, state.uid
        after = max(after, state.dropped)
        while (origin := state.points) is not None:
            low = max(after, origin.at)
            if until > low:
                found.append(Segment(log, state.uid, low, until))
            until = min(until, origin.at)
            after = max(after, 1)  # the first record of a branch is its own
            if until <= after:
                break
            log, state = self.origin(kind, origin)
            after = max(after, state.dropped)
        else:
            if until > after:
                found.append(Segment(log, state.uid, after, until))
        if first:
            found.append(Segment(*own, 0, 1))
        return found[::-1]

    def shared(self, kind: str, uid: str) -> int:
        """The number of the last record of log ``uid`` that a branch reads; 0 when none does."""
        highest = 0
        for log in [*self.all(kind), *self.all_stems()]:
            try:
                origin = log.state().points
            except CorruptLog:
                return _ALL  # it may be one of its branches
            if origin is not None and origin.uid == uid:
                highest = max(highest, origin.at)
        return highest

    def save(self) -> None:
        """Keep the states of all logs that were looked at."""
        for log in list(self._known.values()):
            log.save()

    def close(self) -> None:
        for pair in self._folders.values():
            for folder in pair:
                folder.close()
        self.stems.close()
