"""The sessions that one Vm has open: a `Registry` finds, admits and releases them. Spec: 08 §1.1, §1.7."""

from __future__ import annotations

import os.path
from collections import OrderedDict
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from harnpy.formats.json import to_json
from harnpy.session import events as kinds
from harnpy.session.errors import InvalidArgument, SessionLeased, SessionNotFound
from harnpy.session.events import Event
from harnpy.session.log import KIND, Session
from harnpy.session.registers import COMPLETED, can_become
from harnpy.session.stores import Stores
from harnpy.session.transcript import lifecycle_event
from harnpy.session.window import NOTHING
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from harnpy.world.files import private_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from harnpy.formats.dicts import Dict
    from harnpy.session.lanes import Ticket, Waiter
    from harnpy.session.live import LiveSession
    from harnpy.session.view import View
    from harnpy.storage.contract import Store

    Subscriber = Callable[[Dict], Any]

# The sessions that a task drives, one inside the other: a stack of ids. Spec: 08 §1.1.
#
# A loop enters its session for as long as it runs, so that everything called from inside it can ask for the
# innermost id.


class _Driven:
    """The block in which a session is driven: its id is on the stack ``ids``, and among the ``pins``, which
    nobody evicts. A blank id isn't pushed. A class, since every loop enters such a block."""

    __slots__ = ("_id", "_ids", "_pins")

    def __init__(self, id: str, ids: list[str] | None, pins: dict[str, int] | None) -> None:
        self._id = id
        self._ids = ids if id.strip() else None
        self._pins = pins

    def __enter__(self) -> None:
        id, pins = self._id, self._pins
        if pins is not None:
            pins[id] = pins.get(id, 0) + 1
        if self._ids is not None:
            self._ids.append(id)

    def __exit__(self, *error: object) -> None:
        id, pins = self._id, self._pins
        if self._ids is not None:
            self._ids.pop()
        if pins is not None:
            pins[id] -= 1
            if not pins[id]:
                del pins[id]


class SessionStack:
    """The ids that one task drives, innermost last, and the turns that it is inside of."""

    __slots__ = ("ids", "turns")

    def __init__(self, ids: tuple[str, ...] = (), turns: tuple[Ticket, ...] = ()) -> None:
        self.ids = list(ids)
        self.turns = turns

    def current(self) -> str | None:
        return self.ids[-1] if self.ids else None

    def enter(self, id: str) -> AbstractContextManager[None]:
        """Drive ``id`` inside the block."""
        return _Driven(id, self.ids, None)

    def branch(self) -> SessionStack:
        """Return the stack of a task that starts here: a copy."""
        return SessionStack(tuple(self.ids), self.turns)

    @contextmanager
    def inside(self, ticket: Ticket) -> Iterator[None]:
        """Be inside of a turn in the block, with all tasks that start there."""
        self.turns = (*self.turns, ticket)
        try:
            yield
        finally:
            self.turns = tuple(one for one in self.turns if one is not ticket)


# The persistent sink: a session's agent events as lines of a file. Spec: 08 §1.7.
#
# The host may have them elsewhere. Else they are written when `HARN_EVENT_LOG_DIR` names a directory. A sink
# that can't be written warns once and is then silent; the session continues. Secrets are masked.


VARIABLE = "HARN_EVENT_LOG_DIR"
SIZE_LIMIT = 100 * 1024 * 1024


class Sink(Protocol):
    """A destination of a session's agent events."""

    def write(self, event: dict[str, Any]) -> None:
        """Keep an event. Raises nothing: the session goes on whatever becomes of it."""


