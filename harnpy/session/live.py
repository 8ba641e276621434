"""The live sessions of a store: one object for each id, which all who use that store share.

`agent_session_*`, ``std/session`` and `SessionRuntime` hold references into one table, so what one of them
does the others see at once. Two stores that were opened by the same URL have two tables; leases settle who
of them may write. Spec: 10 §C1, §C3, §C7.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager, nullcontext
from functools import wraps
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakValueDictionary, ref

from harnpy.session.agents import AgentDef
from harnpy.session.arguments import checked, session_id, validate_session_id
from harnpy.session.chunks import Answer, SharedAnswers, Sharing, ends
from harnpy.session.codec import SessionCodec, action_key
from harnpy.session.errors import SessionExists, SessionNotFound
from harnpy.session.lanes import ACTION, Lane, Lanes
from harnpy.session.leases import Leases
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.watch import BUFFER, started_live
from harnpy.storage.errors import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Concatenate, ParamSpec, TypeVar

    from harnpy.session.calling import Caller
    from harnpy.session.events import Event, Origin
    from harnpy.session.lanes import Waiter
    from harnpy.session.past import Until
    from harnpy.session.resize import Resizing
    from harnpy.session.view import View
    from harnpy.session.watch import LiveWatch
    from harnpy.storage.contract import Store, Stream
    from harnpy.storage.leases import Lease
    from harnpy.world import World

    P = ParamSpec("P")
    R = TypeVar("R")

#: How many sessions stay in memory that nobody holds.
CAP = 256

#: Where a store carries its table.
_SLOT = "live_sessions"


def _locked(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[LiveSession, P], R]:
    """Return the method of `StoredSession` as one that no other thread runs between."""

    @wraps(method)
    def alone(session: LiveSession, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with session.lock:
            return method(session, *args, **kwargs)

    return alone


class SessionConfig(NamedTuple):
    """The settings of a runtime for the sessions that it hands out. ``agents`` runs their definitions."""

    resizing: Resizing
    strict: bool = False
    agents: Any = None


class LiveSession(StoredSession):
    """A session on a store. Each call that changes it or reads the log is whole for other threads."""

    __slots__ = (
        "__weakref__", "_answers", "_borrower", "_defined", "_own_resizing", "config", "listeners", "table",
        "lock"
    )  # fmt: skip

    def __init__(
        self, origin: Origin, stream: Stream, store: Store, view: View | None = None, moment: float = 0
    ) -> None:
        self.lock = RLock()
        self.table: LiveSessions | None = None
        #: Called with all events that it takes in, whoever appended them: registries do it for their loops.
        self.listeners: tuple[Callable[[Sequence[Event]], None], ...] = ()
        #: That of the runtime that handed it out last, if one has.
        self.config: SessionConfig | None = None
        self._borrower: object = None
        self._defined: tuple[Any, AgentDef] | None = None
        #: The answers that are being made, by the number of the event that began the turn.
        self._answers: dict[int, Answer] = {}
        super().__init__(origin, stream, store, view, moment)

    @property
    def resizing(self) -> Resizing | None:
        """Return how it is resized: as it was told to be, else as its runtime does it."""
        if self._own_resizing is None and self.config is not None:
            return self.config.resizing
        return self._own_resizing

    @resizing.setter
    def resizing(self, resizing: Resizing | None) -> None:
        self._own_resizing: Resizing | None = resizing

    @property
    def agent_def(self) -> AgentDef | None:
        """The definition that it was created with; None without one."""
        stored = self.definition
        if stored is None:
            return None
        if self._defined is None or self._defined[0] is not stored:  # the log's own: it never changes
            self._defined = stored, AgentDef.stored(stored)
        return self._defined[1]

    def configured(self, config: SessionConfig) -> LiveSession:
        """Return the session as a runtime's."""
        self.config, self.strict = config, config.strict
        return self

    def fork(
        self,
        id: str | None = None,
        store: Any = None,
        *,
        at: Until | None = None,
        label: str = "",
        reason: str = "",
    ) -> LiveSession:
        with self.lock:
            fork = cast("LiveSession", super().fork(id, store, at=at, label=label, reason=reason))
        if self.table is not None:
            fork = self.table.adopt(fork, is_new=True)
        return fork if self.config is None else fork.configured(self.config)

    def _tell(self, events: Sequence[Event]) -> None:
        if self._answers:
            for event in filter(ends, events):
                assert event.turn is not None
                self.end_answer(event.turn.seq)
        for listen in self.listeners:
            listen(events)

    # What an agent shows of its answer while it makes it. Spec: 10 §C10.

    @property
    def answers(self) -> list[Answer]:
        """Return the answers that are being made."""
        return [*self._answers.values()]

    @property
    def has_audience(self) -> bool:
        """Return whether somebody may watch answers come."""
        return self.has_watchers or (self.table is not None and self.table.sharing is not None)

    def show(self, turn: int, text: str) -> None:
        """Show the next piece of a turn's answer to whoever watches for it. Nobody is waited for."""
        answer = self._answers.get(turn)
        if answer is None:
            answer = self._answers[turn] = Answer(turn, self.version)
        answer.pieces.append(checked(text))
        if self.observers is not None:
            self.observers.show(answer)
        if self.table is not None and self.table.sharing is not None:
            self.table.sharing.note(self.id, answer)

    def end_answer(self, turn: int) -> None:
        """Have the next piece of the turn be that of another answer."""
        answer = self._answers.pop(turn, None)
        if answer is not None:
            answer.is_over = True

    def watch_live(
        self, *, buffer: int = BUFFER, after: int | None = None, types: Iterable[str] | None = None
    ) -> LiveWatch:
        """`watch`, with the pieces of answers between the events, in whatever process they are made."""
        with self.lock:
            return started_live(self, self.answers, self.shared_answers(), buffer, after, types)

    def shared_answers(self) -> SharedAnswers | None:
        """Return the answers that other processes make, for one watch; None where there are none."""
        if self.table is None or self.table.leases is None:
            return None
        return SharedAnswers(self.store, self.id, self.table.name)

    def lend_view(self, borrower: object) -> View:
        """Return the view, which stays as it is until `take_view_back`, or somebody else borrows it."""
        if self._borrower is not None and self._borrower is not borrower:
            self._leave_view()
        self._borrower = borrower
        return self.view

    def take_view_back(self, borrower: object) -> None:
        """Go on with the view that was lent, if that one has it."""
        if self._borrower is borrower:
            self._borrower = None

    def _leave_view(self) -> None:
        """Leave the view to whoever has borrowed it, and go on with a copy."""
        lent = self.view
        self.view = lent.branch()
        self.view.log, self.view.sent, lent.sent = lent.log, lent.sent, {}
        self._borrower = None

    def _apply(self, events: Sequence[Event]) -> None:
        if self._borrower is not None:
            self._leave_view()
        super()._apply(events)

    def has_executed(self, key: str) -> bool:
        """Return whether an action of that idempotency key was carried out, on this session itself."""
        found = self.stream.find_key(action_key(key))
        return found is not None and found.seq > self.origin.shared

    def set(self, key: str, value: Any, **why: Any) -> int:
        with self.lock:
            return super().set(key, value, **why)

    write = _locked(StoredSession.write)
    refresh = _locked(StoredSession.refresh)
    snapshot = _locked(StoredSession.snapshot)
    show_summary = _locked(StoredSession.show_summary)
    replace = _locked(StoredSession.replace)
    shrink = _locked(StoredSession.shrink)
    become_fork_of = _locked(StoredSession.become_fork_of)
    set_history = _locked(StoredSession.set_history)
    clean_window = _locked(StoredSession.clean_window)
    trim = _locked(StoredSession.trim)
    compact = _locked(StoredSession.compact)
    locked = _locked(StoredSession.locked)
    restore = _locked(StoredSession.restore)
    set_status = _locked(StoredSession.set_status)
    pin = _locked(StoredSession.pin)
    unpin = _locked(StoredSession.unpin)
    rewind = _locked(StoredSession.rewind)
    redo = _locked(StoredSession.redo)
    _ensure_observers = _locked(StoredSession._ensure_observers)
    append = _locked(StoredSession.append)
    move_leaf = _locked(StoredSession.move_leaf)
    read = _locked(StoredSession.read)
    events = _locked(StoredSession.events)
    messages = _locked(StoredSession.messages)
    window = _locked(StoredSession.window)
    entries = _locked(StoredSession.entries)
    history = _locked(StoredSession.history)


