"""Records of streams: where they lie, appending them, and transactions that change which ones a stream has.

A branch keeps its first record and what was appended to it; records 2 … ``fork_seq`` lie where they were
written. A deleted stream whose records others share becomes a *stem*. Spec: 10 §C6, §C6.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from sqlite3 import Connection, Cursor
from typing import Any, NamedTuple

from msgspec.json import encode

from harnpy.storage.contract import Codec, Row, as_append
from harnpy.storage.errors import CorruptLog, StorageError, StreamExists, VersionConflict
from harnpy.storage.leases import Lease, check_fence
from harnpy.storage.sqlite.database import SHIFT, STEM_KIND, STEM_VERSION, Job
from harnpy.storage.sqlite.lease_rows import find_lease

#: Records that are fetched at once.
CHUNK = 1000

_CHAIN = """
WITH RECURSIVE chain(sid, parent, fork_seq) AS (
  SELECT sid, parent, fork_seq FROM streams WHERE sid = ?
  UNION ALL
  SELECT s.sid, s.parent, s.fork_seq FROM chain c JOIN streams s ON s.sid = c.parent WHERE c.fork_seq > 1)
SELECT sid, fork_seq FROM chain"""
COLUMNS = "rid, type, time, data, more, turn, cost, rest"


class Segment(NamedTuple):
    """The records ``first`` … ``last`` of the stream ``sid``, written there."""

    sid: int
    first: int
    last: int


def segments(db: Connection | Cursor, sid: int, version: int, fork_seq: int) -> list[Segment]:
    """Return where the records of a stream lie, in their order."""
    if fork_seq <= 1:
        return [Segment(sid, 1, version)]
    found: list[Segment] = []
    last = version
    for writer, shared in db.execute(_CHAIN, (sid,)).fetchall():
        first = max(shared, 1) + 1
        if last >= first:
            found.append(Segment(writer, first, last))
        last = min(last, shared)
    found.append(Segment(sid, 1, 1))
    return found[::-1]


def clipped(parts: Sequence[Segment], after: int, until: int | None) -> list[Segment]:
    """Return what lies behind ``after``, up to ``until``."""
    cut = [
        Segment(sid, max(first, after + 1), last if until is None else min(last, until))
        for sid, first, last in parts
    ]
    return [part for part in cut if part.first <= part.last]


def pieces(part: Segment, reverse: bool, wanted: int = CHUNK) -> Iterator[Segment]:
    """Cut a segment into pieces to be fetched at once: ``wanted`` records, then twice as many each time."""
    sid, first, last = part
    size = min(max(wanted, 1), CHUNK)
    while first <= last:
        if reverse:
            yield Segment(sid, max(first, last - size + 1), last)
            last -= size
        else:
            yield Segment(sid, first, min(last, first + size - 1))
            first += size
        size = min(2 * size, CHUNK)


def fetch(db: Connection | Cursor, part: Segment) -> tuple[list[Row], int]:
    """Return the rows from the one that begins the first one's append, and how many precede the first one.

    Only whole appends can be decoded.
    """
    sid, first, last = part
    start = _append_start(db, sid << SHIFT, first)
    rows = fetch_apart(db, Segment(sid, start, last))
    return rows, sum(row.seq < first for row in rows[: first - start])


def fetch_apart(db: Connection | Cursor, part: Segment) -> list[Row]:
    """Return the rows of the part, for a codec that reads each one by itself."""
    base = part.sid << SHIFT
    found = db.execute(
        f"SELECT {COLUMNS} FROM records WHERE rid BETWEEN ? AND ? ORDER BY rid",
        (base + part.first, base + part.last),
    )
    return [as_row(row, base) for row in found]


def as_row(columns: tuple[Any, ...], base: int) -> Row:
    """Return what `COLUMNS` say as a row of the stream whose records begin behind ``base``."""
    rid, type, time, data, more, turn, cost, rest = columns
    return Row(rid - base, type, time, data, more, turn, cost, None, rest)


def _append_start(db: Connection | Cursor, base: int, seq: int) -> int:
    """Return the number of the record that began the append that wrote ``seq``."""
    if seq == 1:
        return 1
    end = db.execute(
        "SELECT rid FROM records WHERE rid < ? AND rid > ? AND more = 0 ORDER BY rid DESC LIMIT 1",
        (base + seq, base),
    ).fetchone()
    return 1 if end is None else int(end[0]) - base + 1


def append_end(db: Connection | Cursor, part: Segment) -> int:
    """Return the number of the part's last record that belongs to the append of its first one."""
    base = part.sid << SHIFT
    end = db.execute(
        "SELECT rid FROM records WHERE rid >= ? AND rid <= ? AND more = 0 ORDER BY rid LIMIT 1",
        (base + part.first, base + part.last),
    ).fetchone()
    return part.last if end is None else int(end[0]) - base


