"""The store that keeps streams in memory, for the life of the process.

Records are kept as they are, not encoded: append costs the same at any length, and a branch shares its
source's records. Spec: 10 §C6.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Condition
from typing import Any, Generic, TypeVar
from weakref import ref

from harnpy.storage.contract import (
    DELETED,
    BaseStore,
    Branch,
    Codec,
    FsckReport,
    GcReport,
    Head,
    HeadQuery,
    Hit,
    Page,
    Record,
    Row,
    Search,
    page,
)
from harnpy.storage.errors import StoreClosed, StreamExists, Unsupported, VersionConflict
from harnpy.storage.leases import Lease, Machine, MemoryLeases
from harnpy.storage.opening import StoreUrl
from harnpy.storage.searching import hits

# A list that only grows at its end, and branches at no cost.
#
# A branch copies nothing: it remembers its source and how long that was, and stores what it adds itself. As
# the source only grows, those first items never change. The list is copied when the branch is first read; a
# branch that is never read never pays for it.


T = TypeVar("T")


class AppendOnlyList(Generic[T]):
    """The first ``_start`` items are those of ``_source``, ``_inherited`` the last of them; the rest are in
    ``_own``."""

    __slots__ = ("_inherited", "_own", "_source", "_start")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._own: list[T] = list(items)
        self._source: AppendOnlyList[T] | None = None
        self._start = 0
        self._inherited: T | None = None

    def __len__(self) -> int:
        return self._start + len(self._own)

    def append(self, item: T) -> None:
        self._own.append(item)

    def extend(self, items: Iterable[T]) -> None:
        self._own.extend(items)

    def last(self) -> T | None:
        """The last item, None when there is none. Doesn't make the list independent of its source."""
        return self._own[-1] if self._own else self._inherited

    def branch(self, until: int | None = None) -> AppendOnlyList[T]:
        """Return a list with the first ``until`` items (None: all) that grows on its own."""
        branch: AppendOnlyList[T] = AppendOnlyList()
        branch._source = self
        own = self._own
        length = self._start + len(own)
        if until is None or until >= length:
            branch._start = length
            branch._inherited = own[-1] if own else self._inherited
        else:
            branch._start = until
            branch._inherited = self.items()[until - 1] if until else None
        return branch

    def items(self) -> list[T]:
        """Return all items. It is this object's own: read it, don't change it, don't keep it."""
        if self._source is not None:
            self._flatten()
        return self._own

    def loaded(self) -> list[T]:
        """Return the items that needn't be read first: all, but for a `LazyAppendOnlyList`."""
        return self.items()

    @property
    def is_lazy(self) -> bool:
        """Return whether the first items haven't been read yet."""
        return False

    def settle(self) -> None:
        """Become independent of the source, at the cost of a list copy."""
        self.items()

    def _flatten(self) -> None:
        """Become independent of the source. Not recursive: forks of forks may go thousands deep."""
        pieces: list[list[T]] = []
        above: AppendOnlyList[T] | None = self
        stop = len(self)
        while above is not None:
            if stop > above._start:
                pieces.append(above._own[: stop - above._start])
                stop = above._start
            above = above._source
        self._own = pieces.pop() if pieces else []
        while pieces:
            self._own += pieces.pop()
        self._source = None
        self._start = 0
        self._inherited = None


