"""Which records a stream has: its own, and those that it shares with the streams it was branched from.

A branch keeps its first record and what was appended to it; records 2 … ``fork_seq`` lie where they were
written. Spec: 10 §C6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.storage.contract import Row
from harnpy.storage.errors import CorruptLog
from harnpy.storage.sqlite.schema import SHIFT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from sqlite3 import Connection, Cursor

    from harnpy.storage.contract import Codec

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


def pieces(part: Segment, reverse: bool) -> Iterator[Segment]:
    """Cut a segment into pieces of a size to be fetched at once."""
    sid, first, last = part
    if reverse:
        for end in range(last, first - 1, -CHUNK):
            yield Segment(sid, max(first, end - CHUNK + 1), end)
    else:
        for begin in range(first, last + 1, CHUNK):
            yield Segment(sid, begin, min(last, begin + CHUNK - 1))


def fetch(db: Connection | Cursor, part: Segment) -> tuple[list[Row], int]:
    """Return the rows from the one that begins the first one's append, and how many precede the first one.

    Only whole appends can be decoded.
    """
    sid, first, last = part
    base = sid << SHIFT
    start = _append_start(db, base, first)
    found = db.execute(
        f"SELECT {COLUMNS} FROM records WHERE rid BETWEEN ? AND ? ORDER BY rid", (base + start, base + last)
    )
    rows = [
        Row(rid - base, type, time, data, more, turn, cost, None, rest)
        for rid, type, time, data, more, turn, cost, rest in found
    ]
    return rows, sum(row.seq < first for row in rows[: first - start])


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


def check_whole(rows: Sequence[Row], part: Segment, where: str, name: str) -> None:
    """Raise `CorruptLog` when some of the records are missing, but for dropped ones at the beginning."""
    if rows and rows[-1].seq == part.last and rows[-1].seq - rows[0].seq + 1 == len(rows):
        return
    if not rows or rows[-1].seq != part.last:
        lost = f"{rows[-1].seq + 1 if rows else part.first} to {part.last}"
    else:
        seqs = {row.seq for row in rows}
        lost = str(next(seq for seq in range(rows[0].seq, part.last) if seq not in seqs))
    raise CorruptLog(where, f"records of stream '{name}' are missing: {lost}")


def texts(db: Connection, codec: Codec, part: Segment) -> Iterator[tuple[Row, str]]:
    """The rows of a segment that a search looks at, with their texts."""
    for piece in pieces(part, reverse=False):
        rows, before = fetch(db, piece)
        for row, text in zip(rows[before:], codec.texts(rows)[before:], strict=True):
            if text is not None:
                yield row, text
