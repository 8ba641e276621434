"""Stores of a program whose run is recorded: its sessions, its event log. Spec: 10 §C19.1.

What the program reads there is recorded, so that it sees a session again as it was; what it writes there is
written once. A process that was killed may have written what its record doesn't have yet: the next one
writes the same bytes, as times and ids are recorded before, and finds them there. Leases are each process's
own.
"""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any

from harnpy.durable.journal import READ, SESSION
from harnpy.durable.values import told
from harnpy.session.artifacts import Artifact
from harnpy.session.chunks import KIND as CHUNKS
from harnpy.storage.contract import FROM_THE_END, Head, Page, Row
from harnpy.storage.errors import StreamExists, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import IO

    from harnpy.durable.journal import Journal
    from harnpy.session.artifacts import Body, FileArtifactStore
    from harnpy.storage.contract import Codec, HeadQuery, Record, Store
    from harnpy.storage.leases import Lease
    from harnpy.workflow.engines.contract import Json


#: How many records one effect reads.
_PAGE = 64


class RecordedStore:
    """``real``, through a journal. What it has beside the calls below is its own."""

    #: What comes of it differs each time that the run is entered, unless it is recorded.
    is_recorded = True

    def __init__(self, real: Store, journal: Journal) -> None:
        self._real: Any = real
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        if name == "lease":
            self._journal.renews()
        return getattr(self._real, name)

    def bodies(self, real: FileArtifactStore) -> RecordedBodies:
        """Return the bodies of artifacts beside it."""
        return RecordedBodies(real, self._journal)

    def stream(self, kind: str, name: str, codec: Codec) -> RecordedStream:
        return RecordedStream(self._real, self._journal, kind, name, codec)

    def branch(
        self,
        source: RecordedStream,
        name: str,
        first: Record,
        *,
        codec: Codec | None = None,
        until: int | None = None,
        head: dict[str, Any] | None = None,
    ) -> RecordedStream:
        def act() -> None:
            try:
                self._real.branch(source.real, name, first, codec=codec, until=until, head=head)
            except StreamExists:
                if not self._journal.may_have_happened:
                    raise
            self._real.flush()

        asked = lambda: ["branch", source.kind, source.name, until, name]  # noqa: E731
        self._journal.at_once(SESSION, act, asked)
        return self.stream(source.kind, name, source.codec if codec is None else codec)

    def head(self, kind: str, name: str) -> Head | None:
        return self._journal.at_once(READ, lambda: _plain(self._real.head(kind, name)))

    def heads(self, query: HeadQuery) -> Page:
        def look() -> Page:
            page: Page = self._real.heads(query)
            return page._replace(
                items=[head._replace(data=dict(head.data)) for head in page.items], errors=list(page.errors)
            )

        return self._journal.at_once(READ, look)

    def kinds(self) -> dict[str, int]:
        return self._journal.at_once(READ, lambda: dict(self._real.kinds()))

    def search(self, query: str, kind: str = "session", **options: Any) -> Any:
        return self._journal.at_once(READ, lambda: self._real.search(query, kind, **options))

    def changes(self, kind: str, name: str, after: int, timeout: float) -> int:
        return self._journal.at_once(READ, lambda: int(self._real.changes(kind, name, after, timeout)))

    def versions(self, kind: str, names: Sequence[str]) -> dict[str, int]:
        return self._journal.at_once(READ, lambda: dict(self._real.versions(kind, names)))

    def news(self, kind: str, known: Mapping[str, int], timeout: float) -> dict[str, int]:
        return self._journal.at_once(READ, lambda: dict(self._real.news(kind, known, timeout)))

    def fsck(self, *, repair: bool = False) -> Any:
        return self._journal.at_once(SESSION, lambda: self._real.fsck(repair=repair))

    def gc(self, **options: Any) -> Any:
        return self._journal.at_once(SESSION, lambda: self._real.gc(**options))

    def delete(self, kind: str, name: str) -> bool:
        if kind == CHUNKS:  # no program sees them
            return bool(self._real.delete(kind, name))
        return self._journal.at_once(SESSION, lambda: bool(self._real.delete(kind, name)))

    def erase(self, streams: Sequence[tuple[str, str]]) -> str | None:
        said: str | None = self._journal.at_once(SESSION, lambda: self._real.erase(streams))
        return said


