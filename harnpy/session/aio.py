"""The session runtime and its sessions for asyncio: the same names, as coroutines.

Spec: 10 §C2, §C7.2, §C9, §C10.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from dataclasses import replace
from functools import partial, wraps
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload
from weakref import finalize

from harnpy.session import extension
from harnpy.session.agents import RunEvent, TurnResult
from harnpy.session.calling import LoopCaller, Pipe, pieces_to
from harnpy.session.extension import SessionExtension
from harnpy.session.log import Session
from harnpy.session.runtime import InfoPage, SessionQuery, SessionRuntime
from harnpy.session.watch import BUFFER

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
    from typing import Concatenate, ParamSpec, Self

    from harnpy.session.agents import AgentDef
    from harnpy.session.artifacts import ArtifactStore
    from harnpy.session.child_records import ChildRef, ChildResult, ChildRun, ChildSpec
    from harnpy.session.children import ScheduledChild
    from harnpy.session.chunks import Chunk
    from harnpy.session.events import Event
    from harnpy.session.extension import RequestPrompt
    from harnpy.session.hooks import EventBus
    from harnpy.session.info import SessionInfo
    from harnpy.session.past import Until
    from harnpy.session.reading import ModelSettings
    from harnpy.session.registers import Level, Settings, TaskList
    from harnpy.session.resize_policy import Analysis, ResizePolicy, ResizeReport, Strategy
    from harnpy.session.send import Prompt
    from harnpy.session.trajectory import Episode
    from harnpy.session.transaction import Txn
    from harnpy.session.transfer.directories import ExportReport, ImportReport
    from harnpy.session.view import View
    from harnpy.session.watch import AnyWatch
    from harnpy.storage.contract import Hit, Store

    P = ParamSpec("P")
    R = TypeVar("R")
    Episodes = list[Episode]
    Told = Event | Chunk
    Infos = list[SessionInfo]
    Hits = list[Hit]
    Message = dict[str, Any]
    Records = list[dict[str, Any]]

# Waiting on a loop for what a thread does.


T = TypeVar("T")


async def in_thread(work: Callable[[], T], cancel: Callable[[], None] | None = None) -> T:
    """Return what ``work`` returns, in a thread of its own: one that waits for others keeps nobody waiting.

    When the task is cancelled, ``cancel`` is called, and the task ends once ``work`` has.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def run() -> None:
        try:
            result = context.run(work)
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(done.cancel)
        except StopIteration as error:  # which no future takes
            told = RuntimeError("a function of the session raised StopIteration")
            told.__cause__ = error
            loop.call_soon_threadsafe(done.set_exception, told)
        except BaseException as error:
            loop.call_soon_threadsafe(done.set_exception, error)
        else:
            loop.call_soon_threadsafe(done.set_result, result)

    Thread(target=run, name="session", daemon=True).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if cancel is not None:
            cancel()
        while not done.done():
            await asyncio.wait([done])
        if not done.cancelled():
            done.exception()  # somebody has looked at it
        raise


# A watch for asyncio. Spec: 10 §C10.


class AnyAsyncWatch(Generic[T]):
    """An async iterator over what a session has to tell, which waits for what is to come; an async context
    manager that ends it. Who is cancelled while waiting misses nothing."""

    def __init__(self, watch: AnyWatch[T]) -> None:
        self._watch = watch
        self._waiting: asyncio.Task[T | None] | None = None
        finalize(self, watch.close).atexit = False

    @property
    def dropped(self) -> int:
        """Return the number of events that weren't taken because the buffer was full."""
        return self._watch.dropped

    @property
    def closed(self) -> bool:
        """Return whether no more events come."""
        return self._watch.closed

    def close(self) -> None:
        """End the watch. What it has taken in already can still be read."""
        self._watch.close()

    async def next(self, timeout: float | None = None) -> T | None:
        """Return what comes next; None when nothing does within ``timeout`` seconds (None: however long), or
        the watch is closed. Raises `StorageError` when the store can't be read."""
        now = asyncio.get_running_loop().time
        ends = None if timeout is None else now() + timeout
        while True:
            left = None if ends is None else max(0.0, ends - now())
            is_over = self._waiting is None and left is not None
            waiting = self._waiting = self._waiting or self._look(left)
            done, _ = await asyncio.wait({waiting}, timeout=None if is_over else left)
            if not done:
                return None
            self._waiting = None
            found = waiting.result()
            if found is not None or is_over or self.closed:
                return found

    def _look(self, timeout: float | None) -> asyncio.Task[T | None]:
        """Return a look for what comes next, in a thread. It goes on when whoever wants it is cancelled."""
        return asyncio.create_task(in_thread(partial(self._watch.next, timeout), self._watch.close))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        found = await self.next()
        if found is None:
            raise StopAsyncIteration
        return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()


