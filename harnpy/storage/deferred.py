"""`durability=async`: appends are acknowledged from memory, and one thread writes them in order.

Everything else waits until what this store has acknowledged is written, so a stream's reads see its own
appends. After a write that fails, the next append to each stream that has lost something raises, with the
failure as its cause; then the stream goes on behind what is written.
Spec: 10 §A1.5, §C6.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from harnpy.storage.contract import (
    BaseStore,
    BaseStream,
    Branch,
    Codec,
    FsckReport,
    GcReport,
    Head,
    HeadQuery,
    Hit,
    Page,
    Reading,
    Record,
    Search,
    Store,
    Stream,
)
from harnpy.storage.errors import AppendLost, StorageError, StoreClosed, VersionConflict
from harnpy.storage.leases import Lease
from harnpy.world.threads import OfProcess

if TYPE_CHECKING:
    from harnpy.storage.leases import Check


class Pending(NamedTuple):
    """An append that is acknowledged and not yet written."""

    stream: Stream
    known: Acknowledged
    records: list[Record]
    expected: int
    head: dict[str, Any] | None
    fence: Lease | None


class Writer(OfProcess):
    """Writes appends in a thread, which ends when there is nothing left to write. What was acknowledged
    before a fork is written by the process that acknowledged it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.forked()
        self._closed = False
        self._failure: StorageError | None = None
        self._is_told = False  # whether somebody knows of it
        self.bind()

    def forked(self) -> None:
        self._changed = Condition()
        self._pending: deque[Pending] = deque()
        self._busy = False

    def add(self, append: Pending) -> None:
        """Have an append written."""
        with self._changed:
            if self._closed:
                raise StoreClosed(self._store.url)
            self._pending.append(append)
            if not self._busy:
                self._busy = True
                Thread(target=self._run, name=f"writer of {self._store.url}").start()

    def wait(self) -> None:
        """Wait until everything is written, or something can't be."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy)

    def check(self) -> None:
        """Raise what went wrong, if nobody knows of it yet."""
        if self._closed:
            raise StoreClosed(self._store.url)
        if self._failure is not None and not self._is_told:
            raise self.lost(self._failure)

    def lost(self, failure: StorageError) -> AppendLost:
        """Return the error that tells of a failure."""
        self._is_told = True
        error = AppendLost(f"an earlier append to {self._store.url} was not written: {failure}")
        error.__cause__ = failure
        return error

    def close(self) -> None:
        """Wait until everything is written, then take nothing more. Raise a failure that nobody knows of."""
        self.wait()
        try:
            if not self._closed:
                self.check()
        finally:
            self._closed = True

    def _run(self) -> None:
        while (append := self._next()) is not None:
            try:
                append.stream.append(append.records, append.expected, head=append.head, fence=append.fence)
            except StorageError as error:
                self._fail(append, error)
            except BaseException as error:
                self._fail(append, StorageError(f"{type(error).__name__}: {error}"), ends=True)
                raise

    def _next(self) -> Pending | None:
        """Return the next append, None when there is none: then the thread ends."""
        with self._changed:
            if self._pending:
                return self._pending.popleft()
            self._busy = False
            self._changed.notify_all()
            return None

    def _fail(self, append: Pending, error: StorageError, *, ends: bool = False) -> None:
        """Leave out the other appends too: what follows in a stream would stand in the wrong place.
        ``ends``: the thread ends with it."""
        with self._changed:
            self._failure, self._is_told = error, False
            for lost in (append, *self._pending):
                lost.known.lost = error
            self._pending.clear()
            if ends:
                self._busy = False
                self._changed.notify_all()


class Acknowledged(OfProcess):
    """The number of a stream's records that are acknowledged, one for all objects of the stream."""

    def __init__(self, version: int) -> None:
        self.version = version
        #: Why some of them weren't written, until that is told.
        self.lost: StorageError | None = None
        self.forked()
        self.bind()

    def forked(self) -> None:
        self.lock = Lock()


