"""The backend that keeps streams in memory, for the life of the process.

Records are kept as they are, not encoded: append costs the same at any length, and a branch shares its
source's records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.storage.contract import Record, StreamExists, VersionConflict
from harnpy.storage.spine import Spine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.storage.contract import Stream


class MemoryStream:
    """One stream. ``version`` is kept beside the records: append is the hot path."""

    __slots__ = ("_records", "name", "version")

    def __init__(self, name: str, records: Spine[Record] | None = None) -> None:
        self.name = name
        self._records: Spine[Record] = Spine() if records is None else records
        self.version = len(self._records)

    def append(self, records: Sequence[Record], expected_version: int) -> None:
        if expected_version != self.version:
            raise VersionConflict(self.name, expected_version, self.version)
        for record in records:
            self._records.append(record)
        self.version += len(records)

    def read(self, after: int = 0, until: int | None = None) -> list[Record]:
        return self._records.items()[after:until]

    def last(self) -> Record | None:
        return self._records.last()

    def settle(self) -> None:
        self._records.items()

    def branch(self, name: str, first: Record) -> MemoryStream:
        return _Branch(name, self._records.branch(), first)


class _Branch(MemoryStream):
    """A stream that shares all but the first record with its source."""

    __slots__ = ("_first",)

    def __init__(self, name: str, records: Spine[Record], first: Record) -> None:
        super().__init__(name, records)
        self._first = first

    def read(self, after: int = 0, until: int | None = None) -> list[Record]:
        records = super().read(after, until)
        if after == 0 and records:
            records[0] = self._first
        return records

    def last(self) -> Record | None:
        return self._first if self.version == 1 else super().last()


class MemoryBackend:
    """A `Backend` of `MemoryStream`s."""

    def __init__(self) -> None:
        self._streams: dict[str, MemoryStream] = {}

    def stream(self, name: str) -> MemoryStream:
        found = self._streams.get(name)
        if found is None:
            found = self._streams[name] = MemoryStream(name)
        return found

    def branch(self, source: Stream, name: str, first: Record) -> MemoryStream:
        known = self._streams.get(name)
        if known is not None and known.version:
            raise StreamExists(name)
        assert isinstance(source, MemoryStream), "a branch lives in its source's backend"
        branch = self._streams[name] = source.branch(name, first)
        return branch

    def names(self) -> list[str]:
        return [name for name, stream in self._streams.items() if stream.version]

    def delete(self, name: str) -> bool:
        stream = self._streams.pop(name, None)
        return stream is not None and stream.version > 0
