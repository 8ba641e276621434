"""The store in a SQLite file: its streams, lists of their heads, checking and collecting.

Spec: 10 §C6.2, §C21.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from sqlite3 import Connection, Cursor
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode

from harnpy.storage.contract import (
    FROM_THE_END,
    SHARES,
    Apart,
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
from harnpy.storage.errors import CorruptLog, StoreBusy
from harnpy.storage.leases import Lease, Machine
from harnpy.storage.memory import foreign_id
from harnpy.storage.opening import StoreUrl
from harnpy.storage.sqlite import records
from harnpy.storage.sqlite.database import SHIFT, STEM_KIND, Commits, Connections
from harnpy.storage.sqlite.lease_rows import SqliteLeases
from harnpy.storage.sqlite.records import (
    CHUNK,
    COLUMNS,
    Append,
    Known,
    Segment,
    as_row,
    check_whole,
    clipped,
    fetch,
    fetch_apart,
    insert,
    pieces,
    segments,
    tool_key,
)
from harnpy.storage.sqlite.search import Searches

# What lists show of streams, read from their rows. Spec: 10 §C6.2.


_SELECT = """
SELECT s.kind, s.name, s.version, s.created, s.updated, p.name, s.fork_seq, s.head
FROM current s LEFT JOIN streams p ON p.sid = s.parent AND p.kind = s.kind
WHERE s.version > 0 AND s.kind = ?"""

#: Whom a stream says it belongs to. A head that can't be read says nothing.
_PRINCIPAL = """
CASE WHEN json_valid(s.head) AND json_type(s.head, '$.metadata.principal') = 'text'
THEN json_extract(s.head, '$.metadata.principal') END"""
_SHARED = f"""
CASE WHEN json_valid(s.head) THEN json_extract(s.head, '$.metadata."{SHARES}"') END IS NOT NULL"""

#: By what a page of each order is continued, and how it is sorted.
_ORDERS = {
    "updated": ("-s.updated", "s.updated DESC, s.name"),
    "created": ("-s.created", "s.created DESC, s.name"),
    "id": ("0", "s.name"),
}


def head(db: Connection, kind: str, name: str, where: str) -> Head | None:
    """Return the head of a stream, None when nobody has written it."""
    row = db.execute(f"{_SELECT} AND s.name = ?", (kind, name)).fetchone()
    if row is None:
        return None
    found = _head(row)
    if isinstance(found, Head):
        return found
    raise CorruptLog(where, f"stream '{name}': {found}")


def heads(db: Connection, query: HeadQuery) -> Page:
    """Return the page that ``query`` asks for."""
    if query.order not in _ORDERS:
        raise unknown_order(query)
    key, order = _ORDERS[query.order]
    where, values = _conditions(query)
    if query.after is not None:
        number, name = position(query.after)
        where += f" AND ({key} > ? OR {key} = ? AND s.name > ?)"
        values += [number, number, name]
    rows = db.execute(
        f"{_SELECT}{where} ORDER BY {order} LIMIT ?", (query.kind, *values, query.limit + 1)
    ).fetchall()
    items: list[Head] = []
    errors: list[tuple[str, str]] = []
    for row in rows[: query.limit]:
        found = _head(row)
        if isinstance(found, Head):
            items.append(found)
        else:
            errors.append((row[1], found))
    return Page(items, _next(rows, query), errors)


def _next(rows: list[tuple[Any, ...]], query: HeadQuery) -> str | None:
    """Return where the page is continued, None when it is the last one."""
    if len(rows) <= query.limit or not query.limit:
        return None
    return mark(Head(*rows[query.limit - 1][:7]), query)


def _head(row: tuple[Any, ...]) -> Head | str:
    """Return the head, or what is wrong with it."""
    try:
        data = decode(row[7])
    except DecodeError:
        from harnpy.formats.mismatch import unread

        return f"its head is not JSON: {unread(row[7], Any)}"
    return Head(*row[:7])._replace(data=data) if isinstance(data, dict) else "its head is not a JSON object"


def _conditions(query: HeadQuery) -> tuple[str, list[Any]]:
    where = ""
    values: list[Any] = []
    if query.statuses is not None:
        where += f" AND s.status IN ({_marks(query.statuses)})"
        values += query.statuses
    if query.without:
        where += f" AND s.status NOT IN ({_marks(query.without)})"
        values += query.without
    for column, value in (("s.agent", query.agent), ("p.name", query.parent)):
        if value is not None:
            where += f" AND {column} = ?"
            values.append(value)
    if query.principal is not None:
        where += f" AND (ifnull({_PRINCIPAL}, ?) = ? OR {_SHARED})"
        values += [query.principal, query.principal]
    return where, values


def _marks(values: frozenset[str]) -> str:
    return ", ".join("?" * len(values))


# Checking a store, repairing it, and dropping for good what was deleted. Spec: 10 §C6, §C21.


_UNREADABLE = "NOT json_valid(data) OR NOT json_valid(ifnull(rest, '{}'))"
_ORPHANS = f"""
SELECT rid >> {SHIFT}, max(rid & ((1 << {SHIFT}) - 1)), min(time), max(time) FROM records
WHERE rid >> {SHIFT} NOT IN (SELECT sid FROM streams) GROUP BY 1"""
_BARE_STEMS = """
SELECT sid FROM streams s WHERE kind = ? AND NOT EXISTS
  (SELECT 1 FROM streams c WHERE c.parent = s.sid AND c.fork_seq > 1)"""


def fsck(cursor: Cursor, *, repair: bool) -> FsckReport:
    """Check the file, then every stream; with ``repair``, in a transaction of the writer."""
    findings = [
        Finding("", None, f"the file is damaged: {text}")
        for (text,) in cursor.execute("PRAGMA integrity_check").fetchall()
        if text != "ok"
    ]
    findings += _orphans(cursor, repair)
    streams = cursor.execute(
        "SELECT sid, kind, name, version, fork_seq, json_valid(head) FROM current WHERE version > 0"
    ).fetchall()
    for sid, kind, name, version, fork_seq, valid in streams:
        if not valid:
            findings.append(Finding(kind, name, "its head is not JSON", repair))
            if repair:
                cursor.execute("UPDATE streams SET head = '{}' WHERE sid = ?", (sid,))
        findings += [Finding(kind, name, *found) for found in _stream(cursor, sid, version, fork_seq, repair)]
    records = cursor.execute("SELECT count(*) FROM records").fetchone()[0]
    return FsckReport(len(streams), records, findings)


def _stream(cursor: Cursor, sid: int, version: int, fork_seq: int, repair: bool) -> list[tuple[str, bool]]:
    """Return what is wrong with the records of a stream, and whether it has been repaired."""
    base = sid << SHIFT
    begin = max(fork_seq, 1)
    found: list[tuple[str, bool]] = []
    count, first, last, bad = cursor.execute(
        f"SELECT count(*), min(rid), max(rid), total({_UNREADABLE}) FROM records WHERE rid > ? AND rid < ?",
        (base + begin, (sid + 1) << SHIFT),
    ).fetchone()
    if bad:
        found.append((f"{bad:.0f} records are not JSON", repair))
    end = begin if last is None else last - base
    # Dropped records are missing from the first one on; nothing else may be.
    start = base + begin + 1 if _has_first(cursor, base) else first
    if count and end - (start - base) + 1 != count:
        found.append(("records in its middle are missing", repair))
    elif end < version and (count or begin > 1 or _has_first(cursor, base)):
        found.append((f"its version is {version}, and its last record is number {end}", repair))
        if repair:
            cursor.execute("UPDATE streams SET version = ? WHERE sid = ?", (end, sid))
    if repair and count and found:
        _replace_unreadable(cursor, sid, start - base, end)
    return found


def _replace_unreadable(cursor: Cursor, sid: int, first: int, last: int) -> None:
    """Put a record in the place of each that is missing or can't be read."""
    base = sid << SHIFT
    between = (base + first, base + last)
    cursor.execute(f"DELETE FROM records WHERE rid BETWEEN ? AND ? AND ({_UNREADABLE})", between)
    present = cursor.execute(
        "SELECT rid - ?, time, more FROM records WHERE rid BETWEEN ? - 1 AND ? ORDER BY rid", (base, *between)
    ).fetchall()
    insert(cursor, sid, list(replacements(present, first, last)))


