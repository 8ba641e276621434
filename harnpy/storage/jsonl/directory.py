"""The parts of one opened directory, and what is done to the streams in it. Spec: 10 §C6.1."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from harnpy.storage.contract import Head
from harnpy.storage.errors import CorruptLog, StorageError, StoreClosed
from harnpy.storage.jsonl import rewriting
from harnpy.storage.jsonl.folders import Folder, Medium, disk_errors
from harnpy.storage.jsonl.format import opened_format
from harnpy.storage.jsonl.leases import FileLeases
from harnpy.storage.jsonl.lines import microseconds
from harnpy.storage.jsonl.log import appends
from harnpy.storage.jsonl.logs import Logs
from harnpy.storage.jsonl.names import name_of
from harnpy.storage.jsonl.writing import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.storage.contract import Codec, Row
    from harnpy.storage.jsonl.log import Append, Log
    from harnpy.storage.jsonl.logs import Segment
    from harnpy.storage.jsonl.state import State
    from harnpy.storage.leases import Lease
    from harnpy.storage.machine import Machine
    from harnpy.storage.opening import StoreUrl


class Directory:
    """A directory that is a store."""

    def __init__(self, url: StoreUrl, machine: Machine, medium: Medium | None) -> None:
        if not url.target:
            raise StorageError("a store `jsonl:` needs a directory: jsonl:<dir>")
        self.url = str(url)
        root = Folder(url.target, None, medium)
        with disk_errors(self.url):
            folded = opened_format(root, self.url)
        self._root = root
        self._closed = False
        self.logs = Logs(root, folded=folded)
        self.torn = root.sub("torn")
        self.leases = FileLeases(root.sub("leases"), machine, url.timeout, folded=folded)
        self.writer = Writer(self.torn, url.timeout, lasting=url.durability == "full")

    def check_open(self) -> None:
        """Raise `StoreClosed` after `close`."""
        if self._closed:
            raise StoreClosed(self.url)

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
            return rewriting.delete(self.logs, kind, log)

    def drop(self, kind: str, log: Log, until: int) -> int:
        """Forget the oldest records of a stream, and return how many went."""
        self.check_open()
        with self.writer.locked(log):
            return rewriting.drop(self.logs, kind, log, until)

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
            rewriting.settle(log, state, kept)

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
        """What a list shows of a stream with this state."""
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
    rows = codec.encode([record for row, record in pairs if segment.after < row.seq <= segment.until])
    return [row._replace(more=left) for left, row in zip(reversed(range(len(rows))), rows, strict=True)]
