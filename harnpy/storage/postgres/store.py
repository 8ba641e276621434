"""The store: streams on a PostgreSQL server that many machines share, checking and collecting.

Spec: 10 §C6.3, §C21.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from threading import Thread, current_thread
from typing import Any, NamedTuple

from msgspec import json
from psycopg import Connection

from harnpy.storage.contract import (
    DELETED,
    SHARES,
    BaseStore,
    BaseStream,
    Branch,
    Codec,
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
    mark,
    position,
    replacements,
    unknown_order,
)
from harnpy.storage.errors import CorruptLog, LeaseLost, VersionConflict
from harnpy.storage.leases import Lease, Machine
from harnpy.storage.opening import StoreUrl
from harnpy.storage.postgres import records, text_search
from harnpy.storage.postgres import records as sharing
from harnpy.storage.postgres import records as stored
from harnpy.storage.postgres.database import Database, Listener
from harnpy.storage.postgres.leases import PostgresLeases
from harnpy.storage.postgres.records import MOMENT

# One stream on the server. Spec: 10 §C6.3.


_VERSION = "SELECT version FROM harn.streams WHERE kind = %(kind)s AND name = %(name)s AND deleted IS NULL"
_LOCKED = "SELECT sid FROM harn.streams WHERE kind = %s AND name = %s AND deleted IS NULL FOR SHARE"
_IS_HELD = """
SELECT 1 FROM harn.leases
WHERE key = %(key)s AND token = %(token)s AND owner = %(owner)s AND expires_at > '-infinity'
"""
_HOLDER = "SELECT owner FROM harn.leases WHERE key = %(key)s AND expires_at > '-infinity'"

# An append is one statement, which is a transaction by itself. It takes its place in the stream, which locks
# that against others; if it gets none, because of the version or the fence, it does nothing. What an append
# doesn't have (a head, a fence) isn't in its statement: each value costs a microsecond and more.
_HELD = """
held AS MATERIALIZED (
  SELECT 1 FROM settings, harn.leases
  WHERE key = %(key)s AND token = %(token)s AND owner = %(owner)s AND expires_at > '-infinity'
  FOR SHARE OF leases),
"""
_IF_HELD = "AND EXISTS (SELECT 1 FROM held)"
_NEWS = "pg_notify('harn', kind || ' ' || name || ' ' || version)"
_FIRST = f"""
place AS (
  INSERT INTO harn.streams (kind, name, version, created, updated, status, agent, head)
  SELECT %(kind)s, %(name)s, %(version)s, {MOMENT.format("%(created)s")},
    {MOMENT.format("%(time)s")}, {{head}} FROM settings WHERE true {{held}}
  ON CONFLICT (kind, name) WHERE deleted IS NULL DO NOTHING RETURNING sid, {_NEWS})
"""
_FIRST_HEAD = "%(status)s, %(agent)s, %(head)s::json", "'', '', '{}'::json"
# `updated` stays still for a second, so that its index does.
_NEXT = f"""
place AS (
  UPDATE harn.streams SET version = %(version)s,
    updated = CASE WHEN {MOMENT.format("%(time)s")} >= updated + interval '1 second'
      THEN {MOMENT.format("%(time)s")} ELSE updated END{{head}}
  FROM settings
  WHERE kind = %(kind)s AND name = %(name)s AND deleted IS NULL AND version = %(expected)s {{held}}
  RETURNING sid, {_NEWS})
