"""What streams share, and what becomes of it when one of them goes. Spec: 10 §C6.

A branch locks its source's row (``KEY SHARE``) while it is made; whoever takes records away locks it whole
(``UPDATE``) first, so nothing is taken away that a branch is just about to share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.storage.errors import StorageError, StreamExists
from harnpy.storage.postgres import records

if TYPE_CHECKING:
    from psycopg import Connection

    from harnpy.storage.contract import Codec, Row
    from harnpy.storage.postgres.database import Database

_LOCKED = "SELECT sid, version FROM harn.streams WHERE kind = %s AND name = %s AND deleted IS NULL FOR UPDATE"
_SOURCE = """
SELECT sid, least(version, coalesce(%s, version)), dropped FROM harn.streams
WHERE kind = %s AND name = %s AND deleted IS NULL FOR KEY SHARE
"""
_BRANCH = """
INSERT INTO harn.streams
  (kind, name, version, parent, fork_seq, dropped, created, updated, status, agent, head)
VALUES (%(kind)s, %(name)s, %(version)s, %(parent)s, %(version)s, %(dropped)s, %(created)s, %(updated)s,
  coalesce(%(status)s, ''), coalesce(%(agent)s, ''), coalesce(%(head)s::json, '{}'))
ON CONFLICT (kind, name) WHERE deleted IS NULL DO NOTHING RETURNING sid
"""
#: Up to which record branches share a stream.
_SHARED = "SELECT coalesce(max(fork_seq), 0) FROM harn.streams WHERE parent = %s"
#: The first record is a stream's own; what follows it in its append may need it to be decoded.
_FREE_FIRST = "(seq = 1 AND more = 0)"
#: Up to where records were dropped and no later one of the same append is shown.
_DROPPED = """(
  SELECT CASE WHEN last.more > 0 THEN (
    SELECT coalesce(max(r.seq), 0) FROM harn.records r
    WHERE r.sid = s.sid AND r.seq < s.dropped AND r.more = 0) ELSE s.dropped END
  FROM harn.streams s LEFT JOIN harn.records last ON last.sid = s.sid AND last.seq = s.dropped
  WHERE s.sid = %s)"""
#: The append that a part's first record is of, up to the end of the part.
_FIRST_APPEND = f"""
SELECT {records.SHOWN} FROM harn.records r WHERE r.sid = %(sid)s
AND r.seq > (SELECT coalesce(max(o.seq), 0) FROM harn.records o
  WHERE o.sid = %(sid)s AND o.seq <= %(low)s AND o.more = 0)
AND r.seq <= (SELECT coalesce(min(o.seq), %(high)s) FROM harn.records o
  WHERE o.sid = %(sid)s AND o.seq > %(low)s AND o.seq <= %(high)s AND o.more = 0)