class AsyncWatch(AnyAsyncWatch["Event"]):
    """A watch of a session's events."""


class AsyncLiveWatch(AnyAsyncWatch["Told"]):
    """A watch of a session's events, and between them of the pieces of the answers that are made."""


# A session for asyncio.


def _threaded(
    method: Callable[Concatenate[Session, P], R],
) -> Callable[Concatenate[AsyncSession, P], Awaitable[R]]:
    """Return the method of a session as a coroutine."""

    @wraps(method)
    def threaded(face: AsyncSession, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        bound = getattr(face.session, method.__name__)
        return in_thread(lambda: cast("R", bound(*args, **kwargs)))

    return threaded


class AsyncSession:
    """The methods of ``session`` as coroutines. Attributes that cost nothing to look at are attributes here,
    too."""

    __slots__ = ("session",)

    def __init__(self, session: Session) -> None:
        self.session = session

    append = _threaded(Session.append)
    append_user = _threaded(Session.append_user)
    append_message = _threaded(Session.append_message)
    append_prompt = _threaded(Session.append_prompt)
    append_context = _threaded(Session.append_context)
    add_history = _threaded(Session.add_history)
    set_history = _threaded(Session.set_history)
    reset = _threaded(Session.reset)
    clean_window = _threaded(Session.clean_window)
    trim = _threaded(Session.trim)
    pin = _threaded(Session.pin)
    unpin = _threaded(Session.unpin)
    rewind = _threaded(Session.rewind)
    redo = _threaded(Session.redo)
    set = _threaded(Session.set)
    set_memo = _threaded(Session.set_memo)
    set_task = _threaded(Session.set_task)
    set_tasks = _threaded(Session.set_tasks)
    set_status = _threaded(Session.set_status)
    snapshot = _threaded(Session.snapshot)
    refresh = _threaded(Session.refresh)
    move_leaf = _threaded(Session.move_leaf)
    branch = _threaded(Session.branch)
    turns = _threaded(Session.turns)
    reduce = _threaded(Session.reduce)
    find_tool = _threaded(Session.find_tool)
    tool_fence = _threaded(Session.tool_fence)
    wait_started = _threaded(Session.wait_started)
    wait_resolved = _threaded(Session.wait_resolved)
    record_artifact = _threaded(Session.record_artifact)
    store_artifact = _threaded(Session.store_artifact)
    analyze = _threaded(Session.analyze)
    last_event = _threaded(Session.last_event)
    last_message = _threaded(Session.last_message)
    last_assistant_message = _threaded(Session.last_assistant_message)
    events = _threaded(Session.events)
    messages = _threaded(Session.messages)
    window = _threaded(Session.window)
    entries = _threaded(Session.entries)
    history = _threaded(Session.history)

    async def fork(
        self, id: str | None = None, *, at: Until | None = None, label: str = "", reason: str = ""
    ) -> AsyncSession:
        """Create a session with this one's past."""
        fork = await in_thread(lambda: self.session.fork(id, at=at, label=label, reason=reason))
        return AsyncSession(fork)

    async def set_scratchpad(self, value: Any, **why: Any) -> int:
        """Replace the scratchpad and return its version."""
        return await in_thread(lambda: self.session.set_scratchpad(value, **why))

    async def clear_scratchpad(self, **why: Any) -> int:
        """Empty the scratchpad and return its version."""
        return await in_thread(lambda: self.session.clear_scratchpad(**why))

    async def resize(self, strategy: str | None = None, **opts: Any) -> ResizeReport | None:
        """Run a resize strategy, or the one that is due; return None when none is."""
        return await in_thread(lambda: self.session.resize(strategy, **opts))

    async def info(self) -> SessionInfo:
        """Return the session as lists show it."""
        return await in_thread(lambda: self.session.info)

    def attach_reducer(self, fn: Callable[[Any, Event], Any]) -> Callable[[], Awaitable[Any]]:
        """Return what gives the state that ``fn(state, event)`` makes of all events so far."""
        state = self.session.attach_reducer(fn)
        return lambda: in_thread(state)

    def observe(self, fn: Callable[[Event], Any]) -> Callable[[], None]:
        """Have ``fn``, a plain function, called with each event within its append. Return what ends that."""
        return self.session.observe(fn)

    def watch(
        self,
        *,
        buffer: int = BUFFER,
        after: int | None = None,
        types: Iterable[str] | None = None,
        lossy: bool = True,
    ) -> AsyncWatch:
        """Return an async iterator over the events to come, behind those of the log from ``after`` on."""
        return AsyncWatch(self.session.watch(buffer=buffer, after=after, types=types, lossy=lossy))

    @property
    def has_watchers(self) -> bool:
        return self.session.has_watchers

    @property
    def leaf_id(self) -> str | None:
        return self.session.leaf_id

    @property
    def state(self) -> Any:
        return self.session.state

    @property
    def settings(self) -> Settings:
        return self.session.settings

    @property
    def model_settings(self) -> ModelSettings:
        return self.session.model_settings

    @property
    def policy(self) -> ResizePolicy:
        return self.session.policy

    @property
    def full_context(self) -> list[dict[str, Any]]:
        return self.session.full_context

    @property
    def context_window(self) -> list[dict[str, Any]]:
        return self.session.context_window

    @property
    def version(self) -> int:
        return self.session.version

    @property
    def scratchpad(self) -> Any:
        return self.session.scratchpad

    @property
    def is_waiting(self) -> bool:
        return self.session.is_waiting

    @property
    def total_cost(self) -> float:
        return self.session.total_cost

    @property
    def unpriced_calls(self) -> int:
        return self.session.unpriced_calls

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def seq(self) -> int:
        return self.session.seq

    @property
    def revision(self) -> int:
        return self.session.revision

    @property
    def length(self) -> int:
        return self.session.length

    @property
    def view(self) -> View:
        return self.session.view

    @property
    def status(self) -> str:
        return self.session.status

    @property
    def execution_status(self) -> str:
        return self.session.execution_status

    @property
    def metadata(self) -> dict[str, Any]:
        return self.session.metadata

    @property
    def memo(self) -> Any:
        return self.session.memo

    @property
    def task(self) -> str | None:
        return self.session.task

    @property
    def tasks(self) -> TaskList:
        return self.session.tasks

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a register."""
        return self.session.get(key, default)


# The session runtime for asyncio.


class AsyncSessionRuntime:
    """A `SessionRuntime` whose calls don't block the loop. Close it, or use it in an ``async with`` block."""

    def __init__(self, store: Store | str | SessionRuntime, **options: Any) -> None:
        """``store``: of what to make the runtime, or one that is there. ``options``: its own."""
        self.runtime = store if isinstance(store, SessionRuntime) else SessionRuntime(store, **options)

    @property
    def events(self) -> EventBus:
        return self.runtime.events

    @property
    def store(self) -> Store:
        return self.runtime.store

    @property
    def settings(self) -> Level:
        return self.runtime.settings

    @property
    def agents(self) -> Any:
        return self.runtime.agents

    @property
    def artifacts(self) -> ArtifactStore | None:
        return self.runtime.artifacts

    async def create(
        self,
        agent: AgentDef | str | Session | AsyncSession = "",
        *,
        id: str | None = None,
        seed: dict[str, Any] | Iterable[dict[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
        parent: Session | AsyncSession | str | None = None,
        label: str | None = None,
        system_prompt: str | None = None,
        auto_resize: bool | None = None,
    ) -> AsyncSession:
        """Store a new session as revision 1."""
        given = agent.session if isinstance(agent, AsyncSession) else agent
        above = parent.session if isinstance(parent, AsyncSession) else parent
        more: Any = {"label": label, "system_prompt": system_prompt, "auto_resize": auto_resize}
        create = partial(self.runtime.create, given, id=id, seed=seed, metadata=metadata, parent=above)
        return AsyncSession(await self._called(partial(create, **more)))

    async def open(self, id: str, *, until: Until | None = None, create: bool = False) -> AsyncSession:
        """Return the session as the store has it. Raises `SessionNotFound`."""
        found = await in_thread(partial(self.runtime.open, id, until=until, create=create))
        return AsyncSession(found)

    async def get(self, id: str) -> AsyncSession:
        """Return the session as the store has it. Raises `SessionNotFound`."""
        return await self.open(id)

    async def info(self, id: str) -> SessionInfo:
        return await in_thread(partial(self.runtime.info, id))

    async def exists(self, id: str) -> bool:
        return await in_thread(partial(self.runtime.exists, id))

    async def list(self, query: SessionQuery | None = None) -> InfoPage:
        return await in_thread(partial(self.runtime.list, SessionQuery() if query is None else query))

    async def execute(
        self,
        id: str,
        action: Callable[[Txn], Any],
        *,
        expected_revision: int | None = None,
        retries: int = 0,
        idempotency_key: str | None = None,
    ) -> AsyncSession:
        """Carry out an action on a session, and return that."""
        options: dict[str, Any] = {"expected_revision": expected_revision, "retries": retries}
        execute = partial(self.runtime.execute, id, action, idempotency_key=idempotency_key, **options)
        return AsyncSession(await self._called(execute))

    async def send(self, id: str, prompt: Prompt, **options: Any) -> TurnResult:
        """Run an agent on a prompt and return what became of the turn. ``options``: those of the runtime's.

        An async agent runs on this loop, another one in a thread.
        """
        return _faced(await self._called(partial(self.runtime.send, id, prompt, **options)))

    async def stream(self, id: str, prompt: Prompt, **options: Any) -> AsyncGenerator[RunEvent, None]:
        """Run an agent on a prompt, and give its answer piece by piece, in the end the result.

        Closing the iterator cancels the turn.
        """
        pipe = Pipe()
        caller = LoopCaller.here(self.runtime.wake)
        work = partial(self.runtime.send, id, prompt, **options, stream=pieces_to(pipe))
        task = asyncio.create_task(self._called(work, caller))
        task.add_done_callback(lambda task: _end(pipe, task))
        try:
            while (event := await asyncio.wrap_future(pipe.get())) is not None:
                yield event
        finally:
            if not task.done():
                caller.stop()
                task.cancel()
                pipe.close()
                await asyncio.wait([task])

    async def delete(self, id: str, *, hard: bool = False) -> None:
        await in_thread(partial(self.runtime.delete, id, hard=hard))

    async def evict(self, id: str) -> bool:
        return await in_thread(partial(self.runtime.evict, id))

    @overload
    async def watch(
        self,
        id: str,
        *,
        after: int | None = None,
        types: Iterable[str] | None = None,
        chunks: Literal[False] = False,
        buffer: int = BUFFER,
    ) -> AsyncWatch: ...

    @overload
    async def watch(
        self,
        id: str,
        *,
        after: int | None = None,
        types: Iterable[str] | None = None,
        chunks: Literal[True],
        buffer: int = BUFFER,
    ) -> AsyncLiveWatch: ...

    async def watch(
        self,
        id: str,
        *,
        after: int | None = None,
        types: Iterable[str] | None = None,
        chunks: bool = False,
        buffer: int = BUFFER,
    ) -> AsyncWatch | AsyncLiveWatch:
        """Return an async iterator over a session's events, with ``chunks`` also over the pieces of the
        answers that agents make."""
        session = await in_thread(partial(self.runtime.get, id))
        if chunks:
            live = partial(session.watch_live, buffer=buffer, after=after, types=types)
            return AsyncLiveWatch(await in_thread(live))
        return AsyncWatch(session.watch(buffer=buffer, after=after, types=types))

    async def attach(self, id: str, client_id: str, **options: Any) -> dict[str, Any]:
        """Attach a client, or change an attached one. ``options``: mode, takeover, metadata."""
        return await in_thread(partial(self.runtime.attach, id, client_id, **options))

    async def takeover(
        self, id: str, client_id: str, *, metadata: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Attach a client as the controller. The former one becomes an observer."""
        return await in_thread(partial(self.runtime.takeover, id, client_id, metadata=metadata))

    async def detach(self, id: str, client_id: str, *, reason: str | None = None) -> dict[str, Any]:
        """Remove a client."""
        return await in_thread(partial(self.runtime.detach, id, client_id, reason=reason))

    async def heartbeat(
        self, id: str, client_id: str, *, metadata: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Record that a client is still there."""
        return await in_thread(partial(self.runtime.heartbeat, id, client_id, metadata=metadata))

    async def clients(self, id: str) -> Records:
        """Return the records of the attached clients, in the order in which they came."""
        return await in_thread(partial(self.runtime.clients, id))

    async def parent(self, id: str) -> SessionInfo | None:
        return await in_thread(partial(self.runtime.parent, id))

    async def children(self, id: str) -> Infos:
        return await in_thread(partial(self.runtime.children, id))

    async def lineage(self, id: str) -> Infos:
        return await in_thread(partial(self.runtime.lineage, id))

    async def search(self, query: str, session_id: str | None = None, **options: Any) -> Hits:
        return await in_thread(partial(self.runtime.search, query, session_id, **options))

    async def spawn(self, id: str, spec: ChildSpec) -> ChildRef:
        """Have a child of session ``id`` run: an async agent on this loop, another one in a thread."""
        return await self._called(partial(self.runtime.spawn, id, spec))

    async def wait(self, child_id: str, timeout: float | None = None) -> ChildResult:
        """Return what became of a child, and forget it. ``timeout`` is in seconds."""
        return _of_child(await self._called(partial(self.runtime.wait, child_id, timeout)))

    async def run_child(self, id: str, spec: ChildSpec) -> ChildResult:
        """`spawn` a child and `wait` for it. Being cancelled cancels it, too, unless it is detached."""
        return _of_child(await self._called(partial(self.runtime.run_child, id, spec)))

    async def schedule_child(self, id: str, spec: ChildSpec) -> ScheduledChild:
        """Have a child begin when ``spec.due_at`` says."""
        return await self._called(partial(self.runtime.schedule_child, id, spec))

    async def progress_child(
        self, id: str, child_id: str, message: str | None = None, **more: Any
    ) -> ChildRun:
        """Have the log of session ``id`` say how far a child is."""
        return await in_thread(partial(self.runtime.progress_child, id, child_id, message, **more))

    async def merge_child(self, id: str, child_id: str, **more: Any) -> ChildRun:
        """Have the log of session ``id`` say that a child's outcome was taken in."""
        return await in_thread(partial(self.runtime.merge_child, id, child_id, **more))

    async def save_episode(self, episode: Episode) -> None:
        """Keep an episode, in the place of one of its session that has its id."""
        await in_thread(partial(self.runtime.save_episode, episode))

    async def episodes(self, session_id: str) -> Episodes:
        """Return the episodes of a session, in the order in which they were first kept."""
        return await in_thread(partial(self.runtime.episodes, session_id))

    async def search_episodes(self, query: str, limit: int = 50) -> Episodes:
        """Return the episodes that say every term of ``query``, the newest run first."""
        return await in_thread(partial(self.runtime.search_episodes, query, limit))

    async def bootstrap(
        self, id: str, cwd: str | None = None, files: Iterable[str] | None = None, tools: Iterable[str] = ()
    ) -> Event:
        """Tell a session's model where it works."""
        return await in_thread(partial(self.runtime.bootstrap, id, cwd, files, tools))

    def compact_in_background(
        self, id: str, strategy: str | None = None
    ) -> asyncio.Future[ResizeReport | None]:
        """Resize a session in a thread of its own, and return what becomes of it."""
        return asyncio.wrap_future(self.runtime.compact_in_background(id, strategy))

    async def export(
        self, id: str, format: str = "jsonl", path: str | None = None, *, strict: bool = False
    ) -> str:
        """Return a session as the text of a file, and write it to ``path``."""
        return await in_thread(partial(self.runtime.export, id, format, path, strict=strict))

    async def import_(self, path_or_text: str, format: str = "auto", **options: Any) -> AsyncSession | None:
        """Make a session of a file or a text; return None if it was skipped."""
        found = await in_thread(partial(self.runtime.import_, path_or_text, format, **options))
        return None if found is None else AsyncSession(found)

    async def export_dir(
        self, directory: str, format: str = "jsonl", *, strict: bool = False
    ) -> ExportReport:
        """Write all sessions to a directory, a file each."""
        return await in_thread(partial(self.runtime.export_dir, directory, format, strict=strict))

    async def import_dir(self, directory: str, format: str = "auto", **options: Any) -> ImportReport:
        """Make sessions of a directory's files, parents before those that were forked from them."""
        return await in_thread(partial(self.runtime.import_dir, directory, format, **options))

    async def save_ancestry(self, record: dict[str, Any]) -> bool:
        """Note where a session stands whose log is elsewhere; return False if there is one of that id."""
        return await in_thread(partial(self.runtime.save_ancestry, record))

    async def close(self) -> None:
        await self._called(self.runtime.close)

    async def __aenter__(self) -> AsyncSessionRuntime:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _called(self, work: Callable[..., T], caller: LoopCaller | None = None) -> T:
        """Return what a call of the runtime returns that runs hooks and actions."""
        caller = LoopCaller.here(self.runtime.wake) if caller is None else caller
        return await in_thread(partial(work, caller=caller), caller.stop)


def _end(pipe: Pipe, task: asyncio.Task[TurnResult]) -> None:
    if task.cancelled():
        pipe.end(asyncio.CancelledError())
    elif (error := task.exception()) is not None:
        pipe.end(error)
    else:
        pipe.put(RunEvent("result", result=_faced(task.result())))
        pipe.end()


def _of_child(result: ChildResult) -> ChildResult:
    return result if result.result is None else replace(result, result=_faced(result.result))


def _faced(result: TurnResult) -> TurnResult:
    return replace(result, session=AsyncSession(result.session))


# A session extension for asyncio. Spec: 10 §C7.2, §C9.


class AsyncSessionExtension:
    """A `SessionExtension` whose calls don't block the loop. What costs nothing to look at is an attribute
    here, too."""

    __slots__ = ("extension",)

    def __init__(
        self, runtime: AsyncSessionRuntime | SessionRuntime | None = None, agent: Any = None, **options: Any
    ) -> None:
        """``options`` are those of `SessionExtension`."""
        over = runtime.runtime if isinstance(runtime, AsyncSessionRuntime) else runtime
        self.extension = SessionExtension(over, agent, **options)

    @property
    def agent_name(self) -> str:
        return self.extension.agent_name

    @property
    def events(self) -> EventBus:
        return self.extension.events

    @property
    def prompt(self) -> dict[str, Any]:
        """The slots that each request of the agent has."""
        return self.extension.prompt

    @property
    def session(self) -> AsyncSession | None:
        """The active session."""
        active = self.extension.session
        return None if active is None else AsyncSession(active)

    @property
    def sessions(self) -> dict[str, AsyncSession]:
        """All that were ever active, by id."""
        return {id: AsyncSession(session) for id, session in self.extension.sessions.items()}

    async def activate(self, id: str | None = None) -> AsyncSession:
        """Make a session active, one that is made now if there is none of that id; None: of a new id."""
        return AsyncSession(await in_thread(partial(self.extension.activate, id)))

    async def deactivate(self) -> None:
        """Go on without a session, and without a history. The session stays in `sessions`."""
        self.extension.deactivate()

    @property
    def settings(self) -> Level:
        """The agent's settings, which its sessions inherit."""
        return self.extension.settings

    def set_settings(self, key: str, value: Any) -> None:
        """Set one of the agent's settings; None unsets it."""
        self.extension.set_settings(key, value)

    def on_analyze(self, fn: Analysis | None) -> None:
        """Have ``fn`` name the resize strategy that is due, in all sessions, those to come too."""
        self.extension.on_analyze(fn)

    def strategy(self, name: str, fn: Strategy) -> None:
        """Register a resize strategy in all sessions, those to come too."""
        self.extension.strategy(name, fn)

    async def chat_history(self) -> list[Message]:
        """Return the messages that requests show."""
        return await in_thread(lambda: self.extension.chat_history)

    async def set_history(self, messages: Any) -> None:
        """Restart the history with these messages."""
        await in_thread(partial(self.extension.set_history, messages))

    async def add_history(self, messages: Any) -> None:
        """Append one message or several."""
        await in_thread(partial(self.extension.add_history, messages))

    async def reset(self) -> None:
        """Empty the history; a session's memo stays."""
        await in_thread(self.extension.reset)

    async def clean_window(self) -> None:
        """Empty what requests show; a session's history stays."""
        await in_thread(self.extension.clean_window)

    async def prepare(self, prompt: RequestPrompt | dict[str, Any]) -> RequestPrompt:
        """Put the window and the memo into a prompt's slots, and return it, for `finish`."""
        prepared = await in_thread(partial(self.extension.prepare, prompt))
        extension.enter(None if prepared.session is None else prepared.session.id)
        return prepared

    async def finish(self, prompt: RequestPrompt, result: Any) -> None:
        """Append what was asked and what was answered, once, to the session of the prompt."""
        await in_thread(partial(self.extension.finish, prompt, result))
