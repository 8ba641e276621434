"""The live sessions of a runtime: one object for each id, which threads may share. Spec: 10 §C3, §C7."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

from harnpy.session.arguments import session_id
from harnpy.session.codec import SessionCodec, action_key
from harnpy.session.errors import SessionNotFound
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Concatenate, ParamSpec, TypeVar

    from harnpy.session.events import Origin
    from harnpy.session.past import Until
    from harnpy.session.resize import Resizing
    from harnpy.session.view import View
    from harnpy.storage.contract import Store, Stream
    from harnpy.storage.leases import Lease
    from harnpy.world import World

    P = ParamSpec("P")
    R = TypeVar("R")

#: How many sessions stay in memory that nobody holds.
CAP = 256


def _alone(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[LiveSession, P], R]:
    """Return the method of `StoredSession` as one that no other thread runs between."""

    @wraps(method)
    def alone(session: LiveSession, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with session.lock:
            return method(session, *args, **kwargs)

    return alone


class LiveSession(StoredSession):
    """A session on a store. Each call that changes it or reads the log is whole for other threads."""

    __slots__ = ("__weakref__", "home", "lock")

    def __init__(
        self, origin: Origin, stream: Stream, store: Store, view: View | None = None, moment: float = 0
    ) -> None:
        self.lock = RLock()
        self.home: Living | None = None
        super().__init__(origin, stream, store, view, moment)

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
        return fork if self.home is None else self.home.adopt(fork)

    def has_executed(self, key: str) -> bool:
        """Whether an action of that idempotency key was carried out, on this session itself."""
        found = self.stream.find_key(action_key(key))
        return found is not None and found.seq > self.origin.shared

    def set(self, key: str, value: Any, **why: Any) -> int:
        with self.lock:
            return super().set(key, value, **why)

    write = _alone(StoredSession.write)
    commit = _alone(StoredSession.commit)
    refresh = _alone(StoredSession.refresh)
    snapshot = _alone(StoredSession.snapshot)
    show_summary = _alone(StoredSession.show_summary)
    replace = _alone(StoredSession.replace)
    shrink = _alone(StoredSession.shrink)
    bring = _alone(StoredSession.bring)
    set_history = _alone(StoredSession.set_history)
    clean_window = _alone(StoredSession.clean_window)
    trim = _alone(StoredSession.trim)
    compact = _alone(StoredSession.compact)
    whole = _alone(StoredSession.whole)
    restore = _alone(StoredSession.restore)
    set_status = _alone(StoredSession.set_status)
    pin = _alone(StoredSession.pin)
    unpin = _alone(StoredSession.unpin)
    rewind = _alone(StoredSession.rewind)
    redo = _alone(StoredSession.redo)
    _listened = _alone(StoredSession._listened)
    append = _alone(StoredSession.append)
    move_leaf = _alone(StoredSession.move_leaf)
    read = _alone(StoredSession.read)
    events = _alone(StoredSession.events)
    messages = _alone(StoredSession.messages)
    window = _alone(StoredSession.window)
    entries = _alone(StoredSession.entries)
    history = _alone(StoredSession.history)


class Living:
    """The sessions of one store that are in memory.

    Whoever holds one holds the only object of its id; `CAP` of them stay without being held, the least
    recently used first to go.
    """

    def __init__(
        self, store: Store, world: World, resizing: Resizing | None = None, *, strict: bool = False
    ) -> None:
        self.store = store
        self.strict = strict
        self.world = world
        self.resizing = resizing
        #: What runs the definitions of sessions, if anything does.
        self.agents: Any = None
        self._lock = RLock()
        self._known: WeakValueDictionary[str, LiveSession] = WeakValueDictionary()
        self._recent: OrderedDict[str, LiveSession] = OrderedDict()
        self._leases: dict[str, Lease] = {}

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
        return self.adopt(session)

    def _loaded(self, id: str) -> LiveSession:
        found = LiveSession.load(id, self.store, self.world)
        if found is None:
            raise SessionNotFound(id)
        return self.adopt(cast("LiveSession", found))

    def blank(self, origin: Origin) -> LiveSession:
        """Return a session that has no event yet, unless there is one of that id."""
        stream = self.store.stream(KIND, origin.id, SessionCodec(origin))
        session = LiveSession(origin, stream, self.store)
        session.lease = self._leases.get(origin.id)
        session.resizing, session.strict = self.resizing, self.strict
        return session

    @contextmanager
    def under(self, id: str, lease: Lease) -> Iterator[None]:
        """Have the session append under a lease."""
        self._lease(id, lease)
        try:
            yield
        finally:
            self._lease(id, None)

    def _lease(self, id: str, lease: Lease | None) -> None:
        with self._lock:
            self._leases.pop(id, None)
            if lease is not None:
                self._leases[id] = lease
            session = self._known.get(id)
            if session is not None:
                session.lease = lease

    def adopt(self, session: LiveSession) -> LiveSession:
        """Keep a session in memory. Return the object of its id, which another thread may have brought."""
        with self._lock:
            session = self._known.setdefault(session.id, session)
            session.home, session.lease = self, self._leases.get(session.id)
            session.resizing = session.resizing or self.resizing
            session.strict = self.strict
            self._recent[session.id] = session
            self._recent.move_to_end(session.id)
            if len(self._recent) > CAP:
                self._recent.popitem(last=False)
        return session

    def is_watched(self, id: str) -> bool:
        """Whether somebody watches or observes the session."""
        session = self._known.get(id)
        return session is not None and session.has_watchers

    def forget(self, id: str) -> bool:
        """Take a session out of memory. Return False if it isn't there."""
        with self._lock:
            self._recent.pop(id, None)
            return self._known.pop(id, None) is not None
