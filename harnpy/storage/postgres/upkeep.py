"""Checking and collecting. Spec: 10 §C6, §C21."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.storage.contract import DELETED, Finding, FsckReport, GcReport
from harnpy.storage.postgres import records, sharing
from harnpy.storage.repairs import replacements

if TYPE_CHECKING:
    from psycopg import Connection

    from harnpy.storage.postgres.database import Database

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


def gc(database: Database, *, older_than: float, dry_run: bool) -> GcReport:
    """Drop deleted streams, stems that nobody shares any more, dropped records likewise, and tickets of the
    dead."""

    def collect(connection: Connection) -> GcReport:
        with connection.transaction(force_rollback=dry_run):
            deleted = connection.execute(_DELETED, [older_than]).fetchall()
            for sid, _ in deleted:
                sharing.forget(connection, sid)
            stems = 0
            while found := connection.execute(_STEMS, [older_than]).fetchall():
                for (sid,) in found:  # which may make those that they were branched from free
                    sharing.forget(connection, sid)
                stems += len(found)
            for (sid,) in connection.execute(_DROPPED).fetchall():
                sharing.free(connection, sid)
            tickets = connection.execute(_TICKETS).fetchall()
        return GcReport([name for _, name in deleted], stems, [f"ticket for {key}" for (key,) in tickets])

    return database.write(collect)
