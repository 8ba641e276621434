"""The live sessions of one Vm: finding one, admitting one, letting one go. Spec: 08 §1.1, §1.7.

Everything that a verb does to a session starts here. Reading a session leaves the order of use alone;
everything else makes it the most recently used one. When there is no room for a new session, the least
recently used one that no loop drives is evicted.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harnpy.session.errors import SessionNotFound
from harnpy.session.kept.keeping import admitted, check_store, close_log, kept_session
from harnpy.session.kept.stores import Stores
from harnpy.session.log import KIND, Session
from harnpy.session.resident import Resident
from harnpy.session.sink import VARIABLE, EventSink
from harnpy.session.stack import SessionStack
from harnpy.session.transcript import lifecycle_event
from harnpy.storage.memory import MemoryStore
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.reading.dicts import Dict
    from harnpy.session.sink import Sink
    from harnpy.storage.contract import Store

    Subscriber = Callable[[Dict], Any]


class Residents:
    """At most ``cap`` sessions, the least recently used first."""

    def __init__(
        self,
        cap: int = 128,
        *,
        world: World | None = None,
        stack: Callable[[], SessionStack] | None = None,
        admission: Callable[[int], object] | None = None,
        sinks: Callable[[str], Sink | None] | None = None,
    ) -> None:
        """``stack`` returns the running task's stack; without it there is one for all tasks.

        ``admission`` is called before a session is added, with the number that will be open; it may raise.
        ``sinks`` returns where a new session's agent events go, by its id; None: to a file, if there is one.
        """
        self.world = world or World()
        self.set_cap(cap)
        only = SessionStack()
        self._stack = stack or (lambda: only)
        self._admission = admission
        self._sinks = sinks
        self._sink_directory: str | None = None  # unknown until the first session is admitted
        self.store = MemoryStore()
        self.stores = Stores(self.world)
        #: How many seconds a loop waits for a session that another process drives.
        self.lease_wait = 30.0
        #: Least recently used first. Only `admit` and `forget` add and remove.
        self.by_id: OrderedDict[str, Resident] = OrderedDict()
        self._closing = 0  # how many are notifying their subscribers that they close
        self._pins: dict[str, int] = {}
        #: Notes queued for loops, as (kind, content), by session id. The session need not exist.
        self.feedback: dict[str, list[tuple[str, str]]] = {}
        #: Receive the agent events of all sessions and of loops without one: the host's views.
        self.observers: list[Subscriber] = []

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
            self.store.delete(KIND, id)
            self.by_id[id].let_go()
        self.by_id.clear()
        self.feedback.clear()
        self._closing = 0

    # Finding.

    def session(self, id: str) -> Session | None:
        """Return the live session, for readers of its log."""
        resident = self.current(id)
        return None if resident is None else resident.session

    def current(self, id: str) -> Resident | None:
        """Return the resident as it stands now, None when there is none."""
        resident = self.by_id.get(id)
        if resident is not None:
            resident.session.refresh()
        return resident

    def find(self, id: str) -> Resident:
        """Return the resident as it stands now. Raises `SessionNotFound`."""
        resident = self.by_id.get(id)
        if resident is None:
            raise SessionNotFound(id)
        resident.session.refresh()
        return resident

    def use(self, id: str) -> Resident:
        """Return the resident and make it the most recently used. Raises `SessionNotFound`."""
        resident = self.find(id)
        self.by_id.move_to_end(id)
        return resident

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

    @contextmanager
    def enter(self, id: str) -> Iterator[None]:
        """Drive ``id`` inside the block."""
        with self.pinned(id), self._stack().enter(id):
            yield

    @contextmanager
    def pinned(self, id: str) -> Iterator[None]:
        """Never evict the session inside the block."""
        self._pins[id] = self._pins.get(id, 0) + 1
        try:
            yield
        finally:
            self._pins[id] -= 1
            if not self._pins[id]:
                del self._pins[id]

    # Agent events.

    def has_audience(self, id: str) -> bool:
        """Whether anyone would receive an agent event of ``id``."""
        resident = self.by_id.get(id)
        if resident is not None and (resident.subscribers or resident.sink is not None):
            return True
        return bool(self.observers)

    def emit(self, id: str, event: Dict) -> None:
        """Send an agent event to the observers, the session's sink and its subscribers, in that order.

        What a subscriber raises becomes a warning.
        """
        resident = self.report(id, event)
        for callback in list(resident.subscribers) if resident is not None else ():
            try:
                callback(event)
            except Exception as error:
                self.world.warn("agent.subscriber", str(error))

    def report(self, id: str, event: Dict) -> Resident | None:
        """Send an agent event to the host only: observers and the session's sink. Return the resident."""
        for observe in self.observers:
            observe(event)
        resident = self.by_id.get(id)
        if resident is not None and resident.sink is not None:
            resident.sink.write(event)
        return resident

    # Admitting and letting go.

    def open_resident(self, id: str | None, store: Store | bool | str | None = None) -> Resident:
        """Return the session, loaded or created if need be, as the most recently used; None mints an id.

        ``store`` is where it is kept: True by default, False nowhere, None as the project says.
        """
        keeper = self.stores.of(store) if id not in self.by_id or store is not None else None
        if id is None:
            id = self.world.ids.new()
        resident = self.by_id.get(id)
        if resident is None:
            self.make_room(id)
            resident = self.by_id.get(id)  # an eviction subscriber may have opened it
        if resident is None:
            self.store.delete(KIND, id)  # a fork that is under way
            return self.admit(self.make(id, keeper))
        if keeper is not None:
            check_store(resident.session, keeper)
        self.touch(id)
        return resident

    def make(self, id: str, keeper: Store | None) -> Session:
        """Return a session of that id in memory, or the one that ``keeper`` has or is given."""
        if keeper is None:
            return Session.create(id, self.store, self.world)
        return kept_session(id, keeper, self.world)

    def admit(self, session: Session) -> Resident:
        """Add a session, after `make_room`."""
        resident = Resident(session, self._sink_for(session.id))
        self.by_id[session.id] = resident
        admitted(resident)
        return resident

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

    def release(self, resident: Resident, reason: str | None, status: Dict | None) -> None:
        """Remove a session after notifying its subscribers."""
        if resident.closing:  # one of these subscribers closes it, too
            self.forget(resident)
            return
        resident.closing = True
        self._closing += 1
        id, why = resident.session.id, {"reason": reason, "status": status}
        closed = lifecycle_event("agent_session_closed", text=reason or "", metadata=why)
        try:
            close_log(resident.session, closed)
            self.emit(id, {"type": "agent_session_closed", "session_id": id, **why})
        finally:  # also when the task is cancelled while a subscriber waits
            self.forget(resident)

    def forget(self, resident: Resident) -> None:
        """Remove a session without notifying anyone."""
        id = resident.session.id
        if self.by_id.get(id) is not resident:
            return
        if resident.closing:
            self._closing -= 1
        del self.by_id[id]
        resident.let_go()
        self._settle_children(resident)
        self.store.delete(KIND, id)
        self.feedback.pop(id, None)

    def _open_count(self) -> int:
        return len(self.by_id) - self._closing

    def _victim(self) -> Resident | None:
        """Return the least recently used session that nobody drives."""
        for id, resident in self.by_id.items():
            if id not in self._pins and not resident.closing:
                return resident
        return None

    def _sink_for(self, id: str) -> Sink | None:
        """Return where a new session's agent events go, the host's choice or a file; None for nowhere."""
        chosen = None if self._sinks is None else self._sinks(id)
        if chosen is not None:
            return chosen
        if self._sink_directory is None:
            self._sink_directory = self.world.unguarded.environment.get(VARIABLE) or ""
        return EventSink(self._sink_directory, id, self.world) if self._sink_directory else None

    def _settle_children(self, resident: Resident) -> None:
        """Give each fork its own share of the past, so that the session's log can be freed."""
        for id in resident.child_ids:
            child = self.by_id.get(id)
            if child is not None:
                child.session.settle()