def append_of(db: Connection | Cursor, part: Segment, seq: int) -> Segment:
    """Return what the part has of the append that wrote ``seq``."""
    first = max(_append_start(db, part.sid << SHIFT, seq), part.first)
    return Segment(part.sid, first, append_end(db, part._replace(first=seq)))


def check_whole(rows: Sequence[Row], part: Segment, where: str, name: str) -> None:
    """Raise `CorruptLog` when some of the records are missing, but for dropped ones at the beginning."""
    if rows and rows[-1].seq == part.last and rows[-1].seq - rows[0].seq + 1 == len(rows):
        return
    if not rows or rows[-1].seq != part.last:
        lost = f"{rows[-1].seq + 1 if rows else part.first} to {part.last}"
    else:
        seqs = {row.seq for row in rows}
        missing = (seq for seq in range(rows[0].seq, part.last) if seq not in seqs)
        lost = str(next(missing, f"some are there twice, between {rows[0].seq} and {part.last}"))
    raise CorruptLog(where, f"records of stream '{name}' are missing: {lost}")


def texts(db: Connection, codec: Codec, part: Segment) -> Iterator[tuple[Row, str]]:
    """The rows of a segment that a search looks at, with their texts."""
    for piece in pieces(part, reverse=False):
        rows, before = fetch(db, piece)
        for row, text in zip(rows[before:], codec.texts(rows)[before:], strict=True):
            if text is not None:
                yield row, text


# An append as a part of a transaction. Spec: 10 §C6.2.


#: Lists may show a time that is this old: their index need not change with each append. Microseconds.
_LAG = 1_000_000

