"""The store: streams as files of one directory, for the processes of one machine. Spec: 10 §C6.1.

An opened directory, what is done to the streams in it, searching them, checking and collecting.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any

from harnpy.storage.contract import (
    DELETED,
    BaseStore,
    BaseStream,
    Branch,
    Codec,
    Encoded,
    Finding,
    FsckReport,
    GcReport,
    Head,
    HeadQuery,
    Hit,
    Page,
    Reading,
    Record,
    Row,
    Search,
    as_append,
    page,
)
from harnpy.storage.errors import CorruptLog, StorageError, StoreClosed, StreamExists
from harnpy.storage.jsonl import writing
from harnpy.storage.jsonl.file_leases import FileLeases
from harnpy.storage.jsonl.layout import (
    Facts,
    Folder,
    Medium,
    Origin,
    disk_errors,
    microseconds,
    name_of,
    opened_format,
)
from harnpy.storage.jsonl.log import SUFFIX, Append, Log, Logs, Segment, State, appends, scanned
from harnpy.storage.jsonl.writing import Writer, mend, new_uid
from harnpy.storage.leases import Lease, Machine
from harnpy.storage.memory import foreign_id
from harnpy.storage.opening import StoreUrl
from harnpy.storage.searching import has_numbered_letters, hits, needle, terms
from harnpy.world.threads import OfProcess

Test = Callable[[bytes], bool]

# Passing over the parts of a log that can't hold what is looked for, without decoding them.
#
# A test looks at the bytes of some lines. It may be wrong in letting them pass, never in refusing them.


def naming(names: Iterable[str]) -> Test:
    """Lines that hold one of these names as a JSON string."""
    needles = [f'"{name}"'.encode() for name in names]
    return lambda data: any(needle in data for needle in needles)


def holding(text: str) -> Test:
    """Lines that hold this text, in this case."""
    wanted = max(re.findall(r"[A-Za-z0-9_.-]+", text), key=len, default="").encode()
    return lambda data: wanted in data or b"\\u" in data


def mentioning(terms: Sequence[str]) -> Test:
    """Lines that hold all of these folded terms, in any case."""
    needles = [needle([term]) for term in terms]

    def test(data: bytes) -> bool:
        lower, odd = data.lower(), ""
        if not data.isascii():  # folding text takes ten times as long, and most lines are ASCII
            lines = [line for line in data.split(b"\n") if not line.isascii()]
            odd = b"\n".join(lines).decode("utf-8", "replace").casefold()
        if all(needle.encode() in lower or needle in odd for needle in needles):
            return True
        return b"\\u" in data and has_numbered_letters(data.decode("utf-8", "replace"))

    return test


# The parts of one opened directory, and what is done to the streams in it. Spec: 10 §C6.1.


class Directory(OfProcess):
    """A directory that is a store."""

    def __init__(self, url: StoreUrl, machine: Machine, medium: Medium | None) -> None:
        if not url.target:
            raise StorageError("a store `jsonl:` needs a directory: jsonl:<dir>")
        self.url = url
        root = Folder(url.target, None, medium, url.modes)
        with disk_errors(url):
            folded = opened_format(root, url)
        self._root = root
        self._closed = False
        self.logs = Logs(root, folded=folded)
        self.torn = root.sub("torn")
        self.leases = FileLeases(root.sub("leases"), machine, url.timeout, folded=folded)
        self.writer = Writer(self.torn, url.timeout, lasting=url.durability == "full")
        self.bind()

    def forked(self) -> None:
        for folder in (self._root, self.torn, self.leases.folder):
            folder.forked()
        self.logs.forked()

    def check_open(self) -> None:
        """Raise `StoreClosed` after `close`."""
        if self._closed:
            raise StoreClosed(str(self.url))

    def close(self) -> None:
        if self._closed:
            return
        self.leases.release_all()
        self.logs.save()
        self._closed = True
        for folder in (self._root, self.torn, self.leases.folder):
            folder.close()
        self.logs.close()

    def append(
        self,
        log: Log,
        name: str,
        rows: Sequence[Row],
        expected: int,
        head: dict[str, Any] | None,
        fence: Lease | None,
    ) -> int:
        """Add rows to a stream, and return its version."""
        self.check_open()
        held = nullcontext() if fence is None else self.leases.fenced(fence)
        with self.writer.locked(log), held:
            version = self.writer.append(log, name, rows, expected, head)
        log.save_soon()
        return version

    def appends(
        self,
        segment: Segment,
        reverse: bool = False,
        wanted: Callable[[bytes], bool] | None = None,
    ) -> Iterator[Append]:
        """The appends of a segment, whole."""
        log = segment.log
        opened = log.open()
        if opened is None or opened[1].uid != segment.uid:
            if opened is not None:
                opened[0].close()
            # Deleted since: if it has branches, it is a stem by now, and else there is nothing to read.
            log = self.logs.stem(segment.uid)
            opened = log.open()
            if opened is None:
                return
        file, state = opened
        with file:
            yield from appends(log, file, state, segment.after, segment.until, reverse=reverse, wanted=wanted)

    def delete(self, kind: str, log: Log) -> bool:
        """Remove a stream. Return False when there was none."""
        if not log.exists():
            return False
        with self.writer.locked(log):
            return writing.delete_log(self.logs, kind, log)

    def erase(self, kind: str, log: Log) -> None:
        """Remove a stream, and what repairs and interrupted writers have left of it."""
        uid = log.state().uid
        self.delete(kind, log)
        for folder in filter(None, (log.folder, log.caches, self.logs.stems, self.torn)):
            for file in folder.files():
                if file.startswith((f"{log.file}.", f"{uid}.")) and file.endswith((".tmp", ".bin")):
                    folder.remove(file)

    def drop(self, kind: str, log: Log, until: int) -> int:
        """Forget the oldest records of a stream, and return how many went."""
        self.check_open()
        with self.writer.locked(log):
            return writing.drop_log(self.logs, kind, log, until)

    def settle(self, kind: str, log: Log, codec: Codec) -> None:
        """Copy what a stream shares with its origin."""
        self.check_open()
        with self.writer.locked(log):
            state = log.state()
            if state.points is None:
                return
            kept = [
                _part(codec, append, segment)
                for segment in self.logs.segments(kind, log, state, 0, state.version)
                for append in self.appends(segment)
            ]
            writing.settle_log(log, state, kept)

    def heads(self, kind: str) -> tuple[list[Head], list[tuple[str, str]]]:
        """The heads of a kind's streams, and which streams have none that can be read, and why."""
        found: list[Head] = []
        errors: list[tuple[str, str]] = []
        for log in self.logs.all(kind):
            try:
                state = log.state()
            except CorruptLog as error:
                errors.append((name_of(log.file) or log.file, str(error)))
                continue
            if state.version:
                found.append(self.head(kind, state))
        return found, errors

    def head(self, kind: str, state: State) -> Head:
        """Return what a list shows of a stream with this state."""
        created, updated = microseconds(state.created), microseconds(state.updated)
        source = state.points
        parent = None if source is None or not self.logs.has(kind, source) else source.name
        shared = 0 if source is None else source.at
        updated = max(created, updated)
        return Head(kind, state.name, state.version, created, updated, parent, shared, state.head)


