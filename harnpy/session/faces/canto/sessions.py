"""A session: a log of events, by itself or on a store, and what it means. Spec: 10 §A1, §B2."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harnpy.session.drafting import drafts
from harnpy.session.faces.canto.events import Event
from harnpy.session.faces.canto.watching import Subscription
from harnpy.session.log import ANY
from harnpy.session.runtime.unsaved import unsaved_copy, unsaved_session
from harnpy.storage.errors import Unsupported
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.session.drafting import payload_types as types
    from harnpy.session.log import Session as HarnSession
    from harnpy.session.parts.questions import ModelSettings
    from harnpy.session.shown.entries import HistoryEntry

    Message = dict[str, Any]
    Reducer = Callable[[Any, Event], Any]

#: harnpy's first event of each log says who the session is; Canto's logs have none.
FIRST = 1


class ForkOptions(NamedTuple):
    """What is known of a branch."""

    branch_label: str = ""
    fork_reason: str = ""


class Writer(Protocol):
    """A store, as far as a session needs it."""

    def attach(self, log: HarnSession) -> HarnSession:
        """Return the stored session of that log's id, made of the log if there is none."""


class Session:
    """A session. With a writer each append is stored before it returns.

    ``log`` is the session of harnpy's that it stands for: events are its own but for the first one.
    """

    def __init__(self, id: str, *, log: HarnSession | None = None, writer: Writer | None = None) -> None:
        self.stand_for(log or unsaved_session(id, World()))
        self._writer = writer
        self._is_stored = log is not None and log.is_kept
        self._lock = RLock()
        self._reducer: Reducer | None = None

    def stand_for(self, log: HarnSession) -> None:
        """Be the session of that log from here on. One without a store checks messages as stores do."""
        self.log = log
        if not log.is_kept:
            log.strict = True

    def id(self) -> str:
        return self.log.id

    # Writing.

    def append(self, event: Event) -> None:
        """Append an event, which has its id and time then.

        Raises `EventRejected` for a message that no model takes, and for what isn't JSON.
        """
        with self._lock:
            self._store()
            logged = self.log.append(event.draft(), expected_version=ANY)[-1]
        event.took_place(logged)

    def append_user(self, content: str) -> None:
        self.append_prompt([{"role": "user", "content": content}])

    def append_prompt(self, messages: list[Message]) -> None:
        """Append messages, all or none."""
        with self._lock:
            self._store()
            self.log.append(*map(drafts.message, messages), expected_version=ANY)

    def append_context(self, entry: types.ContextAdded) -> None:
        self.append(Event(self.id(), entry.TYPE, entry))

    def append_branch_summary(self, summary: types.BranchSummary) -> None:
        self.append(Event(self.id(), summary.TYPE, summary))

    def move_leaf(self, event_id: str) -> None:
        """Go on behind an earlier event; an empty id is the begin."""
        with self._lock:
            self._store()
            self.log.move_leaf(event_id)

    def move_leaf_with_summary(self, event_id: str, summary: str) -> None:
        """`move_leaf`, and tell the model what became of the branch that is left."""
        with self._lock:
            self._store()
            self.log.move_leaf(event_id, summary)

    def with_writer(self, writer: Writer) -> Session:
        """Have each later append stored, and what is there already with the first of them."""
        self._writer = writer
        return self

    def with_reducer(self, reducer: Reducer) -> Session:
        """Have `state` be what ``reducer(state, event)`` makes of all events."""
        self._reducer = reducer
        return self

    def _store(self) -> None:
        if self._writer is not None and not self._is_stored:
            self.log = self._writer.attach(self.log)
            self._is_stored = True

    def detach(self) -> None:
        """Go on in memory: what is appended from here on isn't stored."""
        with self._lock:
            self._writer = None
            if self._is_stored:
                self.stand_for(unsaved_copy(self.log))
                self._is_stored = False

    # Reading.

    def all(self) -> Iterator[Event]:
        """Return the events, oldest first, as they are now."""
        return iter(self.events())

    def backward(self) -> Iterator[Event]:
        """Return the events, newest first, as they are now."""
        return reversed(self.events())

    def events(self) -> list[Event]:
        return list(map(Event.of, self.log.events(after=FIRST)))

    def active_events(self) -> list[Event]:
        """Return the events of the active branch."""
        return list(map(Event.of, self.log.events(after=FIRST, branch=True)))

    def branch_events(self, event_id: str) -> list[Event]:
        """Return the events that lead to the one of that id, and itself."""
        return [Event.of(event) for event in self.log.branch(event_id) if event.seq > FIRST]

    def leaf_id(self) -> str:
        """Return the id of the event that the next one stands behind; empty at the begin."""
        return "" if not self.active_events() else self.log.leaf_id or ""

    def last_event(self) -> Event | None:
        last = self.log.last_event()
        return None if last is None or last.seq == FIRST else Event.of(last)

    def messages(self) -> list[Message]:
        """Return all messages that were ever appended, as they were."""
        return self.log.history(include_reset=True)

    def last_message(self) -> Message | None:
        return self.log.last_message()

    def last_assistant_message(self) -> Message | None:
        """Return the last message of an assistant that says something and calls no tool."""
        return self.log.last_assistant_message()

    def effective_messages(self) -> list[Message]:
        """Return the messages as a model gets them."""
        return self.log.window()

    def effective_entries(self) -> list[HistoryEntry]:
        """Return `effective_messages` with their events, context marks and what is known of calls."""
        return self.log.entries()

    def effective_settings(self) -> ModelSettings:
        """Return model, thinking and tools, as they were chosen last."""
        return self.log.model_settings

    def total_cost(self) -> float:
        """Return what all events have cost, in USD."""
        return self.log.total_cost

    def is_waiting(self) -> bool:
        """Whether it waits for an approval or for something outside."""
        return self.log.is_waiting

    def state(self) -> dict[str, Any]:
        """Return what the reducer makes of the events; empty without one."""
        found: Any = {}
        for event in self.events() if self._reducer is not None else ():
            found = self._reducer(found, event)  # type: ignore[misc]
        return dict(found)

    # Branches and watches.

    def fork(self, new_id: str) -> Session:
        """Return a session with this one's past, on its store if it has one."""
        fork = Session(new_id, log=self.log.fork(new_id), writer=self._writer)
        fork._reducer = self._reducer
        return fork

    def branch(self, new_id: str, options: ForkOptions | None = None) -> Session:
        """Return a stored fork with what is known of it. Raises `Unsupported` without a store."""
        if self._writer is None:
            raise Unsupported("branch session: session has no durable writer")
        label, reason = options or ForkOptions()
        with self._lock:
            self._store()
            log = self.log.fork(new_id, label=label, reason=reason)
        return Session(new_id, log=log, writer=self._writer)

    def watch(self) -> Subscription:
        """Return the events that come from now on."""
        with self._lock:
            self._store()
            return Subscription(self.log.watch())

    def observe_events(self, observer: Callable[[Event], Any]) -> Callable[[], None]:
        """Call ``observer`` within each append. Return what ends that."""
        with self._lock:
            self._store()
            return self.log.observe(lambda event: observer(Event.of(event)))

    def has_watchers(self) -> bool:
        return self.log.has_watchers


def new(id: str) -> Session:
    """Return a new session, by itself."""
    return Session(id)


def attach_write_through(session: Session, store: Writer) -> Callable[[], None]:
    """Have each later append of ``session`` stored before it returns. Return what ends that."""
    session.with_writer(store)
    return session.detach