class LazyAppendOnlyList(AppendOnlyList[T]):
    """One whose first items are read when somebody first wants to see them: ``read`` returns them."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Iterable[T]], items: Iterable[T] = ()) -> None:
        super().__init__(items)
        self._read: Callable[[], Iterable[T]] | None = read

    def __len__(self) -> int:
        return len(self.items())

    def last(self) -> T | None:
        return self._own[-1] if self._own else next(reversed(self.items()), None)

    def branch(self, until: int | None = None) -> AppendOnlyList[T]:
        if until is None and self._read is not None:
            return LazyAppendOnlyList(self._read, self._own)
        self.items()
        return super().branch(until)

    def items(self) -> list[T]:
        if self._read is not None:
            self._own[:0] = self._read()
            self._read = None
        return super().items()

    def loaded(self) -> list[T]:
        return self._own if self.is_lazy else self.items()

    @property
    def is_lazy(self) -> bool:
        return self._read is not None

    def settle(self) -> None:
        """Do nothing: it has no source."""


class MemoryStream:
    """One stream. ``version`` is kept beside the records: append is the hot path."""

    __slots__ = (
        "__weakref__", "_dropped", "_gone", "_records", "codec", "data", "kind", "name", "parent", "store",
        "version",
    )  # fmt: skip

    def __init__(
        self, store: MemoryStore, kind: str, name: str, codec: Codec | None, records: AppendOnlyList[Record]
    ) -> None:
        self.store = store
        self.kind = kind
        self.name = name
        self.codec = codec
        self.data: dict[str, Any] = {}
        #: The stream that this one was branched from, and how many records it has from there.
        self.parent: tuple[ref[MemoryStream], int] | None = None
        self._records = records
        self._dropped = 0
        #: The last record that was dropped.
        self._gone: Record | None = None
        self.version = len(records)

    def append(
        self,
        records: Sequence[Record],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        store = self.store
        with store.changed:
            if expected_version != self.version or store.closed:
                store.check_open()
                raise VersionConflict(self.name, expected_version, self.version)
            if fence is not None:
                store.leases.check(fence)
            self._records.extend(records)
            self.version += len(records)
            if head is not None:
                self.data = head
            if store.waiting:
                store.changed.notify_all()

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Record]:
        records = self._slice(after, until)
        if types is not None:
            records = [record for record in records if record.type in types]
        if reverse:
            records.reverse()
        return iter(records if limit is None else records[:limit])

    def _slice(self, after: int, until: int | None) -> list[Record]:
        """Return the records in a new list."""
        gone = self._dropped
        end = None if until is None else max(0, until - gone)
        return self._records.items()[max(0, after - gone) : end]

    def own(self) -> list[Record]:
        """Return the records that the stream doesn't share with its parent."""
        shared = 1 if self.parent is None else max(1, self.parent[1])
        return [*self.read(until=1), *self.read(after=shared)]

    def last(self) -> Record | None:
        return self._records.last()

    def find_key(self, key: str) -> Record | None:
        found = (record for record in self.read(reverse=True) if self.row(record).key == key)
        return next(found, None)

    def find_id(self, id: str) -> int | None:
        for record in self.read():
            row = self.row(record)
            if row.rest is not None and foreign_id(row.rest) == id:
                return row.seq
        return None

    def refresh(self) -> int:
        return self.version

    def settle(self) -> None:
        self._records.items()
        self.parent = None

    def drop(self, until: int) -> int:
        with self.store.changed:
            count = max(0, min(until, self.version) - self._dropped)
            records = self._records.items()
            self._gone = records[count - 1] if count else self._gone
            self._records = AppendOnlyList(records[count:])
            self._dropped += count
        return count

    def branch(self, name: str, first: Record, codec: Codec | None, until: int | None) -> MemoryStream:
        return _Branch(self.store, self.kind, name, codec, self._records.branch(until), first)

    def row(self, record: Record) -> Row:
        """Return the record as another store would keep it."""
        if self.codec is None:
            raise Unsupported(f"streams of kind {self.kind} can't be listed or searched: they have no codec")
        return self.codec.encode((record,))[0]

    def head(self) -> Head:
        first = last = self.row(next(self.read(limit=1), self._gone))
        shared = 0 if self.parent is None else self.parent[1]
        if self.version > shared:
            last = self.row(self._gone if self.last() is None else self.last())
        updated = max(first.time, last.time)
        source = self.source()
        parent = None if source is None else source.name
        return Head(self.kind, self.name, self.version, first.time, updated, parent, shared, self.data)

    def source(self) -> MemoryStream | None:
        """The stream that this one was branched from; None once it was deleted."""
        found = None if self.parent is None else self.parent[0]()
        return found if found is not None and self.store.has(found) else None


class _Branch(MemoryStream):
    """A stream that shares all but the first record with its source."""

    __slots__ = ("_first",)

    def __init__(
        self,
        store: MemoryStore,
        kind: str,
        name: str,
        codec: Codec | None,
        records: AppendOnlyList[Record],
        first: Record,
    ) -> None:
        super().__init__(store, kind, name, codec, records)
        self._first = first

    def _slice(self, after: int, until: int | None) -> list[Record]:
        records = super()._slice(after, until)
        if after == 0 and records and not self._dropped:
            records[0] = self._first
        return records

    def last(self) -> Record | None:
        return self._first if self.version == 1 and not self._dropped else super().last()


