"""What a storage backend promises: streams of records, each written once, at its end, in order.

A *stream* has a name and a *version*, the number of its records; a stream that nobody has written has
version 0 and need not be created. A *record* is opaque here. Every backend keeps these promises:

* `append` is atomic: all the records or none, right behind `expected_version` or not at all.
* A record is on the medium when `append` returns, and visible to every later `read`.
* `read` returns records in the order of their appends, and none of an incomplete append.
* `branch` gives the new stream the old one's records; afterwards neither sees the other's.

Errors are `StorageError`s and nothing else. Spec: 10 §C1, §C6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

Record = Any


class StorageError(Exception):
    """A store could not do what was asked. Nothing has changed."""


class VersionConflict(StorageError):
    """Somebody else wrote first: the stream isn't at the version that the caller saw last."""

    def __init__(self, stream: str, expected: int, found: int) -> None:
        super().__init__(stream, expected, found)
        self.stream = stream
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"Version conflict in stream '{self.stream}': expected {self.expected}, found {self.found}"


class StreamExists(StorageError):
    """A branch would overwrite a stream."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.stream = stream

    def __str__(self) -> str:
        return f"Stream already exists: '{self.stream}'"


class Stream(Protocol):
    """One append-only sequence of records."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int:
        """The number of records; 0 for a stream that was never written."""

    def append(self, records: Sequence[Record], expected_version: int) -> None:
        """Add ``records`` behind record number ``expected_version``.

        Raises `VersionConflict` when that isn't the last one.
        """

    def read(self, after: int = 0, until: int | None = None) -> list[Record]:
        """The records numbered ``after + 1`` … ``until`` (None: the last), oldest first."""

    def last(self) -> Record | None:
        """The last record, None when there is none."""

    def settle(self) -> None:
        """Keep no reference to the stream that this one was branched from."""


class Backend(Protocol):
    """A set of streams."""

    def stream(self, name: str) -> Stream:
        """The stream of that name, empty when nobody has written it."""

    def branch(self, source: Stream, name: str, first: Record) -> Stream:
        """Create a stream: ``first``, then ``source``'s records from its second on.

        The first record says what a stream is, so a branch has its own. Raises `StreamExists`.
        """

    def names(self) -> list[str]:
        """The names of the streams with records."""

    def delete(self, name: str) -> bool:
        """Delete a stream. Return False when there was none."""
