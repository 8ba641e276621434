"""The session runtime for asyncio."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from harnpy.session.agents.values import RunEvent, TurnResult
from harnpy.session.aio.session import AsyncSession
from harnpy.session.aio.threads import in_thread
from harnpy.session.log import Session
from harnpy.session.runtime.calling import LoopCaller
from harnpy.session.runtime.pipe import Pipe
from harnpy.session.runtime.queries import InfoPage, SessionQuery
from harnpy.session.runtime.runtime import SessionRuntime
from harnpy.session.runtime.streaming import pieces_to

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from harnpy.session.agents.definition import AgentDef
    from harnpy.session.agents.send import Prompt
    from harnpy.session.artifacts.artifact import ArtifactStore
    from harnpy.session.children.child_runs import ChildRun
    from harnpy.session.children.scheduling import ScheduledChild
    from harnpy.session.children.values import ChildRef, ChildResult, ChildSpec
    from harnpy.session.events import Event
    from harnpy.session.kept.info import SessionInfo
    from harnpy.session.kept.past import Until
    from harnpy.session.resize.report import ResizeReport
    from harnpy.session.runtime.bus import EventBus
    from harnpy.session.runtime.txn import Txn
    from harnpy.session.settings.levels import Level
    from harnpy.session.trajectory.episode import Episode
    from harnpy.session.transfer.directories import ExportReport, ImportReport
    from harnpy.storage.contract import Hit, Store

    Episodes = list[Episode]
    Infos = list[SessionInfo]
    Hits = list[Hit]

T = TypeVar("T")


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
        return await in_thread(partial(self.runtime.list, query or SessionQuery()))

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
        caller = caller or LoopCaller.here(self.runtime.wake)
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