def _part(codec: Codec, append: Append, segment: Segment) -> Append:
    """Return those rows of an append that are in the segment, as an append."""
    if segment.after < append[0].seq and append[-1].seq <= segment.until:
        return append
    pairs = zip(append, codec.decode(append), strict=True)
    records = [record for row, record in pairs if segment.after < row.seq <= segment.until]
    return as_append(codec.encode(records))


# Searching the logs themselves: lines that can't hold what is looked for are passed over unread.
#
# There is no index that could be behind, and appends pay nothing. Spec: 10 §C6, "Search".


def find(directory: Directory, search: Search) -> list[Hit]:
    """Return the first hits."""
    kind, name, limit = search.kind, search.name, search.limit
    wanted = None if isinstance(search.codec, Encoded) else mentioning(terms(search.query))
    found: list[Hit] = []
    for writer, segment in _everything(directory, search) if name is None else _past(directory, kind, name):
        for append in directory.appends(segment, wanted=wanted):
            pairs = zip(append, search.codec.texts(append), strict=True)
            inside = [pair for pair in pairs if segment.after < pair[0].seq <= segment.until]
            rows, texts = [row for row, _ in inside], [text for _, text in inside]
            found += hits(search, writer, rows, texts)
            if len(found) >= limit:
                return found[:limit]
    return found


