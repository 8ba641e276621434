"""The contract of a store: streams of records, each written once, at its end, in order.

A *stream* has a kind (``session``, ``topic`` …), a name and a *version*, the number of its records; a
stream that nobody has written has version 0 and need not be created. A *record* is opaque here: the owner
of a kind brings a `Codec`, which turns its records into `Row`s and back. Every store keeps these promises:

* `append` is atomic: all the records or none, right behind ``expected_version`` or not at all.
* A record is on the medium when `append` returns, and visible to every later `read` of any process.
* `read` returns records in the order of their appends, and none of an incomplete append.
* The head of a stream, what lists show of it, changes together with its records.
* `branch` gives the new stream the old one's records, copying none; afterwards neither sees the other's.
* An append under a lease that somebody else has taken since is refused.

Calls block, may be made from any thread, and raise `StorageError`s and nothing else. Pages of heads and the
record in place of an unreadable one are the same in all stores, and so is what a search means, in
`searching`. Spec: 10 §C1, §C6.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from harnpy.storage.errors import StorageError, Unsupported
from harnpy.world.files import PRIVATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harnpy.storage.leases import Check, Lease, Leases

    Position = tuple[int, str]

Record = Any

#: At most this many streams on a page of heads, unless the query says otherwise.
PAGE = 100
#: Seconds between two looks for news of many streams, where nobody announces them.
LOOK = 0.1
#: The ``status`` in a head's data of a stream that the next collection drops.
DELETED = "deleted"


class Row(NamedTuple):
    """A record as a store keeps it. Spec: 10 §C4."""

    seq: int
    #: What the record is, e.g. ``message_added``.
    type: str
    #: Microseconds since 1970.
    time: int
    #: JSON text.
    data: str
    #: How many records of the same append follow.
    more: int = 0
    #: The number of the record that began the turn.
    turn: int | None = None
    #: USD.
    cost: float | None = None
    #: What `Stream.find_key` finds the record by.
    key: str | None = None
    #: Whatever else there is, as the JSON text of an object; ``id`` in it is a foreign id.
    rest: str | None = None


class Codec(Protocol):
    """Writes the records of a stream's kind, for its owner. A memory store keeps records as they are."""

    def encode(self, records: Sequence[Record]) -> list[Row]:
        """Return the rows of one append. Called before anything is written."""

    def decode(self, rows: Sequence[Row]) -> list[Record]:
        """Return the records of rows that follow each other; the first begins an append, unless this is
        `Apart`."""

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        """Return the text that a search looks through, for each row; None for a row without any.

        The first row begins an append. Depends on nothing but the rows: any stream of the kind will do. A
        codec whose texts don't stand in the rows as they are (but in base64, say) is an `Encoded`.
        """


class Encoded:
    """Marks a codec whose rows don't show their texts: a search must not judge rows by their bytes."""


class Apart:
    """Marks a codec that reads each row by itself: none is shortened by what an earlier one says."""


class Head(NamedTuple):
    """The facts about a stream that a list shows without reading it.

    ``created`` is the time of its first record, ``updated`` that of the newest one, in microseconds since
    1970; ``updated`` may be up to a second behind. ``fork_seq`` counts the records that it shares with
    ``parent``, the stream that it was branched from; that is None once it was deleted, and may be once
    either of them has forgotten records.
    """

    kind: str
    name: str
    version: int
    created: int
    updated: int
    parent: str | None = None
    fork_seq: int = 0
    #: What its owner keeps there. Lists filter by its strings ``status``, ``agent`` and
    #: ``metadata.principal``.
    data: Mapping[str, Any] = MappingProxyType({})


#: The key of a stream's metadata that says with whom its owner shares it.
SHARES: Final = "serve.shares"


class HeadQuery(NamedTuple):
    """A query for a list of streams, in an order.

    ``order`` is ``updated`` or ``created`` (newest first) or ``id`` (by name, in the order of code points).
    ``after`` is the `Page.next` of the page before.
    """

    kind: str = "session"
    #: Only streams with one of these statuses; None for all.
    statuses: frozenset[str] | None = None
    #: No streams with one of these.
    without: frozenset[str] = frozenset()
    agent: str | None = None
    parent: str | None = None
    order: str = "updated"
    limit: int = PAGE
    after: str | None = None
    #: No streams whose ``metadata.principal`` is another one, as far as the store can tell at once, unless
    #: they have `SHARES` in their metadata, which the caller judges.
    principal: str | None = None


class Page(NamedTuple):
    """A part of a list. ``errors`` says which streams can't be shown, as (name, reason)."""

    items: list[Head]
    next: str | None = None
    errors: Sequence[tuple[str, str]] = ()


