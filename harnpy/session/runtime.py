"""`SessionRuntime`: sessions on a store, changed by one action after the other. Spec: 10 §C7."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

from harnpy.session import arguments, clients
from harnpy.session import hooks as runtime_events
from harnpy.session.actions import Delete, streams
from harnpy.session.agents import AgentDef, Budget
from harnpy.session.arguments import session_id, validate_session_id
from harnpy.session.artifacts import Offloading
from harnpy.session.calling import ThreadCaller, streamed
from harnpy.session.children import Children, ChildrenMixin, Scheduler
from harnpy.session.chunks import KIND as CHUNKS
from harnpy.session.codec import SessionCodec
from harnpy.session.errors import (
    InvalidArgument,
    SessionConflict,
    SessionError,
    SessionExists,
    SessionNotFound,
)
from harnpy.session.events import Origin
from harnpy.session.guards import Guards
from harnpy.session.hooks import EventBus, stack_of
from harnpy.session.info import SessionInfo, info_of
from harnpy.session.lanes import ACTION, ThreadWaiter, within
from harnpy.session.live import LiveSession, SessionConfig, Turns, live_sessions
from harnpy.session.log import KIND, Session
from harnpy.session.pipeline import Pipeline, beginning, bootstrap_text, files_in, origin_below, storing
from harnpy.session.registers import DELETED, Level, check_status
from harnpy.session.resize import Resizing
from harnpy.session.resize_policy import ResizePolicy
from harnpy.session.send import AgentFactory, Send, check_send, has_turn, recorded, result_of
from harnpy.session.trajectory import KIND as EPISODES
from harnpy.session.trajectory import EpisodesMixin
from harnpy.session.watch import BUFFER
from harnpy.storage.contract import PAGE, HeadQuery
from harnpy.storage.opening import open_store
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from harnpy.session.agent_turn import Sink
    from harnpy.session.agents import RunEvent, TurnResult
    from harnpy.session.artifacts import ArtifactStore
    from harnpy.session.calling import Caller
    from harnpy.session.events import Event
    from harnpy.session.guards import ApprovalGate, InputGate
    from harnpy.session.hooks import Hook, HookStack
    from harnpy.session.lanes import Waiter
    from harnpy.session.past import Until
    from harnpy.session.resize_policy import ResizeReport
    from harnpy.session.send import Prompt
    from harnpy.session.stored import StoredSession
    from harnpy.session.transaction import Txn
    from harnpy.session.transfer.directories import ExportReport, ImportReport
    from harnpy.session.watch import LiveWatch, Watch
    from harnpy.storage.contract import Hit, Store
    from harnpy.world.clock import Clock
    from harnpy.world.ids import Ids

    Result = Future[ResizeReport | None]
    Compact = Callable[[str, str | None], ResizeReport | None]
    Infos = list[SessionInfo]
    Hits = list[Hit]
    Message = dict[str, Any]
    Act = Callable[[Txn], Any]
    Record = dict[str, Any]

T = TypeVar("T")

# Lists of a store's sessions, and who descends from whom. Spec: 10 §C6, §C7.


class SessionQuery(NamedTuple):
    """A filter for lists of sessions: those of a ``status``, of an agent, forks of a ``parent``.

    ``order`` is ``updated`` or ``created`` (newest first) or ``id``. Deleted ones are shown only with
    ``deleted``, or when ``status`` asks for them. ``after`` is the `InfoPage.next` of the page before.
    """

    status: str | None = None
    agent: str | None = None
    parent: str | None = None
    order: str = "updated"
    limit: int = PAGE
    after: str | None = None
    deleted: bool = False


class InfoPage(NamedTuple):
    """A part of a list. ``errors`` says which sessions can't be shown, as (id, reason)."""

    items: list[SessionInfo]
    next: str | None = None
    errors: Sequence[tuple[str, str]] = ()

    @property
    def first(self) -> SessionInfo | None:
        return self.items[0] if self.items else None

    def filter_status(self, status: str) -> InfoPage:
        return self._replace(items=[info for info in self.items if info.status == status])

    def filter_agent(self, name: str) -> InfoPage:
        return self._replace(items=[info for info in self.items if info.agent_name == name])