class RecordedBodies:
    """The bodies of artifacts of such a store."""

    def __init__(self, real: FileArtifactStore, journal: Journal) -> None:
        self._real = real
        self._journal = journal

    def put(self, artifact: Artifact, body: bytes | Body) -> Artifact:
        if not artifact.id:
            artifact = replace(artifact, id=self._real.ids.new())
        data = body if isinstance(body, bytes) else body.read(-1)
        asked = lambda: ["artifact", artifact.id, told(data)]  # noqa: E731
        return Artifact.of(
            self._journal.at_once(SESSION, lambda: self._real.put(artifact, data).data(), asked)
        )

    def stat(self, id: str) -> Artifact:
        asked = lambda: ["artifact", id]  # noqa: E731
        return Artifact.of(self._journal.at_once(READ, lambda: self._real.stat(id).data(), asked))

    def open(self, id: str, *, verify: bool = False) -> tuple[IO[bytes], Artifact]:
        def whole() -> list[Any]:
            file, artifact = self._real.open(id, verify=verify)
            with file:
                return [file.read(), artifact.data()]

        body, descriptor = self._journal.at_once(READ, whole, lambda: ["artifact", id])
        return BytesIO(body), Artifact.of(descriptor)


class RecordedStream:
    """A stream of such a store. It knows of the records that the program knows of."""

    def __init__(self, store: Any, journal: Journal, kind: str, name: str, codec: Codec) -> None:
        self._store = store
        self._journal = journal
        self.kind = kind
        self.name = name
        self.codec = codec
        self._real: Any = None
        self.version = journal.at_once(READ, lambda: int(self.real.version))

    @property
    def real(self) -> Any:
        if self._real is None:
            self._real = self._store.stream(self.kind, self.name, self.codec)
        return self._real

    def append(
        self,
        records: Sequence[Record],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        def act() -> None:
            try:
                self.real.append(records, expected_version, head=head, fence=fence)
            except VersionConflict:
                if not (self._journal.may_have_happened and self._has(records, expected_version)):
                    raise
            self._store.flush()

        asked = lambda: self._told(records, expected_version)  # noqa: E731
        self._journal.at_once(SESSION, act, asked)
        self.version = expected_version + len(records)

    def _told(self, records: Sequence[Record], version: int) -> Json:
        rows = [[row.type, told(_without_digest(row.data))] for row in self._rows(records)]
        return ["append", self.kind, self.name, version, rows]

    def _has(self, records: Sequence[Record], version: int) -> bool:
        """Return whether the very same is there already: a process that was killed has written it."""
        self.real.refresh()
        found = [*self.real.read(version, version + len(records))]
        return self._rows(found) == self._rows(records)

    def _rows(self, records: Sequence[Record]) -> list[Row]:
        return list(self.codec.encode(records)) if records else []

    def _written(self, records: Sequence[Record]) -> list[Any]:
        """Return the rows of records as they are recorded: on tapes as lists, which are shorter."""
        rows = self._rows(records)
        return [[*row] for row in rows] if self._journal.compares else rows

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Record]:
        given, size = 0, FROM_THE_END if reverse else _PAGE
        left: Iterator[Record] | None = None
        while True:
            page: list[Record] = []

            def look(page: list[Record] = page, given: int = given, size: int = size) -> list[Any]:
                nonlocal left
                if left is None:
                    found = self.real.read(after, until, types=types, reverse=reverse, limit=limit)
                    left = islice(found, given, None)
                page += islice(left, size)
                return [self.real.version, self._written(page[::-1] if reverse else page)]

            self.version, rows = self._journal.at_once(READ, look)
            if rows and not page:
                page += self.codec.decode(_read(rows))
                if reverse:
                    page.reverse()
            yield from page
            if len(page) < size:
                return
            given, size = given + len(page), _PAGE

    def last(self) -> Record | None:
        return next(self.read(reverse=True, limit=1), None)

    def find_key(self, key: str) -> Record | None:
        def look() -> list[Any]:
            found = self.real.find_key(key)
            return [] if found is None else self._written([found])

        rows = self._journal.at_once(READ, look)
        return self.codec.decode(_read(rows))[0] if rows else None

    def find_id(self, id: str) -> int | None:
        number: int | None = self._journal.at_once(READ, lambda: self.real.find_id(id))
        return number

    def refresh(self) -> int:
        if self._journal.is_aside:
            return self.version
        self.version = self._journal.at_once(READ, lambda: int(self.real.refresh()))
        return self.version

    def settle(self) -> None:
        self._journal.at_once(SESSION, lambda: self.real.settle())

    def drop(self, until: int) -> int:
        return self._journal.at_once(SESSION, lambda: int(self.real.drop(until)))


def _read(rows: Sequence[Any]) -> list[Row]:
    return [Row(*row) for row in rows]


def _plain(head: Head | None) -> Head | None:
    return None if head is None else head._replace(data=dict(head.data))


_DIGEST = re.compile(r'(?<=sha256:)[0-9a-f]{32,64}|(?<=:)[0-9a-f]{64}(?=")')


def _without_digest(data: Any) -> Any:
    """Return a row without digests: what they are of is there itself, and where a secret in that is masked, a
    replay has another digest."""
    return _DIGEST.sub("", data) if isinstance(data, str) else data
