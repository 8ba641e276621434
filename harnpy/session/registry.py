"""Which sessions there are: a registry that keeps the most recently used. Spec: 08 §1.1, §1.7.

What stands here is what the verbs have in common: finding a session, taking one in, letting one go, who
listens and who is driving. Reads leave the order of use alone; everything else moves its session to the
end.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.effects import Effects
from harnpy.session.errors import SessionNotFound
from harnpy.session.log import Session
from harnpy.session.sink import VARIABLE, EventSink
from harnpy.session.stack import SessionStack
from harnpy.session.transcript import lifecycle_event
from harnpy.storage.memory import MemoryBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.reading.dicts import Dict
    from harnpy.session.loop_conversation import Binding

    Subscriber = Callable[[Dict], Any]


class Resident:
    """A session in the registry, with what isn't in its log."""

    __slots__ = ("bindings", "child_ids", "closing", "session", "sink", "subscribers")

    def __init__(self, session: Session, sink: EventSink | None) -> None:
        self.session = session
        self.sink = sink
        self.child_ids: dict[str, None] = {}  # ordered and unique
        self.subscribers: list[Subscriber] = []
        self.bindings: list[Binding] = []
        self.closing = False


class Registry:
    """At most ``cap`` sessions, the least recently used first."""

    def __init__(
        self,
        cap: int = 128,
        *,
        effects: Effects | None = None,
        stack: Callable[[], SessionStack] | None = None,
    ) -> None:
        """``stack`` gives the running task's stack; without it there is one for all."""
        self.effects = effects or Effects()
        self.set_cap(cap)
        only = SessionStack()
        self._stack = stack or (lambda: only)
        self._sink_directory: str | None = None  # unknown until the first session is taken in
        self._backend = MemoryBackend()
        self._residents: OrderedDict[str, Resident] = OrderedDict()
        self._closing = 0  # how many of them tell their subscribers that they close
        self._running: dict[str, int] = {}
        self._feedback: dict[str, list[tuple[str, str]]] = {}
        #: Who hears of the agent events of every session and of every anonymous loop: a host's views.
        self.observers: list[Subscriber] = []

    @property
    def cap(self) -> int:
        return self._cap

    def set_cap(self, cap: int) -> None:
        """Sessions over a lower cap go one by one, as new ones come."""
        self._cap = max(1, cap)

    def ids(self) -> list[str]:
        """Least recently used first."""
        return list(self._residents)

    def clear(self) -> None:
        """Forget all sessions, telling nobody."""
        for id in self.ids():
            self._backend.delete(id)
        self._residents.clear()
        self._feedback.clear()
        self._closing = 0

    def session(self, id: str) -> Session | None:
        """The live session, for readers of its log."""
        resident = self._residents.get(id)
        return None if resident is None else resident.session

    def touch(self, id: str) -> None:
        """The session, if it is still there, is the one used last."""
        if id in self._residents:
            self._residents.move_to_end(id)

    def current_id(self) -> str | None:
        """The innermost id being driven in this task."""
        return self._stack().current()

    def depth(self) -> int:
        """How many sessions are being driven in this task, one inside the other."""
        return len(self._stack().ids)

    @contextmanager
    def enter(self, id: str) -> Iterator[None]:
        """Drive ``id`` inside the block."""
        with self._kept(id), self._stack().enter(id):
            yield

    @contextmanager
    def _kept(self, id: str) -> Iterator[None]:
        """Inside the block the session is never evicted."""
        self._running[id] = self._running.get(id, 0) + 1
        try:
            yield
        finally:
            self._running[id] -= 1
            if not self._running[id]:
                del self._running[id]

    def heard(self, id: str) -> bool:
        """Whether an agent event of ``id`` would reach anybody."""
        resident = self._residents.get(id)
        if resident is not None and (resident.subscribers or resident.sink is not None):
            return True
        return bool(self.observers)

    def emit(self, id: str, event: Dict) -> None:
        """Give an agent event to the observers, the session's sink and its subscribers, in order; what
        subscribers raise is a warning."""
        resident = self.report(id, event)
        for callback in list(resident.subscribers) if resident is not None else ():
            try:
                callback(event)
            except Exception as error:
                self.effects.warn("agent.subscriber", str(error))

    def report(self, id: str, event: Dict) -> Resident | None:
        """Give an agent event to the host alone: observers and the session's sink. The session, if any."""
        for observe in self.observers:
            observe(event)
        resident = self._residents.get(id)
        if resident is not None and resident.sink is not None:
            resident.sink.write(event)
        return resident

    # Finding, taking in and letting go.

    def _known(self, verb: str, id: str) -> Resident:
        resident = self._residents.get(id)
        if resident is None:
            raise SessionNotFound(id, verb)
        return resident

    def _touched(self, verb: str, id: str) -> Resident:
        resident = self._known(verb, id)
        self.touch(id)
        return resident

    def _opened(self, id: str | None) -> Resident:
        if id is None:
            id = self.effects.new_id()
        resident = self._residents.get(id)
        if resident is None:
            self._make_room(id)
            resident = self._residents.get(id)  # who hears of an eviction may have opened it
        if resident is None:
            self._backend.delete(id)  # a fork that is under way
            return self._admit(Session.create(id, self._backend, self.effects))
        self.touch(id)
        return resident

    def _admit(self, session: Session) -> Resident:
        """Take a new session in, for which there is room."""
        resident = Resident(session, self._sink_for(session.id))
        self._residents[session.id] = resident
        return resident

    def _make_room(self, id: str) -> None:
        """When the registry is full, let the least recently used session go, for the new one ``id``.

        Who hears of it may open others; then more go, unless it was the new one.
        """
        full = max(self._cap, self._open_count())
        while self._open_count() >= full and id not in self._residents:
            victim = self._victim()
            if victim is None:
                return
            self._close(victim, "lru_evicted", {"reason": "lru_evicted"})

    def _open_count(self) -> int:
        return len(self._residents) - self._closing

    def _sink_for(self, id: str) -> EventSink | None:
        """The file for a new session's agent events; None when no directory is named for them."""
        if self._sink_directory is None:
            self._sink_directory = self.effects.env(VARIABLE) or ""
        return EventSink(self._sink_directory, id, self.effects) if self._sink_directory else None

    def _victim(self) -> Resident | None:
        """Who has to go: the least recently used session that nobody drives."""
        for id, resident in self._residents.items():
            if id not in self._running and not resident.closing:
                return resident
        return None

    def _close(self, resident: Resident, reason: str | None, status: Dict | None) -> None:
        if resident.closing:  # a subscriber that hears of it closes it too
            self._forget(resident)
            return
        resident.closing = True
        self._closing += 1
        id, why = resident.session.id, {"reason": reason, "status": status}
        closed = lifecycle_event("agent_session_closed", text=reason or "", metadata=why)
        try:
            resident.session.record(kinds.TRANSCRIPT_EVENT, closed)
            self.emit(id, {"type": "agent_session_closed", "session_id": id, **why})
        finally:  # also when the task is cancelled while a subscriber waits
            self._forget(resident)

    def _forget(self, resident: Resident) -> None:
        id = resident.session.id
        if self._residents.get(id) is resident:
            self._closing -= 1
            del self._residents[id]
            self._settle_children(resident)
            self._backend.delete(id)
            self._feedback.pop(id, None)

    def _settle_children(self, resident: Resident) -> None:
        """Let no fork keep the past of a session that is gone alive, but for its own share."""
        for id in resident.child_ids:
            child = self._residents.get(id)
            if child is not None:
                child.session.settle()