def page_of(store: Store, query: SessionQuery) -> InfoPage:
    """Return the sessions that ``query`` asks for."""
    page = store.heads(heads_of(query))
    return InfoPage([info_of(head) for head in page.items], page.next, page.errors)


def heads_of(query: SessionQuery) -> HeadQuery:
    """Return the query for the heads of the sessions that ``query`` asks for."""
    arguments.instance("query", query, SessionQuery)
    arguments.count("limit", query.limit)
    for name in ("status", "agent", "parent", "after"):
        arguments.optional_text(name, getattr(query, name))
    if query.status is not None:
        check_status(query.status)
    wanted = None if query.status is None else frozenset({query.status})
    hidden = frozenset() if query.deleted or query.status is not None else frozenset({DELETED})
    return HeadQuery(KIND, wanted, hidden, query.agent, query.parent, query.order, query.limit, query.after)


def info(store: Store, id: str) -> SessionInfo:
    """Return a session's info, as the store has it. Raises `SessionNotFound`."""
    head = store.head(KIND, arguments.session_id(id))
    if head is None:
        raise SessionNotFound(id)
    return info_of(head)


def parent(store: Store, id: str) -> SessionInfo | None:
    """Return the session that this one was forked from; None if there is none any more."""
    above = info(store, id).parent_id
    head = None if above is None else store.head(KIND, above)
    return None if head is None else info_of(head)


def children(store: Store, id: str) -> list[SessionInfo]:
    """Return the forks of a session, oldest first; none that another one was forked onto since."""
    info(store, id)
    found = _all(store, SessionQuery(parent=id, order="created", deleted=True))
    return [each for each in found if each.parent_id == id][::-1]


def lineage(store: Store, id: str) -> list[SessionInfo]:
    """Return the sessions that this one descends from, the first one first, and itself.

    Raises `SessionError` for a circle, which imported records can make.
    """
    line = [info(store, id)]
    while (above := parent(store, line[0].id)) is not None:
        if any(below.id == above.id for below in line):
            raise SessionError(f'session ancestry "{id}": cycle detected at "{above.id}"', id)
        line.insert(0, above)
    return line


def _all(store: Store, query: SessionQuery) -> Iterator[SessionInfo]:
    while True:
        page = page_of(store, query)
        yield from page.items
        if page.next is None:
            return
        query = query._replace(after=page.next)


# Compactions that nobody waits for: one at a time for each session. Spec: 10 §A1.17, §C7.


#: Seconds that one may take.
LIMIT = 300.0


class Compactions:
    """Background compactions, one at a time for a session. All requests while one runs become one more, with
    the strategy of the last."""

    def __init__(self, compact: Compact) -> None:
        self._compact = compact
        self._lock = Lock()
        self._next: dict[str, tuple[str | None, Result] | None] = {}
        self._threads: set[Thread] = set()

    def ask(self, id: str, strategy: str | None) -> Result:
        """Have a session compacted, and return what becomes of it. Until that begins it can be cancelled."""
        from concurrent.futures import Future

        with self._lock:
            if id in self._next:
                waiting = self._next[id]
                future: Result = Future() if waiting is None or waiting[1].cancelled() else waiting[1]
                self._next[id] = strategy, future
                return future
            future = Future()
            self._next[id] = None
            thread = Thread(
                target=self._work, args=(id, strategy, future), name=f"compaction of {id}", daemon=True
            )
            self._threads.add(thread)
            thread.start()
            return future

    def close(self) -> None:
        """Wait for those that run; what waits behind them is cancelled."""
        with self._lock:
            for id, waiting in self._next.items():
                if waiting is not None:
                    waiting[1].cancel()
                    self._next[id] = None
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def _work(self, id: str, strategy: str | None, future: Result) -> None:
        asked: tuple[str | None, Result] | None = strategy, future
        while asked is not None:
            strategy, future = asked
            if future.set_running_or_notify_cancel():
                self._settle(future, id, strategy)
            with self._lock:
                asked = self._next.pop(id)
                if asked is not None:
                    self._next[id] = None
                else:
                    self._threads.discard(current_thread())

    def _settle(self, future: Result, id: str, strategy: str | None) -> None:
        try:
            report = self._compact(id, strategy)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(report)