class LiveSessions:
    """The sessions of one store that are in memory, their lanes and their leases.

    Whoever holds a session holds the only object of its id; `CAP` of them stay without being held, the least
    recently used first to go.
    """

    def __init__(self, store: Store, world: World, lanes: Lanes, leases: Leases | None) -> None:
        """``leases`` is None where nobody else can have the store."""
        self.store = store
        self.world = world
        self.lanes = lanes
        self.leases = leases
        #: What puts answers on the store, for watches of other processes; None: nobody wants that.
        self.sharing: Sharing | None = None
        self._sharers = 0
        self._lock = RLock()
        self._known: WeakValueDictionary[str, LiveSession] = WeakValueDictionary()
        self._recent: OrderedDict[str, LiveSession] = OrderedDict()
        self._fences: dict[str, Lease] = {}

    @property
    def name(self) -> str:
        """Return what its shared answers are marked with: nothing if it shares none."""
        return "" if self.sharing is None else self.sharing.name

    def share(self) -> Callable[[], None]:
        """Put answers on the store, for watches of other processes. Return what ends that."""
        if self.leases is None:
            return lambda: None
        with self._lock:
            if self.sharing is None:
                self.sharing = Sharing(self.store, self.world.ids.new(), self.world.clock.now)
            self._sharers += 1
        return self._end_sharing

    def _end_sharing(self) -> None:
        with self._lock:
            self._sharers -= 1
            if self._sharers:
                return
            sharing, self.sharing = self.sharing, None
        if sharing is not None:
            sharing.close()

    def load(self, id: str) -> LiveSession:
        """Return the session as the store has it now. Raises `SessionNotFound`."""
        session = self._known.get(session_id(id))
        if session is None:
            return self._loaded(id)
        found = session.stream.refresh()
        if found < session.version:
            self.forget(id)  # it was deleted
            return self._loaded(id)
        if found > session.version:
            session.refresh()
        with self._lock:
            if self._recent.get(id) is session:
                self._recent.move_to_end(id)
                return session
        return self.adopt(session)

    def _loaded(self, id: str) -> LiveSession:
        found = LiveSession.load(id, self.store, self.world)
        if found is None:
            raise SessionNotFound(id)
        return self.adopt(cast("LiveSession", found))

    def open(self, id: str) -> LiveSession:
        """Return the session as the store has it now, created if need be. Raises `InvalidSessionId`."""
        validate_session_id(id)
        while True:
            try:
                return self.load(id)
            except SessionNotFound:
                pass
            try:
                begun = LiveSession.begin(id, self.store, self.world)
            except SessionExists:
                continue  # another process was faster
            return self.adopt(cast("LiveSession", begun), is_new=True)

    def blank(self, origin: Origin) -> LiveSession:
        """Return a session that has no event yet, unless there is one of that id."""
        stream = self.store.stream(KIND, origin.id, SessionCodec(origin))
        session = LiveSession(origin, stream, self.store)
        session.lease = self._fences.get(origin.id)
        return session

    @contextmanager
    def fence(self, id: str, lease: Lease) -> Iterator[None]:
        """Have the session append under a lease."""
        self._set_fence(id, lease)
        try:
            yield
        finally:
            if self.leases is None or self.leases.users(id) < 2:  # none but this one
                self._set_fence(id, None)

    def _set_fence(self, id: str, lease: Lease | None) -> None:
        with self._lock:
            self._fences.pop(id, None)
            if lease is not None:
                self._fences[id] = lease
            session = self._known.get(id)
            if session is not None:
                session.lease = lease

    def adopt(self, session: LiveSession, *, is_new: bool = False) -> LiveSession:
        """Keep a session in memory. Return the object of its id, which another thread may have brought.

        One that is new takes the place of one that was deleted by others.
        """
        with self._lock:
            if is_new:
                self._known[session.id] = session
            session = self._known.setdefault(session.id, session)
            session.table, session.lease = self, self._fences.get(session.id)
            self._recent[session.id] = session
            self._recent.move_to_end(session.id)
            if len(self._recent) > CAP:
                self._recent.popitem(last=False)
        return session

    def is_watched(self, id: str) -> bool:
        """Return whether somebody watches or observes the session."""
        session = self._known.get(id)
        return session is not None and session.has_watchers

    def forget(self, id: str) -> bool:
        """Take a session out of memory. Return False if it isn't there."""
        with self._lock:
            self._recent.pop(id, None)
            return self._known.pop(id, None) is not None


