"""The stores of a program that leaves its tape, in a branch or a watch: what it appends to is a fork of what
was recorded. Spec: 13 §5.3.

The program goes on calling each stream by its name; in the store it is another one, which shares the past
of the recorded one up to the branch's call. So the recorded one stays as it is, and lists and trees of
sessions show where the other comes from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.durable.journal import ENV, SESSION
from harnpy.session import events as kinds
from harnpy.session.info import FORK_SEQ, FORK_TIME, PARENT
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.storage.errors import StorageError
from harnpy.tape.description import kind_of
from harnpy.tape.journal import Follower
from harnpy.tape.tapes import TapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from harnpy.storage.contract import Codec, Head, HeadQuery, Page, Record, Row, Store, Stream
    from harnpy.storage.leases import Check, Lease
    from harnpy.tape.journal import TapeJournal
    from harnpy.workflow.engines.contract import Step
    from harnpy.world import World

    Name = tuple[str, str]

#: What a session's head says of where it comes from.
_LINEAGE = (PARENT, FORK_SEQ, FORK_TIME, "branch_label", "fork_reason", "depth")


class Forks:
    """The streams that a recorded run has written, as they were at a record, and their forks.

    ``steps`` are all of the tape's. ``reason`` tells people why there are forks, ``otherwise`` what they may
    do where there can't be.
    """

    def __init__(self, steps: Sequence[Step], world: World, reason: str, otherwise: str) -> None:
        self.world = world
        self.reason = reason
        self.otherwise = otherwise
        #: How many records each had; None: all that there are.
        self.versions: dict[Name, int | None] = dict(_written(steps))
        #: What each is called in the store where the run had forks itself, by its own notes; and which
        #: stream, as the program knows it, that goes back to.
        self.recorded = dict(_noted(steps))
        #: What the program's forks are called there.
        self.names = {name: world.ids.new() for name in self.versions}
        #: Has a fact on the branch's tape.
        self.note: Callable[[str, list[str]], object] = lambda name, value: None
        #: The forks that were made, by the names of the recorded sessions.
        self.sessions: dict[str, str] = {}
        #: What the program has appended to a stream before the branch goes on live, since that differs for
        #: the first time from what is recorded.
        self.rewritten: dict[Name, list[_Append]] = {}
        #: Returns whether the program appends that just now.
        self.is_rewriting: Callable[[], bool] = lambda: False
        #: The stores that are open, by where they are: several may be in one place.
        self._stores: dict[str, ForkedStore] = {}
        self._is_live = False

    def divide(self, before: Sequence[Step], after: Sequence[Step]) -> None:
        """Have the forks share what was there behind the steps ``before``, which ``after`` has added to."""
        self.versions = {**dict(_written(reversed(after), is_before=True)), **dict(_written(before))}

    def store(self, real: Store) -> ForkedStore:
        """Return a store for the branch's program."""
        place = real.url.partition("?")[0]
        store = self._stores[place] = ForkedStore(real, self, self._stores.get(place))
        if self._is_live:
            store.fork_sessions()
        return store

    def begin(self) -> None:
        """The branch goes on live. Raises `TapeError` where a recorded session isn't there any more."""
        self._is_live = True
        for store in self._stores.values():
            store.fork_sessions()
        rewritten = [*self.rewritten.values()]
        for appends in rewritten:
            for stream, records, version, head in appends:
                stream.append(records, version, head=head)
        self.rewritten.clear()

    def shared(self, kind: str, name: str) -> int | None:
        """Return how many records of a recorded stream its fork has; None: all that there are."""
        rewritten = self.rewritten.get((kind, name))
        return self.versions.get((kind, name)) if rewritten is None else rewritten[0].version


class Forking(Follower):
    """Makes the forks when the program goes on live, and whenever it has appended something else than is
    recorded by its end."""

    def __init__(self, forks: Forks, journal: TapeJournal) -> None:
        self._forks = forks
        self._journal = journal
        forks.note, forks.is_rewriting = journal.note, lambda: journal.is_rewriting

    def live(self) -> None:
        try:
            self._forks.begin()
        except TapeError as error:
            raise self._journal.refuse(error) from None
        except StorageError as error:
            raise self._journal.refuse(TapeError(f"there can't be a {self._forks.reason}: {error}")) from None

    def ended(self) -> None:
        if self._forks.rewritten:
            self.live()


class _Append(NamedTuple):
    """What the program has appended to a stream of ``version`` records."""

    stream: ForkedStream
    records: Sequence[Record]
    version: int
    head: dict[str, Any] | None


_LEAD = "fork/"


def is_fork(step: Step) -> bool:
    """Return whether a step notes what a branch has called a stream."""
    return step.key.startswith(_LEAD) and kind_of(step.key) == ENV