def _past(directory: Directory, kind: str, name: str) -> Iterator[tuple[str, Segment]]:
    """The records of one stream, each part with the stream that wrote it, the oldest stream first."""
    log = directory.logs.log(kind, name)
    state = log.state()
    parts = directory.logs.segments(kind, log, state, 0, state.version)
    shared = [part for part in parts if part.log is not log]
    for part in [*shared, *(part for part in parts if part.log is log)]:
        # What a deleted stream wrote counts as its branch's.
        yield part.log.state().name or name, part


def _everything(directory: Directory, search: Search) -> Iterator[tuple[str, Segment]]:
    """The records that each stream wrote, by name."""
    known: list[tuple[str, Log, State]] = []
    for log in directory.logs.all(search.kind):
        try:
            state = log.state()
        except CorruptLog:
            continue  # lists and checks report it
        if search.names is None or state.name in search.names:
            known.append((state.name, log, state))
    for name, log, state in sorted(known, key=lambda each: each[0]):
        shared = 0 if state.points is None else state.points.at
        if shared and not state.dropped:
            yield name, Segment(log, state.uid, 0, 1)
        yield name, Segment(log, state.uid, max(shared, state.dropped), state.version)


# Checking a store, and repairing what can be repaired without losing anything. Spec: 10 §C6.1, §C12.


def fsck(directory: Directory, *, repair: bool) -> FsckReport:
    """Read every log from its first to its last byte."""
    streams = records = 0
    findings: list[Finding] = []
    for kind in directory.logs.kinds():
        for log in directory.logs.all(kind):
            name = name_of(log.file) or log.file
            try:
                state = scanned(log)
            except CorruptLog as error:
                findings.append(_damaged(directory, kind, name, log, str(error), repair))
                if not repair:
                    continue
                state = scanned(log)
            if state.version:
                streams += 1
                records += state.version
            findings += _checked(directory, kind, state.name or name, log, state, repair)
    return FsckReport(streams, records, findings)


def _damaged(directory: Directory, kind: str, name: str, log: Log, problem: str, repair: bool) -> Finding:
    """Return the finding about a log of which lines can't be read; with ``repair``, mend it."""
    if not repair:
        return Finding(kind, name, problem)
    with directory.writer.locked(log):
        kept = mend(log, directory.torn)
    return Finding(kind, name, f"{problem}; what can be read of it was kept, the whole is {kept}", True)


def _checked(
    directory: Directory, kind: str, name: str, log: Log, state: State, repair: bool
) -> Iterator[Finding]:
    """Yield what is wrong with a log that can be read."""
    if log.size() > state.size:
        with directory.writer.locked(log):  # somebody may have been writing
            surplus = log.size() - scanned(log).size
            if repair:
                directory.writer.repair(log)
        if surplus:
            yield Finding(kind, name, f"{surplus} bytes of an append that was never finished", repair)
    if state.points is not None:
        try:
            directory.logs.origin(kind, state.points)
        except CorruptLog as error:
            yield Finding(kind, name, str(error))


# Dropping for good what was deleted, and what is left over. Spec: 10 §C6, §C21.


#: Seconds after which a temporary file belongs to nobody.
_ABANDONED = 3600.0