class _Slot:
    """What a store carries: its lanes, its leases, and its table as long as somebody uses that.

    A store may outlive the programs that worked on it, and keeps none of them alive.
    """

    __slots__ = ("_lanes", "_lock", "_store", "_table", "leases")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lanes = Lanes()
        self.leases = None if getattr(store, "is_private", False) else Leases(store)
        self._lock = Lock()
        self._table: Callable[[], LiveSessions | None] = lambda: None

    def table(self, world: World) -> LiveSessions:
        with self._lock:
            table = self._table()
            if table is None:
                table = LiveSessions(self._store, world, self._lanes, self.leases)
                self._table = ref(table)
            return table


def live_sessions(store: Store, world: World) -> LiveSessions:
    """Return the table of a store, which the object itself carries.

    Whoever asks first gives it the ``world`` of its sessions. A store that wraps another one has its own.
    """
    slot: _Slot | None = vars(store).get(_SLOT)
    if slot is None:
        slot = vars(store).setdefault(_SLOT, _Slot(store))
    return slot.table(world)


def release_leases(store: Store) -> None:
    """Let go of the leases that no turn has, of a store that is about to be closed."""
    slot: _Slot | None = vars(store).get(_SLOT)
    if slot is not None and slot.leases is not None:
        slot.leases.release_unused()


