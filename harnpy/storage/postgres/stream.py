"""One stream on the server. Spec: 10 §C6.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import json

from harnpy.storage.errors import CorruptLog, LeaseLost, VersionConflict
from harnpy.storage.postgres import records as stored
from harnpy.storage.postgres import sharing
from harnpy.storage.postgres.database import SETTINGS
from harnpy.storage.postgres.records import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg import Connection

    from harnpy.storage.contract import Codec, Record, Row
    from harnpy.storage.leases import Lease
    from harnpy.storage.postgres.database import Database

_VERSION = "SELECT version FROM harn.streams WHERE kind = %(kind)s AND name = %(name)s AND deleted IS NULL"
_LOCKED = "SELECT sid FROM harn.streams WHERE kind = %s AND name = %s AND deleted IS NULL FOR SHARE"
_IS_HELD = """
SELECT 1 FROM harn.leases
WHERE key = %(key)s AND token = %(token)s AND owner = %(owner)s AND expires_at > '-infinity'
"""
_HOLDER = "SELECT owner FROM harn.leases WHERE key = %(key)s AND expires_at > '-infinity'"

# An append is one statement, which is a transaction by itself. It takes its place in the stream, which locks
# that against others; if it gets none, because of the version or the fence, it does nothing.
_HELD = f"""
WITH {SETTINGS}, held AS MATERIALIZED (
  SELECT 1 FROM settings, harn.leases
  WHERE key = %(key)s AND token = %(token)s AND owner = %(owner)s AND expires_at > '-infinity'
  FOR SHARE OF leases),
"""
_FIRST = """
place AS (
  INSERT INTO harn.streams (kind, name, version, created, updated, status, agent, head)
  SELECT %(kind)s, %(name)s, %(length)s, %(created)s, %(time)s,
    coalesce(%(status)s, ''), coalesce(%(agent)s, ''), coalesce(%(head)s::json, '{}')
  FROM settings WHERE %(key)s::text IS NULL OR EXISTS (SELECT 1 FROM held)
  ON CONFLICT (kind, name) WHERE deleted IS NULL DO NOTHING RETURNING sid),
"""
# `updated` stays still for a second, so that its index does.
_NEXT = """
place AS (
  UPDATE harn.streams SET version = version + %(length)s,
    updated = CASE WHEN %(time)s::timestamptz >= updated + interval '1 second' THEN %(time)s ELSE updated END,
    status = coalesce(%(status)s, status), agent = coalesce(%(agent)s, agent),
    head = coalesce(%(head)s::json, head)
  FROM settings
  WHERE kind = %(kind)s AND name = %(name)s AND deleted IS NULL AND version = %(expected)s
    AND (%(key)s::text IS NULL OR EXISTS (SELECT 1 FROM held)) RETURNING sid),
"""
_WRITTEN = f"""
written AS (INSERT INTO harn.records ({stored.COLUMNS}) SELECT place.sid, r.* FROM place, {stored.ROWS} r)
SELECT sid, pg_notify('harn', %(news)s) FROM place
"""


class PostgresStream:
    """A stream, found by its name each time: others may have deleted it, or settled what it shares."""

    def __init__(
        self, database: Database, kind: str, name: str, codec: Codec, known: int | None = None
    ) -> None:
        self._database = database
        self.kind = kind
        self.name = name
        self.codec = codec
        self.version = version(database, kind, name) if known is None else known

    def append(
        self,
        records: Sequence[Record],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        self._database.check_open()
        _Append(self._database, self, self.codec.encode(records), expected_version, head, fence).make()
        self.version = expected_version + len(records)

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Record]:
        reading = Reading(after, until, types, reverse, limit)
        within = self._parts()  # what is there now is read, however long that takes

        def missed(number: int) -> None:
            if self._parts() == within:  # it wasn't dropped meanwhile
                reason = f"record {number} of stream '{self.name}' is missing"
                raise CorruptLog(self._database.url, reason)

        return stored.read(self._database, self.codec, within, reading, missed)

    def last(self) -> Record | None:
        return next(self.read(reverse=True, limit=1), None)

    def find_key(self, key: str) -> Record | None:
        found = stored.find_key(self._database, self._parts(), key)
        return stored.decoded(self._database, self.codec, found)[0] if found else None

    def find_id(self, id: str) -> int | None:
        return stored.find_id(self._database, self._parts(), id)

    def refresh(self) -> int:
        self.version = version(self._database, self.kind, self.name)
        return self.version

    def settle(self) -> None:
        sharing.settle(self._database, self.kind, self.name, self.codec)

    def drop(self, until: int) -> int:
        return sharing.drop(self._database, self.kind, self.name, until)

    def _parts(self) -> list[stored.Part]:
        return stored.parts(self._database, self.kind, self.name)


class _Append:
    """One append: it takes its place in the stream, which locks it against others, and writes its rows."""

    def __init__(
        self,
        database: Database,
        stream: PostgresStream,
        rows: list[Row],
        expected: int,
        head: dict[str, Any] | None,
        fence: Lease | None,
    ) -> None:
        self._database = database
        self._kind, self._name = stream.kind, stream.name
        self._rows = rows
        self._expected = expected
        self._head = head
        self._fence = fence

    def make(self) -> None:
        if not self._rows and not self._expected:
            self._check_unwritten()
            return
        self._database.state(self._write, made=self._was_made)

    def _write(self, connection: Connection) -> bool:
        query = _HELD + (_NEXT if self._expected else _FIRST) + _WRITTEN
        if connection.execute(query, self._values()).fetchone() is None:
            raise self._refusal(connection)
        return True

    def _values(self) -> dict[str, Any]:
        rows, fence = self._rows, self._fence
        return {
            **self._database.settings,
            **({"key": None, "token": None, "owner": None} if fence is None else _columns_of(fence)),
            "kind": self._kind,
            "name": self._name,
            "length": len(rows),
            "expected": self._expected,
            "created": stored.moment(rows[0].time) if rows else None,
            "time": stored.moment(rows[-1].time) if rows else None,
            **columns(self._head),
            **stored.values_of(rows),
            "news": f"{self._kind} {self._name} {self._expected + len(rows)}",
        }

    def _refusal(self, connection: Connection) -> LeaseLost | VersionConflict:
        fence = self._fence
        if fence is not None:
            held = _columns_of(fence)
            if connection.execute(_IS_HELD, held).fetchone() is None:
                holder = connection.execute(_HOLDER, held).fetchone()
                return LeaseLost(fence.key, holder[0] if holder else None)
        found = connection.execute(_VERSION, {"kind": self._kind, "name": self._name}).fetchone()
        return VersionConflict(self._name, self._expected, found[0] if found else 0)

    def _was_made(self) -> bool | None:
        """Look whether the rows are there, once the lost transaction has let go of the stream."""

        def look(connection: Connection) -> bool | None:
            found = connection.execute(_LOCKED, [self._kind, self._name]).fetchone()
            made = found is not None and stored.is_written(connection, found[0], self._rows)
            return True if made and self._rows else None

        return self._database.write(look)

    def _check_unwritten(self) -> None:
        found = version(self._database, self._kind, self._name)
        if found:
            raise VersionConflict(self._name, 0, found)


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