#: How many records are fetched at first by who reads a stream from its end: mostly to find something there.
FROM_THE_END = 4


class Reading(NamedTuple):
    """The records that `Stream.read` is asked for."""

    after: int
    until: int | None
    types: frozenset[str] | None
    reverse: bool
    limit: int | None


class Search(NamedTuple):
    """The records that `Store.search` is asked for."""

    query: str
    kind: str
    codec: Codec
    name: str | None
    types: frozenset[str] | None
    limit: int
    raw: bool
    names: frozenset[str] | None = None


class Branch(NamedTuple):
    """The stream that `Store.branch` is asked for."""

    source: Any
    name: str
    first: Record
    codec: Codec | None
    until: int | None
    head: dict[str, Any] | None


class Hit(NamedTuple):
    """A record that a search has found, in the stream that wrote it."""

    kind: str
    name: str
    seq: int
    type: str
    text: str


class Finding(NamedTuple):
    """Something wrong with a store. ``name`` is None when it isn't about one stream."""

    kind: str
    name: str | None
    problem: str
    repaired: bool = False


class FsckReport(NamedTuple):
    streams: int
    records: int
    findings: list[Finding]

    @property
    def clean(self) -> bool:
        """Return whether nothing is left to repair."""
        return all(finding.repaired for finding in self.findings)


class GcReport(NamedTuple):
    """The result of a collection: deleted streams, stems and leftovers by name, dropped or to drop."""

    streams: list[str]
    stems: int
    leftovers: list[str]