class Turns:
    """Taking turns on the sessions of a store, as one of its users does: how to wait, and how long."""

    def __init__(self, sessions: LiveSessions, waiter: Waiter, wait: float) -> None:
        self.waiter = waiter
        self.wait = wait
        self._sessions = sessions
        self._is_closed = False

    def turn(
        self, id: str, call: Caller, who: str = ACTION, *, shared: bool = False
    ) -> AbstractContextManager[object]:
        """Return what gives a session to oneself, or to those who share it, inside a ``with`` block: in this
        process, and on a store that others may use in all of them.

        ``call`` calls the functions of the turn. Raises what `Lanes.lane` and `Leases.lease` do, and
        `StoreClosed` after `close`.
        """

        def check() -> None:
            call.check()
            self.check()

        table = self._sessions
        self.check()
        lane = table.lanes.lane(id, self.waiter, check, self.wait, who, shared=shared)
        return lane if table.leases is None else self._leased(id, lane, table.leases, call)

    @contextmanager
    def _leased(self, id: str, lane: Lane, leases: Leases, call: Caller) -> Iterator[None]:
        with (
            lane as left,
            leases.lease(id, left, call, self.waiter, self.check) as lease,
            self._sessions.fence(id, lease),
        ):
            yield

    def lease(
        self, id: str, wait: float, call: Caller, kind: str = KIND
    ) -> AbstractContextManager[Lease | None]:
        """Return the lease of a session, or of what else ``kind`` says; None where there are no leases."""
        leases = self._sessions.leases
        return (
            nullcontext() if leases is None else leases.lease(id, wait, call, self.waiter, self.check, kind)
        )

    def check(self) -> None:
        """Raise `StoreClosed` after `close`."""
        if self._is_closed:
            raise StoreClosed("the runtime")

    def is_mine(self, id: str) -> bool:
        """Return whether this runs inside a turn of the session."""
        return self._sessions.lanes.mine(id, self.waiter) is not None

    def checks(self) -> list[Callable[[], None]]:
        """Return the checks of the turns that this runs inside of."""
        return self._sessions.lanes.checks(self.waiter)

    def wake(self) -> None:
        """Have all who wait look whether they still should."""
        self._sessions.lanes.wake()

    def close(self) -> None:
        """Let nobody in any more: whoever waits gets `StoreClosed`."""
        self._is_closed = True
        self.wake()
        if self._sessions.leases is not None:
            self._sessions.leases.release_unused()