def _has_first(cursor: Cursor, base: int) -> bool:
    """Return whether a stream without other records has its first one: then nothing was dropped."""
    return cursor.execute("SELECT 1 FROM records WHERE rid = ?", (base + 1,)).fetchone() is not None


def _orphans(cursor: Cursor, repair: bool) -> list[Finding]:
    """Find records of streams that don't exist; repaired, they are a stream with a name of its own."""
    found = []
    for sid, last, created, updated in cursor.execute(_ORPHANS).fetchall():
        name = f"recovered-{sid}"
        found.append(Finding("session", name, f"{last} records belong to no stream", repair))
        if repair:
            cursor.execute(
                "INSERT INTO streams (sid, kind, name, version, created, updated)"
                " VALUES (?, 'session', ?, ?, ?, ?)",
                (sid, name, last, created, updated),
            )
    return found


def gc(cursor: Cursor, leases: SqliteLeases, older_than: float | None, dry_run: bool) -> GcReport:
    """Drop the streams whose status is ``deleted``, stems without branches, and dead tickets."""
    before = (time.time() - (older_than or 0.0)) * 1_000_000
    deleted = cursor.execute(
        "SELECT kind, name FROM streams WHERE status = 'deleted' AND version > 0 AND updated <= ?"
        " ORDER BY name",
        (before,),
    ).fetchall()
    leftovers = leases.collect(cursor, dry_run)
    if dry_run:
        stems = len(cursor.execute(_BARE_STEMS, (STEM_KIND,)).fetchall())
        return GcReport([name for _, name in deleted], stems, leftovers)
    for kind, name in deleted:
        records.delete_stream(cursor, kind, name)
    return GcReport([name for _, name in deleted], _drop_stems(cursor), leftovers)


