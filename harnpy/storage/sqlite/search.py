"""Search, with an index of three-letter pieces in a file of its own that may be deleted at any time.

Appends pay nothing for it: it is brought up to date when a search is made. It only suggests records; what
is found is decided by looking at their texts. Spec: 10 §C6, §C6.2.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from harnpy.storage.contract import Hit
from harnpy.storage.errors import StorageError, Unsupported
from harnpy.storage.searching import holds, terms
from harnpy.storage.sqlite.connections import MEMORY
from harnpy.storage.sqlite.failures import is_busy
from harnpy.storage.sqlite.index import SHORTEST, Index
from harnpy.storage.sqlite.schema import SHIFT
from harnpy.storage.sqlite.segments import Segment, segments, texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection

    from harnpy.storage.contract import Codec, Row
    from harnpy.storage.sqlite.connections import Connections


class Place(NamedTuple):
    """A segment that is searched, and the stream that its hits belong to."""

    owner: str
    segment: Segment


class Search:
    """The searches of one store. One at a time: they share the index."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._lock = Lock()
        target = connections.url.target
        self._index = Index(target if target == MEMORY else f"{target}-search")

    def find(
        self,
        query: str,
        kind: str,
        codec: Codec,
        name: str | None,
        types: frozenset[str] | None,
        limit: int,
        raw: bool,
    ) -> list[Hit]:
        wanted = [] if raw else terms(query)
        match = query if raw else _match(wanted)
        with self._lock, self._connections.reading() as db:
            places = _all(db, kind) if name is None else _shares(db, kind, name)
            numbers = None if match is None else self._suggestions(db, codec, match, places, raw)
            if raw and numbers is None:
                raise Unsupported("`raw` searches need an SQLite with FTS5")
            found: list[Hit] = []
            for place in places:
                for row, text in _candidates(db, codec, place.segment, numbers):
                    if (types is None or row.type in types) and holds(text, wanted):
                        found.append(Hit(kind, place.owner, row.seq, row.type, text))
                        if len(found) == limit:
                            return found
        return found

    def _suggestions(
        self, db: Connection, codec: Codec, match: str, places: list[Place], raw: bool
    ) -> list[int] | None:
        """Return the rids of records that may be hits, in order; None when all must be looked at."""
        try:
            with self._index.opened() as index:
                if index is None:
                    return None
                self._index.update(index, db, codec, {place.segment.sid for place in places})
                return self._index.find(index, match)
        except sqlite3.Error as error:
            if raw and not is_busy(error):
                raise StorageError(f"not a search that SQLite understands: {error}") from error
            return None  # the index is a cache: without it, everything is looked at

    def close(self) -> None:
        with self._lock:
            self._index.close()


def _match(wanted: list[str]) -> str | None:
    """Return the FTS5 query for the terms that the index can tell of; None when there are none."""
    known = [term for term in wanted if len(term) >= SHORTEST and "\0" not in term]
    return " ".join('"' + term.replace('"', '""') + '"' for term in known) or None


def _all(db: Connection, kind: str) -> list[Place]:
    """Every stream of a kind, with what it wrote itself."""
    rows = db.execute(
        "SELECT name, sid, version FROM current WHERE kind = ? AND version > 0 ORDER BY name", (kind,)
    )
    return [Place(name, Segment(sid, 1, version)) for name, sid, version in rows.fetchall()]


def _shares(db: Connection, kind: str, name: str) -> list[Place]:
    """What one stream holds. What a deleted stream wrote counts as its branch's."""
    row = db.execute(
        "SELECT sid, version, fork_seq FROM current WHERE kind = ? AND name = ?", (kind, name)
    ).fetchone()
    if row is None:
        return []
    places: list[Place] = []
    parts = segments(db, *row)
    owner = name
    for part in sorted(parts[1:], key=lambda part: part.last, reverse=True):
        if part.sid == row[0]:
            continue
        writer = db.execute(
            "SELECT name FROM streams WHERE sid = ? AND kind = ?", (part.sid, kind)
        ).fetchone()
        owner = owner if writer is None else writer[0]
        places.append(Place(owner, part))
    return [*reversed(places), *(Place(name, part) for part in parts if part.sid == row[0])]


def _candidates(
    db: Connection, codec: Codec, part: Segment, numbers: list[int] | None
) -> Iterator[tuple[Row, str]]:
    """The rows of a segment that have a text: all, or those among the sorted ``numbers``."""
    if numbers is None:
        yield from texts(db, codec, part)
        return
    base = part.sid << SHIFT
    begin, end = bisect_left(numbers, base + part.first), bisect_right(numbers, base + part.last)
    for rid in numbers[begin:end]:
        yield from texts(db, codec, Segment(part.sid, rid - base, rid - base))
