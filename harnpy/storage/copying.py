"""Copying streams from one store to another, record by record as they are kept. Spec: 10 §C21.

A branch stays a branch: what it shares with its parent is written once. A stream that is there already, as
long as its original, is left alone, and one that ends earlier is continued: a copy that was interrupted is
simply made again. Records keep their numbers, also behind those that the original has forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harnpy.storage.contract import Head, HeadQuery, Row, Store, Stream, all_heads
from harnpy.storage.errors import StorageError, StreamExists

#: How many records one append writes, more or less: appends stay whole.
_CHUNK = 1000
#: What is written in the place of a record that the original has forgotten, and then forgotten, too.
_FORGOTTEN = "forgotten"


class Rows:
    """The codec of who takes rows as they are."""

    def encode(self, records: Sequence[Row]) -> list[Row]:
        return list(records)

    def decode(self, rows: Sequence[Row]) -> list[Row]:
        return list(rows)

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [None] * len(rows)


class Copied(NamedTuple):
    """``errors`` says what could not be copied, as (name, reason)."""

    copied: list[str]
    skipped: list[str]
    errors: list[tuple[str, str]]


def copy_streams(source: Store, target: Store, kind: str, names: Sequence[str] | None = None) -> Copied:
    """Copy the streams of ``kind`` (with ``names``: those, and the ones that they descend from).

    What goes wrong with one stream doesn't keep the others from being copied.
    """
    refuse_memory(source, target)
    report = Copied([], [], [])
    waiting = list(all_names(source, kind) if names is None else names)[::-1]
    done: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in done:
            continue
        try:
            head = source.head(kind, name)
            if head is None:
                raise StorageError(f"there is no {kind} '{name}' in {source.url}")
            if _waits_for_parent(source, head, done):
                assert head.parent is not None
                waiting += [name, head.parent]
                continue
            done.add(name)
            (report.copied if _copied(source, target, head) else report.skipped).append(name)
        except StorageError as error:
            done.add(name)
            report.errors.append((name, str(error)))
    return report


def refuse_memory(*stores: Store) -> None:
    """Raise `StorageError` for a store that ends with its process."""
    if any(store.url == "memory:" for store in stores):
        raise StorageError("memory: holds nothing beyond this process: name another store")


def all_names(store: Store, kind: str) -> Iterator[str]:
    """Return the names of all streams of ``kind``."""
    return (head.name for head in all_heads(store, HeadQuery(kind, order="id", limit=_CHUNK)))


def _waits_for_parent(source: Store, head: Head, done: set[str]) -> bool:
    return (
        head.parent is not None
        and head.parent not in done
        and source.head(head.kind, head.parent) is not None
    )


def _copied(source: Store, target: Store, head: Head) -> bool:
    """Copy one stream. Return False when it is there already."""
    codec = Rows()
    origin = source.stream(head.kind, head.name, codec)
    there = target.head(head.kind, head.name)
    if there is not None:
        stream = target.stream(head.kind, head.name, codec)
        if there.version > head.version or not _is_begun(stream, origin, there.version):
            raise StreamExists(head.name)
        if there.version == head.version and there.data == head.data:
            return False
    else:
        stream = _begun(origin, target, head)
    _forget(origin, stream, head)
    _append(origin, stream, head)
    return True


def _is_begun(stream: Stream, origin: Stream, version: int) -> bool:
    """Return whether ``stream``, of that length, is the beginning of a copy of ``origin``."""
    last, original = stream.last(), _numbered(origin, version)
    return last == original or (original is None and last is not None and last.type == _FORGOTTEN)


def _begun(origin: Stream, target: Store, head: Head) -> Stream:
    """Return a new stream: a branch of the parent's copy, if that has what they share."""
    codec = Rows()
    parent = None if head.parent is None else target.stream(head.kind, head.parent, codec)
    first = _numbered(origin, 1)
    if parent is None or first is None or not _shares(parent, origin, head.fork_seq):
        return target.stream(head.kind, head.name, codec)
    return target.branch(parent, head.name, first, until=head.fork_seq, head=dict(head.data))


def _shares(parent: Stream, origin: Stream, until: int) -> bool:
    """Return whether ``parent`` has records 2 … ``until`` of ``origin``, judged by the first and last one."""
    ends = {min(2, until), until} - {1}
    return 0 < until <= parent.version and all(_numbered(parent, n) == _numbered(origin, n) for n in ends)


def _forget(origin: Stream, stream: Stream, head: Head) -> None:
    """Give ``stream`` the numbers of the records that ``origin`` has forgotten, and no records for them."""
    first: Row | None = next(origin.read(limit=1), None)
    gone = head.version if first is None else first.seq - 1
    for after in range(stream.version, gone, _CHUNK):
        numbers = range(after + 1, min(after + _CHUNK, gone) + 1)
        stream.append([Row(number, _FORGOTTEN, head.created, "{}") for number in numbers], after)
    begin: Row | None = next(stream.read(limit=1), None)
    if begin is not None and begin.type == _FORGOTTEN:
        stream.drop(gone)


def _numbered(stream: Stream, seq: int) -> Row | None:
    row: Row | None = next(stream.read(seq - 1, seq), None)
    return row


def _append(origin: Stream, stream: Stream, head: Head) -> None:
    """Write what ``stream`` doesn't have yet; the head comes with the last of it."""
    chunk: list[Row] = []
    version = stream.version
    for row in origin.read(after=version, until=head.version):
        chunk.append(row)
        if len(chunk) >= _CHUNK and not row.more:
            stream.append(chunk, version)
            version += len(chunk)
            chunk = []
    stream.append(chunk, version, head=dict(head.data))
