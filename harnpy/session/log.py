"""`Session`: an append-only event log, and the view of it kept up to date. Spec: 10 §C1, §C3.

`append` is the only way to change one. It writes to the stream first and updates the view after; a
failed write leaves no trace. It costs the same at any length; a cut costs what it keeps. Not thread-safe:
a session belongs to one VM, and a VM to one thread.

Most verbs are functions over a session, each in the room of its idea; the class names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from harnpy.formats.dicts import detached
from harnpy.session import arguments, artifacts, history, reading, registers, resize, waits, watch
from harnpy.session import events as kinds
from harnpy.session.arguments import validate_session_id
from harnpy.session.cuts import AGENT_FACTS, Created
from harnpy.session.drafting import AMBIENT, asked_for, check_drafts, place, surrounded
from harnpy.session.errors import SessionConflict, SessionExists
from harnpy.session.events import Event, EventDraft, Origin
from harnpy.session.history import ANY
from harnpy.session.prompt import FILES_LIMIT, known_to_all
from harnpy.session.registers import METADATA, TaskList, name_of
from harnpy.session.registers import REGISTERS as SETTINGS
from harnpy.session.rewind import leaf_of
from harnpy.session.view import Saves, View
from harnpy.storage.errors import StreamExists, VersionConflict
from harnpy.storage.memory import MemoryStore, MemoryStream
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import timedelta
    from typing import Self

    from harnpy.session.info import SessionInfo
    from harnpy.session.past import Until
    from harnpy.session.prompt import HistoryEntry, Stable
    from harnpy.session.reading import ModelSettings, Reduction
    from harnpy.session.registers import Settings
    from harnpy.session.resize import Resizing
    from harnpy.session.resize_policy import ResizePolicy
    from harnpy.session.watch import Observers
    from harnpy.storage.contract import Stream

    #: The session that a fork begins with, the fork's store and first moment, and how it is resized.
    Source = tuple["Session", MemoryStore, float, "Resizing | None"]

T = TypeVar("T")

#: What a store calls a stream of ours.
KIND = "session"


class Session:
    """One log. ``version`` is the number of its last event; ``view`` says what the log means."""

    __slots__ = (
        "observers", "clock", "id", "late", "moment", "origin", "reduction", "resizing", "saves", "source",
        "stream", "strict", "version", "view"
    )  # fmt: skip
    #: Its forks that nobody has looked at yet, by id; None: there are none.
    late: dict[str, Session] | None
    #: Of such a fork: what it will be made from.
    source: Source | None
    #: Who listens; None: nobody ever did.
    observers: Observers | None
    #: None: it isn't saved anywhere.
    saves: Saves | None
    #: Whether messages must be as a model takes them (10 §A1.4); else they are stored as they are.
    strict: bool

    def __init__(
        self, id: str | None = None, *, auto_resize: bool = True, settings: Mapping[str, Any] | None = None
    ) -> None:
        """A session by itself, in a memory store of its own. Without an ``id`` it gets a new one.

        ``settings`` become its registers ``settings.<key>``. It needs no runtime, file or event loop; nobody
        has saved it, so its revision stays 0. Raises `InvalidSessionId`. Spec: 10 §C3.2.
        """
        world = World()
        id = world.ids.new() if id is None else id
        validate_session_id(id)
        self._attach(Origin(id, world), MemoryStore().stream(KIND, id))
        self.saves = None
        self.record(kinds.SESSION_CREATED, Created(facts=None if auto_resize else {"auto_resize": False}))
        for key, value in (settings or {}).items():
            self.set(f"{SETTINGS}{name_of(key)}", value)

    def _attach(self, origin: Origin, stream: Stream, view: View | None = None, moment: float = 0) -> Self:
        """Become the session that ``stream`` is of. ``moment`` is that of its last event."""
        self.id = origin.id
        self.late = self.source = None
        self.observers = None
        self.reduction: Reduction | None = None
        self.strict = False
        self.origin = origin
        self.clock = origin.world.clock
        self.stream = stream
        self.version = stream.version
        self.view = View() if view is None else view
        self.view.log = _Past(stream)
        self.moment = moment
        self.saves = Saves(origin.shared)
        self.resizing: Resizing | None = None
        origin.find = finder(stream)
        return self

    #: Whether a store keeps it.
    is_stored = False

    @classmethod
    def create(cls, id: str, store: MemoryStore, world: World) -> Session:
        """A new, empty session."""
        session = cls.__new__(cls)._attach(Origin(id, world), store.stream(KIND, id))
        session.record(kinds.SESSION_CREATED, Created())
        return session

    def fork(
        self,
        id: str | None = None,
        store: MemoryStore | None = None,
        *,
        at: Until | None = None,
        label: str = "",
        reason: str = "",
    ) -> Session:
        """Create a session with this one's past, up to event ``at`` (None: the last): a number, an id, or a
        moment.

        It shares the events, at constant cost. Without an ``id`` it gets a new one, without a ``store`` it
        lives in this one's. Raises `EventNotFound` for an ``at`` that isn't there, `SessionExists`.
        """
        id = self.origin.world.ids.new() if id is None else id
        store = self._memory() if store is None else store
        source = self, store, self._now(), self.resizing
        fork = Session.__new__(Session)
        return fork._begin_fork(id, source, self._fork_point(at), why_forked(label, reason))

    def fork_late(self, id: str, store: MemoryStore) -> Session:
        """Create a session with all of this one's past, under an id that ``store`` doesn't have.

        It takes its share of the past when somebody looks at it, at the latest before this session changes.
        """
        fork = Session.__new__(Session)
        fork.id, fork.source = id, (self, store, self._now(), self.resizing)
        fork.__class__ = _LateFork
        if self.late is None:
            self.late = {}
        self.late[id] = fork
        return fork

    def _begin_fork(self, id: str, source: Source, seq: int, why: dict[str, str]) -> Session:
        """Become the fork ``id`` of the source at event number ``seq``."""
        session, store, now, resizing = source
        above = session.origin
        origin = Origin(id, above.world, above, seq)
        point: Event = next(session.stream.read(seq - 1, seq))
        view = session.view.branch() if seq == session.version else session.view.at(seq)
        created = Created(above, seq, point, session.agent_facts() | why)
        first = Event(origin, 1, kinds.SESSION_CREATED, created, now)
        try:
            stream = store.branch(session.stream, id, first, until=seq)
        except StreamExists as exists:
            raise SessionExists(id, 0) from exists
        self._attach(origin, stream, view, point.moment)
        if session.saves is None:
            self.saves = None
        self.resizing = resizing
        view.apply(first)
        return self

    def make_late_forks(self) -> None:
        """Give the forks that nobody has looked at yet their share of the past."""
        while self.late:
            next(iter(self.late.values())).look()

    def look(self) -> None:
        """Have all of the session there, if it is a fork that nobody has looked at yet."""

    def agent_facts(self) -> dict[str, Any]:
        """Return what ``session_created`` says of the agent; its forks say the same."""
        created: Created = next(self.stream.read(0, 1)).body
        return {key: value for key, value in created.facts.items() if key in AGENT_FACTS}

    @property
    def definition(self) -> Any:
        """Return the definition of its agent, as ``session_created`` has it; None without one."""
        return self.agent_facts().get("definition")

    def _fork_point(self, at: Until | None) -> int:
        """Return the number of the event to fork at. Raises `EventNotFound`."""
        if at is None:
            return self.version
        from harnpy.session.past import number_of

        return number_of(self.stream, at, self.origin)

    def _memory(self) -> MemoryStore:
        assert isinstance(self.stream, MemoryStream), "sessions on a store fork there"
        return self.stream.store

    def settle(self) -> None:
        """Copy a fork's share of its parent's past, so that the parent can be freed. Costs a list copy."""
        self.stream.settle()
        self.view.window.settle()

    # Appending.

    def record(self, type: str, payload: Any, turn: Event | None = None) -> Event:
        """Append one event that needs no check."""
        if self.late or self.observers is not None or AMBIENT.get() is not None:
            return self.write(EventDraft(type, payload, turn=turn))[0]
        seen = self.version
        now = self.clock.now()
        if now < self.moment:
            now = self.moment
        event = Event(self.origin, seen + 1, type, payload, now, turn)
        self.stream.append((event,), seen)
        self.version = seen + 1
        self.moment = now
        self.view.apply(event)
        return event

    def append(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        """Append all drafts or none.

        Raises `EventRejected` for what isn't JSON or no event of its type, in a strict session also for
        messages that no model takes (10 §A1.4), and `SessionConflict` when ``expected_version`` (None:
        whatever this object has seen; `ANY`: wherever the end is) isn't the log's version.
        """
        check_drafts(drafts)
        return self._append(drafts, expected_version)

    def check(self, *drafts: EventDraft) -> None:
        """Raise what `append` would raise for these drafts."""
        from harnpy.session.draft_checks import admitted

        check_drafts(drafts)
        admitted(self, drafts)

    def _append(self, drafts: Sequence[EventDraft], expected_version: int | None) -> list[Event]:
        """Append drafts that are JSON."""
        if not self.strict and all(map(_is_plain, drafts)):
            return self.write(*drafts, expected_version=expected_version)
        from harnpy.session.draft_checks import admitted

        with_moves = admitted(self, drafts)
        events = self.write(*with_moves, expected_version=expected_version)
        return events if len(events) == len(drafts) else asked_for(with_moves, events)

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        """Append drafts that need no check."""
        if not drafts:
            return []
        if self.late:
            self.make_late_forks()
        if self.observers is not None:
            self.observers.check()
        seen = self.version if expected_version in (None, ANY) else expected_version
        events = self.drafted(drafts, seen)
        try:
            self.stream.append(events, seen)
        except VersionConflict as conflict:
            raise SessionConflict(self.id, conflict.expected, conflict.found) from conflict
        self.version = seen + len(events)
        self.moment = events[-1].moment
        self.view.extend(events)
        if self.observers is not None:
            self.observers.appended(events)
        return events

    def drafted(self, drafts: Sequence[EventDraft], seen: int) -> list[Event]:
        """Return the events of one append behind number ``seen``."""
        ambient = AMBIENT.get()
        if ambient is not None:
            given, drafts = drafts, surrounded(drafts, ambient)
        events = Event.drafted(drafts, self.origin, seen, self._now())
        for draft in drafts:
            turn = draft.turn
            if (
                draft.place is not None
                or turn.__class__ is str
                or (turn is None and draft.type == kinds.TURN_COMPLETED)
            ):
                place(drafts, events, self.view, self.moment)
                break
        if ambient is not None:
            for draft, event in zip(given, events, strict=True):
                draft.event = event
        return events

    def _now(self) -> float:
        """The time of an event that is appended now: never before the last one's."""
        now = self.clock.now()
        return now if now > self.moment else self.moment

    append_user = history.append_user
    append_message = history.append_message
    append_prompt = history.append_prompt
    append_context = history.append_context
    add_history = history.add_history

    # Cuts. The log keeps what was.

    set_history = history.set_history
    reset = history.reset
    clean_window = history.clean_window
    trim = history.trim
    compact = history.compact
    compaction_cut = history.compaction_cut
    show_summary = history.show_summary
    restore = history.restore
    replace = history.replace
    become_fork_of = history.become_fork_of
    shrink = history.shrink

    def snapshot(
        self,
        *,
        if_needed: bool = False,
        max_events: int = 50,
        max_age: float | timedelta | None = None,
        trigger: str = "manual",
    ) -> bool:
        """Write down what the view shows, so that a load need not read what is before it (10 §C5).

        ``if_needed``: only if ``max_events`` events or ``max_age`` seconds have passed since the last one.
        Return False if none was taken: while a turn is open, or if no store keeps the session.
        """
        return False

    # What the user chooses to be shown, and from where the conversation goes on.

    pin = history.pin
    unpin = history.unpin
    rewind = history.rewind
    redo = history.redo
    move_leaf = history.move_leaf

    @property
    def leaf_id(self) -> str | None:
        """The id of the event that the conversation goes on behind: the last one, unless it is a move."""
        seq = leaf_of(self.stream)
        return self.read(seq - 1, seq)[0].id if seq else None

    # Reading the log.

    def refresh(self) -> None:
        """Take notice of what others have appended: nobody has, to a session in memory."""

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> list[Event]:
        """Return the events numbered ``after + 1`` … ``until``, as this session's."""
        found = self.stream.read(after, until, types=types, reverse=reverse, limit=limit)
        return [self.origin.own(event) for event in found]

    def event(self, seq: int) -> Event:
        """The event with that number."""
        return self.read(seq - 1, seq)[0]

    events = reading.events
    branch = reading.branch
    last_event = reading.last_event
    last_message = reading.last_message
    last_assistant_message = reading.last_assistant_message
    every_message = reading.every_message
    turns = reading.turns
    reduce = reading.reduce
    attach_reducer = reading.attach_reducer

    @property
    def seq(self) -> int:
        """The number of the last event, `version` by its other name."""
        return self.version

    @property
    def revision(self) -> int:
        """Return the number of times that the session was saved (10 §C3.3); 0: no store has it."""
        return 0 if self.saves is None else self.saves.upto(self.stream)

    @property
    def state(self) -> Any:
        """Return the state of the reducer that was attached last; an empty dict without any."""
        return {} if self.reduction is None else self.reduction()

    def _repr_html_(self) -> str:
        from harnpy.session.cells import cell_of_messages

        messages, info = self.messages(), self.info
        pairs = [
            ("agent", info.agent_label or info.agent_name),
            ("", info.status),
            ("revision", str(self.revision)),
        ]
        return cell_of_messages(f"Session {self.id}", pairs, messages).html

    @property
    def info(self) -> SessionInfo:
        """The session as lists show it."""
        from harnpy.session.info import info_of_log

        return info_of_log(self.origin, self.read(), self.revision)

    @property
    def is_waiting(self) -> bool:
        """Return whether it waits for an approval or for something outside."""
        return reading.is_waiting(self)

    @property
    def total_cost(self) -> float:
        """Return the cost of all events, in USD."""
        return float(sum(event.cost for event in self.stream.read()))

    @property
    def unpriced_calls(self) -> int:
        """Return how many model calls have no known price: they add nothing to `total_cost`."""
        used = (
            event.body.get("usage") for event in self.stream.read(types=frozenset({kinds.STEP_COMPLETED}))
        )
        counts = (each.get("unpriced_calls") for each in used if isinstance(each, dict))
        return sum(count for count in counts if type(count) is int)

    # What it shows: its window, raw and as a model gets it, and its history.

    @property
    def settled_view(self) -> View:
        """Return a view that knows registers and status; of the conversation it may lack the end."""
        return self.view

    @property
    def length(self) -> int:
        """The number of messages in the window."""
        return len(self.view.window)

    def messages(self) -> list[dict[str, Any]]:
        """The window's messages, in a new list; the messages themselves are shared."""
        return list(self.view.window.messages())

    def total(self, measure: Callable[[dict[str, Any]], int]) -> int:
        """The sum of ``measure(message)`` in the window. Cached by function: pass the same one each time."""
        return self.view.window.total(measure)

    def window(self) -> list[dict[str, Any]]:
        """The window as a model gets it: valid for every provider (10 §C5)."""
        return list(self.stable(known_to_all).messages)

    def entries(self, files_limit: int = FILES_LIMIT) -> list[HistoryEntry]:
        """The messages of `window` with their events, context marks and what the log knows of calls.

        ``files_limit``: how many files of each sort the working set names.
        """
        return self.view.entries(self._read_tools, annotate=True, files_limit=files_limit)

    def stable(self, convert: Callable[[dict[str, Any]], Any]) -> Stable:
        """The messages of `window` as a request sends them: under their own roles, each as ``convert`` makes
        it (10 §C16.2)."""
        return self.view.stable(convert, self._read_tools)

    def _read_tools(self, after: int, before: int | None) -> Iterator[Event]:
        until = None if before is None else before - 1
        return self.stream.read(after, until, types=kinds.CALL_TYPES)

    def history(self, include_reset: bool = False) -> list[dict[str, Any]]:
        """The messages behind the window since the last reset, as they were written; with
        ``include_reset`` those of the whole log."""
        if include_reset:
            return self.every_message()
        return [entry.body for entry in self.view.window.history()]

    @property
    def context_window(self) -> list[dict[str, Any]]:
        """`messages` by its name in Agently."""
        return self.messages()

    @property
    def full_context(self) -> list[dict[str, Any]]:
        """`history` by its name in Agently."""
        return self.history()

    prompt_state = reading.prompt_state

    # Registers, and what they say.

    get = registers.get_register
    set = registers.set_register
    setting = registers.setting
    set_memo = registers.set_memo
    set_task = registers.set_task
    set_tasks = registers.set_tasks
    set_scratchpad = registers.set_scratchpad
    clear_scratchpad = registers.clear_scratchpad
    set_status = registers.set_status

    @property
    def memo(self) -> Any:
        """Return the memo, which is remembered beside the messages: any JSON value, None at first."""
        return self.get("memo")

    @property
    def task(self) -> str | None:
        """Return the session's task, in one text."""
        task: str | None = self.get("task")
        return task

    @property
    def tasks(self) -> TaskList:
        """The todo list."""
        return TaskList.of(self.get("tasks", []))

    @property
    def scratchpad(self) -> Any:
        """Notes beside the messages: a dict, None at first."""
        return self.get("scratchpad")

    @property
    def metadata(self) -> dict[str, Any]:
        """The values of the registers ``metadata.<key>``, by key."""
        return {
            key.removeprefix(METADATA): detached(known.value)
            for key, known in self.view.registers.items()
            if key.startswith(METADATA) and known.value is not None
        }

    @property
    def model_settings(self) -> ModelSettings:
        """The model, how much it thinks, and its tools, as they were chosen last."""
        return reading.ModelSettings(self.get("model"), self.get("thinking", "off"), self.get("tools"))

    @property
    def status(self) -> str:
        """Return the session's status: active, suspended, completed, failed or deleted."""
        return self.settled_view.status

    @property
    def execution_status(self) -> str:
        """Return the status of the last turn: pending (there is none), in_progress, completed, stopped,
        failed."""
        return self.view.execution

    # Resizing. A session of a store is resized by itself once it has a `Resizing`.

    analyze = resize.analyze
    resize_if_due = resize.resize_if_due
    resize_after_overflow = resize.resize_after_overflow
    history_changed = resize.history_changed
    resize = resize.resize

    def resize_by(self, resizing: Resizing) -> None:
        """Resize the session so from now on."""
        self.resizing = resizing

    @property
    def policy(self) -> ResizePolicy:
        """Return the policy by which the window becomes smaller; handlers are registered on it."""
        return resize.resizing_of(self).policy

    @property
    def settings(self) -> Settings:
        """The settings that hold for the session (10 §C8.1)."""
        return resize.settings(self)

    @property
    def auto_resize(self) -> bool:
        """Return whether the session is resized by itself: the nearest level says so, which is its own
        register, or what it began with."""
        return resize.auto_resize(self)

    @property
    def resizes_itself(self) -> bool:
        """Return whether it is ever resized by itself."""
        return resize.resizes_itself(self)

    def locked(self, fn: Callable[[], T]) -> T:
        """Return what ``fn`` returns; no other thread changes the session meanwhile."""
        return fn()

    # Waiting for something outside, tools, artifacts.

    wait_started = waits.wait_started
    wait_resolved = waits.wait_resolved
    find_tool = waits.find_tool
    tool_fence = waits.tool_fence
    record_artifact = artifacts.record_artifact
    store_artifact = artifacts.store_artifact

    # Those who want to be told of events.

    observe = watch.observe
    tail = watch.tail
    watch = watch.watch

    @property
    def has_watchers(self) -> bool:
        """Return whether somebody watches or observes."""
        return bool(self.observers)

    def _ensure_observers(self) -> Observers:
        if self.observers is None:
            from harnpy.session.watch import Observers

            self.observers = Observers(self.id)
        return self.observers