def gc(directory: Directory, older_than: float | None, *, dry_run: bool) -> GcReport:
    """Drop deleted streams, stems that no branch reads, bytes that repairs have kept, and dead leases."""
    before = time.time() - (older_than or 0.0)
    streams = [name for kind in directory.logs.kinds() for name in _deleted(directory, kind, before, dry_run)]
    stems = _stems(directory, dry_run)
    leftovers = [*_old(directory.torn, before, dry_run), *directory.leases.drop_dead(dry_run=dry_run)]
    return GcReport(streams, stems, leftovers)


def _deleted(directory: Directory, kind: str, before: float, dry_run: bool) -> Iterator[str]:
    """Drop the streams of a kind whose status says that they are deleted."""
    for head in directory.heads(kind)[0]:
        if head.data.get("status") == DELETED and head.updated <= before * 1e6:
            yield head.name
            if not dry_run:
                directory.delete(kind, directory.logs.log(kind, head.name))


def _stems(directory: Directory, dry_run: bool) -> int:
    """Drop the stems that no branch reads; then those that only dropped ones read."""
    dropped = 0
    while idle := [uid for uid in directory.logs.stems.files(SUFFIX) if _idle(directory, uid)]:
        dropped += len(idle)
        if dry_run:
            break
        for uid in idle:
            directory.logs.stem(uid).remove()
    return dropped


def _idle(directory: Directory, uid: str) -> bool:
    return not any(directory.logs.shared(kind, uid) for kind in directory.logs.kinds())


def _old(folder: Folder, before: float, dry_run: bool) -> Iterator[str]:
    """Remove the files of a folder that haven't changed since."""
    for file in folder.files():
        stat = folder.stat(file)
        if stat is not None and stat.st_mtime <= before:
            yield file
            if not dry_run:
                folder.remove(file)


# A stream as its owner sees it: records behind its log, and the logs of those it was branched from.