def _drop_stems(cursor: Cursor) -> int:
    """Drop the stems that nobody shares; that may set others free."""
    count = 0
    while stems := cursor.execute(_BARE_STEMS, (STEM_KIND,)).fetchall():
        for (sid,) in stems:
            records.erase_stream(cursor, sid)
        count += len(stems)
    return count


# One stream in a SQLite file. Spec: 10 §C6.2.


class SqliteStream(BaseStream, Known):
    """A stream as this object has seen it last."""

    def __init__(
        self, connections: Connections, commits: Commits, kind: str, name: str, codec: Codec
    ) -> None:
        super().__init__(kind, name)
        self.codec = codec
        self._commits = commits
        self._reading = connections.reading
        self._path = connections.url.target
        self.refresh()

    def append(
        self,
        records: Sequence[Record],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        rows = self.codec.encode(records) if records else []
        self._commits.run(Append(self, rows, expected_version, head, fence))

    def _read(self, reading: Reading) -> Iterator[Record]:
        after, until, types, reverse, limit = reading
        found = self._rows(clipped(self._parts(), after, until), types, reverse, limit)
        return found if limit is None else islice(found, limit)

    def _rows(
        self, parts: list[Segment], types: frozenset[str] | None, reverse: bool, limit: int | None
    ) -> Iterator[Record]:
        wanted = limit if limit is not None and types is None else FROM_THE_END if reverse else CHUNK
        for part in reversed(parts) if reverse else parts:
            for piece in pieces(part, reverse, wanted):
                if types is None:
                    records = self._records(piece)
                    yield from reversed(records) if reverse else records
                else:
                    yield from self._of_types(piece, types, reverse)

    def _records(self, piece: Segment) -> list[Record]:
        with self._reading() as db:
            rows, before = self._fetch(db, piece)
        if not rows and self._is_dropped(piece):
            return []
        check_whole(rows, piece, self._path, self.name)
        return self.codec.decode(rows)[before:]

    def _fetch(self, db: Connection, piece: Segment) -> tuple[list[Row], int]:
        if isinstance(self.codec, Apart):
            return fetch_apart(db, piece), 0
        return fetch(db, piece)

    def _is_dropped(self, piece: Segment) -> bool:
        """Return whether records up to the end of ``piece`` were dropped, all of them."""
        base = piece.sid << SHIFT
        with self._reading() as db:
            earlier = db.execute(
                "SELECT 1 FROM records WHERE rid > ? AND rid <= ? LIMIT 1", (base, base + piece.last)
            )
            return earlier.fetchone() is None

    def _of_types(self, piece: Segment, types: frozenset[str], reverse: bool) -> Iterator[Record]:
        base = piece.sid << SHIFT
        marks = ", ".join("?" * len(types))
        columns = COLUMNS if isinstance(self.codec, Apart) else "rid, more"
        with self._reading() as db:
            found = db.execute(
                f"SELECT {columns} FROM records WHERE rid BETWEEN ? AND ? AND type IN ({marks}) ORDER BY rid"
                + (" DESC" if reverse else ""),
                (base + piece.first, base + piece.last, *types),
            ).fetchall()
        if isinstance(self.codec, Apart):
            yield from self.codec.decode([as_row(row, base) for row in found])
            return
        # An append is read once, however many of its records are wanted.
        for _, append in groupby(found, key=sum):
            wanted = [rid - base for rid, _ in append]
            first = min(wanted)
            records = self._records(Segment(piece.sid, first, max(wanted)))
            yield from (records[seq - first] for seq in wanted)

    def _record(self, place: Segment) -> Record:
        return self._records(place)[-1]

    def _parts(self) -> list[Segment]:
        """Return where the records lie now."""
        with self._reading() as db:
            return self._parts_in(db)

    def _parts_in(self, db: Connection) -> list[Segment]:
        found = records.find_stream(db, self.kind, self.name)
        if found is None:
            return []
        return segments(db, found.sid, found.version, found.fork_seq)

    def find_key(self, key: str) -> Record | None:
        wanted = tool_key(key)
        with self._reading() as db:
            for sid, first, last in sorted(self._parts_in(db), key=lambda part: -part.last):
                base = sid << SHIFT
                found = db.execute(
                    "SELECT max(rid) FROM records WHERE tool_key = ? AND rid BETWEEN ? AND ?",
                    (wanted, base + first, base + last),
                ).fetchone()[0]
                if found is not None:
                    break
            else:
                return None
        return self._record(Segment(sid, found - base, found - base))

    def find_id(self, id: str) -> int | None:
        with self._reading() as db:
            for sid, first, last in self._parts_in(db):
                base = sid << SHIFT
                found = db.execute(
                    """SELECT rid, rest FROM records WHERE rid BETWEEN ? AND ? AND instr(rest, '"id"')""",
                    (base + first, base + last),
                )
                for rid, rest in found:
                    if foreign_id(rest) == id:
                        return int(rid) - base
        return None

    def refresh(self) -> int:
        with self._reading() as db:
            found = records.find_stream(db, self.kind, self.name)
        self.sid, self.version, self.updated = (0, 0, 0) if found is None else found[:3]
        return self.version

    def settle(self) -> None:
        self._commits.transact(lambda cursor: records.settle_stream(cursor, self.kind, self.name, self.codec))

    def drop(self, until: int) -> int:
        dropped = self._commits.transact(
            lambda cursor: records.drop_records(cursor, self.kind, self.name, until, self.codec)
        )
        self.refresh()
        return dropped


#: How often a waiting process looks whether another one has written. Seconds.
_POLL = 0.05


class SqliteStore(BaseStore):
    """A `Store` of `SqliteStream`s. The file is created when there is none."""

    features = frozenset({"search"})
    has_raw_searches = True
    leases: SqliteLeases
    streams = SqliteStream

    def __init__(self, url: StoreUrl, machine: Machine) -> None:
        self.address = url
        self.strict_ids = url.strict_ids
        self.modes = url.modes
        self._path = url.target
        self._connections = Connections(url)
        self._reading = self._connections.reading
        self._commits = Commits(self._connections)
        self.leases = SqliteLeases(self._connections, self._commits, machine)
        self._searches = Searches(self._connections)

    def check_open(self) -> None:
        self._connections.check_open()

    def stream(self, kind: str, name: str, codec: Codec) -> SqliteStream:
        return SqliteStream(self._connections, self._commits, kind, name, codec)

    def _branch(self, branch: Branch) -> SqliteStream:
        source, name, first, codec, until, head = branch
        codec = codec or source.codec
        row = codec.encode((first,))[0]
        kind = source.kind
        self._commits.transact(
            lambda cursor: records.branch_stream(cursor, kind, source.name, name, row, until, head or {})
        )
        return SqliteStream(self._connections, self._commits, kind, name, codec)

    def head(self, kind: str, name: str) -> Head | None:
        with self._reading() as db:
            return head(db, kind, name, self._path)

    def heads(self, query: HeadQuery) -> Page:
        with self._reading() as db:
            return heads(db, query)

    def kinds(self) -> dict[str, int]:
        with self._reading() as db:
            return dict(db.execute("SELECT kind, count(*) FROM current WHERE version > 0 GROUP BY kind"))

    def delete(self, kind: str, name: str) -> bool:
        return self._commits.transact(lambda cursor: records.delete_stream(cursor, kind, name))

    def erase(self, streams: Sequence[tuple[str, str]]) -> str | None:
        if not self._commits.empty_log():
            raise StoreBusy(self.url, self._connections.url.timeout)

        def delete(cursor: Cursor) -> None:
            for kind, name in streams:
                records.delete_stream(cursor, kind, name)
            _drop_stems(cursor)

        self._commits.transact(delete)
        self._searches.forget()
        if self._commits.empty_log(rewrite=True):
            return None
        return "the store's log holds it until those who have begun to read since are done"

    def _search(self, search: Search) -> list[Hit]:
        return self._searches.find(search)

    def changes(self, kind: str, name: str, after: int, timeout: float) -> int:
        ends = time.monotonic() + timeout
        while True:
            seen = self._commits.count
            version = self._version(kind, name)
            left = ends - time.monotonic()
            if version > after or left <= 0:
                return version
            self._commits.wait(seen, min(left, _POLL))

    def versions(self, kind: str, names: Sequence[str]) -> dict[str, int]:
        with self._reading() as db:
            return records.versions(db, kind, names)

    def _version(self, kind: str, name: str) -> int:
        with self._reading() as db:
            return records.version_of(db, kind, name)

    def fsck(self, *, repair: bool = False) -> FsckReport:
        if repair:
            return self._commits.transact(lambda cursor: fsck(cursor, repair=True))
        with self._reading() as db:
            return fsck(db.cursor(), repair=False)

    def gc(self, *, older_than: float | None = None, dry_run: bool = False) -> GcReport:
        return self._commits.transact(lambda cursor: gc(cursor, self.leases, older_than, dry_run))

    def close(self) -> None:
        if not self._connections.closed:
            self.leases.release_all()
            self._searches.close()
        self._connections.close()