class EventSink:
    """One session's file, continued in a new one whenever it has grown to ``SIZE_LIMIT`` bytes."""

    def __init__(self, directory: str, session_id: str, world: World) -> None:
        from urllib.parse import quote

        # Any text is an id; percent-encoding keeps files distinct and inside the directory.
        self._stem = os.path.join(directory, f"event_log-{quote(session_id, '', errors='surrogatepass')}")
        self._world = world
        self._files = private_files(world.unguarded.files)
        self._index = 0
        self._part = 0
        self._size = 0
        self._broken = False
        self._put("", append=False)

    def write(self, event: dict[str, Any]) -> None:
        """Add an event's line."""
        if self._broken:
            return
        from harnpy.formats.secrets.masking import mask_value

        now = round(self._world.clock.now() * 1000)
        row = {**mask_value(event), "index": self._index, "emitted_at_ms": now, "frame_depth": None}
        line = to_json(row) + "\n"
        self._index += 1
        if self._size >= SIZE_LIMIT:
            self._part, self._size = self._part + 1, 0
            self._put("", append=False)
        self._put(line, append=True)

    def _put(self, text: str, append: bool) -> None:
        suffix = f"-{self._part:06d}" if self._part else ""
        try:
            self._files.write_text(f"{self._stem}{suffix}.jsonl", text, append)
        except OSError as error:
            self._broken = True
            self._world.warn("agent.event_log", f"{self._stem}: {error.strerror}")
        self._size += len(text.encode("utf-8", "surrogatepass"))


# One open session, with what isn't in its log. Spec: 08 §1.1, §1.7.


class Follower(Protocol):
    """A running loop that keeps its own copy of a session's conversation in step."""

    id: str
    summarize: Callable[[str], str] | None
    #: The session that it follows; None once that was closed, even if its id has been reused.
    session: Session | None

    @property
    def turn(self) -> Event | None:
        """What began its turn."""

    def on_message(self, message: Dict) -> None:
        """A message was injected into the session."""

    def on_cut(self) -> None:
        """Somebody else compacted the session."""


class OpenSession:
    """A session that a registry has open, with what isn't in its log."""

    __slots__ = ("child_ids", "closing", "end", "followers", "session", "sink", "subscribers", "turns")

    def __init__(self, session: Session, sink: Sink | None) -> None:
        self.session = session
        #: Of the loops that drive a session on a store: its lane and its lease, which they share.
        self.turns: Mapping[Follower, ExitStack] = NOTHING
        self.sink = sink
        self.child_ids: dict[str, None] | None = None  # ordered and unique
        self.subscribers: list[Subscriber] = []
        self.followers: tuple[Follower, ...] = ()
        self.closing = False
        #: What tells subscribers that it is closed, of a session whose log doesn't say it.
        self.end: Event | None = None

    @property
    def view(self) -> View:
        """Return what the session shows."""
        view = self.session.view
        if self.end is not None:
            view = view.branch()
            view.apply(self.end)
        return view

    def follow(self, follower: Follower) -> None:
        """Have a loop that drives the session know of what others do to it."""
        self.followers = (*self.followers, follower)
        follower.session = self.session
        self._listen()

    def unfollow(self, follower: Follower) -> None:
        if follower in self.followers:
            follower.session = None
            self.followers = tuple(other for other in self.followers if other is not follower)
            self._listen()
            self.end_turn(follower)

    def _listen(self) -> None:
        """Listen to a session that others may write to, as long as a loop drives it."""
        if is_stored(self.session):
            others = tuple(listen for listen in self.session.listeners if listen != self.on_appended)
            self.session.listeners = (*others, self.on_appended) if self.followers else others

    def on_appended(self, events: Sequence[Event]) -> None:
        """Have the loops that drive the session know of what others have appended."""
        turns = [follower.turn for follower in self.followers]
        for event in events:
            if event.turn is not None and event.turn in turns:
                continue
            for follower in self.followers:
                if event.type == kinds.MESSAGE_ADDED:
                    follower.on_message(event.body)
                elif event.type in (kinds.HISTORY_REPLACED, kinds.COMPACTION_TRIGGERED):
                    follower.on_cut()

    def release_loops(self) -> None:
        """End the turns of the loops that drive the session."""
        for follower in [*self.turns]:
            self.end_turn(follower)
        for follower in self.followers:
            follower.session = None
        self.followers = ()
        self._listen()

    def end_turn(self, follower: Follower) -> None:
        """Let others have the session, as far as a loop is concerned."""
        turn = self.turns.get(follower)
        if turn is not None:
            self.turns = {other: turn for other, turn in self.turns.items() if other is not follower}
            turn.close()

    def add_child(self, id: str) -> None:
        """Note the id of a fork."""
        if self.child_ids is None:
            self.child_ids = {}
        self.child_ids[id] = None


# What is different for an open session that a store keeps. Spec: 10 §C9.
#
# A session in memory ends when it is closed; of one that is stored, only the live object goes.