ORDER BY r.seq
"""
# An append that is cut at the end of a part ends there.
_SETTLE = """
INSERT INTO harn.records
SELECT %s, r.seq, r.type, r.time, r.turn, least(r.more, part.high - r.seq), r.cost, r.tool_key, r.data, r.rest
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS part(sid, low, high)
JOIN harn.records r ON r.sid = part.sid AND r.seq > part.low AND r.seq <= part.high
"""
_SHOWN = """
SELECT count(*) FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS part(sid, low, high)
JOIN harn.records r ON r.sid = part.sid AND r.seq > part.low AND r.seq <= least(part.high, %s)
"""


def branch(
    database: Database,
    kind: str,
    source: str,
    name: str,
    first: Row,
    until: int | None,
    head: dict[str, Any],
) -> int:
    """Create a branch; return its version. Raises `StreamExists`."""

    def create(connection: Connection) -> int:
        found = connection.execute(_SOURCE, [until, kind, source]).fetchone()
        if found is None:
            raise StorageError(f"stream '{source}' has no branch: nobody has written it")
        parent, version, dropped = found
        created = records.moment(first.time)
        values = {
            "kind": kind,
            "name": name,
            "version": version,
            "parent": parent,
            "dropped": dropped,
            "created": created,
            "updated": created,
            **head,
        }
        made = connection.execute(_BRANCH, values).fetchone()
        if made is None:
            raise StreamExists(name)
        records.write(connection, made[0], [first])
        connection.execute("SELECT pg_notify('harn', %s)", [f"{kind} {name} {version}"])
        return int(version)

    def was_made() -> int | None:
        return database.write(look)

    def look(connection: Connection) -> int | None:
        found = connection.execute(_LOCKED, [kind, name]).fetchone()
        made = found is not None and records.is_written(connection, found[0], [first])
        return int(found[1]) if found is not None and made else None

    return database.write(create, pipeline=True, made=was_made)


def delete(database: Database, kind: str, name: str) -> bool:
    """Delete a stream; what its branches share stays as a stem."""

    def remove(connection: Connection) -> bool:
        found = connection.execute(_LOCKED, [kind, name]).fetchone()
        if found is None:
            return False
        forget(connection, found[0])
        connection.execute("SELECT pg_notify('harn', %s)", [f"{kind} {name} 0"])
        return True

    return database.write(remove)


def forget(connection: Connection, sid: int) -> None:
    """Delete the records of a locked stream that no branch shares, and its row if there is no branch."""
    shared = _shared(connection, sid)
    if shared > 1:
        _remove(connection, sid, f"{_FREE_FIRST} OR seq > %s", [shared])
        connection.execute(
            "UPDATE harn.streams SET deleted = now(), head = '{}', status = '', agent = '' WHERE sid = %s",
            [sid],
        )
    else:
        _remove(connection, sid, "true", [])
        connection.execute("DELETE FROM harn.texts_until WHERE sid = %s", [sid])
        connection.execute("DELETE FROM harn.streams WHERE sid = %s", [sid])


def settle(database: Database, kind: str, name: str, codec: Codec) -> None:
    """Copy what a stream shares with the one it was branched from, and forget that one."""

    def copy(connection: Connection) -> None:
        found = connection.execute(_LOCKED, [kind, name]).fetchone()
        if found is None:
            return
        sid = found[0]
        shared = []
        for part in _parts(connection, kind, name):
            if part.sid != sid:
                begun = _cut(connection, part, codec)
                records.write(connection, sid, begun)
                shared.append(part._replace(low=part.low + len(begun)))
        connection.execute(_SETTLE, [sid, *_columns(shared)])
        connection.execute("UPDATE harn.streams SET parent = NULL, fork_seq = 0 WHERE sid = %s", [sid])
        # What was extracted for searches began behind the shared records.
        connection.execute("DELETE FROM harn.texts_until WHERE sid = %s", [sid])
        connection.execute("DELETE FROM harn.texts WHERE sid = %s", [sid])

    database.write(copy)


def _cut(connection: Connection, part: records.Part, codec: Codec) -> list[Row]:
    """Return the rows at the beginning of a part whose append began before it, as an append of their own:
    they may have been shortened by what is said there."""
    found = connection.execute(_FIRST_APPEND, part._asdict()).fetchall()
    rows = [records.as_stored(row).row for row in found]
    before = sum(row.seq <= part.low for row in rows)
    if not before:
        return []
    kept = codec.encode(codec.decode(rows)[before:])
    return [row._replace(more=left) for left, row in zip(reversed(range(len(kept))), kept, strict=True)]


def drop(database: Database, kind: str, name: str, until: int) -> int:
    """Show the records up to ``until`` no more; delete those that no branch shares."""

    if until < 1:
        return 0

    def hide(connection: Connection) -> int:
        found = connection.execute(_LOCKED, [kind, name]).fetchone()
        if found is None:
            return 0
        sid, version = found
        shown = connection.execute(_SHOWN, [*_columns(_parts(connection, kind, name)), until]).fetchone()
        connection.execute(
            "UPDATE harn.streams SET dropped = greatest(dropped, %s) WHERE sid = %s",
            [min(until, version), sid],
        )
        free(connection, sid)
        return 0 if shown is None else int(shown[0])

    return database.write(hide)


def free(connection: Connection, sid: int) -> int:
    """Delete the records of a locked stream that it doesn't show any more, no branch shares, and nothing that
    either of them has needs to be decoded: an append stays whole as long as any record of it does."""
    shared = _shared(connection, sid)
    mine, kept = (f"(seq > %s OR {_FREE_FIRST})", shared) if shared > 1 else ("seq > %s", 0)
    return _remove(connection, sid, f"{mine} AND seq <= {_DROPPED}", [kept, sid])


def _shared(connection: Connection, sid: int) -> int:
    """Return up to which record branches share a stream."""
    row = connection.execute(_SHARED, [sid]).fetchone()
    return 0 if row is None else int(row[0])


def _remove(connection: Connection, sid: int, which: str, values: list[Any]) -> int:
    gone = connection.execute(
        f"DELETE FROM harn.records WHERE sid = %s AND ({which}) RETURNING seq", [sid, *values]
    ).fetchall()
    seqs = [seq for (seq,) in gone]
    connection.execute("DELETE FROM harn.texts WHERE sid = %s AND seq = ANY(%s::bigint[])", [sid, seqs])
    return len(seqs)


def _parts(connection: Connection, kind: str, name: str) -> list[records.Part]:
    found = connection.execute(records.PARTS, {"kind": kind, "name": name}).fetchall()
    return records.arranged(found)


def _columns(parts: list[records.Part]) -> list[list[int]]:
    return [[part.sid for part in parts], [part.low for part in parts], [part.high for part in parts]]
