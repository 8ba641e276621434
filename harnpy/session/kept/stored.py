"""A session on a store: what it appends is on the medium, and it takes notice of what others append.

What only adds to the log (messages, notes, the events of a turn) goes to its end, whatever others have
written meanwhile. What depends on what was seen (cuts, registers) goes right behind that or not at all:
`SessionConflict` then, and the verb is carried out again on the newer log. Spec: 10 §C1, §C3, §C9.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.errors import SessionConflict, SessionExists
from harnpy.session.events import Event, EventDraft, Origin
from harnpy.session.identity import micros
from harnpy.session.kept.codec import SessionCodec
from harnpy.session.kept.info import FORK_SEQ, FORK_TIME, PARENT, Digest, SessionInfo, info_of
from harnpy.session.kept.past import PastStream, past
from harnpy.session.log import ANY, KIND, Session
from harnpy.session.payloads import Created
from harnpy.session.views import View, replay
from harnpy.storage.contract import HeadQuery
from harnpy.storage.errors import StreamExists, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.session.kept.past import Until
    from harnpy.storage.contract import Head, Store, Stream
    from harnpy.storage.leases import Lease
    from harnpy.world import World

#: What only makes sense right behind what its writer has seen.
_BOUND: Final = frozenset({
    kinds.SESSION_CREATED, kinds.HISTORY_REPLACED, kinds.COMPACTION_TRIGGERED, kinds.REGISTER_SET,
    kinds.LEAF_MOVED, kinds.STATUS_CHANGED,
})  # fmt: skip


class StoredSession(Session):
    """A `Session` on a store.

    ``lease`` is that of the loops that drive it; appends are refused once somebody else has it. ``heard``
    is called with the events that others have appended.
    """

    __slots__ = ("_cuts", "_digest", "_head", "_last", "heard", "lease", "store")
    is_kept = True

    def __init__(
        self, origin: Origin, stream: Stream, store: Store, view: View | None = None, moment: float = 0
    ) -> None:
        super().__init__(origin, stream, view, moment)
        self.store = store
        self.lease: Lease | None = None
        self.heard: Callable[[Sequence[Event]], None] | None = None
        self._cuts: dict[int, Event] = {}  # by number: a cut has its window once a view has applied it
        self._digest = Digest(origin.shared)
        self._head: dict[str, Any] | None = None
        self._last: Event | None = None  # as this object has seen it: none of those before a fork

    @classmethod
    def begin(cls, id: str, store: Store, world: World, facts: dict[str, Any] | None = None) -> StoredSession:
        """Create a session. Raises `SessionExists`."""
        origin = Origin(id, world)
        session = cls(origin, store.stream(KIND, id, SessionCodec(origin)), store)
        try:
            session.write(EventDraft(kinds.SESSION_CREATED, Created(facts=facts)), expected_version=0)
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
        origin = _lineage(head, store, world)
        stream = store.stream(KIND, id, SessionCodec(origin))
        session = cls(origin, stream, store)
        for ancestor in _ancestors(origin):
            ancestor.find = origin.find
        if until is not None:
            session.stream = past(stream, until, origin)
            session.view.log = partial(session.stream.read, 0)
        session.version = 0
        session._take_in()
        session._head = session._digest.head()
        return session

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
    def revision(self) -> int:
        return self._digest.revision

    def fork(self, id: str, store: Any = None, at: int | None = None) -> StoredSession:
        """Create a session with this one's past, up to event number ``at``, on the same store.

        Raises `SessionExists`.
        """
        self.refresh()
        if at is None or at >= self.version:
            return self._fork(id, self.view.branch(), self._digest, self.version)
        digest = Digest(self.origin.shared)
        past = list(self.stream.read(until=at))
        view = replay(past)
        digest.add(past)
        return self._fork(id, view, digest, at)

    def _fork(self, id: str, view: View, digest: Digest, at: int) -> StoredSession:
        point = self._last
        if point is None or point.seq != at:
            point = next(self.stream.read(at - 1, at))
        origin = Origin(id, self.origin.world, self.origin, at)
        created = Created(self.origin, at, point)
        first = Event(origin, 1, kinds.SESSION_CREATED, created, self._now())
        digest = digest.forked(point)
        digest.add((first,))
        head, codec = digest.head(), SessionCodec(origin)
        try:
            source = self.stream.whole if isinstance(self.stream, PastStream) else self.stream
            stream = self.store.branch(source, id, first, codec=codec, until=at, head=head)
        except StreamExists as exists:
            raise SessionExists(id, 0) from exists
        session = StoredSession(origin, stream, self.store, view, point.moment)
        session._cuts = {seq: cut for seq, cut in self._cuts.items() if seq <= at}
        session._digest, session._head = digest, head
        session.view.apply(first)
        return session

    def settle(self) -> None:
        self.view.window.settle()  # its log shares nothing with another object

    # Writing.

    def set(self, key: str, value: Any, **why: Any) -> int:
        while True:
            try:
                return super().set(key, value, **why)
            except SessionConflict:
                self.refresh()

    def set_status(self, status: str, reason: str | None = None) -> None:
        while True:
            try:
                return super().set_status(status, reason)
            except SessionConflict:
                self.refresh()

    def show_summary(self) -> None:
        while True:
            try:
                return super().show_summary()
            except SessionConflict:
                self.refresh()

    def show(self, type: str, payload: Any) -> None:
        """Let the view show an event that the log won't have."""
        self.view.apply(Event(self.origin, self.version + 1, type, payload, self._now()))

    def record(self, type: str, payload: Any, turn: Event | None = None) -> Event:
        return self.write(EventDraft(type, payload, turn=turn))[0]

    def append(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        return self.write(
            *drafts, expected_version=self.version if expected_version is None else expected_version
        )

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        """Append all drafts or none: at the end, unless a version is given or a draft is bound to one."""
        if not drafts:
            return []
        for draft in drafts:
            draft.check()
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
        now = self._now()
        count = len(drafts)
        events = [
            Event.drafted(draft, self.origin, seen + i, now, count - i) for i, draft in enumerate(drafts, 1)
        ]
        digest = self._digest.copy()
        digest.add(events)
        for event in events:
            if event.type == kinds.LEAF_MOVED:
                digest.rewound(self.view.at(event.payload.target).execution)
        head = digest.head()
        changed = None if head == self._head else head
        self.stream.append(events, seen, head=changed, fence=self.lease)
        self._digest, self._head = digest, head
        self._apply(events)
        if self.stream.version > self.version:
            self.refresh()  # the store has something to add: that it was repaired
        return events

    def _apply(self, events: Sequence[Event]) -> None:
        self.version += len(events)
        self._cuts.update((event.seq, event) for event in events if isinstance(event.payload, Cut))
        self._last = events[-1]
        self.moment = self._last.moment
        self.view.read(events)

    # Reading.

    def events(self, after: int = 0, until: int | None = None) -> list[Event]:
        found: Iterator[Event] = self.stream.read(after, until)
        return [self.origin.own(self._cuts.get(event.seq, event)) for event in found]

    def event(self, seq: int) -> Event:
        return self.events(seq - 1, seq)[0]

    def children(self) -> list[str]:
        """The sessions that were forked from this one, oldest first."""
        query, found = HeadQuery(KIND, parent=self.id, order="created"), []
        while True:
            page = self.store.heads(query)
            found += [head.name for head in page.items]
            if page.next is None:
                return found[::-1]
            query = query._replace(after=page.next)

    def has_neighbour(self, id: str) -> bool:
        """Whether the session's store has one of that id."""
        return self.store.head(KIND, id) is not None

    def refresh(self) -> None:
        """Take notice of what others have appended."""
        if self.stream.refresh() > self.version:
            news = self._take_in()
            self._head = None
            if self.heard is not None:
                self.heard(news)

    def _take_in(self) -> list[Event]:
        news = list(self.stream.read(after=self.version))
        if news:
            self._digest.add(news)
            self._apply(news)
            self._digest.rewound(self.view.execution)
        return news


def _lineage(head: Head, store: Store, world: World) -> Origin:
    """Return the origin of a session, behind those of the sessions that it descends from."""
    line = [(head.name, head.data.get(FORK_SEQ, 0))]
    above: Head | None = head
    while above is not None and (parent := above.data.get(PARENT)) is not None:
        # Another session may have the name of a parent that was deleted, or was left behind by an import.
        above = store.head(KIND, parent) if above.parent == parent else None
        line.append((parent, 0 if above is None else above.data.get(FORK_SEQ, 0)))
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