_WHAT_TO_DO = ": a loop of another process runs on it; wait until that has ended, or end it"


def is_stored(session: Session) -> TypeGuard[LiveSession]:
    """Return whether a store keeps the session."""
    return session.is_stored


def check_store(session: Session, store: Store) -> None:
    """Raise `InvalidArgument` unless that store keeps the session."""
    if not is_stored(session):
        raise InvalidArgument(f"session '{session.id}' is open without a store: close it first", session.id)
    if session.store is not store:
        raise InvalidArgument(
            f"session '{session.id}' is open on {session.store.url}: close it first", session.id
        )


def close_log(opened: OpenSession, note: dict[str, Any]) -> None:
    """Write that a session is closed. The log of one that a store keeps says only that it is completed, if it
    is; subscribers see the rest."""
    session = opened.session
    if not is_stored(session):
        session.record(kinds.TRANSCRIPT_EVENT, note)
        return
    status = note["metadata"]["status"] or {}
    if COMPLETED in (status.get("status"), status.get("reason")) and can_become(session.status, COMPLETED):
        session.set_status(COMPLETED)
    opened.end = Event(
        session.origin,
        session.version + 1,
        kinds.TRANSCRIPT_EVENT,
        note,
        max(session.clock.now(), session.moment),
    )


def discard(session: Session, memory: MemoryStore) -> None:
    """Delete a session that nobody has seen yet."""
    store: Any = session.store if is_stored(session) else memory
    store.delete(KIND, session.id)


class _DirectCaller:
    """A loop calls its functions itself; a lease that is lost shows at its next append."""

    def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        raise NotImplementedError

    def check(self) -> None:
        pass

    def stop(self) -> None:
        pass


def begin_turn(registry: Registry, opened: OpenSession, follower: Follower) -> None:
    """Take the session's lane and lease for a loop, which other loops of this process may share.

    Raises `SessionBusy` inside an action of the session, `LaneTimeout` and `SessionLeased` when an action of
    this process, or another process, hasn't let it go in time.
    """
    session = opened.session
    if not is_stored(session):
        return
    from harnpy.session.lanes import LOOP, ThreadWaiter
    from harnpy.session.live import Turns, live_sessions
    from harnpy.storage.errors import LeaseHeld

    live, waiter = live_sessions(session.store, registry.world), registry.waiter or ThreadWaiter()
    turns = Turns(live, waiter, registry.lease_wait)
    with ExitStack() as turn:
        try:
            turn.enter_context(turns.turn(session.id, _DirectCaller(), LOOP, shared=True))
        except LeaseHeld as held:
            raise SessionLeased(f"{held.message}{_WHAT_TO_DO}", session.id) from held
        session.refresh()
        opened.turns = {**opened.turns, follower: turn.pop_all()}


# Everything that a verb does to a session starts with its registry. Reading a session leaves the order of use
# alone; everything else makes it the most recently used one. When there is no room for a new session, the
# least recently used one that no loop drives is evicted.