def _noted(steps: Sequence[Step]) -> Iterator[tuple[Name, tuple[str, str]]]:
    for step in filter(is_fork, steps):
        kind, _, name = step.key.removeprefix(_LEAD).removesuffix(f":{ENV}").partition("/")
        called, root = step.output["ok"]
        yield (kind, name), (called, root)


def _written(steps: Iterable[Step], *, is_before: bool = False) -> Iterator[tuple[Name, int | None]]:
    """Yield the streams that steps have written, each with the number of its records after (or before)."""
    for step in steps:
        output = step.output
        asked = output.get("asked") if isinstance(output, dict) and "ok" in output else None
        if kind_of(step.key) != SESSION or not isinstance(asked, list):
            continue
        if asked[0] == "append":
            _, kind, name, version, rows = asked
            yield (kind, name), version if is_before else version + len(rows)
        elif asked[0] == "branch":
            _, kind, _, until, name = asked
            yield (kind, name), 0 if is_before else until


class ForkedStore:
    """``real``, in which the branch changes nothing but what it has made itself.

    What it has beside the calls below is its own.
    """

    def __init__(self, real: Store, forks: Forks, other: ForkedStore | None = None) -> None:
        """``other`` is one that is open in the same place."""
        self._real: Any = real
        self._forks = forks
        #: Streams as the program calls them → what they are called in the store.
        self._names: dict[Name, str] = {} if other is None else other._names
        #: What the branch has made, by its names in the store.
        self._made: dict[Name, str] = {} if other is None else other._made
        #: What is said in a fork's head of where it comes from.
        self._lineage: dict[str, dict[str, Any]] = {} if other is None else other._lineage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def real_name(self, kind: str, name: str) -> str:
        """Return what a stream of the program's is called in the store."""
        return self._names.get((kind, name)) or self._forks.names.get((kind, name)) or name

    def _recorded(self, kind: str, name: str) -> str:
        """Return what the recorded run has called a stream of the program's."""
        return self._forks.recorded.get((kind, name), (name, name))[0]

    def _root(self, kind: str, name: str) -> str:
        """Return the stream in the store from which the program knows where it comes from."""
        return self._forks.recorded.get((kind, name), (name, name))[1]

    def _called(self, kind: str, recorded: str) -> str:
        """Return what the program calls a stream of the recorded run."""
        names = self._forks.recorded.items()
        return next((name for (each, name), (real, _) in names if (each, real) == (kind, recorded)), recorded)

    def _is_known(self, kind: str, name: str) -> bool:
        """Return whether a stream in the store is of the recorded run, or has another one in its place."""
        called = kind, self._called(kind, name)
        return called in self._names or called in self._forks.names

    def fork_sessions(self) -> None:
        """Make the forks of the recorded sessions that are in this store."""
        for kind, name in self._forks.versions:
            version = self._forks.shared(kind, name)
            if kind == KIND and version != 0 and (kind, name) not in self._names:
                if self._real.head(kind, self._recorded(kind, name)) is not None:
                    self._fork_session(name, version, self._forks.names[kind, name])
                elif len(self._forks._stores) == 1:
                    raise self._missing(name, version)

    @property
    def is_rewriting(self) -> bool:
        """Whether the program appends something else than is recorded, before the branch goes on live."""
        return self._forks.is_rewriting()

    def rewrite(self, append: _Append) -> None:
        """Have that in the fork, once there is one."""
        stream = append.stream
        self._forks.rewritten.setdefault((stream.kind, stream.name), []).append(append)

    def own(self, kind: str, name: str, codec: Codec) -> None:
        """Have a stream that the program is about to change be the branch's own."""
        if (kind, name) in self._names:
            return
        version, new = self._forks.shared(kind, name), self._forks.names.get((kind, name))
        if version == 0 or self._real.head(kind, self._recorded(kind, name)) is None:
            self._note(kind, name, new or name, new or name)
        elif kind == KIND:
            self._fork_session(name, version, new or self._forks.world.ids.new())
        else:
            self._fork_stream(kind, name, version, codec, new or self._forks.world.ids.new())

    def _note(self, kind: str, name: str, new: str, root: str) -> None:
        self._names[kind, name] = new
        self._made[kind, new] = name
        if new != name:
            self._forks.note(f"{_LEAD}{kind}/{name}", [new, root])

    def _fork_session(self, name: str, version: int | None, new: str) -> None:
        session = StoredSession.load(self._recorded(KIND, name), self._real, self._forks.world)
        if session is None or (version is not None and session.version < version):
            raise self._missing(name, version)
        session.fork(new, at=version, reason=self._forks.reason)
        self._note(KIND, name, new, self._root(KIND, name))
        self._forks.sessions[name] = new
        data = self._real.head(KIND, new).data
        self._lineage[new] = {key: data[key] for key in _LINEAGE if key in data}

    def _fork_stream(self, kind: str, name: str, version: int | None, codec: Codec, new: str) -> None:
        recorded = self._recorded(kind, name)
        source, head = self._real.stream(kind, recorded, codec), dict(self._real.head(kind, recorded).data)
        if version is not None and source.version < version:
            raise self._missing(name, version)
        self._real.branch(source, new, next(source.read(limit=1)), until=version, head=head)
        self._note(kind, name, new, self._root(kind, name))

    def _missing(self, name: str, version: int | None) -> TapeError:
        what = "isn't" if version is None else f"with its {version} records isn't"
        return TapeError(
            f"session '{name}' {what} in {self._real.url} any more, so that there can't be a "
            f"{self._forks.reason}: {self._forks.otherwise}"
        )

    # --- streams ------------------------------------------------------------------------------------

    def stream(self, kind: str, name: str, codec: Codec) -> ForkedStream:
        return ForkedStream(self, kind, name, codec)

    def branch(
        self,
        source: ForkedStream,
        name: str,
        first: Record,
        *,
        codec: Codec | None = None,
        until: int | None = None,
        head: dict[str, Any] | None = None,
    ) -> ForkedStream:
        kind, codec = source.kind, source.codec if codec is None else codec
        real = source.real
        new = self.real_name(kind, name)
        renamed: Any = codec if real.name == source.name else _Renaming(codec, source.name, real.name)
        if head is not None and head.get(PARENT) == source.name:
            head = {**head, PARENT: real.name}
        self._real.branch(real, new, first, codec=renamed, until=until, head=head)
        self._note(kind, name, new, new)
        return self.stream(kind, name, codec)

    def real_stream(self, kind: str, name: str, codec: Codec) -> Stream:
        stream: Stream = self._real.stream(kind, self.real_name(kind, name), codec)
        return stream

    def first(self, name: str, codec: Codec) -> Record | None:
        """Return the first record of a recorded session; None where the program's isn't a fork of one."""
        if (
            self._forks.sessions.get(name) != self._names.get((KIND, name))
            or name not in self._forks.sessions
        ):
            return None
        return next(iter(self._real.stream(KIND, self._root(KIND, name), codec).read(0, 1)), None)

    def told(self, kind: str, name: str, head: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return a head that the program writes, with what is said of where a fork comes from."""
        lineage = self._lineage.get(self.real_name(kind, name)) if kind == KIND else None
        return head if lineage is None or head is None else {**head, **lineage}

    # --- heads --------------------------------------------------------------------------------------

    def head(self, kind: str, name: str) -> Head | None:
        found: Head | None = self._real.head(kind, self.real_name(kind, name))
        return None if found is None else self._shown(found)

    def _shown(self, head: Head) -> Head:
        """Return a head as the program knows it: with the name, and from where, that it had."""
        name = self._made.get((head.kind, head.name), head.name)
        data = {key: value for key, value in head.data.items() if key not in self._lineage.get(head.name, ())}
        parent, shared = self._made.get((head.kind, head.parent or ""), head.parent), head.fork_seq
        if (
            head.name in self._lineage
            and (recorded := self._real.head(head.kind, self._root(head.kind, name))) is not None
        ):
            data |= {key: value for key, value in recorded.data.items() if key in _LINEAGE}
            parent, shared = recorded.parent, recorded.fork_seq
        elif PARENT in data:
            data[PARENT] = self._made.get((head.kind, data[PARENT]), data[PARENT])
        return head._replace(name=name, parent=parent, fork_seq=shared, data=data)

    def heads(self, query: HeadQuery) -> Page:
        page: Page = self._real.heads(query)
        items = [self._shown(head) for head in page.items if self._is_seen(head.kind, head.name)]
        return page._replace(items=items)

    def _is_seen(self, kind: str, name: str) -> bool:
        """Return whether the program sees the stream of that name in the store."""
        return (kind, name) in self._made or not self._is_known(kind, name)

    def search(self, query: str, kind: str = "session", **options: Any) -> Any:
        name, names = options.get("name"), options.get("names")
        if name is not None:
            options["name"] = self.real_name(kind, name)
        if names is not None:
            options["names"] = names | {self.real_name(kind, each) for each in names}
        found = []
        for hit in self._real.search(query, kind, **options):
            called = self._called(kind, hit.name)
            version = self._forks.versions.get((kind, called))
            if (kind, hit.name) in self._made:
                found.append(hit._replace(name=self._made[kind, hit.name]))
            elif not self._is_known(kind, hit.name) or (version is not None and hit.seq <= version):
                found.append(hit._replace(name=called))
        return found

    def changes(self, kind: str, name: str, after: int, timeout: float) -> int:
        return int(self._real.changes(kind, self.real_name(kind, name), after, timeout))

    def versions(self, kind: str, names: Sequence[str]) -> dict[str, int]:
        real = {self.real_name(kind, name): name for name in names}
        return {real[name]: version for name, version in self._real.versions(kind, [*real]).items()}

    def news(self, kind: str, known: Mapping[str, int], timeout: float) -> dict[str, int]:
        real = {self.real_name(kind, name): name for name in known}
        seen = {new: known[name] for new, name in real.items()}
        return {real[name]: version for name, version in self._real.news(kind, seen, timeout).items()}

    # --- what is done to all --------------------------------------------------------------------------

    def fsck(self, *, repair: bool = False) -> Any:
        """Check the store, and repair nothing."""
        return self._real.fsck(repair=False)

    def gc(self, **options: Any) -> Any:
        """Say what would go, and leave it."""
        return self._real.gc(**{**options, "dry_run": True})

    def delete(self, kind: str, name: str) -> bool:
        """Delete what the branch has made; what was recorded isn't seen any more."""
        is_there = self.head(kind, name) is not None
        real = self.real_name(kind, name)
        if (kind, real) in self._made:
            self._real.delete(kind, real)
        new = self._forks.world.ids.new()
        self._note(kind, name, new, new)
        self._forks.sessions.pop(name, None)
        return is_there

    def erase(self, streams: Sequence[tuple[str, str]]) -> str | None:
        for kind, name in streams:
            self.delete(kind, name)
        return None

    def lease(
        self,
        key: str,
        owner: str | None = None,
        ttl: float = 30.0,
        *,
        wait: float = 0.0,
        check: Check | None = None,
    ) -> Lease:
        lease: Lease = self._real.lease(self._key(key), owner, ttl, wait=wait, check=check)
        return lease

    def holder(self, key: str) -> str | None:
        holder: str | None = self._real.holder(self._key(key))
        return holder

    def _key(self, key: str) -> str:
        """Return the key of a lease: a session's id, maybe behind a word."""
        lead, colon, name = key.rpartition(":")
        return f"{lead}{colon}{self.real_name(KIND, name)}"


class ForkedStream:
    """A stream of such a store, by the name that the program knows."""

    def __init__(self, store: ForkedStore, kind: str, name: str, codec: Codec) -> None:
        self._store = store
        self.kind = kind
        self.name = name
        self.codec = codec
        self._real: Any = None

    @property
    def real(self) -> Any:
        """The stream in the store, which is another one once it has a fork."""
        if self._real is None or self._real.name != self._store.real_name(self.kind, self.name):
            self._real = self._store.real_stream(self.kind, self.name, self.codec)
        return self._real

    @property
    def version(self) -> int:
        return int(self.real.version)

    def append(
        self,
        records: Sequence[Record],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        if self._store.is_rewriting:
            self._store.rewrite(_Append(self, records, expected_version, head))
            return
        self._own()
        head = self._store.told(self.kind, self.name, head)
        self.real.append(records, expected_version, head=head, fence=fence)

    def _own(self) -> None:
        self._store.own(self.kind, self.name, self.codec)

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Record]:
        first = self._store.first(self.name, self.codec) if self.kind == KIND and after == 0 else None
        for record in self.real.read(after, until, types=types, reverse=reverse, limit=limit):
            yield first if first is not None and record.seq == 1 else record

    def last(self) -> Record | None:
        return next(self.read(reverse=True, limit=1), None)

    def find_key(self, key: str) -> Record | None:
        return self.real.find_key(key)

    def find_id(self, id: str) -> int | None:
        found: int | None = self.real.find_id(id)
        return found

    def refresh(self) -> int:
        return int(self.real.refresh())

    def settle(self) -> None:
        self._own()
        self.real.settle()

    def drop(self, until: int) -> int:
        self._own()
        return int(self.real.drop(until))


class _Renaming:
    """``codec``, for the first record of a session that was forked from ``old``: in the store, ``new``."""

    def __init__(self, codec: Codec, old: str, new: str) -> None:
        self._codec = codec
        self._renamed: Callable[[Any], Any] = lambda name: new if name == old else name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codec, name)

    def encode(self, records: Sequence[Record]) -> list[Row]:
        return [self._named(row) for row in self._codec.encode(records)]

    def _named(self, row: Row) -> Row:
        if row.type != kinds.SESSION_CREATED:
            return row
        data = from_json(row.data)
        data["parent_session_id"] = self._renamed(data.get("parent_session_id"))
        return row._replace(data=to_json(data).decode())