"""
_NEXT_HEAD = ", status = %(status)s, agent = %(agent)s, head = %(head)s", ""


@cache
def _statement(settings: str, is_first: bool, has_head: bool, has_fence: bool, rows: int) -> str:
    """Return the statement of an append of so many rows.

    It finds as many as it writes, or the stream, if there are none to write.
    """
    place, heads = (_FIRST, _FIRST_HEAD) if is_first else (_NEXT, _NEXT_HEAD)
    place = place.format(head=heads[not has_head], held=_IF_HELD if has_fence else "")
    written = stored.insert(rows) if rows else "SELECT sid FROM place"
    return f"WITH {settings}, {_HELD if has_fence else ''} {place} {written}"


class PostgresStream(BaseStream):
    """A stream, found by its name each time: others may have deleted it, or settled what it shares."""

    def __init__(
        self, database: Database, kind: str, name: str, codec: Codec, known: int | None = None
    ) -> None:
        self._database = database
        self.kind = kind
        self.name = name
        self.codec = codec
        #: None until somebody asks, or reads.
        self._version = known

    @property
    def version(self) -> int:
        return self.refresh() if self._version is None else self._version

    def append(
        self,
        records: Sequence[Record],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        self._database.check_open()
        rows = self.codec.encode(records)
        _Append(self._database, self.kind, self.name, rows, expected_version, head, fence).make()
        self._version = expected_version + len(records)

    def _read(self, reading: Reading) -> Iterator[Record]:
        within = self._parts()  # what is there now is read, however long that takes

        def missed(number: int) -> None:
            if self._parts() == within:  # it wasn't dropped meanwhile
                reason = f"record {number} of stream '{self.name}' is missing"
                raise CorruptLog(self._database.url, reason)

        return stored.read(self._database, self.codec, within, reading, missed)

    def find_key(self, key: str) -> Record | None:
        found = stored.find_key(self._database, self._parts(), key)
        return stored.decoded(self._database, self.codec, found)[0] if found else None

    def find_id(self, id: str) -> int | None:
        return stored.find_id(self._database, self._parts(), id)

    def refresh(self) -> int:
        self._version = found = version(self._database, self.kind, self.name)
        return found

    def settle(self) -> None:
        records.settle(self._database, self.kind, self.name, self.codec)

    def drop(self, until: int) -> int:
        return records.drop(self._database, self.kind, self.name, until)

    def _parts(self) -> list[stored.Part]:
        line = stored.line(self._database, self.kind, self.name)
        if self._version is None:  # whoever reads first appends behind what he has read
            self._version = line[0][2] if line else 0
        return stored.arranged(line)


class _Append(NamedTuple):
    """One append: it takes its place in the stream, which locks it against others, and writes its rows."""

    database: Database
    kind: str
    name: str
    rows: list[Row]
    expected: int
    head: dict[str, Any] | None
    fence: Lease | None

    def make(self) -> None:
        if not self.rows and not self.expected:
            self._check_unwritten()
            return
        self.database.state(self._write, made=self._was_made)

    def _write(self, connection: Connection) -> bool:
        settings, values = self.database.settings_of(connection)
        rows, head, fence = self.rows, self.head, self.fence
        count = min(len(rows), stored.FEW + 1)
        query = _statement(settings, not self.expected, head is not None, fence is not None, count)
        if not connection.execute(query, {**values, **self._values()}).rowcount:
            raise self._refusal(connection)
        return True

    def _values(self) -> dict[str, Any]:
        rows = self.rows
        return {
            "kind": self.kind,
            "name": self.name,
            "expected": self.expected,
            "version": self.expected + len(rows),
            "created": rows[0].time if rows else None,
            "time": rows[-1].time if rows else None,
            **({} if self.fence is None else _columns_of(self.fence)),
            **({} if self.head is None else columns(self.head)),
            **stored.values_of(rows),
        }

    def _refusal(self, connection: Connection) -> LeaseLost | VersionConflict:
        fence = self.fence
        if fence is not None:
            held = _columns_of(fence)
            if connection.execute(_IS_HELD, held).fetchone() is None:
                holder = connection.execute(_HOLDER, held).fetchone()
                return LeaseLost(fence.key, holder[0] if holder else None)
        found = connection.execute(_VERSION, {"kind": self.kind, "name": self.name}).fetchone()
        return VersionConflict(self.name, self.expected, found[0] if found else 0)

    def _was_made(self) -> bool | None:
        """Look whether the rows are there, once the lost transaction has let go of the stream."""

        def look(connection: Connection) -> bool | None:
            found = connection.execute(_LOCKED, [self.kind, self.name]).fetchone()
            made = found is not None and stored.is_written(connection, found[0], self.rows)
            return True if made and self.rows else None

        return self.database.write(look)

    def _check_unwritten(self) -> None:
        found = version(self.database, self.kind, self.name)
        if found:
            raise VersionConflict(self.name, 0, found)


def _columns_of(fence: Lease) -> dict[str, Any]:
    return {"key": fence.key, "token": fence.token, "owner": fence.owner}


def version(database: Database, kind: str, name: str) -> int:
    """Return how many records a stream has."""
    found = database.read(_VERSION, {"kind": kind, "name": name})
    return found[0][0] if found else 0


def columns(head: dict[str, Any] | None) -> dict[str, str | None]:
    """Return a head as the table keeps it, with the strings that lists filter by; None keeps the former."""
    if head is None:
        return {"status": None, "agent": None, "head": None}
    return {
        "status": str(head.get("status", "")),
        "agent": str(head.get("agent", "")),
        "head": json.encode(head).decode(),
    }


# Checking and collecting. Spec: 10 §C6, §C21.


_COUNTS = """
SELECT (SELECT count(*) FROM harn.streams WHERE deleted IS NULL), (SELECT count(*) FROM harn.records)
"""
# What stands under each stream, beside what should: a stem keeps what its branches share, and nobody keeps
# what lies below the point of branching or was dropped.
_STANDS = """
SELECT s.kind, s.name, s.sid, s.low, s.high, coalesce(max(r.seq), 0),
  count(r.seq) FILTER (WHERE r.seq > s.low AND r.seq <= s.high), s.is_stem
