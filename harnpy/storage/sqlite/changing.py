"""Branching, settling, dropping, deleting: parts of a transaction that change which records a stream has.

A deleted stream whose records others share becomes a *stem*. Spec: 10 §C6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.storage.errors import StorageError, StreamExists
from harnpy.storage.sqlite.appends import head_columns, insert
from harnpy.storage.sqlite.schema import SHIFT, STEM_KIND, STEM_VERSION
from harnpy.storage.sqlite.segments import Segment, append_end, fetch, segments

if TYPE_CHECKING:
    from collections.abc import Mapping
    from sqlite3 import Connection, Cursor

    from harnpy.storage.contract import Codec, Row

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


def find(db: Connection | Cursor, kind: str, name: str) -> Found | None:
    """Return the row of a stream, None when there is none."""
    row = db.execute(
        "SELECT sid, version, updated, fork_seq FROM current WHERE kind = ? AND name = ?", (kind, name)
    ).fetchone()
    return None if row is None else Found(*row)


def branch(
    cursor: Cursor,
    kind: str,
    source: str,
    name: str,
    first: Row,
    until: int | None,
    data: Mapping[str, Any],
) -> None:
    """Make a stream of ``first`` and a pointer to what ``source`` has."""
    known = find(cursor, kind, name)
    if known is not None and known.version:
        raise StreamExists(name)
    if known is not None:
        cursor.execute("DELETE FROM streams WHERE sid = ?", (known.sid,))
    origin = find(cursor, kind, source)
    if origin is None or not origin.version:
        raise StorageError(f"stream '{source}' has nothing to branch from")
    shared = origin.version if until is None else max(1, min(until, origin.version))
    cursor.execute(
        "INSERT INTO streams (kind, name, version, parent, fork_seq, created, updated, status, agent, head)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (kind, name, shared, origin.sid, shared, first.time, first.time, *head_columns(data)),
    )
    insert(cursor, int(cursor.lastrowid or 0), [first])


def settle(cursor: Cursor, kind: str, name: str, codec: Codec) -> None:
    """Copy what a stream shares, so that it needs no other stream any more."""
    found = find(cursor, kind, name)
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
    kept = codec.encode(codec.decode(rows)[before:])
    return [row._replace(more=left) for left, row in zip(reversed(range(len(kept))), kept, strict=True)]


def drop(cursor: Cursor, kind: str, name: str, until: int, codec: Codec) -> int:
    """Forget the records of a stream up to a number; its branches keep theirs."""
    settle(cursor, kind, name, codec)
    found = find(cursor, kind, name)
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


def delete(cursor: Cursor, kind: str, name: str) -> bool:
    """Delete a stream, but for the records that others share."""
    found = find(cursor, kind, name)
    if found is None:
        return False
    if _shared(cursor, found.sid):
        _make_stem(cursor, found.sid)
        _trim(cursor, found.sid)
    else:
        erase(cursor, found.sid)
    return found.version > 0


def erase(cursor: Cursor, sid: int) -> None:
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
