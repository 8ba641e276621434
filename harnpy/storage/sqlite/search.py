"""Searches: SQLite itself passes over the records that can't hold what is looked for, and needs no index.

It looks at 500 MB a second, a hundredth of the time that an index of them takes; appends pay nothing. What
it can't see (texts of an `Encoded` codec) and raw searches, in FTS5's own language, need an index of
three-letter pieces. It lies in a file of its own, which may be deleted at any time, and is brought up to date
when such a search is made; it only suggests records, and their texts decide. Spec: 10 §C6, §C6.2.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from sqlite3 import Connection
from threading import Lock
from typing import NamedTuple

from harnpy.storage.contract import Codec, Encoded, Hit, Row, Search
from harnpy.storage.errors import StorageError, Unsupported
from harnpy.storage.searching import has_numbered_letters, holds, needle, terms
from harnpy.storage.sqlite.database import MEMORY, SHIFT, Connections, is_busy
from harnpy.storage.sqlite.records import Segment, append_of, segments, texts
from harnpy.world.files import make_file
from harnpy.world.threads import OfProcess

# The index: which texts hold which three letters in a row. A cache. Spec: 10 §C6.2.


#: The index knows nothing of shorter terms.
SHORTEST = 3

_TABLES = """
CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5(text, content = '', tokenize = 'trigram');
CREATE TABLE IF NOT EXISTS covered (
  sid INTEGER PRIMARY KEY, created INTEGER NOT NULL, version INTEGER NOT NULL,
  fork_seq INTEGER NOT NULL) STRICT;
"""


def _has_trigrams(connection: Connection) -> bool:
    """Return whether this SQLite has such indexes."""
    known = connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone()
    return known is not None and sqlite3.sqlite_version_info >= (3, 34)


class Index:
    """The index in a file, or in memory."""

    def __init__(self, target: str, mode: int) -> None:
        self._target = target
        self._mode = mode
        self._connection: Connection | None = None

    @contextmanager
    def _opened(self) -> Iterator[Connection | None]:
        """The index, made anew when it is damaged; None where SQLite has no such indexes."""
        try:
            if self._connection is None:
                self._connection = self._open()
            yield self._connection
        except sqlite3.DatabaseError as error:
            self.close()
            if not isinstance(error, sqlite3.OperationalError):
                self._remove()
            raise

    def _open(self) -> Connection | None:
        if self._target != MEMORY:
            make_file(self._target, self._mode)
        connection = sqlite3.connect(self._target, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            if not _has_trigrams(connection):
                connection.close()
                return None
            connection.executescript(_TABLES)
        except sqlite3.OperationalError:
            connection.close()
            raise
        except sqlite3.DatabaseError:
            connection.close()
            self._remove()
            raise
        return connection

    def remove(self) -> None:
        """Delete the index."""
        self.close()
        self._remove()

    def _remove(self) -> None:
        if self._target != MEMORY:
            from pathlib import Path

            for suffix in ("", "-wal", "-shm"):
                Path(self._target + suffix).unlink(missing_ok=True)

    def _update(self, index: Connection, db: Connection, codec: Codec, sids: set[int]) -> None:
        """Add what streams have had since the last search."""
        index.execute("BEGIN IMMEDIATE")
        try:
            covered = self._covered(index)
            streams = db.execute("SELECT sid, created, version, fork_seq FROM current").fetchall()
            if self._is_foreign(covered, streams):
                index.execute("INSERT INTO texts(texts) VALUES ('delete-all')")
                index.execute("DELETE FROM covered")
                covered = {}
            for sid, created, version, fork_seq in streams:
                if sid in sids and covered.get(sid) != (created, version, fork_seq):
                    self._add(index, db, codec, _news(sid, version, fork_seq, covered.get(sid)))
                    index.execute(
                        "INSERT OR REPLACE INTO covered VALUES (?, ?, ?, ?)",
                        (sid, created, version, fork_seq),
                    )
            index.execute("COMMIT")
        except BaseException:
            if index.in_transaction:
                index.execute("ROLLBACK")
            raise

    def _covered(self, index: Connection) -> dict[int, tuple[int, int, int]]:
        rows = index.execute("SELECT sid, created, version, fork_seq FROM covered")
        return {sid: (created, version, fork_seq) for sid, created, version, fork_seq in rows}

    def _is_foreign(
        self, covered: dict[int, tuple[int, int, int]], streams: list[tuple[int, int, int, int]]
    ) -> bool:
        """Return whether the index is about another file: one of this name was deleted or put back."""
        known = {sid: (created, version) for sid, created, version, _ in streams}
        return any(
            sid in known and known[sid][1] >= 0 and (known[sid][0] != created or known[sid][1] < version)
            for sid, (created, version, _) in covered.items()
        )

    def _add(self, index: Connection, db: Connection, codec: Codec, parts: list[Segment]) -> None:
        for part in parts:
            base = part.sid << SHIFT
            index.executemany(
                "INSERT INTO texts (rowid, text) VALUES (?, ?)",
                ((base + row.seq, text.casefold()) for row, text in texts(db, codec, part)),
            )

    def find(self, db: Connection, codec: Codec, match: str, sids: set[int]) -> list[int] | None:
        """Return the numbers of the records of some streams, and others, that ``match`` finds, in order.

        None where SQLite has no such indexes.
        """
        with self._opened() as index:
            if index is None:
                return None
            self._update(index, db, codec, sids)
            rows = index.execute("SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid", (match,))
            return [rid for (rid,) in rows]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _news(sid: int, version: int, fork_seq: int, before: tuple[int, int, int] | None) -> list[Segment]:
    """Return what a stream has written since: at its end, and its share of others if it has settled."""
    if before is None:
        return [Segment(sid, 1, version)]
    _, known, shared = before
    settled = [Segment(sid, 2, shared)] if fork_seq != shared and shared > 1 else []
    return [*settled, Segment(sid, known + 1, version)]


class Place(NamedTuple):
    """A segment that is searched, and the stream that its hits belong to."""

    owner: str
    segment: Segment


class Searches(OfProcess):
    """The searches of one store. Those that need the index are made one at a time."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._lock = Lock()
        url = connections.url
        self._index = Index(MEMORY if connections.in_memory else f"{url.target}-search", url.modes[0])
        self.bind()

    def forked(self) -> None:
        self._lock = Lock()
        if self._connections.is_still:  # else nobody can search here any more
            self._index.close()

    def forget(self) -> None:
        """Delete the index; the next search that needs one makes a new one."""
        with self._lock:
            self._index.remove()

    def find(self, search: Search) -> list[Hit]:
        query, kind, codec, name, types, limit, raw, names = search
        wanted = [] if raw else terms(query)
        is_hidden = isinstance(codec, Encoded)
        match = query if raw else _match(wanted) if is_hidden else None
        part = "" if is_hidden else needle(wanted)
        with nullcontext() if match is None else self._lock, self._connections.reading() as db:
            places = _all(db, kind, names) if name is None else _shares(db, kind, name)
            numbers = None if match is None else self._suggestions(db, codec, match, places, raw)
            if raw and numbers is None:
                raise Unsupported("`raw` searches need an SQLite with FTS5")
            found: list[Hit] = []
            for place in places:
                for row, text in _candidates(db, codec, place.segment, part, numbers):
                    if (types is None or row.type in types) and holds(text, wanted):
                        found.append(Hit(kind, place.owner, row.seq, row.type, text))
                        if len(found) == limit:
                            return found
        return found

    def _suggestions(
        self, db: Connection, codec: Codec, match: str, places: list[Place], raw: bool
    ) -> list[int] | None:
        """Return the rids of records that may be hits, in order; None when all must be looked at."""
        sids = {place.segment.sid for place in places}
        try:
            try:
                return self._index.find(db, codec, match, sids)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                return self._index.find(db, codec, match, sids)  # it was damaged, and is made anew
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