class Stream(Protocol):
    """One append-only sequence of records."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int:
        """The number of records that this object knows of; 0 for a stream that was never written."""

    def append(
        self,
        records: Sequence[Record],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        """Add ``records`` behind record number ``expected_version``, and replace the head's data.

        Raises `VersionConflict` when that isn't the last one, `LeaseLost` when ``fence`` isn't the newest
        lease of its key any more.
        """

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Record]:
        """The records numbered ``after + 1`` … ``until`` (None: the last), oldest first unless ``reverse``.

        Those of other ``types`` are left out; ``limit`` bounds how many are returned.
        """

    def last(self) -> Record | None:
        """The last record, None when there is none."""

    def find_key(self, key: str) -> Record | None:
        """The newest record with that `Row.key`."""

    def find_id(self, id: str) -> int | None:
        """The number of the record that keeps that foreign id."""

    def refresh(self) -> int:
        """Take notice of what others have written, and return the version."""

    def settle(self) -> None:
        """Keep no reference to the stream that this one was branched from: copy what is shared."""

    def drop(self, until: int) -> int:
        """Forget the records up to that number, and return how many went. Numbers are never given again."""


class Store(Protocol):
    """A set of streams."""

    #: Where it is, as `open_store` was told, without a password.
    @property
    def url(self) -> str: ...

    #: Whether new sessions may have letters, digits, ``_`` and ``-`` in their ids only.
    @property
    def strict_ids(self) -> bool: ...

    #: ``search``, ``notify`` (waiting for changes costs nothing), ``many_machines``.
    @property
    def features(self) -> frozenset[str]: ...

    def stream(self, kind: str, name: str, codec: Codec) -> Stream:
        """The stream of that name, empty when nobody has written it."""

    def branch(
        self,
        source: Stream,
        name: str,
        first: Record,
        *,
        codec: Codec | None = None,
        until: int | None = None,
        head: dict[str, Any] | None = None,
    ) -> Stream:
        """Create a stream: ``first``, then ``source``'s records 2 … ``until`` (None: all).

        It has ``source``'s kind. The first record says what a stream is, so a branch has its own;
        ``codec`` (None: ``source``'s) is the branch's. Raises `StreamExists`.
        """

    def head(self, kind: str, name: str) -> Head | None:
        """Return what a list shows of that stream; None when nobody has written it."""

    def heads(self, query: HeadQuery) -> Page:
        """The streams that ``query`` asks for."""

    def kinds(self) -> dict[str, int]:
        """Return how many streams of each kind there are. Reads no stream."""

    def delete(self, kind: str, name: str) -> bool:
        """Delete a stream. Return False when there was none. Its branches keep what they share with it."""

    def erase(self, streams: Sequence[tuple[str, str]]) -> str | None:
        """Delete streams, given as (kind, name), and leave nothing of them in the store's files.

        Free pages, logs, indexes and repairs are cleaned, too; only what other branches share stays. Return a
        sentence about what isn't in reach, if anything. Raises `StoreBusy` while somebody reads.
        """

    def search(
        self,
        query: str,
        kind: str = "session",
        *,
        codec: Codec,
        name: str | None = None,
        types: frozenset[str] | None = None,
        limit: int = 50,
        raw: bool = False,
        names: frozenset[str] | None = None,
    ) -> list[Hit]:
        """The records whose text holds every term of ``query``, whatever the case.

        ``name`` confines the search to one stream and the past that it shares, ``names`` one of all streams
        to what these wrote; ``codec`` is one of any stream of the kind. ``raw`` is the store's own query
        language, `Unsupported` where it has none.
        """

    def lease(
        self,
        key: str,
        owner: str | None = None,
        ttl: float = 30.0,
        *,
        wait: float = 0.0,
        check: Check | None = None,
    ) -> Lease:
        """Take the lease on ``key`` for ``ttl`` seconds, as ``owner`` (None: this process).

        Raises `LeaseHeld` when somebody else has it and hasn't let it go within ``wait`` seconds.
        ``check`` is called repeatedly meanwhile; what it raises ends the waiting. It must not use the store.
        """

    def holder(self, key: str) -> str | None:
        """Return the owner of the lease on ``key``; None where it is free."""

    def changes(self, kind: str, name: str, after: int, timeout: float) -> int:
        """Wait up to ``timeout`` seconds for the stream to be longer than ``after``. Return its version."""

    def versions(self, kind: str, names: Sequence[str]) -> dict[str, int]:
        """Return the versions of those of the streams that somebody has written. One look, however many."""

    def news(self, kind: str, known: Mapping[str, int], timeout: float) -> dict[str, int]:
        """Return `versions` of these streams once they differ from ``known``, or after so many seconds."""

    def fsck(self, *, repair: bool = False) -> FsckReport:
        """Check everything; repair what can be repaired without losing anything that can be read."""

    def gc(self, *, older_than: float | None = None, dry_run: bool = False) -> GcReport:
        """Drop for good what was deleted, at least ``older_than`` seconds ago.

        That is streams whose status is `DELETED`, stems that no branch reads, and what else a store leaves
        lying about.
        """

    def flush(self) -> None:
        """Return once everything acknowledged is on the medium."""

    def close(self) -> None:
        """Let go of files, connections and leases. Every later call raises `StoreClosed`."""


class BaseStream:
    """The part of a `Stream` that is the same in most stores, which read by a `Reading`."""

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Record]:
        return self._read(Reading(after, until, types, reverse, limit))

    def last(self) -> Record | None:
        return next(self.read(reverse=True, limit=1), None)

    def _read(self, reading: Reading) -> Iterator[Record]:
        raise NotImplementedError


class BaseStore:
    """The part of a `Store` that is the same in most stores, which have ``leases`` and find by a `Search`."""

    leases: Leases
    #: Where it is, as it was opened.
    address: object
    #: Nothing of it is seen by another process, or outlives this one.
    is_private = False
    has_raw_searches = False
    #: The rights of files and directories beside its own.
    modes = PRIVATE
    #: The class of its streams.
    streams: type

    @cached_property
    def url(self) -> str:
        """The URL without secrets. Made when somebody asks: what masks them takes its time to load."""
        return str(self.address)

    def check_open(self) -> None:
        """Raise `StoreClosed` after `close`."""
        raise NotImplementedError

    def branch(
        self,
        source: Stream,
        name: str,
        first: Record,
        *,
        codec: Codec | None = None,
        until: int | None = None,
        head: dict[str, Any] | None = None,
    ) -> Stream:
        self.check_open()
        assert isinstance(source, self.streams), "a branch lives in its source's store"
        return self._branch(Branch(source, name, first, codec, until, head))

    def _branch(self, branch: Branch) -> Stream:
        raise NotImplementedError

    def search(
        self,
        query: str,
        kind: str = "session",
        *,
        codec: Codec,
        name: str | None = None,
        types: frozenset[str] | None = None,
        limit: int = 50,
        raw: bool = False,
        names: frozenset[str] | None = None,
    ) -> list[Hit]:
        self.check_open()
        if raw and not self.has_raw_searches:
            raise Unsupported("`raw` searches exist on SQLite only")
        return self._search(Search(query, kind, codec, name, types, limit, raw, names))

    def _search(self, search: Search) -> list[Hit]:
        raise NotImplementedError

    def delete(self, kind: str, name: str) -> bool:
        raise NotImplementedError

    def erase(self, streams: Sequence[tuple[str, str]]) -> str | None:
        for kind, name in streams:
            self.delete(kind, name)
        return "what the store itself keeps of deleted streams is not in reach"

    def lease(
        self,
        key: str,
        owner: str | None = None,
        ttl: float = 30.0,
        *,
        wait: float = 0.0,
        check: Check | None = None,
    ) -> Lease:
        self.check_open()
        return self.leases.take(key, owner, ttl, wait, check)

    def holder(self, key: str) -> str | None:
        self.check_open()
        return self.leases.holder(key)

    def head(self, kind: str, name: str) -> Head | None:
        raise NotImplementedError

    def versions(self, kind: str, names: Sequence[str]) -> dict[str, int]:
        heads = ((name, self.head(kind, name)) for name in names)
        return {name: head.version for name, head in heads if head is not None}

    def news(self, kind: str, known: Mapping[str, int], timeout: float) -> dict[str, int]:
        ends = time.monotonic() + timeout
        while True:
            found = self.versions(kind, [*known])
            left = ends - time.monotonic()
            if found != known or left <= 0:
                return found
            time.sleep(min(left, LOOK))

    def flush(self) -> None:
        """Check that the store is open: most stores acknowledge what is on the medium."""
        self.check_open()


# A page of a list of heads, for the stores that have them all at hand. Spec: 10 §C6.


def page(heads: Iterable[Head], query: HeadQuery, errors: list[tuple[str, str]] | None = None) -> Page:
    """Return the page of ``heads`` that ``query`` asks for."""
    shown = sorted((head for head in heads if matches(head, query)), key=lambda head: _position(head, query))
    if query.after is not None:
        after = position(query.after)
        shown = [head for head in shown if _position(head, query) > after]
    items = shown[: query.limit]
    more = len(shown) > len(items) and bool(items)
    return Page(items, mark(items[-1], query) if more else None, errors or [])


def all_heads(
    store: Store, query: HeadQuery, skip: Callable[[str, str], object] | None = None
) -> Iterator[Head]:
    """Yield all heads that ``query`` asks for, page by page; ``skip`` gets the names of those that can't be
    read, and why."""
    while True:
        page = store.heads(query)
        if skip is not None:
            for error in page.errors:
                skip(*error)
        yield from page.items
        if page.next is None:
            return
        query = query._replace(after=page.next)


def matches(head: Head, query: HeadQuery) -> bool:
    """Return whether a list shows ``head``."""
    status = head.data.get("status", "")
    return (
        (query.statuses is None or status in query.statuses)
        and status not in query.without
        and (query.agent is None or head.data.get("agent", "") == query.agent)
        and (query.parent is None or head.parent == query.parent)
        and (query.principal is None or _may_be_for(head, query.principal))
    )


def _may_be_for(head: Head, principal: str) -> bool:
    metadata = head.data.get("metadata")
    if not isinstance(metadata, Mapping) or metadata.get(SHARES) is not None:
        return True
    owner = metadata.get("principal")
    return owner == principal or not isinstance(owner, str)


def mark(head: Head, query: HeadQuery) -> str:
    """Return where a page that ends with ``head`` is continued: a `HeadQuery.after`."""
    number, name = _position(head, query)
    return f"{number}:{name}"


def unknown_order(query: HeadQuery) -> StorageError:
    """Return the error of a list in an order that doesn't exist."""
    return StorageError(f"a list's order is updated, created or id, not `{query.order}`")


def _position(head: Head, query: HeadQuery) -> Position:
    if query.order == "id":
        return 0, head.name
    if query.order not in ("updated", "created"):
        raise unknown_order(query)
    return -(head.updated if query.order == "updated" else head.created), head.name


def position(after: str) -> Position:
    """Return what a `mark` says: a number to sort by, and a name."""
    number, _, name = after.partition(":")
    try:
        return int(number), name
    except ValueError:
        raise StorageError(f"`{after}` is not where a page of a list ended") from None


# An append of which a part is written anew.


def as_append(rows: Sequence[Row]) -> list[Row]:
    """Return the rows as one append of their own."""
    return [row._replace(more=left) for left, row in zip(reversed(range(len(rows))), rows, strict=True)]


# What stands in the place of a record that can't be read any more: one that says so. Spec: 10 §C6.1.


#: The type of such a record.
REPAIRED = "store_repaired"


def repair_report(seq: int, time: int, more: int, details: dict[str, Any]) -> Row:
    """Return the record that reports a repair, as number ``seq``."""
    from msgspec.json import encode  # stores in memory need none

    return Row(seq, REPAIRED, time, encode(details).decode(), more)


def replacements(present: Iterable[tuple[int, int, int]], first: int, last: int) -> Iterator[Row]:
    """Return a record for each one that is missing among ``first`` … ``last``.

    ``present`` are those that are there, from the one before ``first`` on: their numbers, times, and how
    many of the same append follow.
    """
    due, time, more = first, 0, 0
    for seq, found_time, found_more in [*present, (last + 1, 0, 0)]:
        for missing in range(due, seq):
            more = max(0, more - 1)
            detail = "the record was missing or could not be read"
            yield repair_report(missing, time or found_time, more, {"dropped_events": 1, "detail": detail})
        due, time, more = seq + 1, found_time, found_more
