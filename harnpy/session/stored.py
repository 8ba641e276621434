"""`StoredSession`: a session whose appends are on the store first, and which notices what others append.

Spec: 10 §C4.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harnpy.faults import Fault, shape_problem
from harnpy.session import events as kinds
from harnpy.session.arguments import optional_seconds, validate_session_id
from harnpy.session.codec import SessionCodec
from harnpy.session.cuts import Created, Cut
from harnpy.session.drafting import check_fields
from harnpy.session.errors import SessionConflict, SessionExists
from harnpy.session.events import Event, EventDraft, Origin, check_all, micros
from harnpy.session.history import ANY
from harnpy.session.info import FORK_SEQ, FORK_TIME, PARENT, SNAPSHOT, Digest, SessionInfo, info_of
from harnpy.session.log import KIND, Session, why_forked
from harnpy.session.past import PastStream, past
from harnpy.session.projections import EVENTS, Basis, NewSnapshot, load, take
from harnpy.session.registers import DELETED
from harnpy.session.view import Saves, View, replay
from harnpy.session.watch import CHUNK
from harnpy.storage.contract import HeadQuery
from harnpy.storage.errors import AppendLost, CorruptLog, LeaseLost, StreamExists, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    from harnpy.session.past import Until
    from harnpy.session.watch import Feed, Tail
    from harnpy.storage.contract import Head, Store, Stream
    from harnpy.storage.leases import Lease
    from harnpy.world import World

# The end of a log on a store, as a watch reads it. Spec: 10 §C10.


#: How long one wait on the store is at most: a watch that is closed by another thread ends so soon. Seconds.
_LOOK = 0.5


class StoreTail:
    """The log of a session, with what other objects and processes append.

    It is read by an object of its own, which ``load`` returns: what the session's object has seen, that one
    alone decides. ``changes`` waits on the store, like `Store.changes`.
    """

    def __init__(
        self,
        load: Callable[[], StoredSession | None],
        changes: Callable[[int, float], int],
        *,
        is_told: bool,
    ) -> None:
        self.is_told = is_told
        self._load = load
        self._changes = changes
        self._log: StoredSession | None = None

    def read(self, after: int) -> list[Event]:
        log = self._log
        if log is None:
            log = self._log = self._load()
        elif log.version < after + CHUNK:
            log.refresh()
        return [] if log is None else log.read(after, min(log.version, after + CHUNK))

    def wait(self, feed: Feed, timeout: float | None) -> None:
        look = _LOOK if timeout is None else min(timeout, _LOOK)
        feed.fall_behind(self._changes(feed.seen, look))


# A session on a store: what it appends is on the medium, and it takes notice of what others append.
#
# What only adds to the log (messages, notes, the events of a turn) goes to its end, whatever others have
# written meanwhile. What depends on what was seen (cuts, registers) goes right behind that or not at all:
# `SessionConflict` then, and the verb is carried out again on the newer log. Spec: 10 §C1, §C3, §C9.


T = TypeVar("T")

#: What only makes sense right behind what its writer has seen.
_BOUND: Final = frozenset({
    kinds.SESSION_CREATED, kinds.HISTORY_REPLACED, kinds.COMPACTION_TRIGGERED, kinds.REGISTER_SET,
    kinds.LEAF_MOVED, kinds.STATUS_CHANGED, kinds.PROJECTION_SNAPSHOTTED,
})  # fmt: skip
#: What is said, each by itself.
_SAID: Final = frozenset({kinds.MESSAGE_ADDED, kinds.CONTEXT_ADDED})
#: Behind them, a load reads the log before them.
_CUTS: Final = frozenset({kinds.HISTORY_REPLACED, kinds.COMPACTION_TRIGGERED, kinds.LEAF_MOVED})


_NO_BASIS = Basis()


class StoredSession(Session):
    """A `Session` on a store.

    ``lease`` is that of the loops that drive it; appends are refused once somebody else has it.
    """

    __slots__ = ("_basis", "_cuts", "_digest", "_former", "_head", "_last", "_snapshot", "lease", "store")
    is_stored = True

    def __init__(
        self, origin: Origin, stream: Stream, store: Store, view: View | None = None, moment: float = 0
    ) -> None:
        self._attach(origin, stream, view, moment)
        self.store = store
        self.lease: Lease | None = None
        self._cuts: dict[int, Event] = {}  # by number: a cut has its window once a view has applied it
        self._digest = Digest(origin.shared)
        self._head: dict[str, object] | None = None
        self._last: Event | None = None  # as this object has seen it: none of those before a fork
        #: What the next snapshot builds on.
        self._basis = _NO_BASIS
        self._snapshot = 0  # the one that the view was made from
        self._former: View | None = None  # the same view, made of the log behind it

    @classmethod
    def begin(
        cls,
        id: str,
        store: Store,
        world: World,
        facts: dict[str, Any] | None = None,
        parent: str | None = None,
    ) -> StoredSession:
        """Create a session. ``parent`` is the id of the one that it belongs to, of which it shares nothing.

        Raises `SessionExists` and `InvalidSessionId`.
        """
        validate_session_id(id, strict=store.strict_ids)
        above = None if parent is None else Origin(parent, world)
        origin = Origin(id, world, above)
        session = cls(origin, store.stream(KIND, id, SessionCodec(origin)), store)
        try:
            session.write(EventDraft(kinds.SESSION_CREATED, Created(above, facts=facts)), expected_version=0)
        except SessionConflict as conflict:
            raise SessionExists(id, conflict.found) from conflict
        return session

    @classmethod
    def load(cls, id: str, store: Store, world: World, until: Until | None = None) -> StoredSession | None:
        """Return the session as the store has it; None when it has none of that id.

        ``until`` (the number of an event, its id, or a moment): as it stood then. It can be read and
        forked; appends raise `SessionReadOnly`. Raises `EventNotFound` when there was nothing yet.
        """
        head = store.head(KIND, id)
        if head is None:
            return None
        origin = lineage_of(head, store, world)
        stream = store.stream(KIND, id, SessionCodec(origin))
        session = cls(origin, stream, store)
        for ancestor in _ancestors(origin):
            ancestor.find = origin.find
        if until is not None:
            session.stream = past(stream, until, origin)
            session.view.log = partial(session.stream.read, 0)
        try:
            session._read(None if until is not None else head)
        except (TypeError, LookupError, AttributeError) as error:  # of events that are none of their types
            if isinstance(error, Fault):
                raise
            raise CorruptLog(id, f"its events don't fit together: {shape_problem(error)}") from error
        return session

    @classmethod
    def admit(cls, events: Sequence[Event], origin: Origin, store: Store) -> StoredSession:
        """Store a whole log, in one append, as the session that ``origin`` names.

        Raises `InvalidSessionId`, `SessionExists`, and LookupError, TypeError, ValueError or AttributeError
        for events that don't fit together; nothing is stored then.
        """
        validate_session_id(origin.id, strict=store.strict_ids)
        view, digest = replay(events), Digest(origin.shared)
        digest.add(events)
        digest.rewound(view.execution)
        stream = store.stream(KIND, origin.id, SessionCodec(origin))
        try:
            stream.append(events, 0, head=digest.head())
        except VersionConflict as conflict:
            raise SessionExists(origin.id, conflict.found) from conflict
        session = cls(origin, stream, store, view, events[-1].moment)
        for ancestor in _ancestors(origin):
            ancestor.find = origin.find
        session._cuts.update(_cuts(events))
        session._digest, session._head, session._last = digest, digest.head(), events[-1]
        return session

    @classmethod
    def gather(cls, appends: Iterator[list[Event]], origin: Origin, store: Store) -> None:
        """Store a log that is too long to be held, append by append, as the session that ``origin`` names.

        The first append is its first event alone. Until all of it is there, it has another name and is
        deleted: lists don't show it, and a collection takes what a killed process leaves. Raises
        `InvalidSessionId`, `SessionExists`, and what ``appends`` raises; nothing is stored then.
        """
        validate_session_id(origin.id, strict=store.strict_ids)
        if (there := store.head(KIND, origin.id)) is not None:
            raise SessionExists(origin.id, there.version)
        digest, codec = Digest(origin.shared), SessionCodec(origin)
        hidden = store.stream(KIND, origin.world.ids.new(), codec)
        first: Event | None = None
        try:
            for events in appends:
                first = first or events[0]
                View().read(
                    [event for event in events if event.type in _SAID]
                )  # which fails for what is none
                digest.add(events)
                hidden.append(events, hidden.version, head={"status": DELETED})
            assert first is not None, "a log has a first event"
            stream = store.branch(hidden, origin.id, first, codec=codec, head=digest.head())
        except StreamExists as exists:
            raise SessionExists(origin.id, 0) from exists
        finally:
            store.delete(KIND, hidden.name)
        cls(origin, stream, store)  # which its events refer to
        for ancestor in _ancestors(origin):
            ancestor.find = origin.find

    @property
    def info(self) -> SessionInfo:
        """The session as lists show it."""
        head = self.store.head(KIND, self.id)
        assert head is not None, "a session is written before it is there"
        if isinstance(self.stream, PastStream):
            forked_at = {key: value for key, value in head.data.items() if key == FORK_TIME}
            updated = micros(self.moment)
            head = head._replace(version=self.version, updated=updated, data=self._digest.head() | forked_at)
        return info_of(head)

    @property
    def open_children(self) -> Mapping[str, int]:
        """The children that hold a lease while they run: id → the number of the event that asked for it."""
        return self._digest.children

    def fork(
        self,
        id: str | None = None,
        store: Any = None,
        *,
        at: Until | None = None,
        label: str = "",
        reason: str = "",
    ) -> StoredSession:
        """Create a session with this one's past, up to event ``at``, on the same store.

        Raises `EventNotFound` for an ``at`` that isn't there, `SessionExists` and `InvalidSessionId`.
        """
        id = self.origin.world.ids.new() if id is None else id
        validate_session_id(id, strict=self.store.strict_ids)
        self.refresh()
        point, why = self._fork_point(at), why_forked(label, reason)
        if point == self.version:
            return self._fork(id, None if self._is_light else self.view, self._digest, point, why)
        digest = Digest(self.origin.shared)
        past = list(self.stream.read(until=point))
        view = replay(past)
        digest.add(past)
        return self._fork(id, view, digest, point, why)

    def _fork(
        self, id: str, view: View | None, digest: Digest, at: int, why: dict[str, Any]
    ) -> StoredSession:
        """Fork at event number ``at``. ``view`` (None: the one that the store gives) is the one there."""
        point = self._last
        if point is None or point.seq != at:
            point = next(self.stream.read(at - 1, at))
        origin = Origin(id, self.origin.world, self.origin, at)
        created = Created(self.origin, at, point, self.agent_facts() | why)
        first = Event(origin, 1, kinds.SESSION_CREATED, created, self._now())
        digest = digest.forked(point)
        digest.add((first,))
        head, codec = digest.head(), SessionCodec(origin)
        try:
            source = self.stream.whole if isinstance(self.stream, PastStream) else self.stream
            stream = self.store.branch(source, id, first, codec=codec, until=at, head=head)
        except StreamExists as exists:
            raise SessionExists(id, 0) from exists
        if view is None:
            session = type(self)(origin, stream, self.store)
            session._read(self.store.head(KIND, id))
            session.resizing = self.resizing
            return session
        session = type(self)(origin, stream, self.store, view.branch(), point.moment)
        if self._basis.seq <= at:
            session._basis = self._basis
        session._cuts = {seq: cut for seq, cut in self._cuts.items() if seq <= at}
        session._digest, session._head = digest, head
        session.resizing = self.resizing
        session.view.apply(first)
        return session

    def settle(self) -> None:
        self.view.window.settle()  # its log shares nothing with another object

    # Reading: from the newest projection snapshot on, or all of it.
    #
    # A view that was made from a snapshot knows the window, registers, clients and statuses. Whoever wants
    # more (transcript events, history, where turns began, what a cut left) makes it read the log behind the
    # snapshot, once. Spec: 10 §C5.

    @property
    def revision(self) -> int:
        return self._digest.saves.count

    @property
    def total_cost(self) -> float:
        return self._digest.cost

    def agent_facts(self) -> dict[str, Any]:
        return self._digest.agent()

    @property
    def definition(self) -> Any:
        return self._digest.facts.get("definition") or None

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> list[Event]:
        found = list(self.stream.read(after, until, types=types, reverse=reverse, limit=limit))
        if self._is_light and not all(seq in self._cuts for seq, _ in _cuts(found)):
            self._full_view()
        return [self.origin.own(self._cuts.get(event.seq, event)) for event in found]

    def refresh(self) -> None:
        """Take notice of what others have appended."""
        if self.observers is not None:
            self.observers.check()
        version = self.stream.refresh()
        if version < self.version:
            self._read_anew()
        elif version > self.version:
            news = self._apply_new()
            self._head = None
            if self.observers is not None:
                self.observers.pass_on(news)
            self._tell(news)

    def _tell(self, events: Sequence[Event]) -> None:
        """Have those who follow the log know of events that are new to this object."""

    @property
    def _is_light(self) -> bool:
        """Return whether the log behind a snapshot hasn't been read yet."""
        return self._snapshot > 0 and self._former is None

    def _read(self, head: Head | None) -> None:
        """Read the log: behind the newest snapshot that ``head`` knows of, if it knows one."""
        self.version = 0
        if head is not None and head.data.get(SNAPSHOT):
            self._read_from(head.data[SNAPSHOT], head)
        self._apply_new()
        self._head = self._digest.head()

    def _read_anew(self) -> None:
        """Read the log again: what was acknowledged could not be written (10 §C6)."""
        head = self.store.head(KIND, self.id)
        self.view, self.moment, self._last = View(), 0.0, None
        self.view.log = partial(self.stream.read, 0)
        self.saves, self._digest, self._basis = (
            Saves(self.origin.shared),
            Digest(self.origin.shared),
            _NO_BASIS,
        )
        self._cuts, self._snapshot, self._former = {}, 0, None
        self._read(head)

    def _read_from(self, seq: int, head: Head) -> None:
        """Read snapshot number ``seq`` and what follows it, up to where the log ended when ``head`` was read.

        Do nothing if the snapshot is damaged.
        """
        loaded = load(self.stream, seq, self._full_view)
        if loaded is None:
            return
        view, self._basis, created, self.moment = loaded
        facts = info_of(head)
        view.log, view.status, view.execution = self.view.log, facts.status, facts.execution
        self.view, self.version, self._snapshot = view, seq, seq
        shared = created.body.fork_seq
        if seq <= shared:  # an ancestor's: the session begins behind what it shares with that
            self._apply(list(self.stream.read(seq, shared)))
            view.apply(created)
        self._apply(list(self.stream.read(self.version, head.version)))
        open_turns = [turn for turn in view.open_turns if turn > self.origin.shared]
        self._digest = Digest.of(head, self.origin.shared, open_turns)

    def _full_view(self) -> View:
        """Return the view at the snapshot that this one was made from, made of the log behind it."""
        if self._former is None:
            past = list(self.stream.read(until=self._snapshot))
            self._former = replay(past)
            self._cuts.update(_cuts(past))
        return self._former

    def _apply_new(self) -> list[Event]:
        """Apply what the stream has and the view lacks."""
        news = list(self.stream.read(after=self.version))
        if news:
            self._digest.add(news)
            self._apply(news)
            self._digest.rewound(self.view.execution)
        return news

    def _apply(self, events: Sequence[Event]) -> None:
        if events:
            self.version += len(events)
            for event in events:
                if isinstance(event.body, Cut):
                    self._cuts[event.seq] = event
            self._last = events[-1]
            self.moment = self._last.moment
            if events[0].more == len(events) - 1:  # one append
                self.view.extend(events)
            else:
                self.view.read(events)

    # Writing.

    def set(self, key: str, value: Any, **why: Any) -> int:
        return self._retry(lambda: super(StoredSession, self).set(key, value, **why))

    def set_status(self, status: str, reason: str | None = None) -> None:
        return self._retry(lambda: super(StoredSession, self).set_status(status, reason))

    def pin(self, event_id: str) -> bool:
        return self._retry(lambda: super(StoredSession, self).pin(event_id))

    def unpin(self, event_id: str) -> bool:
        return self._retry(lambda: super(StoredSession, self).unpin(event_id))

    def _retry(self, change: Callable[[], T]) -> T:
        """Make a change of what was seen; when somebody else wrote first, once more on the newer log."""
        while True:
            try:
                return change()
            except SessionConflict:
                self.refresh()

    def show_summary(self) -> None:
        while True:
            try:
                return super().show_summary()
            except SessionConflict:
                self.refresh()

    def record(self, type: str, payload: Any, turn: Event | None = None) -> Event:
        return self.write(EventDraft(type, payload, turn=turn))[0]

    def append(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        check_fields(drafts)
        return self._append(drafts, self.version if expected_version is None else expected_version)

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        """Append all drafts or none: at the end, unless a version is given or a draft is bound to one."""
        if not drafts:
            return []
        check_all(drafts)
        free = expected_version == ANY
        if expected_version is None:
            free = not any(draft.type in _BOUND for draft in drafts)
        seen = self.version if expected_version is None or free else expected_version
        while True:
            try:
                return self._write(drafts, seen)
            except VersionConflict as conflict:
                if not free:
                    raise SessionConflict(self.id, conflict.expected, conflict.found) from conflict
            self.refresh()
            seen = self.version

    def _write(self, drafts: Sequence[EventDraft], seen: int) -> list[Event]:
        events = self.drafted(drafts, seen)
        self._store(events, seen)
        return events

    def commit(self, events: Sequence[Event], given: int = 0) -> None:
        """Append events that were numbered to follow what this object has seen, as one append.

        The first ``given`` of them are in appends already. Raises `SessionConflict` when somebody else wrote
        first.
        """
        for behind, event in enumerate(reversed(events[given:])):
            event.owner, event.more = self.origin, behind
        try:
            self._store(events, self.version)
        except VersionConflict as conflict:
            raise SessionConflict(self.id, conflict.expected, conflict.found) from conflict

    def _store(self, written: Sequence[Event], seen: int) -> None:
        """Append events behind number ``seen``, and a snapshot of what they lead to, if one is due."""
        if self.observers is not None:
            self.observers.check()
        events, basis = [*written], self._basis
        is_near = seen + len(events) - self._digest.snapshot_seq < EVENTS
        taken = None if is_near else self._due(events, seen)
        if taken is not None:
            draft = EventDraft(kinds.PROJECTION_SNAPSHOTTED, taken.payload)
            events += Event.drafted((draft,), self.origin, seen + len(events), events[-1].moment)
            basis = taken.basis
            _join(events)
        former = self._digest
        digest = former.after(events)
        for event in events:
            if event.type == kinds.LEAF_MOVED:
                digest.rewound(self.view.at(event.body.target).execution)
        head = self._head
        if head is None or digest.facts is not former.facts or digest.saves.count != former.saves.count:
            head = digest.head()
        changed = None if head == self._head else head
        try:
            self._write_rows(events, seen, changed)
        except AppendLost:
            self._read_anew()
            raise
        self._digest, self._head, self._basis = digest, head, basis
        self._apply(events)
        try:
            if self.observers is not None:
                self.observers.appended(events)
        finally:
            if self.stream.version > self.version:
                self.refresh()  # the store has something to add: that it was repaired
        self._tell(written)

    def _write_rows(self, events: Sequence[Event], seen: int, head: dict[str, Any] | None) -> None:
        """Write events under the lease of the action that runs, if one does: it may end meanwhile, when
        another thread appends."""
        while True:
            lease = self.lease
            try:
                return self.stream.append(events, seen, head=head, fence=lease)
            except LeaseLost:
                if self.lease is lease:
                    raise

    # Projection snapshots.

    def snapshot(
        self,
        *,
        if_needed: bool = False,
        max_events: int = EVENTS,
        max_age: float | timedelta | None = None,
        trigger: str = "manual",
    ) -> bool:
        self.refresh()
        age = optional_seconds("max_age", max_age)
        while True:
            reason = self._needed(max_events, age) if if_needed else trigger
            if reason is None:
                return False
            taken = take(reason, self.view, self.version, self._basis, self._events_from)
            if taken is None:
                return False
            try:
                self.record(kinds.PROJECTION_SNAPSHOTTED, taken.payload)
            except SessionConflict:
                self.refresh()
            else:
                self._basis = taken.basis
                return True

    def _needed(self, max_events: int, max_age: float | None) -> str | None:
        """Return why a snapshot is due, None if it isn't."""
        last = self._digest.snapshot_seq
        if self.version == last:
            return None
        if 0 < max_events <= self.version - last:
            return "count"
        if max_age is not None and self._now() - self.event(max(last, 1)).moment >= max_age > 0:
            return "time"
        return None

    def _due(self, events: Sequence[Event], seen: int) -> NewSnapshot | None:
        """Return the snapshot that goes with an append of these events, of which there are enough, if one can
        be taken."""
        until = seen + len(events)
        if seen != self.version:
            return None
        ends_turn = False
        for event in events:
            if event.type in _CUTS:
                return None
            ends_turn = ends_turn or event.type == kinds.TURN_COMPLETED
        if not ends_turn:
            return None
        view = self.view.branch()
        view.extend(events)
        return take("count", view, until, self._basis, lambda seq: [*self._events_from(seq), *events])

    def _events_from(self, seq: int) -> list[Event]:
        return list(self.stream.read(seq - 1, self.version))

    # Reading.

    def tail(self) -> Tail:
        if isinstance(self.stream, PastStream):
            return super().tail()
        from harnpy.storage.deferred import DeferredStore

        id, store = self.id, self.store
        return StoreTail(
            lambda: self.load(id, store, self.origin.world),
            partial(store.changes, KIND, id),
            # What such a store has acknowledged isn't shown before it is written.
            is_told=not isinstance(store, DeferredStore),
        )

    def children(self) -> list[str]:
        """Return the sessions that were forked from this one, and no other one since, oldest first."""
        query, found = HeadQuery(KIND, parent=self.id, order="created"), []
        while True:
            page = self.store.heads(query)
            found += [head.name for head in page.items if info_of(head).parent_id == self.id]
            if page.next is None:
                return found[::-1]
            query = query._replace(after=page.next)

    def has_neighbour(self, id: str) -> bool:
        """Return whether the session's store has one of that id."""
        return self.store.head(KIND, id) is not None


def _join(events: Sequence[Event]) -> None:
    """Make one append of events."""
    for behind, event in enumerate(reversed(events)):
        event.more = behind


def lineage_of(head: Head, store: Store, world: World) -> Origin:
    """Return the origin of a session, behind those of the sessions that it descends from."""
    line = [(head.name, head.data.get(FORK_SEQ, 0))]
    above: Head | None = head
    while above is not None and (parent := above.data.get(PARENT)) is not None:
        # Another session may have the name of a parent that was deleted, or was left behind by an import.
        above = store.head(KIND, parent) if above.parent == parent else None
        # Of one that isn't there, nobody knows what it wrote itself.
        line.append((parent, line[-1][1] if above is None else above.data.get(FORK_SEQ, 0)))
    origin = None
    for name, shared in reversed(line):
        origin = Origin(name, world, origin, shared)
    assert origin is not None
    return origin


def _ancestors(origin: Origin) -> list[Origin]:
    found = []
    above = origin.parent
    while above is not None:
        found.append(above)
        above = above.parent
    return found


def _cuts(events: Iterable[Event]) -> Iterator[tuple[int, Event]]:
    return ((event.seq, event) for event in events if isinstance(event.body, Cut))