def _all(db: Connection, kind: str, names: frozenset[str] | None) -> list[Place]:
    """Every stream of a kind, or those of some names, with what it wrote itself."""
    rows = db.execute(
        "SELECT name, sid, version FROM current WHERE kind = ? AND version > 0 ORDER BY name", (kind,)
    )
    return [
        Place(name, Segment(sid, 1, version))
        for name, sid, version in rows.fetchall()
        if names is None or name in names
    ]


def _shares(db: Connection, kind: str, name: str) -> list[Place]:
    """Return what one stream holds. What a deleted stream wrote counts as its branch's."""
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


#: How many records SQLite looks at before Python may do something else, stop for instance.
_AT_A_TIME = 20_000

# SQLite's `LIKE` folds ASCII alone, so what isn't ASCII, or may have letters written as numbers, is looked at
# by Python.
_ODD = "(length({0}) <> length(CAST({0} AS BLOB)) OR {0} LIKE '%\\u%')"
_MENTIONING = f"""
SELECT rid, data, ifnull(rest, '') FROM records WHERE rid BETWEEN :first AND :last
AND (data LIKE :pattern ESCAPE '!' OR rest LIKE :pattern ESCAPE '!' OR {_ODD.format("data")}
  OR {_ODD.format("rest")})"""


def _candidates(
    db: Connection, codec: Codec, part: Segment, needle: str, numbers: list[int] | None
) -> Iterator[tuple[Row, str]]:
    """The rows of a segment that have a text: those among the sorted ``numbers``, or of appends that have the
    ``needle``, or all."""
    if numbers is not None:
        return _numbered(db, codec, part, numbers)
    return _mentioning(db, codec, part, needle) if needle else texts(db, codec, part)


def _mentioning(db: Connection, codec: Codec, part: Segment, needle: str) -> Iterator[tuple[Row, str]]:
    """The rows of a segment, but for those of appends that have the needle nowhere.

    A codec may have shortened a row by what another one of its append says.
    """
    base = part.sid << SHIFT
    # A pattern that isn't ASCII finds nothing that isn't odd.
    pattern = f"%{needle.replace('_', '!_')}%"
    done = 0
    begin = append_of(db, part._replace(first=1), part.first).first
    for first in range(begin, part.last + 1, _AT_A_TIME):
        last = min(first + _AT_A_TIME - 1, part.last)
        between = {"first": base + first, "last": base + last, "pattern": pattern}
        for rid, data, rest in db.execute(_MENTIONING, between):
            seq, json = rid - base, data + rest
            if seq > done and (needle in json.casefold() or has_numbered_letters(json)):
                append = append_of(db, part, seq)
                yield from texts(db, codec, append)
                done = append.last


def _numbered(db: Connection, codec: Codec, part: Segment, numbers: list[int]) -> Iterator[tuple[Row, str]]:
    base = part.sid << SHIFT
    begin, end = bisect_left(numbers, base + part.first), bisect_right(numbers, base + part.last)
    for rid in numbers[begin:end]:
        yield from texts(db, codec, Segment(part.sid, rid - base, rid - base))
