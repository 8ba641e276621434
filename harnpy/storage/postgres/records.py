"""Rows of records: written, read through the branches that share them, and removed when none shares them.

What a stream shows lies in *parts*: its own records, and below them what it shares with the streams that it
was branched from. Numbers of records run on through the parts. Spec: 10 §C4, §C6.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.storage.contract import FROM_THE_END, Apart, Codec, Reading, Record, Row, as_append
from harnpy.storage.errors import StorageError, StreamExists
from harnpy.storage.memory import foreign_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from psycopg import Connection

    from harnpy.storage.postgres.database import Database

#: How many rows are read at a time.
_PAGE = 1000

#: Microseconds since 1970 as a time of the server. The driver would take longer to write out a `datetime`. In
#: two parts: intervals are multiplied by floats, which don't have all the microseconds of distant times.
MOMENT = (
    "(timestamptz 'epoch' + {0}::bigint / 1000000 * interval '1 second'"
    " + mod({0}::bigint, 1000000) * interval '1 microsecond')"
)
COLUMNS = "sid, seq, type, time, turn, more, cost, tool_key, data, rest"
_NAMES = ("seqs", "types", "times", "turns", "mores", "costs", "keys", "datas", "rests")
_TYPES = ("bigint", "text", "bigint", "bigint", "integer", "float8", "bytea", "json", "json")
_ROW = f"seqs, types, {MOMENT.format('times')}, turns, mores, costs, keys, datas, rests"
#: So many rows have a parameter for each value, and more one for each column: the driver takes longer for
#: arrays, but parses a statement with more than 50 parameters anew each time.
FEW = 4
_PLACES = tuple(tuple(f"{name}_{number}" for name in _NAMES) for number in range(FEW))


@cache
def insert(count: int) -> str:
    """Return the statement that writes so many rows to a stream that stands ``FROM place``.

    Its parameters are those that `values_of` returns.
    """
    if count > FEW:
        arrays = ", ".join(f"%({name})s::{type}[]" for name, type in zip(_NAMES, _TYPES, strict=True))
        given = f"unnest({arrays})"
    else:
        rows = (
            ", ".join(f"%({place})s::{type}" for place, type in zip(places, _TYPES, strict=True))
            for places in _PLACES[:count]
        )
        given = f"(VALUES ({'), ('.join(rows)}))"
    return f"""
INSERT INTO harn.records ({COLUMNS})
SELECT place.sid, {_ROW} FROM place, {given} AS given({", ".join(_NAMES)})
"""


SHOWN = """r.sid, r.seq, r.type, (extract(epoch FROM r.time) * 1000000)::bigint,
  r.data::text, r.more, r.turn, r.cost, r.rest::text, r.tool_key"""

_WITHIN = "unnest(%(sids)s::bigint[], %(lows)s::bigint[], %(highs)s::bigint[]) AS part(sid, low, high)"

PARTS = """
WITH RECURSIVE line AS (
  SELECT sid, parent, fork_seq, version AS high, dropped, 0 AS depth FROM harn.streams
  WHERE kind = %(kind)s AND name = %(name)s AND deleted IS NULL
  UNION ALL
  SELECT p.sid, p.parent, p.fork_seq, least(line.high, line.fork_seq), line.dropped, depth + 1
  FROM line JOIN harn.streams p ON p.sid = line.parent
  WHERE line.fork_seq > greatest(line.dropped, 1))
SELECT sid, greatest(fork_seq, dropped, 1), high, dropped < 1 FROM line ORDER BY depth
"""

#: The rows of parts, in order; the orders are put in. Rows are sorted before their data is fetched.
_PAGE_OF_ROWS = f"""
SELECT {SHOWN} FROM (
  SELECT page.* FROM {_WITHIN}
  CROSS JOIN LATERAL (
    SELECT * FROM harn.records o WHERE o.sid = part.sid AND o.seq > part.low AND o.seq <= part.high
    AND (%(types)s::text[] IS NULL OR o.type = ANY(%(types)s)) ORDER BY o.seq {{order}} LIMIT %(limit)s) page
  ORDER BY page.seq {{order}} LIMIT %(limit)s) r