class Registry:
    """At most ``cap`` open sessions, the least recently used first."""

    def __init__(
        self,
        cap: int = 128,
        *,
        world: World | None = None,
        stack: Callable[[], SessionStack] | None = None,
        admission: Callable[[int], object] | None = None,
        sinks: Callable[[str], Sink | None] | None = None,
        waiter: Waiter | None = None,
    ) -> None:
        """``stack`` returns the running task's stack; without it there is one for all tasks.

        ``admission`` is called before a session is added, with the number that will be open; it may raise.
        ``sinks`` returns where a new session's agent events go, by its id; None: to a file, if there is one.
        ``waiter`` waits for sessions that others drive; None: the calling thread does.
        """
        self.world = World() if world is None else world
        self.set_cap(cap)
        only = SessionStack()
        self._stack: Callable[[], SessionStack] = (lambda: only) if stack is None else stack
        self._admission = admission
        self._sinks = sinks
        self._sink_directory: str | None = None  # unknown until the first session is admitted
        self.waiter = waiter
        #: How many seconds a loop waits for a session that an action or another process drives.
        self.lease_wait = 30.0
        #: Least recently used first. Only `admit` and `forget` add and remove.
        self.by_id: OrderedDict[str, OpenSession] = OrderedDict()
        self._closing = 0  # how many are notifying their subscribers that they close
        self._pins: dict[str, int] = {}
        #: Notes queued for loops, as (kind, content), by session id. The session need not exist.
        self.feedback: dict[str, list[tuple[str, str]]] = {}
        #: Receive the agent events of all sessions and of loops without one: the host's views.
        self.observers: list[Subscriber] = []

    @cached_property
    def store(self) -> MemoryStore:
        """What has the logs of the sessions that are kept nowhere else."""
        return MemoryStore()

    @cached_property
    def stores(self) -> Stores:
        """The stores that sessions are kept in."""
        return Stores(self.world)

    @property
    def cap(self) -> int:
        return self._cap

    def set_cap(self, cap: int) -> None:
        """Change the limit. Sessions over a lower one are evicted as new ones are admitted."""
        self._cap = max(1, cap)

    def ids(self) -> list[str]:
        """Return all ids, least recently used first."""
        return list(self.by_id)

    def clear(self) -> None:
        """Forget all sessions without notifying anyone."""
        for id in self.ids():
            self.by_id[id].session.look()
            self.store.delete(KIND, id)
            self.by_id[id].release_loops()
        self.by_id.clear()
        self.feedback.clear()
        self._closing = 0

    # Finding.

    def session(self, id: str) -> Session | None:
        """Return the live session, for readers of its log."""
        opened = self.current(id)
        return None if opened is None else opened.session

    def current(self, id: str) -> OpenSession | None:
        """Return the opened as it stands now, None when there is none."""
        opened = self.by_id.get(id)
        if opened is not None:
            opened.session.refresh()
        return opened

    def find(self, id: str) -> OpenSession:
        """Return the opened as it stands now. Raises `SessionNotFound`."""
        opened = self.by_id.get(id)
        if opened is None:
            raise SessionNotFound(id)
        opened.session.refresh()
        return opened

    def use(self, id: str) -> OpenSession:
        """Return the opened and make it the most recently used. Raises `SessionNotFound`."""
        opened = self.find(id)
        self.by_id.move_to_end(id)
        return opened

    def touch(self, id: str) -> None:
        """Make the session the most recently used, if it is still there."""
        if id in self.by_id:
            self.by_id.move_to_end(id)

    # The sessions that a task drives.

    def current_id(self) -> str | None:
        """Return the innermost id that this task drives."""
        return self._stack().current()

    def depth(self) -> int:
        """Return how many sessions this task drives, one inside the other."""
        return len(self._stack().ids)

    def enter(self, id: str) -> AbstractContextManager[None]:
        """Drive ``id`` inside the block."""
        return _Driven(id, self._stack().ids, self._pins)

    def pinned(self, id: str) -> AbstractContextManager[None]:
        """Never evict the session inside the block."""
        return _Driven(id, None, self._pins)

    # Agent events.

    def has_audience(self, id: str) -> bool:
        """Return whether anyone would receive an agent event of ``id``."""
        opened = self.by_id.get(id)
        if opened is not None and (opened.subscribers or opened.sink is not None):
            return True
        return bool(self.observers)

    def emit(self, id: str, event: Dict) -> None:
        """Send an agent event to the observers, the session's sink and its subscribers, in that order.

        What a subscriber raises becomes a warning.
        """
        opened = self.report(id, event)
        for callback in list(opened.subscribers) if opened is not None else ():
            try:
                callback(event)
            except Exception as error:
                self.world.warn("agent.subscriber", str(error))

    def report(self, id: str, event: Dict) -> OpenSession | None:
        """Send an agent event to the host only: observers and the session's sink. Return the opened."""
        for observe in self.observers:
            observe(event)
        opened = self.by_id.get(id)
        if opened is not None and opened.sink is not None:
            opened.sink.write(event)
        return opened

    # Admitting and letting go.

    def get_or_open(self, id: str | None, store: Store | bool | str | None = None) -> OpenSession:
        """Return the session, loaded or created if need be, as the most recently used; None mints an id.

        ``store`` is where it is kept: True by default, False nowhere, None as the project says.
        """
        keeper = self.stores.of(store) if id not in self.by_id or store is not None else None
        if id is None:
            id = self.world.ids.new()
        opened = self.by_id.get(id)
        if opened is None:
            self.make_room(id)
            opened = self.by_id.get(id)  # an eviction subscriber may have opened it
        if opened is None:
            self.store.delete(KIND, id)  # a fork that is under way
            return self.admit(self.make(id, keeper))
        if keeper is not None:
            check_store(opened.session, keeper)
        self.touch(id)
        return opened

    def make(self, id: str, keeper: Store | None) -> Session:
        """Return a session of that id in memory, or the one that ``keeper`` has or is given."""
        if keeper is None:
            return Session.create(id, self.store, self.world)
        from harnpy.session.live import live_sessions

        return live_sessions(keeper, self.world).open(id)

    def admit(self, session: Session) -> OpenSession:
        """Add a session, after `make_room`."""
        opened = OpenSession(session, self._sink_for(session.id))
        self.by_id[session.id] = opened
        return opened

    def admit_fork(self, source: OpenSession, id: str | None) -> OpenSession | None:
        """Add a fork of a session, which costs next to nothing until somebody looks at it; None mints an id.

        Return None if it can't be had so: on a store, in the place of another session, or for an eviction.
        """
        by_id, session = self.by_id, source.session
        count = len(by_id) - self._closing
        if session.is_stored or count >= self._cap or (id is not None and id in by_id):
            return None
        if self._admission is not None:
            self._admission(count + 1)
        if id is None:
            id = self.world.ids.new()
        source.add_child(id)
        by_id.move_to_end(session.id)
        fork = by_id[id] = OpenSession(session.fork_late(id, self.store), self._sink_for(id))
        return fork

    def share_subscribers(self, session: Session, opened: OpenSession) -> None:
        """Have ``opened``, which stands for ``session`` elsewhere, serve its subscribers and its sink."""
        known = self.by_id.get(session.id)
        if known is not None and known.session is session:
            opened.subscribers, opened.sink = known.subscribers, known.sink

    def make_room(self, id: str) -> None:
        """Evict the least recently used session if the registry is full, for the new session ``id``.

        Its subscribers may open other sessions, which evicts more, or ``id`` itself, which ends it.
        """
        if self._admission is not None:
            self._admission(self._open_count() + 1)
        full = max(self._cap, self._open_count())
        while self._open_count() >= full and id not in self.by_id:
            victim = self._victim()
            if victim is None:
                return
            self.release(victim, "lru_evicted", {"reason": "lru_evicted"})

    def release(self, opened: OpenSession, reason: str | None, status: Dict | None) -> None:
        """Remove a session after notifying its subscribers."""
        if opened.closing:  # one of these subscribers closes it, too
            self.forget(opened)
            return
        opened.closing = True
        self._closing += 1
        id, why = opened.session.id, {"reason": reason, "status": status}
        closed = lifecycle_event("agent_session_closed", text=reason or "", metadata=why)
        try:
            close_log(opened, closed)
            self.emit(id, {"type": "agent_session_closed", "session_id": id, **why})
        finally:  # also when the task is cancelled while a subscriber waits
            self.forget(opened)

    def forget(self, opened: OpenSession) -> None:
        """Remove a session without notifying anyone."""
        id = opened.session.id
        if self.by_id.get(id) is not opened:
            return
        if opened.closing:
            self._closing -= 1
        del self.by_id[id]
        opened.release_loops()
        self._settle_children(opened)
        opened.session.look()
        self.store.delete(KIND, id)
        self.feedback.pop(id, None)

    def _open_count(self) -> int:
        return len(self.by_id) - self._closing

    def _victim(self) -> OpenSession | None:
        """Return the least recently used session that nobody drives."""
        for id, opened in self.by_id.items():
            if id not in self._pins and not opened.closing:
                return opened
        return None

    def _sink_for(self, id: str) -> Sink | None:
        """Return where a new session's agent events go, the host's choice or a file; None for nowhere."""
        if self._sinks is not None:
            chosen = self._sinks(id)
            if chosen is not None:
                return chosen
        if self._sink_directory == "":
            return None
        if self._sink_directory is None:
            self._sink_directory = self.world.unguarded.environment.get(VARIABLE) or ""
        return EventSink(self._sink_directory, id, self.world) if self._sink_directory else None

    def _settle_children(self, opened: OpenSession) -> None:
        """Give each fork its own share of the past, so that the session's log can be freed."""
        for id in opened.child_ids or ():
            child = self.by_id.get(id)
            if child is not None:
                child.session.settle()
