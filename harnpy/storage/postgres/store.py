"""The store: streams on a PostgreSQL server that many machines share. Spec: 10 §C6.3."""

from __future__ import annotations

import time
from threading import Thread, current_thread
from typing import TYPE_CHECKING, Any

from harnpy.storage.contract import Head, Page
from harnpy.storage.errors import Unsupported
from harnpy.storage.paging import mark, position, unknown_order
from harnpy.storage.postgres import sharing, texts, upkeep
from harnpy.storage.postgres.database import Database
from harnpy.storage.postgres.leases import PostgresLeases
from harnpy.storage.postgres.listening import Listener
from harnpy.storage.postgres.records import moment
from harnpy.storage.postgres.stream import PostgresStream, columns, version

if TYPE_CHECKING:
    from harnpy.storage.contract import Codec, FsckReport, GcReport, HeadQuery, Hit, Record, Stream
    from harnpy.storage.leases import Check, Lease
    from harnpy.storage.machine import Machine
    from harnpy.storage.opening import StoreUrl

#: What the names of the threads of the pool and of the listener begin with.
_OWN_THREADS = "harnpy-"
#: Seconds between looks of somebody who waits for changes, in case that no announcement reaches him.
_POLL = 5.0

_HEAD = """
SELECT s.kind, s.name, s.version, (extract(epoch FROM s.created) * 1000000)::bigint AS created,
  (extract(epoch FROM s.updated) * 1000000)::bigint AS updated, p.name AS parent, s.fork_seq, s.head
FROM harn.streams s LEFT JOIN harn.streams p ON p.sid = s.parent AND p.deleted IS NULL
WHERE s.kind = %(kind)s AND s.deleted IS NULL
"""
_FILTERS = """
AND (%(statuses)s::text[] IS NULL OR s.status = ANY(%(statuses)s)) AND s.status <> ALL(%(without)s::text[])
AND (%(agent)s::text IS NULL OR s.agent = %(agent)s) AND (%(parent)s::text IS NULL OR p.name = %(parent)s)
"""
_ORDERS = {"updated": "s.updated DESC, s.name", "created": "s.created DESC, s.name", "id": "s.name"}
_AFTER = {
    "updated": "AND (s.updated < %(time)s OR s.updated = %(time)s AND s.name > %(name)s)",
    "created": "AND (s.created < %(time)s OR s.created = %(time)s AND s.name > %(name)s)",
    "id": "AND s.name > %(name)s",
}

# Writes something, so that its commit waits until everything before it is on the medium.
_FLUSH = "SELECT pg_logical_emit_message(true, 'harn', '')"


class PostgresStore:
    """A `Store` in the schema ``harn`` of a database."""

    features = frozenset({"search", "notify", "many_machines"})

    def __init__(self, url: StoreUrl, machine: Machine) -> None:
        self.url = str(url)
        self.strict_ids = url.strict_ids
        self._is_full = url.durability == "full"
        self._database = Database(url)
        self._listener = Listener(self._database)
        self._leases = PostgresLeases(self._database, machine, self._listener)

    def stream(self, kind: str, name: str, codec: Codec) -> PostgresStream:
        return PostgresStream(self._database, kind, name, codec)

    def branch(
        self,
        source: Stream,
        name: str,
        first: Record,
        *,
        codec: Codec | None = None,
        until: int | None = None,
        head: dict[str, Any] | None = None,
    ) -> PostgresStream:
        assert isinstance(source, PostgresStream), "a branch lives in its source's store"
        codec = codec or source.codec
        row = codec.encode([first])[0]
        made = sharing.branch(self._database, source.kind, source.name, name, row, until, columns(head))
        return PostgresStream(self._database, source.kind, name, codec, made)

    def head(self, kind: str, name: str) -> Head | None:
        found = self._database.read(f"{_HEAD} AND s.name = %(name)s", {"kind": kind, "name": name})
        return Head(*found[0]) if found else None

    def heads(self, query: HeadQuery) -> Page:
        order = _ORDERS.get(query.order)
        if order is None:
            raise unknown_order(query)
        wanted: dict[str, Any] = {
            "kind": query.kind,
            "statuses": None if query.statuses is None else list(query.statuses),
            "without": list(query.without),
            "agent": query.agent,
            "parent": query.parent,
            "limit": query.limit + 1,
        }
        after = ""
        if query.after is not None:
            after = _AFTER[query.order]
            number, wanted["name"] = position(query.after)
            wanted["time"] = moment(-number)
        statement = f"{_HEAD} {_FILTERS} {after} ORDER BY {order} LIMIT %(limit)s"
        rows = self._database.read(statement, wanted)
        items = [Head(*row) for row in rows[: query.limit]]
        return Page(items, mark(items[-1], query) if items and len(rows) > len(items) else None)

    def delete(self, kind: str, name: str) -> bool:
        return sharing.delete(self._database, kind, name)

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
        if raw:
            raise Unsupported("`raw` searches exist on SQLite only")
        return texts.search(self._database, codec, query, kind, name, types, limit)

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
        found = version(self._database, kind, name)
        if found > after or timeout <= 0:
            return found
        with self._listener.watching(kind, name) as announced:
            while True:
                found = version(self._database, kind, name)
                left = ends - time.monotonic()
                if found > after or left <= 0:
                    return found
                announced.wait(min(left, _POLL))
                announced.clear()

    def fsck(self, *, repair: bool = False) -> FsckReport:
        return upkeep.fsck(self._database, repair=repair)

    def gc(self, *, older_than: float | None = None, dry_run: bool = False) -> GcReport:
        return upkeep.gc(self._database, older_than=older_than or 0.0, dry_run=dry_run)

    def flush(self) -> None:
        self._database.check_open()
        if not self._is_full:
            self._database.write(lambda connection: connection.execute(_FLUSH), waits=True)

    def close(self) -> None:
        if current_thread().name.startswith(_OWN_THREADS):
            # The garbage collector runs where it happens to, and no thread can wait for its own end.
            Thread(target=self._close).start()
        else:
            self._close()

    def _close(self) -> None:
        self._listener.close()
        self._database.close()
