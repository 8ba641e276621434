"""An append as a part of a transaction. Spec: 10 §C6.2."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec.json import encode

from harnpy.storage.errors import VersionConflict
from harnpy.storage.sqlite.commits import Job
from harnpy.storage.sqlite.leasing import check_fence
from harnpy.storage.sqlite.schema import SHIFT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from sqlite3 import Cursor

    from harnpy.storage.contract import Row
    from harnpy.storage.leases import Lease

#: Lists may show a time that is this old: their index need not change with each append. Microseconds.
_LAG = 1_000_000

_INSERT = (
    "INSERT INTO records (rid, type, time, data, more, turn, cost, tool_key, rest)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_CREATE = """
INSERT INTO streams (kind, name, version, created, updated, status, agent, head)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (kind, name) DO UPDATE SET version = ?3, created = ?4, updated = ?5
WHERE version = 0 RETURNING sid"""
_FIND = "SELECT sid, version FROM current WHERE kind = ? AND name = ?"


def tool_key(key: str | None) -> bytes | None:
    """Return what the index keeps of a record's key."""
    return None if key is None else sha256(key.encode()).digest()[:16]


def insert(cursor: Cursor, sid: int, rows: Sequence[Row]) -> None:
    """Write the rows of a stream."""
    base = sid << SHIFT
    for seq, type, time, data, more, turn, cost, key, rest in rows:
        cursor.execute(_INSERT, (base + seq, type, time, data, more, turn, cost, tool_key(key), rest))


def head_columns(data: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return a head's ``status``, ``agent`` and JSON text."""
    status, agent = data.get("status"), data.get("agent")
    return (
        status if isinstance(status, str) else "",
        agent if isinstance(agent, str) else "",
        encode(data).decode(),
    )


class Known:
    """What is known of a stream, as it was seen last: ``sid`` is 0 as long as nobody has written it.

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
            check_fence(cursor, self.fence)
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