_INSERT = (
    "INSERT INTO records (rid, type, time, data, more, turn, cost, tool_key, rest)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_CREATE = """
INSERT INTO streams (kind, name, version, created, updated, status, agent, head)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE
SET version = excluded.version, created = excluded.created, updated = excluded.updated
WHERE version = 0 RETURNING sid"""
_FIND = "SELECT sid, version FROM current WHERE kind = ? AND name = ?"


def tool_key(key: str | None) -> bytes | None:
    """Return what the index keeps of a record's key."""
    if key is None:
        return None
    from hashlib import sha256

    return sha256(key.encode()).digest()[:16]


def insert(cursor: Cursor, sid: int, rows: Sequence[Row]) -> None:
    """Write the rows of a stream."""
    base = sid << SHIFT
    cursor.executemany(
        _INSERT,
        [
            (base + seq, type, time, data, more, turn, cost, tool_key(key), rest)
            for seq, type, time, data, more, turn, cost, key, rest in rows
        ],
    )


def head_columns(data: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return a head's ``status``, ``agent`` and JSON text."""
    status, agent = data.get("status"), data.get("agent")
    return (
        status if isinstance(status, str) else "",
        agent if isinstance(agent, str) else "",
        encode(data).decode(),
    )


class Known:
    """A stream as it was seen last: ``sid`` is 0 as long as nobody has written it.

    ``updated`` is the time of its last record, as lists show it.
    """

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        self.sid = 0
        self.version = 0
        self.updated = 0


class Append(Job):
    """The records of one `Stream.append`, to be written behind record number ``expected``.

    The row of the stream isn't touched as long as its head and the time that lists show stay as they are:
    that would cost as much as the records.
    """

    __slots__ = ("expected", "fence", "head", "rows", "sid", "stream", "updated")

    def __init__(
        self,
        stream: Known,
        rows: Sequence[Row],
        expected: int,
        head: dict[str, Any] | None,
        fence: Lease | None,
    ) -> None:
        super().__init__()
        self.stream = stream
        self.rows = rows
        self.expected = expected
        self.head = head
        self.fence = fence
        self.sid = stream.sid
        self.updated: int | None = None

    def write(self, cursor: Cursor) -> None:
        if self.fence is not None:
            check_fence(find_lease(cursor, self.fence.key), self.fence)
        if self.expected == 0:
            self._create(cursor)
        else:
            self._follow(cursor)
        if self.head is not None:
            cursor.execute(
                "UPDATE streams SET status = ?, agent = ?, head = ? WHERE sid = ?",
                (*head_columns(self.head), self.sid),
            )
        insert(cursor, self.sid, self.rows)

    def committed(self) -> None:
        stream = self.stream
        stream.sid = self.sid
        stream.version = self.expected + len(self.rows)
        if self.updated is not None:
            stream.updated = self.updated

    def _create(self, cursor: Cursor) -> None:
        """Make the stream, or give its first records to one that has none."""
        rows, stream = self.rows, self.stream
        created = rows[0].time if rows else 0
        updated = max(created, rows[-1].time) if rows else 0
        found = cursor.execute(
            _CREATE, (stream.kind, stream.name, len(rows), created, updated, "", "", "{}")
        ).fetchall()
        if not found:
            raise self._conflict(cursor)
        self.sid = found[0][0]
        self.updated = updated

    def _follow(self, cursor: Cursor) -> None:
        """Make sure that the stream is at the expected version."""
        found = cursor.execute("SELECT version FROM current WHERE sid = ?", (self.sid,)).fetchone()
        if found is None or found[0] != self.expected:
            self._find(cursor)
        time = self.rows[-1].time if self.rows else 0
        if time - self.stream.updated >= _LAG:
            cursor.execute("UPDATE streams SET updated = max(updated, ?) WHERE sid = ?", (time, self.sid))
            self.updated = time

    def _find(self, cursor: Cursor) -> None:
        """Append to the stream that has the name now: another one may have been given it."""
        stream = self.stream
        found = cursor.execute(_FIND, (stream.kind, stream.name)).fetchone()
        if found is None or found[1] != self.expected:
            raise self._conflict(cursor)
        self.sid = found[0]

    def _conflict(self, cursor: Cursor) -> VersionConflict:
        stream = self.stream
        found = cursor.execute(_FIND, (stream.kind, stream.name)).fetchone()
        return VersionConflict(stream.name, self.expected, 0 if found is None else found[1])


#: Copies records 2 … of another stream; what an append that is cut there wrote behind it isn't ours.
_COPY = """
INSERT INTO records (rid, type, time, turn, more, cost, tool_key, data, rest)
SELECT rid + :move, type, time, turn, min(more, :last - rid), cost, tool_key, data, rest
FROM records WHERE rid BETWEEN :first AND :last"""


class Found(NamedTuple):
    """The row of a stream."""

    sid: int
    version: int
    updated: int
    fork_seq: int


def find_stream(db: Connection | Cursor, kind: str, name: str) -> Found | None:
    """Return the row of a stream, None when there is none."""
    row = db.execute(
        "SELECT sid, version, updated, fork_seq FROM current WHERE kind = ? AND name = ?", (kind, name)
    ).fetchone()
    return None if row is None else Found(*row)


def version_of(db: Connection, kind: str, name: str) -> int:
    """Return the version of a stream, 0 when there is none."""
    row = db.execute("SELECT version FROM current WHERE kind = ? AND name = ?", (kind, name)).fetchone()
    return 0 if row is None else row[0]


def versions(db: Connection, kind: str, names: Sequence[str]) -> dict[str, int]:
    """Return the versions of those of the streams that somebody has written."""
    found = db.execute(
        "SELECT name, version FROM current WHERE kind = ? AND version > 0 "
        "AND name IN (SELECT value FROM json_each(?))",
        (kind, encode([*names]).decode()),
    )
    return dict(found.fetchall())


def branch_stream(
    cursor: Cursor,
    kind: str,
    source: str,
    name: str,
    first: Row,
    until: int | None,
    data: Mapping[str, Any],
) -> None:
    """Make a stream of ``first`` and a pointer to what ``source`` has."""
    known = find_stream(cursor, kind, name)
    if known is not None and known.version:
        raise StreamExists(name)
    if known is not None:
        cursor.execute("DELETE FROM streams WHERE sid = ?", (known.sid,))
    origin = find_stream(cursor, kind, source)
    if origin is None or not origin.version:
        raise StorageError(f"stream '{source}' has nothing to branch from")
    shared = origin.version if until is None else max(1, min(until, origin.version))
    cursor.execute(
        "INSERT INTO streams (kind, name, version, parent, fork_seq, created, updated, status, agent, head)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (kind, name, shared, origin.sid, shared, first.time, first.time, *head_columns(data)),
    )
    insert(cursor, int(cursor.lastrowid or 0), [first])


def settle_stream(cursor: Cursor, kind: str, name: str, codec: Codec) -> None:
    """Copy what a stream shares, so that it needs no other stream any more."""
    found = find_stream(cursor, kind, name)
    if found is None or found.fork_seq <= 1:
        return
    for sid, first, last in segments(cursor, found.sid, found.version, found.fork_seq):
        if sid != found.sid:
            _copy(cursor, Segment(sid, first, last), found.sid, codec)
    cursor.execute("UPDATE streams SET parent = NULL, fork_seq = 0 WHERE sid = ?", (found.sid,))


def _copy(cursor: Cursor, part: Segment, target: int, codec: Codec) -> None:
    """Copy a part of one stream to another."""
    begun = _cut(cursor, part, codec)
    insert(cursor, target, begun)
    base = part.sid << SHIFT
    move = (target << SHIFT) - base
    first = base + part.first + len(begun)
    cursor.execute(_COPY, {"move": move, "first": first, "last": base + part.last})


def _cut(cursor: Cursor, part: Segment, codec: Codec) -> list[Row]:
    """Return the rows at the beginning of a part whose append began before it, as an append of their own:
    they may have been shortened by what is said there."""
    end = append_end(cursor, part)
    rows, before = fetch(cursor, part._replace(last=end))
    if not before:
        return []
    return as_append(codec.encode(codec.decode(rows)[before:]))


def drop_records(cursor: Cursor, kind: str, name: str, until: int, codec: Codec) -> int:
    """Forget the records of a stream up to a number; its branches keep theirs."""
    settle_stream(cursor, kind, name, codec)
    found = find_stream(cursor, kind, name)
    if found is None:
        return 0
    base = found.sid << SHIFT
    end = min(until, found.version)
    count = cursor.execute(
        "SELECT count(*) FROM records WHERE rid > ? AND rid <= ?", (base, base + end)
    ).fetchone()[0]
    if _shared(cursor, found.sid):
        _move(cursor, found, name, end, codec)
    else:
        cursor.execute("UPDATE streams SET version = ? WHERE sid = ?", (found.version, found.sid))
        begun = _cut(cursor, Segment(found.sid, end + 1, found.version), codec)
        gone = base + end + len(begun)
        cursor.execute("DELETE FROM records WHERE rid > ? AND rid <= ?", (base, gone))
        insert(cursor, found.sid, begun)
    return int(count)


def _move(cursor: Cursor, found: Found, name: str, after: int, codec: Codec) -> None:
    """Leave the records to the branches, and go on as another stream with those behind ``after``."""
    kind, *columns = cursor.execute(
        "SELECT kind, version, parent, fork_seq, created, updated, status, agent, head"
        " FROM current WHERE sid = ?",
        (found.sid,),
    ).fetchone()
    _make_stem(cursor, found.sid)
    cursor.execute(
        "INSERT INTO streams (kind, name, version, parent, fork_seq, created, updated, status, agent, head)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (kind, name, *columns),
    )
    _copy(cursor, Segment(found.sid, after + 1, found.version), int(cursor.lastrowid or 0), codec)
    _trim(cursor, found.sid)


def delete_stream(cursor: Cursor, kind: str, name: str) -> bool:
    """Delete a stream, but for the records that others share."""
    found = find_stream(cursor, kind, name)
    if found is None:
        return False
    if _shared(cursor, found.sid):
        _make_stem(cursor, found.sid)
        _trim(cursor, found.sid)
    else:
        erase_stream(cursor, found.sid)
    return found.version > 0


def erase_stream(cursor: Cursor, sid: int) -> None:
    """Delete a stream that shares nothing."""
    cursor.execute("UPDATE streams SET parent = NULL WHERE parent = ?", (sid,))
    cursor.execute("DELETE FROM records WHERE rid > ? AND rid < ?", (sid << SHIFT, (sid + 1) << SHIFT))
    cursor.execute("DELETE FROM streams WHERE sid = ?", (sid,))


def _shared(cursor: Cursor, sid: int) -> int:
    """Return the number of the last record that a branch shares, 0 when none does."""
    found = cursor.execute(
        "SELECT max(fork_seq) FROM streams WHERE parent = ? AND fork_seq > 1", (sid,)
    ).fetchone()
    return int(found[0] or 0)


def _make_stem(cursor: Cursor, sid: int) -> None:
    cursor.execute(
        "UPDATE streams SET kind = ?, name = ?, version = ?, status = '', agent = '', head = '{}'"
        " WHERE sid = ?",
        (STEM_KIND, str(sid), STEM_VERSION, sid),
    )


def _trim(cursor: Cursor, sid: int) -> None:
    """Delete what no branch shares. The first record stays if others can't be decoded without it."""
    base = sid << SHIFT
    cursor.execute(
        "DELETE FROM records WHERE rid > ? AND rid < ?", (base + _shared(cursor, sid), (sid + 1) << SHIFT)
    )
    cursor.execute("DELETE FROM records WHERE rid = ? AND more = 0", (base + 1,))