# The part of a `SessionRuntime` that writes sessions to files, and reads them. Spec: 10 §C7, §C17.


class TransferMixin:
    """Export and import: `harnpy.session.transfer` for the sessions of one runtime."""

    store: Store
    _world: World

    def get(self, id: str) -> LiveSession:
        raise NotImplementedError

    def export(self, id: str, format: str = "jsonl", path: str | None = None, *, strict: bool = False) -> str:
        """Return a session as the text of a file, and write it to ``path``.

        ``strict``: raise `TransferError` when the format can't hold everything of it.
        """
        from harnpy.session.transfer import formats

        return formats.export(self.get(id), format, path, strict=strict)

    def import_(
        self,
        path_or_text: str,
        format: str = "auto",
        *,
        id: str | None = None,
        on_conflict: str | None = None,
        strict: bool = False,
    ) -> LiveSession | None:
        """Make a session of a file, or of a text whose ``format`` is named; return None if it was skipped.

        ``on_conflict`` says what happens when its id is taken: ``update``, ``error``, ``skip`` or ``rename``.
        Raises `TransferError`, `SessionExists` and OSError; nothing is stored then.
        """
        from harnpy.session.transfer import formats

        found = formats.import_(
            path_or_text, self.store, format, id=id, on_conflict=on_conflict, strict=strict, world=self._world
        )
        return None if found is None else self.get(found.id)

    def export_dir(self, directory: str, format: str = "jsonl", *, strict: bool = False) -> ExportReport:
        """Write all sessions to a directory, a file each."""
        from harnpy.session.transfer import directories

        return directories.export_dir(self.store, directory, format, strict=strict, world=self._world)

    def import_dir(
        self, directory: str, format: str = "auto", *, on_conflict: str | None = None, strict: bool = False
    ) -> ImportReport:
        """Make sessions of a directory's files, parents before those that were forked from them."""
        from harnpy.session.transfer import directories

        return directories.import_dir(
            self.store, directory, format, on_conflict=on_conflict, strict=strict, world=self._world
        )

    def save_ancestry(self, record: dict[str, Any]) -> bool:
        """Note where a session stands whose log is elsewhere: ``session_id``, ``created_at``, and of a fork
        ``parent_session_id``, ``branch_label``, ``fork_reason``, ``depth``.

        Return False if there is a session of that id: it stays as it is. Raises `InvalidArgument`.
        """
        from harnpy.session.transfer.directories import save_ancestry

        return save_ancestry(record, self.store, self._world)


# The part of a `SessionRuntime` that does for a session what nobody waits for, or asks twice.
#
# Spec: 10 §A1.17, §C7.


class MaintenanceMixin:
    """Bootstrap context, and compaction in the background."""

    _world: World
    _caller: ThreadCaller
    _compactions: Compactions

    def get(self, id: str) -> LiveSession:
        raise NotImplementedError

    def bootstrap(
        self, id: str, cwd: str | None = None, files: Iterable[str] | None = None, tools: Iterable[str] = ()
    ) -> Event:
        """Tell a session's model where it works: the directory (None: the process's), the files in it (None:
        those that are there) and its tools, as context of the prefix."""
        here = self._world.files
        directory = here.cwd() if cwd is None else cwd
        names = files_in(directory, here) if files is None else files
        return self.get(id).append_context(bootstrap_text(directory, names, tools), kind="bootstrap")

    def compact_in_background(self, id: str, strategy: str | None = None) -> Future[ResizeReport | None]:
        """Resize a session (`Session.resize`) in a thread of its own, and return what becomes of it.

        Each is compacted once at a time; what is asked for meanwhile is done once, when that is over, unless
        its future is cancelled before. A strategy has five minutes: `ExecutionTimeout`.
        """
        return self._compactions.ask(session_id(id), strategy)

    def _compact(self, id: str, strategy: str | None) -> ResizeReport | None:
        call, session = self._caller.one(), self.get(id)
        with within(LIMIT, call, id):
            return session.resize(strategy, call=call)