ORDER BY r.seq {{order}}
"""

#: What precedes some rows in their appends; mostly nothing, which the row before says.
_BEFORE = f"""
SELECT DISTINCT {SHOWN} FROM unnest(%(sids)s::bigint[], %(seqs)s::bigint[]) AS wanted(sid, seq)
JOIN harn.records last ON last.sid = wanted.sid AND last.seq = wanted.seq - 1 AND last.more > 0
LEFT JOIN LATERAL (
  SELECT o.seq FROM harn.records o WHERE o.sid = wanted.sid AND o.seq < wanted.seq AND o.more = 0
  ORDER BY o.seq DESC LIMIT 1) former ON true
JOIN harn.records r ON r.sid = wanted.sid AND r.seq < wanted.seq AND r.seq > coalesce(former.seq, 0)
"""

_KEYED = f"""
SELECT {SHOWN} FROM {_WITHIN}
JOIN harn.records r ON r.sid = part.sid AND r.seq > part.low AND r.seq <= part.high
WHERE r.tool_key = %(key)s ORDER BY r.seq DESC LIMIT 1
"""
_IDENTIFIED = f"""
SELECT r.seq, r.rest::text
FROM {_WITHIN}
JOIN harn.records r ON r.sid = part.sid AND r.seq > part.low AND r.seq <= part.high
WHERE strpos(r.rest::text, '"id"') > 0 ORDER BY r.seq
"""
_AT = f"""
SELECT {SHOWN} FROM unnest(%(sids)s::bigint[], %(seqs)s::bigint[]) AS wanted(sid, seq)
JOIN harn.records r USING (sid, seq) ORDER BY r.sid, r.seq
"""


class Part(NamedTuple):
    """The records numbered ``low + 1`` … ``high`` that stand under ``sid``."""

    sid: int
    low: int
    high: int


class Stored(NamedTuple):
    """A row, and under which number its writer stands."""

    sid: int
    row: Row
    tool_key: bytes | None

    @property
    def place(self) -> tuple[int, int]:
        return self.sid, self.row.seq


def digest(key: str) -> bytes:
    """Return what is kept of a record's key."""
    return sha256(key.encode("utf-8", "surrogatepass")).digest()[:16]


def write(connection: Connection, sid: int, rows: Sequence[Row]) -> None:
    """Write the rows of one append."""
    if rows:
        place = "WITH place AS (SELECT %(sid)s::bigint AS sid)"
        connection.execute(f"{place} {insert(min(len(rows), FEW + 1))}", {"sid": sid, **values_of(rows)})


def values_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Return rows as the parameters of `insert`."""
    if len(rows) > FEW:
        columns = zip(*map(_values, rows), strict=True)
        return {name: list(column) for name, column in zip(_NAMES, columns, strict=True)}
    found: dict[str, Any] = {}
    for places, row in zip(_PLACES, rows, strict=False):
        found.update(zip(places, _values(row), strict=True))
    return found


def _values(row: Row) -> tuple[Any, ...]:
    key = None if row.key is None else digest(row.key)
    return row.seq, row.type, row.time, row.turn, row.more, row.cost, key, row.data, row.rest


def parts(database: Database, kind: str, name: str) -> list[Part]:
    """Return the parts of a stream, the highest first; none for a stream that nobody has written."""
    return arranged(line(database, kind, name))


def line(database: Database, kind: str, name: str) -> list[tuple[Any, ...]]:
    """Return what `PARTS` finds: a stream, with its version as the third, and those it was branched from."""
    return database.read(PARTS, {"kind": kind, "name": name})


def arranged(line: list[tuple[Any, ...]]) -> list[Part]:
    """Return what `PARTS` finds as parts: the first of the line has its record 1 besides, unless dropped."""
    found = [Part(*row[:3]) for row in line if row[2] > row[1]]
    return [*found, Part(line[0][0], 0, 1)] if line and line[0][3] else found


def read(
    database: Database,
    codec: Codec,
    within: list[Part],
    reading: Reading,
    missed: Callable[[int], None],
) -> Iterator[Record]:
    """Yield the records of ``reading``. Nothing is held on the server while the caller looks at one.

    ``missed`` is called with the number of one that isn't there.
    """
    low, high = reading.after, reading.until
    left = reading.limit
    most = FROM_THE_END if reading.reverse else _PAGE
    while left is None or left > 0:
        wanted = _clipped(within, low, high)
        size = most if left is None else min(left, _PAGE)
        most = min(2 * most, _PAGE)
        page = rows(database, wanted, size, reading.types, reverse=reading.reverse) if wanted else []
        if reading.types is None:
            missing = _missing(page, wanted, size, reverse=reading.reverse)
            if missing is not None:
                missed(missing)
        if not page:
            return
        yield from decoded(database, codec, page)
        if len(page) < size:
            return
        left = None if left is None else left - len(page)
        last = page[-1].row.seq
        low, high = (low, last - 1) if reading.reverse else (last, high)


def _missing(page: list[Stored], wanted: list[Part], size: int, *, reverse: bool) -> int | None:
    """Return the number of the first record that isn't among the ``size`` first ones; None: all are."""
    ranges = [range(part.low + 1, part.high + 1) for part in sorted(wanted, key=lambda part: part.low)]
    if reverse:
        ranges = [numbers[::-1] for numbers in reversed(ranges)]
    due = islice(chain.from_iterable(ranges), size)
    there = (stored.row.seq for stored in page)
    return next((number for number, found in zip_longest(due, there) if number != found), None)