class DeferredStream(BaseStream):
    """A stream whose ``version`` counts what is acknowledged."""

    def __init__(self, writer: Writer, kind: str, stream: Stream, acknowledged: Acknowledged) -> None:
        self.kind = kind
        self._writer = writer
        self._stream = stream
        self._acknowledged = acknowledged
        self.version = stream.version

    @property
    def name(self) -> str:
        return self._stream.name

    def append(
        self,
        records: Sequence[Record],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        known = self._acknowledged
        with known.lock:
            if expected_version != known.version or known.lost is not None:
                known.version = self.version = self.written().refresh()
            if known.lost is not None:
                failure, known.lost = known.lost, None
                raise self._writer.lost(failure)
            if expected_version != known.version:
                raise VersionConflict(self.name, expected_version, known.version)
            self._writer.add(Pending(self._stream, known, list(records), expected_version, head, fence))
            known.version += len(records)
            self.version = known.version

    def written(self) -> Stream:
        """Return the stream itself, after all that is acknowledged has been written."""
        self._writer.wait()
        return self._stream

    def _read(self, reading: Reading) -> Iterator[Record]:
        return self.written().read(**reading._asdict())

    def last(self) -> Record | None:
        return self.written().last()

    def find_key(self, key: str) -> Record | None:
        return self.written().find_key(key)

    def find_id(self, id: str) -> int | None:
        return self.written().find_id(id)

    def refresh(self) -> int:
        with self._acknowledged.lock:
            self.version = self._acknowledged.version = self.written().refresh()
        return self.version

    def settle(self) -> None:
        self.written().settle()

    def drop(self, until: int) -> int:
        return self.written().drop(until)


class _Finishing:
    """Lets a lease go once everything that was appended under it is written."""

    def __init__(self, lease: Lease, writer: Writer) -> None:
        self._lease = lease
        self._writer = writer

    def renew(self, lease: Lease) -> float:
        self._lease.renew()
        return self._lease.expires_at

    def release(self, lease: Lease) -> None:
        self._writer.wait()
        self._lease.release()

    def is_wanted(self, lease: Lease) -> bool:
        return self._lease.is_wanted()


class DeferredStore(BaseStore):
    """A store behind another one, written by a thread."""

    has_raw_searches = True
    streams = DeferredStream

    def __init__(self, store: Store) -> None:
        self._store = store
        self._writer = Writer(store)
        self.is_private = getattr(store, "is_private", False)
        self.strict_ids = store.strict_ids
        self.modes = getattr(store, "modes", self.modes)
        self.features = store.features
        self._acknowledged: WeakValueDictionary[tuple[str, str], Acknowledged] = WeakValueDictionary()
        self._lock = Lock()

    @cached_property
    def url(self) -> str:
        return self._store.url

    def _deferred(self, kind: str, stream: Stream) -> DeferredStream:
        with self._lock:
            known = self._acknowledged.get((kind, stream.name))
            if known is None:
                known = self._acknowledged[kind, stream.name] = Acknowledged(stream.version)
        return DeferredStream(self._writer, kind, stream, known)

    def _written(self) -> Store:
        """Return the store itself, after all that is acknowledged has been written."""
        self._writer.wait()
        return self._store

    def stream(self, kind: str, name: str, codec: Codec) -> DeferredStream:
        return self._deferred(kind, self._written().stream(kind, name, codec))

    def _branch(self, branch: Branch) -> DeferredStream:
        source, name, first, codec, until, head = branch
        made = self._store.branch(source.written(), name, first, codec=codec, until=until, head=head)
        self._acknowledged.pop((source.kind, name), None)  # of a stream that is gone
        return self._deferred(source.kind, made)

    def head(self, kind: str, name: str) -> Head | None:
        return self._written().head(kind, name)

    def heads(self, query: HeadQuery) -> Page:
        return self._written().heads(query)

    def kinds(self) -> dict[str, int]:
        return self._written().kinds()

    def delete(self, kind: str, name: str) -> bool:
        return self._written().delete(kind, name)

    def erase(self, streams: Sequence[tuple[str, str]]) -> str | None:
        return self._written().erase(streams)

    def check_open(self) -> None:
        """Leave that to the store behind this one."""

    def _search(self, search: Search) -> list[Hit]:
        return self._written().search(**search._asdict())

    def lease(
        self,
        key: str,
        owner: str | None = None,
        ttl: float = 30.0,
        *,
        wait: float = 0.0,
        check: Check | None = None,
    ) -> Lease:
        lease = self._store.lease(key, owner, ttl, wait=wait, check=check)
        keeper = _Finishing(lease, self._writer)
        return Lease(keeper, key, lease.owner, lease.token, lease.ttl, lease.expires_at)

    def holder(self, key: str) -> str | None:
        return self._store.holder(key)

    def changes(self, kind: str, name: str, after: int, timeout: float) -> int:
        return self._store.changes(kind, name, after, timeout)

    def versions(self, kind: str, names: Sequence[str]) -> dict[str, int]:
        return self._store.versions(kind, names)

    def news(self, kind: str, known: Mapping[str, int], timeout: float) -> dict[str, int]:
        return self._store.news(kind, known, timeout)

    def fsck(self, *, repair: bool = False) -> FsckReport:
        return self._written().fsck(repair=repair)

    def gc(self, *, older_than: float | None = None, dry_run: bool = False) -> GcReport:
        return self._written().gc(older_than=older_than, dry_run=dry_run)

    def flush(self) -> None:
        """Return once everything is on the medium. Raises what went wrong."""
        self._writer.wait()
        self._writer.check()
        self._store.flush()

    def close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._store.close()
