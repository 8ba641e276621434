"""One stream in a SQLite file. Spec: 10 §C6.2."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from harnpy.storage.memory import foreign_id
from harnpy.storage.sqlite import changing
from harnpy.storage.sqlite.appends import Append, Known, tool_key
from harnpy.storage.sqlite.schema import SHIFT
from harnpy.storage.sqlite.segments import Segment, check_whole, clipped, fetch, pieces, segments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from sqlite3 import Connection

    from harnpy.storage.contract import Codec, Record
    from harnpy.storage.leases import Lease
    from harnpy.storage.sqlite.commits import Commits
    from harnpy.storage.sqlite.connections import Connections


class SqliteStream(Known):
    """A stream as this object has seen it last."""

    def __init__(
        self, connections: Connections, commits: Commits, kind: str, name: str, codec: Codec
    ) -> None:
        super().__init__(kind, name)
        self.codec = codec
        self._commits = commits
        self._reading = connections.reading
        self._path = connections.url.target
        self.refresh()

    def append(
        self,
        records: Sequence[Record],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        rows = self.codec.encode(records) if records else []
        self._commits.run(Append(self, rows, expected_version, head, fence))

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Record]:
        found = self._read(clipped(self._parts(), after, until), types, reverse)
        return found if limit is None else islice(found, limit)

    def _read(self, parts: list[Segment], types: frozenset[str] | None, reverse: bool) -> Iterator[Record]:
        for part in reversed(parts) if reverse else parts:
            for piece in pieces(part, reverse):
                if types is None:
                    records = self._records(piece)
                    yield from reversed(records) if reverse else records
                else:
                    yield from self._of_types(piece, types, reverse)

    def _records(self, piece: Segment) -> list[Record]:
        with self._reading() as db:
            rows, before = fetch(db, piece)
        if not rows and self._is_dropped(piece):
            return []
        check_whole(rows, piece, self._path, self.name)
        return self.codec.decode(rows)[before:]

    def _is_dropped(self, piece: Segment) -> bool:
        """Whether records up to the end of ``piece`` were dropped, all of them."""
        base = piece.sid << SHIFT
        with self._reading() as db:
            earlier = db.execute(
                "SELECT 1 FROM records WHERE rid > ? AND rid <= ? LIMIT 1", (base, base + piece.last)
            )
            return earlier.fetchone() is None

    def _of_types(self, piece: Segment, types: frozenset[str], reverse: bool) -> Iterator[Record]:
        base = piece.sid << SHIFT
        marks = ", ".join("?" * len(types))
        with self._reading() as db:
            found = db.execute(
                f"SELECT rid FROM records WHERE rid BETWEEN ? AND ? AND type IN ({marks}) ORDER BY rid"
                + (" DESC" if reverse else ""),
                (base + piece.first, base + piece.last, *types),
            ).fetchall()
        for (rid,) in found:
            yield self._record(Segment(piece.sid, rid - base, rid - base))

    def _record(self, place: Segment) -> Record:
        return self._records(place)[-1]

    def _parts(self) -> list[Segment]:
        """Return where the records lie now."""
        with self._reading() as db:
            return self._parts_in(db)

    def _parts_in(self, db: Connection) -> list[Segment]:
        found = changing.find(db, self.kind, self.name)
        if found is None:
            return []
        return segments(db, found.sid, found.version, found.fork_seq)

    def last(self) -> Record | None:
        return next(self.read(reverse=True, limit=1), None)

    def find_key(self, key: str) -> Record | None:
        wanted = tool_key(key)
        with self._reading() as db:
            for sid, first, last in sorted(self._parts_in(db), key=lambda part: -part.last):
                base = sid << SHIFT
                found = db.execute(
                    "SELECT max(rid) FROM records WHERE tool_key = ? AND rid BETWEEN ? AND ?",
                    (wanted, base + first, base + last),
                ).fetchone()[0]
                if found is not None:
                    break
            else:
                return None
        return self._record(Segment(sid, found - base, found - base))

    def find_id(self, id: str) -> int | None:
        with self._reading() as db:
            for sid, first, last in self._parts_in(db):
                base = sid << SHIFT
                found = db.execute(
                    """SELECT rid, rest FROM records WHERE rid BETWEEN ? AND ? AND instr(rest, '"id"')""",
                    (base + first, base + last),
                )
                for rid, rest in found:
                    if foreign_id(rest) == id:
                        return int(rid) - base
        return None

    def refresh(self) -> int:
        with self._reading() as db:
            found = changing.find(db, self.kind, self.name)
        self.sid, self.version, self.updated = (0, 0, 0) if found is None else found[:3]
        return self.version

    def settle(self) -> None:
        self._commits.transact(lambda cursor: changing.settle(cursor, self.kind, self.name, self.codec))

    def drop(self, until: int) -> int:
        dropped = self._commits.transact(
            lambda cursor: changing.drop(cursor, self.kind, self.name, until, self.codec)
        )
        self.refresh()
        return dropped