def _clipped(within: list[Part], low: int, high: int | None) -> list[Part]:
    """Return what of the parts lies behind ``low`` and not behind ``high``."""
    clipped = [
        Part(part.sid, max(part.low, low), part.high if high is None else min(part.high, high))
        for part in within
    ]
    return [part for part in clipped if part.high > part.low]


def rows(
    database: Database, within: Sequence[Part], limit: int, types: frozenset[str] | None, *, reverse: bool
) -> list[Stored]:
    """Return at most ``limit`` rows of some parts."""
    query = _PAGE_OF_ROWS.format(order="DESC" if reverse else "ASC")
    values = {**columns(within), "types": None if types is None else list(types), "limit": limit}
    return [as_stored(found) for found in database.read(query, values)]


def decoded(database: Database, codec: Codec, page: list[Stored]) -> list[Record]:
    """Return the records of ``page``, in its order."""
    if isinstance(codec, Apart):
        return codec.decode([stored.row for stored in page])
    records: dict[tuple[int, int], Record] = {}
    for run in runs(database, page):
        found = codec.decode([stored.row for stored in run])
        records.update(zip((stored.place for stored in run), found, strict=True))
    return [records[stored.place] for stored in page]


def runs(database: Database, page: list[Stored]) -> list[list[Stored]]:
    """Return ``page``, and what precedes its rows in their appends, as rows of one writer that follow each
    other: a codec may have shortened a row by what an earlier one of its append says."""
    known = {stored.place for stored in page}
    edges = [(sid, seq) for sid, seq in known if seq > 1 and (sid, seq - 1) not in known]
    whole = sorted({stored.place: stored for stored in [*before(database, edges), *page]}.items())
    found: list[list[Stored]] = []
    for (sid, seq), stored in whole:
        if found and found[-1][-1].place == (sid, seq - 1):
            found[-1].append(stored)
        else:
            found.append([stored])
    return found


def before(database: Database, edges: list[tuple[int, int]]) -> list[Stored]:
    """Return the rows that precede those at ``edges`` in the same appends."""
    if not edges:
        return []
    sids, seqs = map(list, zip(*edges, strict=True))
    return [as_stored(found) for found in database.read(_BEFORE, {"sids": sids, "seqs": seqs})]


def at(database: Database, places: list[tuple[int, int]]) -> list[Stored]:
    """Return the rows at some places."""
    sids, seqs = [sid for sid, _ in places], [seq for _, seq in places]
    return [as_stored(found) for found in database.read(_AT, {"sids": sids, "seqs": seqs})]


def as_stored(found: tuple[Any, ...]) -> Stored:
    """Return what a query for `SHOWN` found."""
    sid, seq, type, time, data, more, turn, cost, rest, tool_key = found
    return Stored(sid, Row(seq, type, time, data, more, turn, cost, None, rest), tool_key)


def is_written(connection: Connection, sid: int, rows: Sequence[Row]) -> bool:
    """Return whether exactly these rows stand where they would."""
    if not rows:
        return True
    found = connection.execute(
        f"SELECT {SHOWN} FROM harn.records r WHERE sid = %s AND seq BETWEEN %s AND %s ORDER BY seq",
        [sid, rows[0].seq, rows[-1].seq],
    ).fetchall()
    there = [as_stored(row) for row in found]
    return [(stored.row, stored.tool_key) for stored in there] == [
        (row._replace(key=None), None if row.key is None else digest(row.key)) for row in rows
    ]


