"""The store in a SQLite file. Spec: 10 §C6.2."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from harnpy.storage.sqlite import changing, checks, heads
from harnpy.storage.sqlite.commits import Commits
from harnpy.storage.sqlite.connections import Connections
from harnpy.storage.sqlite.leasing import SqliteLeases
from harnpy.storage.sqlite.search import Search
from harnpy.storage.sqlite.stream import SqliteStream

if TYPE_CHECKING:
    from harnpy.storage.contract import (
        Codec,
        FsckReport,
        GcReport,
        Head,
        HeadQuery,
        Hit,
        Page,
        Record,
        Stream,
    )
    from harnpy.storage.leases import Check, Lease
    from harnpy.storage.machine import Machine
    from harnpy.storage.opening import StoreUrl

#: How often a waiting process looks whether another one has written. Seconds.
_POLL = 0.05


def open_sqlite(url: StoreUrl, machine: Machine) -> SqliteStore:
    """Open the store at ``url``, creating the file when there is none."""
    return SqliteStore(url, machine)


class SqliteStore:
    """A `Store` of `SqliteStream`s."""

    features = frozenset({"search"})

    def __init__(self, url: StoreUrl, machine: Machine) -> None:
        self.url = str(url)
        self.strict_ids = url.strict_ids
        self._path = url.target
        self._connections = Connections(url)
        self._reading = self._connections.reading
        self._commits = Commits(self._connections)
        self._leases = SqliteLeases(self._connections, self._commits, machine)
        self._search = Search(self._connections)

    def stream(self, kind: str, name: str, codec: Codec) -> SqliteStream:
        return SqliteStream(self._connections, self._commits, kind, name, codec)

    def branch(
        self,
        source: Stream,
        name: str,
        first: Record,
        *,
        codec: Codec | None = None,
        until: int | None = None,
        head: dict[str, Any] | None = None,
    ) -> SqliteStream:
        assert isinstance(source, SqliteStream), "a branch lives in its source's store"
        codec = codec or source.codec
        row = codec.encode((first,))[0]
        kind = source.kind
        self._commits.transact(
            lambda cursor: changing.branch(cursor, kind, source.name, name, row, until, head or {})
        )
        return SqliteStream(self._connections, self._commits, kind, name, codec)

    def head(self, kind: str, name: str) -> Head | None:
        with self._reading() as db:
            return heads.head(db, kind, name, self._path)

    def heads(self, query: HeadQuery) -> Page:
        with self._reading() as db:
            return heads.heads(db, query)

    def delete(self, kind: str, name: str) -> bool:
        return self._commits.transact(lambda cursor: changing.delete(cursor, kind, name))

    def search(
        self,
        query: str,
        kind: str = "session",
        *,
        codec: Codec,
        name: str | None = None,
        types: frozenset[str] | None = None,
        limit: int = 50,
        raw: bool = False,
    ) -> list[Hit]:
        self._connections.check_open()
        return self._search.find(query, kind, codec, name, types, limit, raw)

    def lease(
        self,
        key: str,
        owner: str | None = None,
        ttl: float = 30.0,
        *,
        wait: float = 0.0,
        check: Check | None = None,
    ) -> Lease:
        return self._leases.take(key, owner, ttl, wait, check)

    def changes(self, kind: str, name: str, after: int, timeout: float) -> int:
        ends = time.monotonic() + timeout
        while True:
            seen = self._commits.count
            version = self._version(kind, name)
            left = ends - time.monotonic()
            if version > after or left <= 0:
                return version
            self._commits.wait(seen, min(left, _POLL))

    def _version(self, kind: str, name: str) -> int:
        with self._reading() as db:
            found = changing.find(db, kind, name)
        return 0 if found is None else found.version

    def fsck(self, *, repair: bool = False) -> FsckReport:
        if repair:
            return self._commits.transact(lambda cursor: checks.fsck(cursor, repair=True))
        with self._reading() as db:
            return checks.fsck(db.cursor(), repair=False)

    def gc(self, *, older_than: float | None = None, dry_run: bool = False) -> GcReport:
        return self._commits.transact(lambda cursor: checks.gc(cursor, self._leases, older_than, dry_run))

    def flush(self) -> None:
        self._connections.check_open()  # what is acknowledged is committed

    def close(self) -> None:
        if not self._connections.closed:
            self._leases.release_all()
            self._search.close()
        self._connections.close()
