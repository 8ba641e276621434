"""A session for asyncio."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, cast

from harnpy.session.aio.threads import in_thread
from harnpy.session.aio.watch import AsyncWatch
from harnpy.session.live.watched import BUFFER
from harnpy.session.log import Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Concatenate, ParamSpec, TypeVar

    from harnpy.session.events import Event
    from harnpy.session.kept.info import SessionInfo
    from harnpy.session.kept.past import Until
    from harnpy.session.parts.questions import ModelSettings
    from harnpy.session.resize.report import ResizeReport
    from harnpy.session.resize.resize_policy import ResizePolicy
    from harnpy.session.settings.levels import Settings
    from harnpy.session.tasks import TaskList
    from harnpy.session.views import View

    P = ParamSpec("P")
    R = TypeVar("R")


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
    """What ``session`` does, as coroutines. What costs nothing to look at is an attribute here, too."""

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