def find_key(database: Database, within: list[Part], key: str) -> list[Stored]:
    """Return the newest row with that key, in a list; an empty one when there is none."""
    found = database.read(_KEYED, {**columns(within), "key": digest(key)})
    return [as_stored(row) for row in found]


def find_id(database: Database, within: list[Part], id: str) -> int | None:
    """Return the number of the record that keeps a foreign id: what is kept is scanned, for `json` operators
    fail on what holds ``\\u0000``."""
    for seq, rest in database.read(_IDENTIFIED, columns(within)):
        if foreign_id(rest) == id:
            return int(seq)
    return None


def columns(within: Sequence[Part]) -> dict[str, list[int]]:
    """Return parts as a query takes them."""
    return {
        "sids": [part.sid for part in within],
        "lows": [part.low for part in within],
        "highs": [part.high for part in within],
    }


# What streams share, and what becomes of it when one of them goes. Spec: 10 §C6.
#
# A branch locks its source's row (``KEY SHARE``) while it is made; whoever takes records away locks it whole
# (``UPDATE``) first, so nothing is taken away that a branch is just about to share.


_LOCKED = "SELECT sid, version FROM harn.streams WHERE kind = %s AND name = %s AND deleted IS NULL FOR UPDATE"
_SOURCE = """
SELECT sid, least(version, coalesce(%s, version)), dropped FROM harn.streams
WHERE kind = %s AND name = %s AND deleted IS NULL FOR KEY SHARE
"""
_BRANCH = f"""
INSERT INTO harn.streams
  (kind, name, version, parent, fork_seq, dropped, created, updated, status, agent, head)
VALUES (%(kind)s, %(name)s, %(version)s, %(parent)s, %(version)s, %(dropped)s, {MOMENT.format("%(time)s")},
  {MOMENT.format("%(time)s")}, coalesce(%(status)s, ''), coalesce(%(agent)s, ''),
  coalesce(%(head)s::json, '{{}}'))
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
SELECT {SHOWN} FROM harn.records r WHERE r.sid = %(sid)s
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
        values = {
            "kind": kind,
            "name": name,
            "version": version,
            "parent": parent,
            "dropped": dropped,
            "time": first.time,
            **head,
        }
        made = connection.execute(_BRANCH, values).fetchone()
        if made is None:
            raise StreamExists(name)
        write(connection, made[0], [first])
        connection.execute("SELECT pg_notify('harn', %s)", [f"{kind} {name} {version}"])
        return int(version)

    def was_made() -> int | None:
        return database.write(look)

    def look(connection: Connection) -> int | None:
        found = connection.execute(_LOCKED, [kind, name]).fetchone()
        made = found is not None and is_written(connection, found[0], [first])
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
                write(connection, sid, begun)
                shared.append(part._replace(low=part.low + len(begun)))
        connection.execute(_SETTLE, [sid, *columns(shared).values()])
        connection.execute("UPDATE harn.streams SET parent = NULL, fork_seq = 0 WHERE sid = %s", [sid])
        # What was extracted for searches began behind the shared records.
        connection.execute("DELETE FROM harn.texts_until WHERE sid = %s", [sid])
        connection.execute("DELETE FROM harn.texts WHERE sid = %s", [sid])

    database.write(copy)


def _cut(connection: Connection, part: Part, codec: Codec) -> list[Row]:
    """Return the rows at the beginning of a part whose append began before it, as an append of their own:
    they may have been shortened by what is said there."""
    found = connection.execute(_FIRST_APPEND, part._asdict()).fetchall()
    rows = [as_stored(row).row for row in found]
    before = sum(row.seq <= part.low for row in rows)
    if not before:
        return []
    return as_append(codec.encode(codec.decode(rows)[before:]))


def drop(database: Database, kind: str, name: str, until: int) -> int:
    """Show the records up to ``until`` no more; delete those that no branch shares."""

    if until < 1:
        return 0

    def hide(connection: Connection) -> int:
        found = connection.execute(_LOCKED, [kind, name]).fetchone()
        if found is None:
            return 0
        sid, version = found
        within = columns(_parts(connection, kind, name))
        shown = connection.execute(_SHOWN, [*within.values(), until]).fetchone()
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


def _parts(connection: Connection, kind: str, name: str) -> list[Part]:
    found = connection.execute(PARTS, {"kind": kind, "name": name}).fetchall()
    return arranged(found)