class MemoryStore(BaseStore):
    """A `Store` of `MemoryStream`s."""

    features = frozenset({"search", "notify"})
    leases: MemoryLeases
    streams = MemoryStream
    is_private = True

    def __init__(self, url: StoreUrl | None = None, machine: Machine | None = None) -> None:
        self.address = "memory:" if url is None else url
        self.strict_ids = url is not None and url.strict_ids
        self.changed = Condition()
        self.waiting = 0
        self.closed = False
        self.leases = MemoryLeases(self.changed, machine)
        self._streams: dict[tuple[str, str], MemoryStream] = {}

    def check_open(self) -> None:
        if self.closed:
            raise StoreClosed(self.url)

    def stream(self, kind: str, name: str, codec: Codec | None = None) -> MemoryStream:
        """The stream of that name. Without a codec it can be read and written, not listed or searched."""
        self.check_open()
        found = self._streams.get((kind, name))
        if found is None:
            found = self._streams[kind, name] = MemoryStream(self, kind, name, codec, AppendOnlyList())
        return found

    def _branch(self, branch: Branch) -> MemoryStream:
        source, name, first, codec, until, head = branch
        known = self._streams.get((source.kind, name))
        if known is not None and known.version:
            raise StreamExists(name)
        made: MemoryStream = source.branch(name, first, codec or source.codec, until)
        made.parent = ref(source), made.version
        made.data = head or {}
        self._streams[source.kind, name] = made
        return made

    def head(self, kind: str, name: str) -> Head | None:
        self.check_open()
        stream = self._streams.get((kind, name))
        return stream.head() if stream is not None and stream.version else None

    def heads(self, query: HeadQuery) -> Page:
        return page([stream.head() for stream in self._written(query.kind)], query)

    def kinds(self) -> dict[str, int]:
        self.check_open()
        return dict(Counter(stream.kind for stream in self._streams.values() if stream.version))

    def has(self, stream: MemoryStream) -> bool:
        """Return whether that very stream is in the store, not deleted."""
        return self._streams.get((stream.kind, stream.name)) is stream

    def _written(self, kind: str) -> list[MemoryStream]:
        self.check_open()
        return [stream for stream in self._streams.values() if stream.version and stream.kind == kind]

    def delete(self, kind: str, name: str) -> bool:
        self.check_open()
        stream = self._streams.pop((kind, name), None)
        return stream is not None and stream.version > 0

    def erase(self, streams: Sequence[tuple[str, str]]) -> None:
        for kind, name in streams:
            self.delete(kind, name)

    def _search(self, search: Search) -> list[Hit]:
        found: list[Hit] = []
        for stream in sorted(self._written(search.kind), key=lambda stream: stream.name):
            if search.names is not None and search.name is None and stream.name not in search.names:
                continue
            if search.name in (None, stream.name):
                shares = [(stream, stream.own())] if search.name is None else self._shares(stream)
                for writer, records in shares:
                    rows = [writer.row(record) for record in records]
                    found += hits(search, writer.name, rows, search.codec.texts(rows))
        return found[: search.limit]

    def _shares(self, stream: MemoryStream) -> list[tuple[MemoryStream, list[Record]]]:
        """Return what a stream holds by the streams that wrote it, the oldest first.

        What a deleted stream wrote counts as its branch's.
        """
        shares = [(stream, stream.own())]
        until = stream.version
        while stream.parent is not None:
            until = min(until, stream.parent[1])
            parent = stream.source()
            if parent is None:
                shares.append((stream, [*stream.read(1, until)]))
                break
            start = 1 if parent.parent is None else max(1, parent.parent[1])
            shares.append((parent, [*parent.read(start, until)]))
            stream = parent
        return shares[::-1]

    def changes(self, kind: str, name: str, after: int, timeout: float) -> int:
        self.check_open()
        ends = time.monotonic() + timeout
        with self.changed:
            self.waiting += 1
            try:
                while self._version(kind, name) <= after and not self.closed:
                    if not self.changed.wait(max(0.0, ends - time.monotonic())):
                        break
            finally:
                self.waiting -= 1
        return self._version(kind, name)

    def _version(self, kind: str, name: str) -> int:
        stream = self._streams.get((kind, name))
        return 0 if stream is None else stream.version

    def fsck(self, *, repair: bool = False) -> FsckReport:
        self.check_open()
        streams = [stream for stream in self._streams.values() if stream.version]
        return FsckReport(len(streams), sum(stream.version for stream in streams), [])

    def gc(self, *, older_than: float | None = None, dry_run: bool = False) -> GcReport:
        self.check_open()
        before = (time.time() - (older_than or 0.0)) * 1e6
        deleted = [
            stream
            for stream in self._streams.values()
            if stream.version and stream.data.get("status") == DELETED and stream.head().updated <= before
        ]
        for stream in () if dry_run else deleted:
            self.delete(stream.kind, stream.name)
        return GcReport([stream.name for stream in deleted], 0, [])

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()


def foreign_id(rest: str) -> str | None:
    """The foreign id among what a row keeps besides."""
    from msgspec.json import decode

    found: str | None = decode(rest).get("id")
    return found