FROM (
  SELECT kind, name, sid, deleted IS NOT NULL AS is_stem, greatest(fork_seq, dropped, 1) AS low,
    CASE WHEN deleted IS NULL THEN version ELSE (
      SELECT coalesce(max(c.fork_seq), 0) FROM harn.streams c WHERE c.parent = p.sid) END AS high
  FROM harn.streams p) s
LEFT JOIN harn.records r USING (sid)
GROUP BY s.kind, s.name, s.sid, s.low, s.high, s.is_stem ORDER BY s.kind, s.name, s.sid
"""
_PRESENT = """
SELECT seq, (extract(epoch FROM time) * 1000000)::bigint, more FROM harn.records
WHERE sid = %s AND seq BETWEEN %s - 1 AND %s ORDER BY seq
"""
_SET_VERSION = "UPDATE harn.streams SET version = %s WHERE sid = %s AND version = %s AND deleted IS NULL"

_DELETED = f"""
SELECT sid, name FROM harn.streams
WHERE status = '{DELETED}' AND deleted IS NULL AND version > 0
AND updated <= now() - %s * interval '1 second' ORDER BY kind, name FOR UPDATE
"""
_STEMS = """
SELECT s.sid FROM harn.streams s
WHERE s.deleted <= now() - %s * interval '1 second'
AND NOT EXISTS (SELECT 1 FROM harn.streams c WHERE c.parent = s.sid AND c.fork_seq > 1) FOR UPDATE
"""
_DROPPED = "SELECT sid FROM harn.streams WHERE dropped > 0 AND deleted IS NULL FOR UPDATE"
_TICKETS = "DELETE FROM harn.tickets WHERE alive_until <= now() RETURNING key"


def fsck(database: Database, *, repair: bool) -> FsckReport:
    """Check that each stream has all its records, and none behind its end."""
    streams, count = database.read(_COUNTS)[0]
    findings = []
    for kind, name, sid, low, high, top, found, is_stem in database.read(_STANDS):
        missing = max(0, high - low) - found
        # What a stem has beyond what is shared goes with the next collection.
        if missing <= 0 and (is_stem or top <= max(high, 1)):
            continue
        end = max(top, low)
        if repair and missing == max(0, high - end):
            # Nothing is missing before the last record that stands: then that is the end.
            repaired = _mend(database, sid, high, end)
        else:
            repaired = repair and _replace_missing(database, sid, low + 1, high)
        findings.append(Finding(kind, name, _problem(missing, high, top), repaired))
    return FsckReport(streams, count, findings)


def _problem(missing: int, high: int, top: int) -> str:
    if top > high:
        return f"it has records up to number {top}, but its version is {high}"
    return f"{missing} of its {high} records are missing"


def _mend(database: Database, sid: int, version: int, end: int) -> bool:
    """Set the version to the last record that stands."""
    return int(database.write(lambda c: c.execute(_SET_VERSION, [end, sid, version]).rowcount)) > 0


def _replace_missing(database: Database, sid: int, first: int, last: int) -> bool:
    """Put a record in the place of each that is missing. Return False when none is, any more."""

    def replace(connection: Connection) -> bool:
        present = connection.execute(_PRESENT, [sid, first, last]).fetchall()
        rows = list(replacements(present, first, last))
        records.write(connection, sid, rows)
        return bool(rows)

    return database.write(replace)


def gc(database: Database, *, older_than: float | None, dry_run: bool) -> GcReport:
    """Drop deleted streams, stems that nobody shares any more, dropped records likewise, and tickets of the
    dead. Without an age, no deleted streams."""

    def collect(connection: Connection) -> GcReport:
        with connection.transaction(force_rollback=dry_run):
            deleted = [] if older_than is None else connection.execute(_DELETED, [older_than]).fetchall()
            for sid, _ in deleted:
                sharing.forget(connection, sid)
            stems = 0
            while found := connection.execute(_STEMS, [older_than or 0.0]).fetchall():
                for (sid,) in found:  # which may make those that they were branched from free
                    sharing.forget(connection, sid)
                stems += len(found)
            for (sid,) in connection.execute(_DROPPED).fetchall():
                sharing.free(connection, sid)
            tickets = connection.execute(_TICKETS).fetchall()
        return GcReport([name for _, name in deleted], stems, [f"ticket for {key}" for (key,) in tickets])

    return database.write(collect)


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
_KINDS = "SELECT kind, count(*) FROM harn.streams WHERE deleted IS NULL AND version > 0 GROUP BY kind"
_VERSIONS = """
SELECT name, version FROM harn.streams
WHERE kind = %(kind)s AND name = ANY(%(names)s::text[]) AND deleted IS NULL AND version > 0
"""
#: PostgreSQL can't look into JSON that has a NUL in it.
_FILTERS = r"""
AND (%(statuses)s::text[] IS NULL OR s.status = ANY(%(statuses)s)) AND s.status <> ALL(%(without)s::text[])
AND (%(agent)s::text IS NULL OR s.agent = %(agent)s) AND (%(parent)s::text IS NULL OR p.name = %(parent)s)
AND (%(principal)s::text IS NULL OR coalesce(
  CASE WHEN position('\u0000' IN s.head::text) = 0
    AND json_typeof(s.head #> '{metadata,principal}') = 'string'
    AND (s.head #>> %(shares)s::text[]) IS NULL
  THEN s.head #>> '{metadata,principal}' END, %(principal)s) = %(principal)s)
"""
_ORDERS = {"updated": "s.updated DESC, s.name", "created": "s.created DESC, s.name", "id": "s.name"}
_BEHIND = f"""
AND (s.{{0}} < {MOMENT.format("%(time)s")} OR s.{{0}} = {MOMENT.format("%(time)s")} AND s.name > %(name)s)
"""
_AFTER = {
    "updated": _BEHIND.format("updated"),
    "created": _BEHIND.format("created"),
    "id": "AND s.name > %(name)s",
}

# Writes something, so that its commit waits until everything before it is on the medium.
_FLUSH = "SELECT pg_logical_emit_message(true, 'harn', '')"


class PostgresStore(BaseStore):
    """A `Store` in the schema ``harn`` of a database."""

    features = frozenset({"search", "notify", "many_machines"})
    streams = PostgresStream

    def __init__(self, url: StoreUrl, machine: Machine) -> None:
        self.address = url
        self.strict_ids = url.strict_ids
        self._is_full = url.durability == "full"
        self._database = Database(url)
        self._listener = Listener(self._database)
        self.leases = PostgresLeases(self._database, machine, self._listener)

    @property
    def conninfo(self) -> str:
        """What libpq connects with, password and all: for who shares the server by other means."""
        return self._database.conninfo

    def check_open(self) -> None:
        self._database.check_open()

    def stream(self, kind: str, name: str, codec: Codec) -> PostgresStream:
        return PostgresStream(self._database, kind, name, codec)

    def _branch(self, branch: Branch) -> PostgresStream:
        source, name, first, codec, until, head = branch
        codec = codec or source.codec
        row = codec.encode([first])[0]
        made = records.branch(self._database, source.kind, source.name, name, row, until, columns(head))
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
            "principal": query.principal,
            "shares": ["metadata", SHARES],
            "limit": query.limit + 1,
        }
        after = ""
        if query.after is not None:
            after = _AFTER[query.order]
            number, wanted["name"] = position(query.after)
            wanted["time"] = -number
        statement = f"{_HEAD} {_FILTERS} {after} ORDER BY {order} LIMIT %(limit)s"
        rows = self._database.read(statement, wanted)
        items = [Head(*row) for row in rows[: query.limit]]
        return Page(items, mark(items[-1], query) if items and len(rows) > len(items) else None)

    def kinds(self) -> dict[str, int]:
        return dict(self._database.read(_KINDS, {}))

    def delete(self, kind: str, name: str) -> bool:
        return records.delete(self._database, kind, name)

    def erase(self, streams: Sequence[tuple[str, str]]) -> str:
        for kind, name in streams:
            self.delete(kind, name)
        gc(self._database, older_than=None, dry_run=False)
        return (
            "the server's dead rows hold it until `VACUUM FULL`, its write-ahead log until that is recycled,"
            " and its backups and replicas as long as they are kept"
        )

    def _search(self, search: Search) -> list[Hit]:
        return text_search.find(self._database, search)

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

    def versions(self, kind: str, names: Sequence[str]) -> dict[str, int]:
        return dict(self._database.read(_VERSIONS, {"kind": kind, "names": [*names]}))

    def news(self, kind: str, known: Mapping[str, int], timeout: float) -> dict[str, int]:
        ends = time.monotonic() + timeout
        with self._listener.watching(kind, *known) as announced:
            while True:
                found = self.versions(kind, [*known])
                left = ends - time.monotonic()
                if found != known or left <= 0:
                    return found
                if not announced.wait(min(left, _POLL)) and left <= _POLL:
                    return found  # nothing was announced since
                # It may have been what this look had seen already.
                announced.clear()

    def fsck(self, *, repair: bool = False) -> FsckReport:
        return fsck(self._database, repair=repair)

    def gc(self, *, older_than: float | None = None, dry_run: bool = False) -> GcReport:
        return gc(self._database, older_than=older_than or 0.0, dry_run=dry_run)

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
