"""Sessions on a store, changed one action after the other. Spec: 10 §C7."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.session.agents.definition import AgentDef, Budget
from harnpy.session.agents.factories import AgentFactory, check_send
from harnpy.session.agents.send import Send, recorded, result_of
from harnpy.session.artifacts.offloading import Offloading
from harnpy.session.children.nursery import Children
from harnpy.session.children.parenting import Parenting
from harnpy.session.children.scheduling import Scheduler
from harnpy.session.errors import InvalidArgument, SessionConflict, SessionExists, SessionNotFound
from harnpy.session.events import Origin
from harnpy.session.guards.guards import Guards
from harnpy.session.kept.codec import SessionCodec
from harnpy.session.kept.ids import validate_session_id
from harnpy.session.log import KIND, Session
from harnpy.session.parts import arguments
from harnpy.session.resize.resizable import Resizing
from harnpy.session.resize.resize_policy import ResizePolicy
from harnpy.session.runtime import bus as runtime_events
from harnpy.session.runtime import queries
from harnpy.session.runtime.actions import Delete, streams
from harnpy.session.runtime.background import Compactions
from harnpy.session.runtime.beginning import beginning, origin_below, storing
from harnpy.session.runtime.bus import EventBus
from harnpy.session.runtime.calling import ThreadCaller
from harnpy.session.runtime.holding import Leases
from harnpy.session.runtime.hooks import stack_of
from harnpy.session.runtime.lanes import Lanes
from harnpy.session.runtime.live import LiveSession, Living
from harnpy.session.runtime.moving import Moving
from harnpy.session.runtime.pipeline import Pipeline
from harnpy.session.runtime.queries import InfoPage, SessionQuery
from harnpy.session.runtime.streaming import streamed
from harnpy.session.runtime.tending import Tending
from harnpy.session.settings.levels import Level
from harnpy.session.trajectory.kept_episodes import KIND as EPISODES
from harnpy.session.trajectory.kept_episodes import EpisodeKeeping
from harnpy.storage.opening import open_store
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from harnpy.session.agents.send import Prompt
    from harnpy.session.agents.turn import Sink
    from harnpy.session.agents.values import RunEvent, TurnResult
    from harnpy.session.artifacts.artifact import ArtifactStore
    from harnpy.session.guards.approvals import ApprovalGate
    from harnpy.session.guards.inputs import InputGate
    from harnpy.session.kept.info import SessionInfo
    from harnpy.session.kept.past import Until
    from harnpy.session.kept.stored import StoredSession
    from harnpy.session.resize.report import ResizeReport
    from harnpy.session.runtime.calling import Caller
    from harnpy.session.runtime.hooks import Hook, HookStack
    from harnpy.session.runtime.txn import Txn
    from harnpy.storage.contract import Hit, Store
    from harnpy.world.clock import Clock
    from harnpy.world.ids import Ids

    Infos = list[SessionInfo]
    Hits = list[Hit]

    Message = dict[str, Any]
    Act = Callable[[Txn], Any]

_ALL = SessionQuery()


class SessionRuntime(Moving, Tending, Parenting, EpisodeKeeping):
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
        durability: str | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        """``store`` is one, or the URL of one, which is closed with the runtime; ``durability`` (``full``,
        ``relaxed``, ``async``) takes the place of what the URL says of it.

        ``agents`` is a `LoopFactory` that runs the definitions of sessions, or an agent for all of them.
        ``resize`` says when and how windows become smaller; ``settings`` hold for each session that has not
        set its own, and change with `settings` (C8.1).
        ``artifacts`` is where a policy without artifacts of its own puts tool outputs.
        An action waits at most ``wait_timeout`` seconds for its session, an agent has ``execution_timeout``
        seconds for a turn; ``child_limit`` is how many children run at once (None: all). ``strict`` refuses
        messages that no model takes (10 §A1.4); ``strict_ids`` allows letters, digits, ``_`` and ``-`` only
        in ids. Raises `StorageError` for a URL of no store.
        """
        arguments.seconds("wait_timeout", wait_timeout)
        self._execution_timeout = arguments.optional_seconds("execution_timeout", execution_timeout)
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
        self._living = Living(self.store, self._world, resizing, strict=strict)
        self.agents = self._living.agents = agents
        self._compactions = Compactions(self._compact)
        self._lanes = Lanes(wait_timeout, self._world.clock.monotonic)
        self._leases = None if self.store.url.startswith("memory:") else Leases(self.store)
        self._children = Children(self, self._world, self._lanes, self._leases, child_limit)
        self._scheduler = Scheduler(self._children, self._world.clock)
        self._pipeline = Pipeline(self._living, stack_of(hooks), self.events, self._children.runs)

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
        call = caller or self._caller.one()
        with self._alone(origin.id, call):
            live = self._living.blank(origin)
            self._pipeline.create(live, begin, call)
            return self._living.adopt(live)

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
            return self._living.load(id)
        except SessionNotFound:
            if not create:
                raise
        try:
            return self.create(id=id)
        except SessionExists:
            return self._living.load(id)  # somebody was faster

    def get(self, id: str) -> LiveSession:
        """`open` by its other name, for sessions as they are."""
        return self._living.load(id)

    def info(self, id: str) -> SessionInfo:
        """Return what lists show of a session. Raises `SessionNotFound`."""
        return queries.info(self.store, id)

    def exists(self, id: str) -> bool:
        """Whether the store has a session of that id."""
        return self.store.head(KIND, arguments.session_id(id)) is not None

    def list(self, query: SessionQuery = _ALL) -> InfoPage:
        """Return the sessions that ``query`` asks for."""
        return queries.page_of(self.store, query)

    def delete(self, id: str, *, hard: bool = False) -> None:
        """Hide a session from lists, or with ``hard`` drop its log and episodes; forks keep what they share.

        Raises `SessionNotFound`.
        """
        if hard:
            with self._alone(id, self._caller.one()):
                if not self.store.delete(KIND, id):
                    raise SessionNotFound(id)
                self.store.delete(EPISODES, id)
                self._living.forget(id)
        else:
            self.execute(id, Delete())
        self.events.emit(runtime_events.DELETED, {"session_id": id, "hard": hard})

    def evict(self, id: str) -> bool:
        """Drop the live object of a session, unless an action runs on it or somebody watches it. Return
        False if it stays, or there was none."""
        arguments.session_id(id)
        if self._lanes.is_busy(id) or self._living.is_watched(id) or not self._living.forget(id):
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
        call = caller or self._caller.one()
        key = arguments.optional_text("idempotency_key", idempotency_key)
        while True:
            try:
                with self._alone(id, call):
                    return self._pipeline.execute(id, action, call, expected_revision, key)
            except SessionConflict as conflict:
                if not retries or conflict.kind != "version":
                    raise
            retries -= 1

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

        Raises `ExecutionTimeout`, `BudgetExceeded`, `AgentError` for what is no answer, what the agent
        raises, and what `execute` does.
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
        )
        session = self.execute(
            id,
            action,
            expected_revision=expected_revision,
            idempotency_key=idempotency_key,
            caller=caller,
        )
        return result_of(session, action.events or recorded(session, idempotency_key or ""))

    def stream(self, id: str, prompt: Prompt, **options: Any) -> Iterator[RunEvent]:
        """Run an agent on a prompt, and give its answer piece by piece, in the end the result.

        ``options`` are those of `send`. The turn begins with the first piece that is asked for, and goes on
        as pieces are; closing the iterator cancels it.
        """
        return streamed(self._caller, partial(self.send, id, prompt, **options))

    # Who descends from whom, and what was said.

    def parent(self, id: str) -> SessionInfo | None:
        """Return the session that this one was forked from; None if there is none any more."""
        return queries.parent(self.store, id)

    def children(self, id: str) -> Infos:
        """Return the forks of a session, oldest first."""
        return queries.children(self.store, id)

    def lineage(self, id: str) -> Infos:
        """Return the sessions that this one descends from, the first one first, and itself."""
        return queries.lineage(self.store, id)

    def search(
        self,
        query: str,
        session_id: str | None = None,
        *,
        types: Iterable[str] | None = None,
        limit: int = 50,
        raw: bool = False,
    ) -> Hits:
        """Return the events whose text holds every term of ``query``, whatever the case (10 §C6).

        ``types`` chooses some; ``raw``: the query is FTS5's, on SQLite.
        """
        codec = SessionCodec(Origin("", self._world))
        arguments.count("limit", limit)
        query = arguments.text("query", query)
        wanted = None if types is None else arguments.types(types)
        return self.store.search(
            query, KIND, codec=codec, name=session_id, types=wanted, limit=limit, raw=raw
        )

    # The runtime itself.

    def wake(self) -> None:
        """Have the actions that wait for their session, and children, look whether they still should."""
        self._lanes.wake()
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
        self._lanes.close()
        self._compactions.close()
        if self._leases is not None:
            self._leases.close()
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
    def _alone(self, id: str, call: Caller) -> Iterator[None]:
        """Have a session to oneself: in this process, and on a store that others share in all of them."""
        with self._lanes.lane(arguments.session_id(id), call.check) as left, self._children.of(id):
            if self._leases is None:
                yield
                return
            with self._leases.lease(id, left, call) as lease, self._living.under(id, lease):
                yield


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