# Sessions on a store, changed one action after the other. Spec: 10 §C7.


_ALL = SessionQuery()


class ClientsMixin:
    """The part of a `SessionRuntime` that lets clients attach to a session, and one of them control it.

    Nothing of it waits for a turn that runs on the session, here or in another process. Spec: 08 §1.10.
    """

    _controller_timeout: float

    @property
    def controller_timeout(self) -> float:
        """Return after how many seconds a controller that isn't heard of doesn't count."""
        return self._controller_timeout

    def get(self, id: str) -> LiveSession:
        raise NotImplementedError

    def attach(
        self,
        id: str,
        client_id: str,
        *,
        mode: str = "observer",
        takeover: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> Record:
        """Attach a client as ``observer`` or ``controller``, or change an attached one; return what happened.

        Raises `NotController` if another client controls the session, unless ``takeover``: that one becomes
        an observer. It is released if it wasn't heard of for the runtime's ``controller_timeout``.
        """
        options = {"mode": mode, "takeover": takeover, **_with_metadata(metadata)}
        attach = partial(clients.attach, silence=self._controller_timeout, way="pass takeover=True")
        return self._client(id, attach, client_id, options)

    def takeover(self, id: str, client_id: str, *, metadata: Mapping[str, Any] | None = None) -> Record:
        """Attach a client as the controller. The former one becomes an observer."""
        return self._client(id, clients.takeover, client_id, _with_metadata(metadata))

    def detach(self, id: str, client_id: str, *, reason: str | None = None) -> Record:
        """Remove a client. A controller leaves no successor."""
        return self._client(id, clients.detach, client_id, {"reason": reason})

    def heartbeat(self, id: str, client_id: str, *, metadata: Mapping[str, Any] | None = None) -> Record:
        """Record that a client is still there. ``metadata`` is merged over that of its record."""
        return self._client(id, clients.heartbeat, client_id, _with_metadata(metadata))

    def clients(self, id: str) -> list[Record]:
        """Return the records of the attached clients, in the order in which they came."""
        return self._client(id, clients.live_clients)

    def _client(self, id: str, verb: Callable[..., T], *args: Any) -> T:
        """Carry out a verb of a client on the newest log, again when somebody else wrote first."""
        while True:
            session = self.get(id)
            try:
                with session.lock:
                    return verb(session, *args)
            except SessionConflict:
                pass


def _with_metadata(metadata: Mapping[str, Any] | None) -> Record:
    return {} if metadata is None else {"metadata": dict(arguments.mapping("metadata", metadata))}


class SessionRuntime(TransferMixin, MaintenanceMixin, ClientsMixin, ChildrenMixin, EpisodesMixin):
    """The sessions of one store. Threads may share it; close it when done, or use it in a ``with`` block."""

    def __init__(
        self,
        store: Store | str,
        *,
        hooks: HookStack | Hook | None = None,
        events: EventBus | None = None,
        resize: ResizePolicy | None = None,
        artifacts: ArtifactStore | None = None,
        agents: Any = None,
        settings: Mapping[str, Any] | None = None,
        wait_timeout: float = 30.0,
        execution_timeout: float | None = None,
        strict: bool = True,
        strict_ids: bool = False,
        child_limit: int | None = None,
        controller_timeout: float = 30.0,
        share_chunks: bool = False,
        durability: str | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        waiter: Waiter | None = None,
    ) -> None:
        """``store`` is one, or the URL of one, which is closed with the runtime; ``durability`` (``full``,
        ``relaxed``, ``async``) takes the place of what the URL says of it.

        ``agents`` is a `LoopFactory` that runs the definitions of sessions, or an agent for all of them.
        ``resize`` says when and how windows become smaller; ``settings`` hold for each session that has not
        set its own, and change with `settings` (C8.1).
        ``artifacts`` is where a policy without artifacts of its own puts tool outputs.
        An action waits at most ``wait_timeout`` seconds for its session, an agent has ``execution_timeout``
        seconds for a turn; ``child_limit`` is how many children run at once (None: all). A client that
        controls a session and wasn't heard of for ``controller_timeout`` seconds is released by the next one
        that wants to control it, or sends. ``share_chunks``: watches of other processes on the store are
        shown the pieces of answers that are made here. ``strict`` refuses messages that no model takes (10
        §A1.4); ``strict_ids`` allows letters, digits, ``_`` and ``-`` only in ids. ``waiter`` waits for
        sessions (None: the calling thread does). Raises `StorageError` for a URL of no store.
        """
        arguments.seconds("wait_timeout", wait_timeout)
        self._execution_timeout = arguments.optional_seconds("execution_timeout", execution_timeout)
        self._controller_timeout = arguments.seconds("controller_timeout", controller_timeout)
        self._owns_store = isinstance(store, str)
        self.store: Store = _opened(store, durability)
        self.events = EventBus() if events is None else arguments.instance("events", events, EventBus)
        self._world = World(clock=clock, ids=ids)
        self._strict_ids = strict_ids
        self._caller = ThreadCaller(self.wake)
        #: The settings of all sessions that haven't set their own.
        self.settings = Level(arguments.mapping("settings", settings))
        self.artifacts = artifacts
        policy = _policy(resize, artifacts)
        resizing = Resizing(policy, (self.settings,), self._tell_resize, self._caller)
        self.agents = agents
        self._compactions = Compactions(self._compact)
        self._live = live_sessions(self.store, self._world)
        self._end_sharing = self._live.share() if share_chunks else None
        self._config = SessionConfig(resizing, strict, agents)
        waiter = ThreadWaiter(self._world.clock.monotonic) if waiter is None else waiter
        self._turns = Turns(self._live, waiter, wait_timeout)
        self._children = Children(self, self._world, self._turns, child_limit)
        self._scheduler = Scheduler(self._children, self._world.clock)
        self._pipeline = Pipeline(
            self.get, stack_of(hooks), self.events, self._children.runs, self._world.clock.monotonic
        )

    def _tell_resize(self, report: ResizeReport) -> None:
        self.events.emit(runtime_events.RESIZED, report.data())

    # Sessions.

    def create(
        self,
        agent: AgentDef | str | Session = "",
        *,
        id: str | None = None,
        seed: Message | Iterable[Message] = (),
        metadata: Mapping[str, Any] | None = None,
        parent: Session | str | None = None,
        label: str | None = None,
        system_prompt: str | None = None,
        auto_resize: bool | None = None,
        caller: Caller | None = None,
    ) -> LiveSession:
        """Store a new session as revision 1: of an agent by its definition or its name, or one that isn't
        saved (C3.2).

        ``seed`` are its first messages. Without an ``id`` it gets a new one. ``parent`` is the session that
        it belongs to, or its id; they share nothing. ``label`` is the agent's, ``system_prompt`` the
        session's own; ``auto_resize`` says whether it is resized by itself, as by default. Raises
        `SessionExists`, `InvalidSessionId`, `SessionNotFound` for a parent that isn't there, what is wrong
        with the definition, and what a hook raises; nothing is stored then.
        """
        if isinstance(agent, Session):
            others = (id, parent, label, system_prompt, auto_resize)
            if seed or metadata or any(each is not None for each in others):
                raise InvalidArgument("a session is stored as it is: write its messages and metadata first")
            origin, begin = storing(agent, self._world)
        else:
            if isinstance(agent, AgentDef) and isinstance(self.agents, AgentFactory):
                self.agents.check(agent)
            id = self._world.ids.new() if id is None else id
            origin = Origin(id, self._world)
            if parent is not None:
                origin = origin_below(parent, id, self.store, self._world)
            origin, begin = beginning(
                agent,
                origin,
                seed,
                metadata,
                label=label,
                system_prompt=system_prompt,
                auto_resize=auto_resize,
            )
        validate_session_id(origin.id, strict=self._strict_ids or self.store.strict_ids)
        call = self._caller.one() if caller is None else caller
        with self._alone(origin.id, call):
            live = self._live.blank(origin).configured(self._config)
            self._pipeline.create(live, begin, call)
            return self._live.adopt(live, is_new=True).configured(self._config)

    def open(self, id: str, *, until: Until | None = None, create: bool = False) -> StoredSession:
        """Return the session as the store has it, created if there is none and ``create`` says so.

        ``until`` (the number of an event, its id, or a moment): as it stood then; it can be read and
        forked. Raises `SessionNotFound`, `EventNotFound`.
        """
        if until is not None:
            past = LiveSession.load(id, self.store, self._world, until)
            if past is None:
                raise SessionNotFound(id)
            return past
        try:
            return self.get(id)
        except SessionNotFound:
            if not create:
                raise
        try:
            return self.create(id=id)
        except SessionExists:
            return self.get(id)  # somebody was faster

    def get(self, id: str) -> LiveSession:
        """`open` by its other name, for sessions as they are."""
        return self._live.load(id).configured(self._config)

    def info(self, id: str) -> SessionInfo:
        """Return what lists show of a session. Raises `SessionNotFound`."""
        return info(self.store, id)

    def exists(self, id: str) -> bool:
        """Return whether the store has a session of that id."""
        return self.store.head(KIND, arguments.session_id(id)) is not None

    def list(self, query: SessionQuery = _ALL) -> InfoPage:
        """Return the sessions that ``query`` asks for."""
        return page_of(self.store, query)

    def delete(self, id: str, *, hard: bool = False) -> None:
        """Hide a session from lists, or with ``hard`` drop its log and episodes; forks keep what they share.

        Raises `SessionNotFound`.
        """
        if hard:
            with self._alone(id, self._caller.one()):
                if not self.store.delete(KIND, id):
                    raise SessionNotFound(id)
                self.store.delete(EPISODES, id)
                self.store.delete(CHUNKS, id)
                self._live.forget(id)
        else:
            self.execute(id, Delete())
        self.events.emit(runtime_events.DELETED, {"session_id": id, "hard": hard})

    def evict(self, id: str) -> bool:
        """Drop the live object of a session, unless an action runs on it or somebody watches it. Return
        False if it stays, or there was none."""
        arguments.session_id(id)
        live = self._live
        if live.lanes.is_busy(id) or live.is_watched(id) or not live.forget(id):
            return False
        self.events.emit(runtime_events.EVICTED, {"session_id": id})
        return True

    # Actions.

    def execute(
        self,
        id: str,
        action: Act,
        *,
        expected_revision: int | None = None,
        retries: int = 0,
        idempotency_key: str | None = None,
        caller: Caller | None = None,
    ) -> LiveSession:
        """Carry out an action on a session, and return that.

        An action is called with the session (`Txn`) and writes to it; one with ``mode = "stream"`` stores
        what it writes at once. ``retries``: so many times more when somebody else wrote first, atomic
        actions only. An action whose ``idempotency_key`` the session knows isn't run again. Raises
        `SessionNotFound`, `SessionConflict`, `LaneTimeout`, `LaneFull`, `SessionBusy`, and what the action
        or a hook raises.
        """
        if arguments.count("retries", retries) and streams(action):
            raise InvalidArgument("`retries` are for atomic actions: one that streams has stored its begin")
        call = self._caller.one() if caller is None else caller
        key = arguments.optional_text("idempotency_key", idempotency_key)
        while True:
            try:
                with self._turns.turn(session_id(id), call):
                    try:
                        return self._pipeline.execute(id, action, call, expected_revision, key)
                    except BaseException:
                        self._children.stop_canceled(id)
                        raise
            except SessionConflict as conflict:
                if not retries or conflict.kind != "version":
                    raise
            retries -= 1

    def take_turn(self, id: str, action: Act, key: str, *, caller: Caller | None = None) -> LiveSession:
        """Carry out an action with ``mode = "stream"`` as the turn of that ``key`` (10 §C16.5).

        It is called even if the turn has ended: then with a session in which it finds all that it does done,
        so that it comes to the same. Raises what `execute` does.
        """
        call = self._caller.one() if caller is None else caller
        with self._alone(id, call):
            return self._pipeline.take_turn(id, action, call, key)

    def send(
        self,
        id: str,
        prompt: Prompt,
        *,
        agent: Any = None,
        stream: Sink | None = None,
        expected_revision: int | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        approvals: ApprovalGate | None = None,
        inputs: InputGate | None = None,
        client: str | None = None,
        caller: Caller | None = None,
        **loop_options: Any,
    ) -> TurnResult:
        """Run ``agent`` on a prompt, as a turn of the session (10 §C7.1), and return what became of it.

        Without an ``agent`` it is the session's definition, with ``loop_options`` added to its options.
        ``prompt`` is a text, a message, messages, or None for what is there; ``stream`` is called with each
        piece of the answer. For an ``idempotency_key`` that a turn has ended with, that one's result is
        returned. An agent that takes longer than ``timeout`` seconds (None: the runtime's
        ``execution_timeout``) is stopped.

        A ``budget`` (a dict: the loop's own option) ends the turn before the step that it doesn't allow.
        ``approvals`` are asked before a function's `Turn.tool`, ``inputs`` answer its `Turn.ask`.
        ``client`` is the live client that sends; without it the program itself does. Raises `NotController`
        when another client controls the session, unless the turn of that key has begun.

        Raises `ExecutionTimeout`, `BudgetExceeded`, `AgentError` for a reply that isn't an answer, what the
        agent raises, and what `execute` does.
        """
        if budget is not None and not isinstance(budget, Budget):
            loop_options["budget"], budget = budget, None
        check_send(agent, id, loop_options)
        idempotency_key = arguments.optional_text("idempotency_key", idempotency_key)
        timeout = self._execution_timeout if timeout is None else timeout
        action = Send(
            prompt,
            agent,
            sink=stream,
            options=loop_options,
            timeout=timeout,
            guards=Guards(budget, approvals, inputs),
            client=client,
        )
        if client is not None:
            self.admit(id, client, idempotency_key)
        session = self.execute(
            id,
            action,
            expected_revision=expected_revision,
            idempotency_key=idempotency_key,
            caller=caller,
        )
        return result_of(session, action.events or recorded(session, idempotency_key or ""))

    def admit(self, id: str, client_id: str, key: str | None = None) -> None:
        """Raise `NotController` for a client that may not send, unless it has begun the turn of that key."""
        if key is None or not has_turn(self.get(id), key):
            self._client(id, partial(clients.admit, silence=self._controller_timeout), client_id)

    def stream(self, id: str, prompt: Prompt, **options: Any) -> Iterator[RunEvent]:
        """Run an agent on a prompt, and give its answer piece by piece, in the end the result.

        ``options`` are those of `send`. The turn begins with the first piece that is asked for, and goes on
        as pieces are; closing the iterator cancels it.
        """
        return streamed(self._caller, partial(self.send, id, prompt, **options))

    @overload
    def watch(
        self,
        id: str,
        *,
        after: int | None = None,
        types: Iterable[str] | None = None,
        chunks: Literal[False] = False,
        buffer: int = BUFFER,
    ) -> Watch: ...

    @overload
    def watch(
        self,
        id: str,
        *,
        after: int | None = None,
        types: Iterable[str] | None = None,
        chunks: Literal[True],
        buffer: int = BUFFER,
    ) -> LiveWatch: ...

    def watch(
        self,
        id: str,
        *,
        after: int | None = None,
        types: Iterable[str] | None = None,
        chunks: bool = False,
        buffer: int = BUFFER,
    ) -> Watch | LiveWatch:
        """Return an iterator over a session's events of these ``types`` (None: all), as they come; ``after``:
        first those of the log behind that number.

        With ``chunks`` it gives `Chunk`s, too: the pieces of the answers that agents make here, or where a
        runtime has ``share_chunks``. Raises `SessionNotFound`, `InvalidArgument`.
        """
        session = self.get(id)
        if chunks:
            return session.watch_live(buffer=buffer, after=after, types=types)
        return session.watch(buffer=buffer, after=after, types=types)

    def hand_on(self, id: str) -> bool:
        """Leave a session's running turn to the next process that gets its lease: here it stops, with
        `LeaseLost`, and its log shows no end. Return False where nothing is to be left, or nobody to leave
        it to: a store in memory has no leases."""
        leases = self._live.leases
        return leases is not None and leases.hand_on(arguments.session_id(id))

    # Who descends from whom, and what was said.

    def parent(self, id: str) -> SessionInfo | None:
        """Return the session that this one was forked from; None if there is none any more."""
        return parent(self.store, id)

    def children(self, id: str) -> Infos:
        """Return the forks of a session, oldest first."""
        return children(self.store, id)

    def lineage(self, id: str) -> Infos:
        """Return the sessions that this one descends from, the first one first, and itself."""
        return lineage(self.store, id)

    def search(
        self,
        query: str,
        session_id: str | None = None,
        *,
        types: Iterable[str] | None = None,
        limit: int = 50,
        raw: bool = False,
        names: frozenset[str] | None = None,
    ) -> Hits:
        """Return the events whose text holds every term of ``query``, whatever the case (10 §C6).

        ``types`` chooses some, ``names`` what these sessions wrote; ``raw``: the query is FTS5's, on SQLite.
        """
        codec = SessionCodec(Origin("", self._world))
        arguments.count("limit", limit)
        query = arguments.text("query", query)
        wanted = None if types is None else arguments.types(types)
        only: Any = {} if names is None else {"names": names}  # which a store of a caller's own may not know
        return self.store.search(
            query, KIND, codec=codec, name=session_id, types=wanted, limit=limit, raw=raw, **only
        )

    # The runtime itself.

    def wake(self) -> None:
        """Have the actions that wait for their session, and children, look whether they still should."""
        self._turns.wake()
        self._children.wake()
        self._scheduler.wake()

    def close(self, *, caller: Caller | None = None) -> None:
        """Let nobody in any more, cancel the children, wait for compactions, and close the store if the
        runtime opened it.

        Raises `SessionBusy` in an async function of this runtime, which would wait for itself.
        """
        self._caller.check_outside()
        self._scheduler.close()
        self._children.close()
        self._turns.close()
        self._compactions.close()
        if self._end_sharing is not None:
            end, self._end_sharing = self._end_sharing, None
            end()
        if isinstance(self.agents, AgentFactory):
            callers = (caller, self._caller.one() if self._caller.is_running else None)
            for call in filter(None, callers):
                self.agents.close(call)
        self._caller.close()
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> SessionRuntime:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def _alone(self, id: str, call: Caller, who: str = ACTION) -> Iterator[None]:
        """Have a session to oneself: in this process, and on a store that others share in all of them.

        When what runs in the block fails, the children that the session's log calls off are stopped.
        """
        with self._turns.turn(arguments.session_id(id), call, who):
            try:
                yield
            except BaseException:
                self._children.stop_canceled(id)
                raise


def _opened(store: Store | str, durability: str | None) -> Store:
    if isinstance(store, str):
        return open_store(store, durability=durability)
    if not hasattr(store, "stream"):
        raise InvalidArgument(f"`store` must be a store or the URL of one, got {type(store).__name__}")
    if durability is not None:
        raise InvalidArgument("`durability` is of a store that the runtime opens: give its URL")
    return store


def _policy(resize: ResizePolicy | None, artifacts: ArtifactStore | None) -> ResizePolicy:
    """Return the policy of a runtime, which puts tool outputs where the runtime has artifacts."""
    policy = ResizePolicy() if resize is None else arguments.instance("resize", resize, ResizePolicy)
    if artifacts is not None and policy.artifacts is None:
        policy.artifacts = Offloading(artifacts)
    return policy
