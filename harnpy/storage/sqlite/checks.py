"""Checking a store, repairing it, and dropping for good what was deleted. Spec: 10 §C6, §C21."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from harnpy.storage.contract import Finding, FsckReport, GcReport
from harnpy.storage.repairs import replacements
from harnpy.storage.sqlite import changing
from harnpy.storage.sqlite.appends import insert
from harnpy.storage.sqlite.schema import SHIFT, STEM_KIND

if TYPE_CHECKING:
    from sqlite3 import Cursor

    from harnpy.storage.sqlite.leasing import SqliteLeases

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
    """Whether a stream without other records has its first one: then nothing was dropped."""
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
        changing.delete(cursor, kind, name)
    return GcReport([name for _, name in deleted], _drop_stems(cursor), leftovers)


def _drop_stems(cursor: Cursor) -> int:
    """Drop the stems that nobody shares; that may set others free."""
    count = 0
    while stems := cursor.execute(_BARE_STEMS, (STEM_KIND,)).fetchall():
        for (sid,) in stems:
            changing.erase(cursor, sid)
        count += len(stems)
    return count