class JsonlStream(BaseStream):
    """One stream. Holds no file open between calls."""

    def __init__(self, directory: Directory, kind: str, name: str, codec: Codec) -> None:
        self._directory = directory
        self.kind = kind
        self.name = name
        self.codec = codec
        self.log = directory.logs.log(kind, name)
        self._version = self.log.state().version

    @property
    def version(self) -> int:
        return self._version

    def refresh(self) -> int:
        self._directory.check_open()
        self._version = self.log.state().version
        return self._version

    def append(
        self,
        records: Sequence[Record],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        rows = self.codec.encode(records)
        self._version = self._directory.append(self.log, self.name, rows, expected_version, head, fence)

    def _read(self, reading: Reading) -> Iterator[Record]:
        after, until, types, reverse, limit = reading
        version = self.refresh()
        until = version if until is None else min(until, version)
        wanted = None if types is None else naming(types)
        found = (
            record
            for row, record in self._records(after, until, reverse, wanted)
            if types is None or row.type in types
        )
        return found if limit is None else islice(found, limit)

    def find_key(self, key: str) -> Record | None:
        found = self._records(0, self.refresh(), True, holding(key))
        return next((record for row, record in found if row.key == key), None)

    def find_id(self, id: str) -> int | None:
        for row, _ in self._records(0, self.refresh(), False, holding(id)):
            if row.rest is not None and foreign_id(row.rest) == id:
                return row.seq
        return None

    def settle(self) -> None:
        self._directory.settle(self.kind, self.log, self.codec)
        self.refresh()

    def drop(self, until: int) -> int:
        return self._directory.drop(self.kind, self.log, until)

    def _records(
        self, after: int, until: int, reverse: bool, wanted: Callable[[bytes], bool] | None
    ) -> Iterator[tuple[Row, Record]]:
        """The records with their rows. What is there is settled now; it is read while it is used."""
        segments = self._directory.logs.segments(self.kind, self.log, self.log.state(), after, until)
        return self._pairs(segments[::-1] if reverse else segments, reverse, wanted)

    def _pairs(
        self, segments: list[Segment], reverse: bool, wanted: Callable[[bytes], bool] | None
    ) -> Iterator[tuple[Row, Record]]:
        for segment in segments:
            for append in self._directory.appends(segment, reverse, wanted):
                pairs = [
                    pair
                    for pair in zip(append, self.codec.decode(append), strict=True)
                    if segment.after < pair[0].seq <= segment.until
                ]
                yield from reversed(pairs) if reverse else pairs


#: Seconds between two looks for changes.
_PAUSE = 0.02


class JsonlStore(BaseStore):
    """A `Store` of `JsonlStream`s. A directory that is none becomes one. ``medium`` is for tests."""

    features = frozenset({"search"})
    streams = JsonlStream

    def __init__(self, url: StoreUrl, machine: Machine, medium: Medium | None = None) -> None:
        self.address = url
        self.strict_ids = url.strict_ids
        self.modes = url.modes
        self.directory = Directory(url, machine, medium)
        self.leases = self.directory.leases

    def check_open(self) -> None:
        self.directory.check_open()

    def stream(self, kind: str, name: str, codec: Codec) -> JsonlStream:
        self.directory.check_open()
        return JsonlStream(self.directory, kind, name, codec)

    def _branch(self, branch: Branch) -> JsonlStream:
        directory = self.directory
        source, name, first, codec, until, head = branch
        codec = codec or source.codec
        (row,) = codec.encode((first,))
        log = directory.logs.log(source.kind, name)
        if log.state().version:
            raise StreamExists(name)
        # The source can't be deleted meanwhile: who deletes it must see its branches.
        with directory.writer.locked(source.log), directory.writer.locked(log):
            if log.state().version:
                raise StreamExists(name)
            state = source.log.state()
            at = max(1, state.version if until is None else min(until, state.version))
            origin = Origin(source.name, at, state.uid)
            facts = Facts(name=name, uid=new_uid(), branch=origin, version=at, head=head or {})
            directory.writer.begin(log, row._replace(more=0), facts)
        return JsonlStream(directory, source.kind, name, codec)

    def head(self, kind: str, name: str) -> Head | None:
        self.directory.check_open()
        state = self.directory.logs.log(kind, name).state()
        return self.directory.head(kind, state) if state.version else None

    def heads(self, query: HeadQuery) -> Page:
        self.directory.check_open()
        found, errors = self.directory.heads(query.kind)
        return page(found, query, errors)

    def kinds(self) -> dict[str, int]:
        self.directory.check_open()
        logs = self.directory.logs
        counts = {kind: len(logs.all(kind)) for kind in logs.kinds()}
        return {kind: count for kind, count in counts.items() if count}

    def delete(self, kind: str, name: str) -> bool:
        self.directory.check_open()
        return self.directory.delete(kind, self.directory.logs.log(kind, name))

    def erase(self, streams: Sequence[tuple[str, str]]) -> None:
        self.directory.check_open()
        for kind, name in streams:
            self.directory.erase(kind, self.directory.logs.log(kind, name))
        _stems(self.directory, dry_run=False)

    def _search(self, search: Search) -> list[Hit]:
        return find(self.directory, search)

    def changes(self, kind: str, name: str, after: int, timeout: float) -> int:
        log = self.directory.logs.log(kind, name)
        gives_up = time.monotonic() + timeout
        while True:
            self.directory.check_open()
            version = log.state().version
            left = gives_up - time.monotonic()
            if version > after or left <= 0:
                return version
            time.sleep(min(left, _PAUSE))

    def fsck(self, *, repair: bool = False) -> FsckReport:
        self.directory.check_open()
        return fsck(self.directory, repair=repair)

    def gc(self, *, older_than: float | None = None, dry_run: bool = False) -> GcReport:
        self.directory.check_open()
        return gc(self.directory, older_than, dry_run=dry_run)

    def close(self) -> None:
        self.directory.close()
