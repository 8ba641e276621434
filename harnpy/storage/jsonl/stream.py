"""A stream as its owner sees it: records behind its log, and the logs of those it was branched from."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from harnpy.storage.jsonl.needles import holding, naming
from harnpy.storage.memory import foreign_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.storage.contract import Codec, Record, Row
    from harnpy.storage.jsonl.directory import Directory
    from harnpy.storage.jsonl.logs import Segment
    from harnpy.storage.leases import Lease


class JsonlStream:
    """One stream. Holds no file open between calls."""

    def __init__(self, directory: Directory, kind: str, name: str, codec: Codec) -> None:
        self._directory = directory
        self.kind = kind
        self.name = name
        self.codec = codec
        self.log = directory.logs.log(kind, name)
        self._version = self.log.state().version

    @property
    def version(self) -> int:
        return self._version

    def refresh(self) -> int:
        self._directory.check_open()
        self._version = self.log.state().version
        return self._version

    def append(
        self,
        records: Sequence[Record],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        rows = self.codec.encode(records)
        self._version = self._directory.append(self.log, self.name, rows, expected_version, head, fence)

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Record]:
        version = self.refresh()
        until = version if until is None else min(until, version)
        wanted = None if types is None else naming(types)
        found = (
            record
            for row, record in self._records(after, until, reverse, wanted)
            if types is None or row.type in types
        )
        return found if limit is None else islice(found, limit)

    def last(self) -> Record | None:
        return next(self.read(reverse=True, limit=1), None)

    def find_key(self, key: str) -> Record | None:
        found = self._records(0, self.refresh(), True, holding(key))
        return next((record for row, record in found if row.key == key), None)

    def find_id(self, id: str) -> int | None:
        for row, _ in self._records(0, self.refresh(), False, holding(id)):
            if row.rest is not None and foreign_id(row.rest) == id:
                return row.seq
        return None

    def settle(self) -> None:
        self._directory.settle(self.kind, self.log, self.codec)
        self.refresh()

    def drop(self, until: int) -> int:
        return self._directory.drop(self.kind, self.log, until)

    def _records(
        self, after: int, until: int, reverse: bool, wanted: Callable[[bytes], bool] | None
    ) -> Iterator[tuple[Row, Record]]:
        """The records with their rows. What is there is settled now; it is read while it is used."""
        segments = self._directory.logs.segments(self.kind, self.log, self.log.state(), after, until)
        return self._read(segments[::-1] if reverse else segments, reverse, wanted)

    def _read(
        self, segments: list[Segment], reverse: bool, wanted: Callable[[bytes], bool] | None
    ) -> Iterator[tuple[Row, Record]]:
        for segment in segments:
            for append in self._directory.appends(segment, reverse, wanted):
                pairs = [
                    pair
                    for pair in zip(append, self.codec.decode(append), strict=True)
                    if segment.after < pair[0].seq <= segment.until
                ]
                yield from reversed(pairs) if reverse else pairs
