"""The search index: which texts hold which three letters in a row. A cache. Spec: 10 §C6.2."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harnpy.storage.sqlite.connections import MEMORY
from harnpy.storage.sqlite.schema import SHIFT
from harnpy.storage.sqlite.segments import Segment, texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection

    from harnpy.storage.contract import Codec

#: The index knows nothing of shorter terms.
SHORTEST = 3

_TABLES = """
CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5(text, content = '', tokenize = 'trigram');
CREATE TABLE IF NOT EXISTS covered (
  sid INTEGER PRIMARY KEY, created INTEGER NOT NULL, version INTEGER NOT NULL,
  fork_seq INTEGER NOT NULL) STRICT;
"""


class Index:
    """The index in a file, or in memory."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._connection: Connection | None = None

    @contextmanager
    def opened(self) -> Iterator[Connection | None]:
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
        connection = sqlite3.connect(self._target, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(_TABLES)
        except sqlite3.OperationalError as error:
            connection.close()
            if "fts5" in str(error) or "trigram" in str(error):
                return None
            raise
        except sqlite3.DatabaseError:
            connection.close()
            self._remove()
            raise
        return connection

    def _remove(self) -> None:
        if self._target != MEMORY:
            for suffix in ("", "-wal", "-shm"):
                Path(self._target + suffix).unlink(missing_ok=True)

    def update(self, index: Connection, db: Connection, codec: Codec, sids: set[int]) -> None:
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
        """Whether the index is about another file: one of this name was deleted or put back."""
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

    def find(self, index: Connection, match: str) -> list[int]:
        """Return the numbers of the records that ``match`` finds, in order."""
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