class _LateFork(Session):
    """A fork that nobody has looked at yet: it has an id and a source. Looking makes it a `Session`."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        self.look()
        return getattr(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.look()
        setattr(self, name, value)

    def look(self) -> None:
        source = self.source
        assert source is not None
        object.__setattr__(self, "__class__", Session)
        session = source[0]
        assert session.late is not None
        del session.late[self.id]
        self._begin_fork(self.id, source, session.version, {})


# Classes, as a closure takes several times their memory, and each session has one of both.


class _Past:
    """Returns the events of a stream up to a number."""

    __slots__ = ("_stream",)

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __call__(self, until: int) -> Iterator[Event]:
        return self._stream.read(0, until)


class _Finder:
    """Finds an event of a stream, as long as that is there."""

    __slots__ = ("_where",)

    def __init__(self, where: Stream | ref[MemoryStream]) -> None:
        self._where = where

    def __call__(self, seq: int) -> Event | None:
        stream = self._where() if isinstance(self._where, ref) else self._where
        return None if stream is None or seq < 1 else next(stream.read(seq - 1, seq), None)


def _is_plain(draft: EventDraft) -> bool:
    """Return whether there is nothing to look at in a draft for a session that isn't strict."""
    if draft.place is not None:
        return False
    if draft.type == kinds.MESSAGE_ADDED:
        message = draft.data
        return message.__class__ is dict and message.get("role").__class__ is str
    return draft.type not in kinds.READ_TYPES


def why_forked(label: str, reason: str) -> dict[str, Any]:
    """Return what a fork's ``session_created`` says of its making."""
    given = {"branch_label": arguments.text("label", label), "fork_reason": arguments.text("reason", reason)}
    return {key: text for key, text in given.items() if text}


def finder(stream: Stream) -> Callable[[int], Event | None]:
    """Return what finds an event of ``stream``.

    It keeps no stream in memory alive: the events of a closed session would keep all the others.
    """
    return _Finder(ref(stream) if isinstance(stream, MemoryStream) else stream)
