"""Searching. The text of records is extracted when a search is made, so that appends pay nothing for it.

What has been extracted is noted for each stream: its records come one after the other, even though those
of different streams are committed in any order. Texts are kept with their case folded, so that what a
search finds doesn't depend on the locale of the database, and without NUL. Spec: 10 §C6, §C6.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.storage.contract import Codec, Hit, Search
from harnpy.storage.postgres import records
from harnpy.storage.postgres.records import Part, Stored
from harnpy.storage.searching import terms

if TYPE_CHECKING:
    from psycopg import Connection

    from harnpy.storage.postgres.database import Database

#: How many records are extracted in one transaction.
_AT_A_TIME = 1000

# What a stream wrote itself and isn't extracted yet. Stems are searched through their branches.
_BEHIND = """
SELECT s.sid, coalesce(u.seq, 0), s.version FROM harn.streams s LEFT JOIN harn.texts_until u USING (sid)
WHERE (s.sid = ANY(%(sids)s::bigint[]) OR %(sids)s IS NULL AND s.kind = %(kind)s AND s.deleted IS NULL)
AND coalesce(u.seq, 0) < s.version
"""
_NOTED = "SELECT seq FROM harn.texts_until WHERE sid = %s FOR UPDATE"
_NOTE = """
INSERT INTO harn.texts_until VALUES (%s, %s) ON CONFLICT (sid) DO UPDATE SET seq = excluded.seq
"""
_KEEP = "INSERT INTO harn.texts SELECT %s, * FROM unnest(%s::bigint[], %s::text[]) ON CONFLICT DO NOTHING"

# Everything that living streams of a kind wrote.
_FIND = """
SELECT s.name, t.sid, t.seq FROM harn.texts t JOIN harn.streams s USING (sid)
JOIN harn.records r USING (sid, seq)
WHERE s.kind = %(kind)s AND s.deleted IS NULL AND t.folded LIKE ALL (%(terms)s::text[])
AND (t.seq = 1 OR t.seq > s.fork_seq) AND t.seq > s.dropped
AND (%(only)s::text[] IS NULL OR s.name = ANY(%(only)s))
AND (%(types)s::text[] IS NULL OR r.type = ANY(%(types)s))
ORDER BY s.name, t.seq LIMIT %(limit)s
"""
# What one stream shows, the oldest writer first; a stem's records count as those of its branch.
_FIND_WITHIN = """
SELECT part.name, t.sid, t.seq
FROM unnest(%(sids)s::bigint[], %(lows)s::bigint[], %(highs)s::bigint[],
  %(names)s::text[], %(ages)s::bigint[]) AS part(sid, low, high, name, age)
JOIN harn.texts t ON t.sid = part.sid AND t.seq > part.low AND t.seq <= part.high
JOIN harn.records r ON r.sid = t.sid AND r.seq = t.seq
WHERE t.folded LIKE ALL (%(terms)s::text[]) AND (%(types)s::text[] IS NULL OR r.type = ANY(%(types)s))
ORDER BY part.age DESC, t.seq LIMIT %(limit)s
"""
_NAMES = "SELECT sid, name FROM harn.streams WHERE sid = ANY(%(sids)s) AND deleted IS NULL"


def find(database: Database, search: Search) -> list[Hit]:
    """Return the records that ``search`` finds."""
    kind, name, codec = search.kind, search.name, search.codec
    wanted = {
        "kind": kind,
        "terms": [_pattern(term) for term in terms(search.query)],
        "types": None if search.types is None else list(search.types),
        "limit": search.limit,
        "only": None if search.names is None else list(search.names),
    }
    if name is None:
        _extract(database, codec, kind, None)
        found = database.read(_FIND, wanted)
    else:
        within = records.parts(database, kind, name)
        _extract(database, codec, kind, [part.sid for part in within])
        found = database.read(_FIND_WITHIN, {**wanted, **_writers(database, name, within)})
    return _hits(database, codec, kind, found)


def _pattern(term: str) -> str:
    """Return what ``LIKE`` finds the term by."""
    escaped = term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{_storable(escaped)}%"


def _storable(text: str) -> str:
    return text.replace("\0", "")


def _writers(database: Database, name: str, within: list[Part]) -> dict[str, Any]:
    """Return the parts as columns, each with the name of its writer and its age: one more each writer."""
    named = dict(database.read(_NAMES, {"sids": [part.sid for part in within]}))
    names: dict[int, str] = {}
    ages: dict[int, int] = {}
    writer = name
    for part in within:
        writer = named.get(part.sid, writer)
        names.setdefault(part.sid, writer)
        ages.setdefault(part.sid, len(ages))
    return {
        **records.columns(within),
        "names": [names[part.sid] for part in within],
        "ages": [ages[part.sid] for part in within],
    }


def _hits(database: Database, codec: Codec, kind: str, found: list[tuple[Any, ...]]) -> list[Hit]:
    rows = records.at(database, [(sid, seq) for _, sid, seq in found])
    texts = _texts(database, codec, rows)
    hits = []
    for name, sid, seq in found:
        if (sid, seq) in texts:  # or it was deleted just now
            stored, text = texts[sid, seq]
            hits.append(Hit(kind, name, seq, stored.row.type, text or ""))
    return hits


def _texts(
    database: Database, codec: Codec, rows: list[Stored]
) -> dict[tuple[int, int], tuple[Stored, str | None]]:
    """Return the rows by their places, each with its text."""
    return {
        stored.place: (stored, text)
        for run in records.runs(database, rows)
        for stored, text in zip(run, codec.texts([stored.row for stored in run]), strict=True)
    }


def _extract(database: Database, codec: Codec, kind: str, sids: list[int] | None) -> None:
    """Extract the texts of what was written since the last search."""
    for sid, done, version in database.read(_BEHIND, {"kind": kind, "sids": sids}):
        low = done
        while low < version:
            rows = records.rows(database, [Part(sid, low, version)], _AT_A_TIME, None, reverse=False)
            texts = _texts(database, codec, rows)
            kept = [(stored.row.seq, texts[stored.place][1]) for stored in rows]
            high = rows[-1].row.seq if len(rows) == _AT_A_TIME else version
            _keep(database, sid, low, high, [(seq, text) for seq, text in kept if text is not None])
            low = high


def _keep(database: Database, sid: int, low: int, high: int, kept: list[tuple[int, str]]) -> None:
    """Keep the texts of the records ``low + 1`` … ``high``; somebody else may have done it just now."""

    def keep(connection: Connection) -> None:
        noted = connection.execute(_NOTED, [sid]).fetchone()
        if (0 if noted is None else noted[0]) != low:
            return
        folded = [_storable(text).casefold() for _, text in kept]
        connection.execute(_KEEP, [sid, [seq for seq, _ in kept], folded])
        connection.execute(_NOTE, [sid, high])

    database.write(keep)
