"""`Service`: what callers may do with the sessions and runs of a store, whoever carries it to them.

The HTTP API, its WebSocket, and the portal's pages are faces of it. It knows scopes and owners, and no HTTP.
Who may do what is the law of `harnpy.serve.rights`, which the decorators `needs` and `on_session` apply.
Spec: 11 §1.2, §1.3.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, wraps
from time import monotonic
from typing import TYPE_CHECKING, Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from harnpy.client import types as t
from harnpy.eventlog.topics import StoreEventLog
from harnpy.faults import Fault
from harnpy.serve import attaching, refusals, sharing, shown, streams
from harnpy.serve.feeds import QUIET, Feeds, Gone
from harnpy.serve.looks import Looks
from harnpy.serve.people import Cancel, People, open_requests
from harnpy.serve.prompted import Definitions, Prompted
from harnpy.serve.refusals import Refused as Refused
from harnpy.serve.rights import OWN, Belongs
from harnpy.serve.rights import Caller as Caller
from harnpy.serve.run_feeds import RunFeeds
from harnpy.serve.runs import Runs
from harnpy.serve.sends import Sends
from harnpy.session import clients
from harnpy.session.actions import Complete
from harnpy.session.aio import AsyncSessionRuntime, in_thread
from harnpy.session.compaction import estimate_tokens
from harnpy.session.errors import SessionConflict, SessionExists
from harnpy.session.events import LEAF_MOVED, REGISTER_SET, TURN_COMPLETED
from harnpy.session.info import info_of
from harnpy.session.log import KIND
from harnpy.session.registers import DELETED
from harnpy.session.runtime import SessionQuery, heads_of
from harnpy.storage.contract import PAGE, HeadQuery, all_heads, mark, position
from harnpy.storage.errors import StorageError
from harnpy.storage.searching import terms
from harnpy.workflow.engines.errors import RunNotFound
from harnpy.world.ids import RealIds

if TYPE_CHECKING:
    from harnpy.eventlog.contract import EventLog
    from harnpy.serve.sends import Sending
    from harnpy.session.agents import AgentDef, TurnResult
    from harnpy.session.info import SessionInfo
    from harnpy.session.live import LiveSession
    from harnpy.session.runtime import SessionRuntime
    from harnpy.storage.contract import Head, Hit
    from harnpy.workflow.engines.contract import Engine

    P = ParamSpec("P")
    R = TypeVar("R")
    Item = TypeVar("Item", t.Event, t.Entry, t.Hit)

_log = logging.getLogger(__name__)

#: The most that one page of a list, of events or of hits holds.
MOST: Final = 1000
#: Threads for what may wait for the store, but for turns, which have their own; and how many of them one
#: caller has at a time for what may take long.
THREADS: Final = 16
SHARE: Final = 4
#: How many heads are looked at at once beyond the first page of a list, and hits beyond those asked for.
STRIDE: Final = 500
#: Bytes after which a page ends.
LARGEST: Final = 4 * 1024 * 1024
#: Bytes of windows that are kept as text, and for how many seconds without a look who has the id.
WINDOWS: Final = 32 * 1024 * 1024
WINDOW_SECONDS: Final = 1.0
#: Seconds between two looks for runs that nobody works on, and at those that are to end.
TAKE_UP: Final = 2.0
_DRAINING: Final = 0.05
_MOVES: Final = frozenset({LEAF_MOVED})
#: Events that may say that a turn has ended: a program's end is a note of the session's.
_ENDS: Final = frozenset({TURN_COMPLETED, REGISTER_SET})


class _WindowText(NamedTuple):
    """The window of a session after event ``seq``. After ``until`` another session may have the id."""

    seq: int
    created: int
    belongs: Belongs
    text: bytes
    until: float


def needs(
    scope: str,
) -> Callable[
    [Callable[Concatenate[Service, Caller, P], Awaitable[R]]],
    Callable[Concatenate[Service, Caller, P], Awaitable[R]],
]:
    """Have a method refuse callers without a right, and raise `Refused` for what fails in it."""

    def decorate(
        method: Callable[Concatenate[Service, Caller, P], Awaitable[R]],
    ) -> Callable[Concatenate[Service, Caller, P], Awaitable[R]]:
        @wraps(method)
        async def checked(self: Service, caller: Caller, /, *args: P.args, **kwargs: P.kwargs) -> R:
            self.check(caller, scope)
            refusals.check_texts(*args, **kwargs)
            with refusals.refusing():
                return await method(self, caller, *args, **kwargs)

        return checked

    return decorate


def on_session(
    scope: str,
) -> Callable[
    [Callable[Concatenate[Service, Caller, str, P], Awaitable[R]]],
    Callable[Concatenate[Service, Caller, str, P], Awaitable[R]],
]:
    """`needs` for a method of a session, which callers who may not read it don't find."""

    def decorate(
        method: Callable[Concatenate[Service, Caller, str, P], Awaitable[R]],
    ) -> Callable[Concatenate[Service, Caller, str, P], Awaitable[R]]:
        @wraps(method)
        async def checked(self: Service, caller: Caller, id: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
            self.check(caller, scope)
            refusals.check_texts(*args, **kwargs)
            with refusals.refusing():
                await self.seen(caller, id, scope)
                return await method(self, caller, id, *args, **kwargs)

        return checked

    return decorate


class Service:
    """Every method raises `Refused`, also for what the runtime raises.

    ``agents`` answer prompts (None: the definitions of the sessions), ``log`` is the event log of people's
    answers and waitpoints (None: that of the runtime's store), ``engine`` runs programs (None: opened on the
    store by the first run). ``before_work(caller)`` may refuse a send or a run.
    """

    def __init__(
        self,
        runtime: SessionRuntime,
        agents: Prompted | None = None,
        *,
        log: EventLog | None = None,
        engine: Engine | None = None,
        before_work: Callable[[Caller], Awaitable[object]] | None = None,
    ) -> None:
        self.runtime = runtime
        self.store = runtime.store
        self._face = AsyncSessionRuntime(runtime)
        self.prompted: Prompted = Definitions() if agents is None else agents
        self.log = StoreEventLog(self.store) if log is None else log
        #: Whether a look at the store is over at once: then it needs no thread.
        self._is_near = "many_machines" not in self.store.features
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="serve")
        #: By principals, as long as there is one at work.
        self._shares: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._before_work = before_work
        self._is_draining = False
        #: By the ids of their sessions.
        self._windows: dict[str, _WindowText] = {}
        self._looks = Looks()
        self._ids = RealIds()
        self.feeds = Feeds(runtime, self.blocking)
        self.sends = Sends(runtime, self.feeds, self._prompt, self._takes_keys, self.blocking)
        self.people = People(runtime, self.log)
        self._runs = Runs(self.store, self.log, engine)
        self._run_feeds = RunFeeds(self.store, self.blocking)
        self._taking_up: asyncio.Task[None] | None = None

    # The service itself.

    async def recover(self) -> int:
        """Enter the turns again whose server is gone. Return how many those are."""
        return await self.sends.recover()

    def keep_recovering(self) -> None:
        """`recover` now, and whenever another server is gone, until `drain`. So with the runs of its agents
        that nobody works on."""
        self.sends.keep_recovering()
        if self._taking_up is None:
            self._taking_up = asyncio.create_task(self._keep_taking_up())

    async def _keep_taking_up(self) -> None:
        while True:
            try:
                await in_thread(partial(self._runs.take_up, self.prompted))
            except Exception:
                _log.exception("looking for runs that nobody works on failed")
            await asyncio.sleep(TAKE_UP)

    @property
    def is_draining(self) -> bool:
        return self._is_draining

    async def drain(self, grace: float = 30.0) -> int:
        """Take no more sends, and let running turns and runs end, within ``grace`` seconds. Return how many
        haven't: those are the next server's."""
        self._is_draining = True
        if self._taking_up is not None:
            self._taking_up.cancel()
            await asyncio.wait([self._taking_up])
        return sum(await asyncio.gather(self.sends.drain(grace), self._drain_runs(grace)))

    async def _drain_runs(self, grace: float) -> int:
        now = asyncio.get_running_loop().time
        ends = now() + grace
        while self._runs.at_work and now() < ends:
            await asyncio.sleep(_DRAINING)
        return await in_thread(self._runs.give_back)

    async def close(self) -> None:
        """Let go of everything but the runtime, whose owner closes it."""
        await self.drain(0.0)
        self.feeds.close()
        self._run_feeds.close()
        self.people.close()
        await in_thread(self._runs.close)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def blocking(self, work: Callable[[], R]) -> R:
        """Return what ``work`` returns, in a thread of the pool."""
        run = copy_context().run
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: run(work))

    async def slowly(self, caller: Caller, work: Callable[[], R]) -> R:
        """Return what ``work`` returns, which may take long: a caller has a share of the pool for that."""
        share = self._shares.get(caller.principal)
        if share is None:
            share = self._shares[caller.principal] = asyncio.Semaphore(SHARE)
        async with share:
            return await self.blocking(work)

    # Who may do what.

    def check(self, caller: Caller, right: str) -> None:
        """Raise `Refused` for a caller that has a right over nothing."""
        if not caller.may(right):
            scope = "write" if right == OWN else right
            raise Refused(403, "forbidden", f"this needs the scope `{scope}`")

    async def seen(self, caller: Caller, id: str, right: str = "read") -> Head:
        """Return the head of a session that the caller has a right over.

        Raises `Refused`: one that it may not read isn't there.
        """
        if "\0" in id:  # which not every store can look for
            raise refusals.no_session(id)
        head = (
            self.store.head(KIND, id)
            if self._is_near
            else await self.blocking(partial(self.store.head, KIND, id))
        )
        if head is None or head.data.get("status") == DELETED:
            raise refusals.no_session(id)
        if not caller.may_all(right):
            of = info_of(head)
            is_known = shown.OWNER in of.metadata
            belongs = self.belongs(of) if is_known else await self.blocking(partial(self.belongs, of))
            if not caller.may_with("read", belongs):
                raise refusals.no_session(id)
            if not caller.may_with(right, belongs):
                self.check(caller, right)
                raise _too_little(id, right)
        return head

    def belongs(self, of: SessionInfo) -> Belongs:
        """Return whose a session is, and with whom it is shared."""
        return sharing.belongs(self.store, of)

    def owner(self, of: SessionInfo) -> str | None:
        """Return whom a session belongs to."""
        return sharing.owner_of(self.store, of)

    def _info(self, caller: Caller, of: SessionInfo) -> t.Info:
        found = shown.info(of, self.owner(of))
        if found.parent is not None and not self._sees_parent(caller, found):
            found.parent = None
        return found

    def _sees(self, caller: Caller, of: SessionInfo) -> bool:
        return caller.may_all("read") or caller.may_with("read", self.belongs(of))

    def _sees_parent(self, caller: Caller, info: t.Info) -> bool:
        """Return whether a caller that sees a session also sees the one that it is a fork of."""
        if caller.may_all("read") or info.owner == caller.principal:
            return True
        head = self.store.head(KIND, info.parent or "")
        return head is not None and self._sees(caller, info_of(head))

    # Callers and agents.

    @needs("read")
    async def me(self, caller: Caller) -> t.Me:
        scopes: Any = sorted(caller.scopes)
        return t.Me(principal=caller.principal, scopes=scopes, limits=caller.limits or t.Limits())

    @needs("read")
    async def agents(self, caller: Caller) -> t.AgentList:
        of = self.prompted
        found = [
            t.Agent(name=name, kind=of.kind(name), description=of.description(name)) for name in of.names
        ]
        return t.AgentList(agents=found)

    # Sessions.

    @needs("read")
    async def sessions(
        self,
        caller: Caller,
        *,
        status: str | None = None,
        agent: str | None = None,
        parent: str | None = None,
        order: str = "updated",
        limit: int = PAGE,
        after: str | None = None,
    ) -> t.SessionList:
        _bounded("limit", limit)
        if order not in ("updated", "created", "id"):
            raise Refused(422, "invalid", "`order` must be `updated`, `created` or `id`")
        if status == DELETED:
            raise Refused(422, "invalid", "deleted sessions aren't listed")
        if after is not None:
            try:
                position(after)
            except StorageError as error:
                raise Refused(400, "bad_request", error.message) from None
        query = SessionQuery(status, agent, parent, order, limit, after)
        return await self.slowly(caller, lambda: self._listed(caller, query))

    def _listed(self, caller: Caller, query: SessionQuery) -> t.SessionList:
        asked = heads_of(query)._replace(principal=_whose(caller))
        found: list[Head] = []
        while True:
            page = self.store.heads(asked)
            found += [head for head in page.items if self._sees(caller, info_of(head))]
            after = page.next
            if len(found) > query.limit:
                found = found[: query.limit]
                after = mark(found[-1], asked)
            if after is None or len(found) == query.limit:
                return t.SessionList(
                    sessions=[self._info(caller, info_of(head)) for head in found], next=after
                )
            # What it doesn't see is passed over in long strides.
            asked = asked._replace(after=after, limit=STRIDE)

    @needs("write")
    async def create(self, caller: Caller, body: t.CreateSession) -> t.Session:
        if shown.OWNER in body.metadata or any(key.startswith(shown.OWN) for key in body.metadata):
            raise Refused(
                422, "invalid", f"`metadata.{shown.OWNER}` and `metadata.{shown.OWN}…` are the server's"
            )
        metadata = {**body.metadata, shown.OWNER: caller.principal}
        agent: AgentDef | str = body.agent or ""
        if body.agent is not None:
            definition = self.prompted.definition(body.agent)
            agent = body.agent if definition is None else shown.owned(definition, caller.principal)
        if body.id is not None and await self.blocking(partial(self.runtime.exists, body.id)):
            raise SessionExists(body.id, 1)  # at once, also while that one's turn runs
        live = await in_thread(
            lambda: self.runtime.create(
                agent,
                id=body.id,
                seed=body.seed,
                metadata=metadata,
                label=body.label,
                system_prompt=body.system,
            )
        )
        return await self.blocking(lambda: self._session(caller, live.id))

    @on_session("read")
    async def session(self, caller: Caller, id: str) -> t.Session:
        return await self.blocking(lambda: self._session(caller, id))

    def _session(self, caller: Caller, id: str) -> t.Session:
        live = self.runtime.get(id)
        of, running = live.info, self.sends.at_work(live)
        belongs = self.belongs(of)
        return shown.session(
            self._info(caller, of),
            messages=live.length,
            clients=self._clients(live),
            running=running,
            requests=[] if running is None else self._open_requests(live),
            lineage=self._relatives(caller, self.runtime.lineage(id)[:-1]),
            children=self._relatives(
                caller, (each for each in self.runtime.children(id) if each.status != DELETED)
            ),
            shares=sharing.shown_shares(belongs.shares),
            may=caller.all_with(belongs),
        )

    def _relatives(self, caller: Caller, found: Iterable[SessionInfo]) -> list[t.Info]:
        return [self._info(caller, each) for each in found if self._sees(caller, each)]

    def _open_requests(self, live: LiveSession) -> list[t.Request]:
        found = {each.id: each for each in open_requests(live)}
        for each in self.people.asked():
            if each.session == live.id:
                found.setdefault(each.id, each)
        return [each for each in found.values() if not self.people.is_answered(each.id)]

    @on_session("read")
    async def window(self, caller: Caller, id: str) -> t.Window:
        return await self.blocking(lambda: self._window(id))

    def _window(self, id: str) -> t.Window:
        live = self.runtime.get(id)
        with live.lock:
            messages, seq = live.window(), live.seq
        return t.Window(messages=messages, tokens=estimate_tokens(messages), seq=seq)

    async def window_text(self, caller: Caller, id: str) -> bytes:
        """Return the window as JSON text: the same one as long as nobody appends to the session."""
        self.check(caller, "read")
        with refusals.refusing():
            known = self._windows.get(id)
            if known is not None and caller.may_with("read", known.belongs) and known.until > monotonic():
                version = (
                    self._looks.find(id, self._version)
                    if self._is_near
                    else await self.blocking(partial(self._version, id))
                )
                if version == known.seq:
                    return known.text
            head = await self.seen(caller, id)
            if known is not None and (known.seq, known.created) == (head.version, head.created):
                known = known._replace(until=monotonic() + WINDOW_SECONDS)
            else:
                known = await self.blocking(partial(self._window_text, id, head.created))
            self._windows.pop(id, None)
            self._windows[id] = known
            while sum(len(each.text) for each in self._windows.values()) > WINDOWS and len(self._windows) > 1:
                del self._windows[next(iter(self._windows))]
            return known.text

    def _version(self, id: str) -> int:
        return self.store.changes(KIND, id, 0, 0.0)

    def _window_text(self, id: str, created: int) -> _WindowText:
        window, belongs = self._window(id), self.belongs(self.runtime.info(id))
        until = monotonic() + WINDOW_SECONDS
        return _WindowText(window.seq, created, belongs, streams.encoded(window), until)

    @on_session("read")
    async def history(self, caller: Caller, id: str, *, after: int = 0, limit: int = 200) -> t.History:
        _bounded("limit", limit)
        return await self.slowly(caller, lambda: self._history(id, after, limit))

    def _history(self, id: str, after: int, limit: int) -> t.History:
        live = self.runtime.get(id)
        branch = shown.Branch(live.read(types=_MOVES), live.version)
        said = shown.sized(live, after, types=shown.SAID)
        found, next = _page(
            ((shown.entry(event), size) for event, size in said if branch.has(event.seq)), limit
        )
        return t.History(entries=found, next=next)

    @on_session("read")
    async def events(
        self, caller: Caller, id: str, *, after: int = 0, limit: int = 200, types: list[str] | None = None
    ) -> t.EventList:
        _bounded("limit", limit)
        wanted = None if types is None else frozenset(types)

        def read() -> t.EventList:
            found, next = _page(shown.sized(self.runtime.get(id), after, types=wanted), limit)
            return t.EventList(events=found, next=next)

        return await self.slowly(caller, read)

    async def watch(
        self,
        caller: Caller,
        id: str,
        *,
        after: int | None = None,
        types: list[str] | None = None,
        quiet: float = QUIET,
    ) -> AsyncIterator[t.Event | t.Chunk | None]:
        """Events behind ``after`` (None: from now on) and chunks as they come, None every 15 s without any.

        Raises `Refused` with the code ``gone`` once the session is deleted, or isn't the caller's to read.
        """
        head = await self.opened(caller, id, after)
        after = head.version if after is None else after
        wanted = None if types is None else frozenset(types)
        try:
            sight = self._sight(caller, head)
            async for item in self.feeds.watch(id, after=after, types=wanted, quiet=quiet, sight=sight):
                yield item
        except Gone:
            raise _gone(id) from None
        except Fault as error:
            raise refusals.refused(error) from error

    def _sight(self, caller: Caller, head: Head) -> Sight | None:
        """Return what says whether the caller still may read a session; None where nobody can take that."""
        owner = head.data.get("metadata", {}).get(shown.OWNER)
        if caller.may_all("read") or owner == caller.principal:
            return None
        return Sight(self, caller, info_of(head))

    async def opened(self, caller: Caller, id: str, after: int | None = None) -> Head:
        """Return the head of a session that the caller may watch, behind event ``after``."""
        self.check(caller, "read")
        with refusals.refusing():
            head = await self.seen(caller, id)
        if after is not None and after > head.version:
            what = f"session '{id}' has no event {after}: it ends with {head.version}"
            raise Refused(400, "bad_request", what)
        return head

    @on_session("write")
    async def inject(self, caller: Caller, id: str, body: t.Inject) -> t.Event:
        if not body.content or not isinstance(body.content, str | list):
            raise Refused(422, "invalid", "`content` must be a text, or a list of blocks, that isn't empty")
        message = {"role": body.role, "content": body.content}
        return await self.blocking(lambda: self._injected(caller, id, message, body.client))

    def _injected(self, caller: Caller, id: str, message: dict[str, Any], client: str | None) -> t.Event:
        while True:
            live = self.runtime.get(id)
            try:
                with live.lock:
                    self._check_sender(caller, live, client)
                    if client is None:
                        return shown.event(live.append_message(message))
                    timeout = self.runtime.controller_timeout
                    return shown.event(clients.append_message(live, client, message, timeout))
            except SessionConflict:
                continue  # somebody else may have taken over just now

    @on_session(OWN)
    async def fork(self, caller: Caller, id: str, body: t.Fork) -> t.Session:
        forked = await in_thread(lambda: self.runtime.get(id).fork(body.id, at=body.at, label=body.label))
        return await self.blocking(lambda: self._session(caller, forked.id))

    @on_session(OWN)
    async def rewind(self, caller: Caller, id: str, body: t.Rewind) -> t.Session:
        def rewind() -> t.Session:
            live = self.runtime.get(id)
            to = (
                live.event(body.to).id
                if isinstance(body.to, int) and 0 < body.to <= live.version
                else body.to
            )
            if isinstance(to, int):
                raise Refused(
                    422, "invalid", f"`to`: session '{id}' has no event {to}, it ends with {live.version}"
                )
            live.move_leaf(to)
            return self._session(caller, id)

        return await in_thread(rewind)

    @on_session(OWN)
    async def compact(self, caller: Caller, id: str, body: t.Compact) -> dict[str, Any] | None:
        report = await asyncio.wrap_future(self.runtime.compact_in_background(id, body.strategy))
        return None if report is None else report.data()

    @on_session(OWN)
    async def close_session(self, caller: Caller, id: str) -> t.Session:
        self._check_idle(id)
        await in_thread(lambda: self.runtime.execute(id, Complete()))
        return await self.blocking(lambda: self._session(caller, id))

    @on_session("admin")
    async def delete(self, caller: Caller, id: str) -> None:
        self._check_idle(id)
        await in_thread(lambda: self.runtime.delete(id))

    def _check_idle(self, id: str) -> None:
        """Raise `Refused` for a session whose turn runs here, which may wait for a person for hours."""
        running = self.sends.running(id)
        if running is not None:
            what = f"session '{id}' is busy: its turn '{running.key}' hasn't ended, cancel it or wait for it"
            raise Refused(*refusals.BUSY, what)

    # Shares.

    @on_session("read")
    async def shares(self, caller: Caller, id: str) -> t.ShareList:
        return await self.blocking(lambda: _share_list(self.belongs(self.runtime.info(id))))

    @on_session(OWN)
    async def share(self, caller: Caller, id: str, principal: str, scopes: Sequence[str]) -> t.ShareList:
        """Share a session with a principal for these scopes, in place of those that it had."""
        if not scopes:
            raise Refused(422, "invalid", "`scopes` is empty: DELETE takes a share back")
        return await self.blocking(lambda: self._shared(id, principal, scopes))

    @on_session(OWN)
    async def unshare(self, caller: Caller, id: str, principal: str) -> t.ShareList:
        return await self.blocking(lambda: self._shared(id, principal, ()))

    def _shared(self, id: str, principal: str, scopes: Sequence[str]) -> t.ShareList:
        return _share_list(sharing.share(self.runtime, id, principal, scopes))

    @on_session("read")
    async def compare(self, caller: Caller, id: str, other: str, *, limit: int = 200) -> t.Comparison:
        _bounded("limit", limit)
        await self.seen(caller, other)
        return await self.slowly(caller, lambda: self._compared(id, other, limit))

    def _compared(self, id: str, other: str, limit: int) -> t.Comparison:
        left, right = self.runtime.get(id), self.runtime.get(other)
        common = shown.common(left.origin, right.origin, left.version, right.version)
        point = left.event(common) if common else None
        sides = [self._history(each, common, limit) for each in (id, other)]
        return t.Comparison(
            common_seq=common,
            common_id=None if point is None else left.origin.own(point).id,
            left=sides[0].entries,
            right=sides[1].entries,
            left_next=sides[0].next,
            right_next=sides[1].next,
        )

    @needs("read")
    async def search(
        self,
        caller: Caller,
        query: str,
        *,
        session: str | None = None,
        types: list[str] | None = None,
        limit: int = 50,
    ) -> t.HitList:
        _bounded("limit", limit)
        try:
            terms(query)
        except StorageError as error:
            raise Refused(422, "invalid", f"`q`: {error.message}") from None
        if session is not None:
            await self.seen(caller, session)
        return await self.slowly(caller, lambda: self._found(caller, query, session, types, limit))

    def _found(
        self, caller: Caller, query: str, session: str | None, types: list[str] | None, limit: int
    ) -> t.HitList:
        def find(most: int, names: frozenset[str] | None = None) -> list[Hit]:
            return self.runtime.search(query, session, types=types, limit=most, names=names)

        def names() -> frozenset[str]:
            asked = HeadQuery(KIND, None, frozenset({DELETED}), limit=STRIDE, principal=_whose(caller))
            heads = all_heads(self.store, asked)
            return frozenset(head.name for head in heads if self._sees(caller, info_of(head)))

        visible: dict[str, bool] = {}

        def is_there(name: str) -> bool:
            if name not in visible:
                head = self.store.head(KIND, name)
                visible[name] = head is not None and head.data.get("status") != DELETED
            return visible[name]

        if session is None and not caller.may_all("read"):
            hits = find(limit, names())
        else:
            # Hits of deleted sessions are left out: in the past that a session shares, some may be.
            hits = find(limit if session is None else limit + STRIDE)
            seen = [each for each in hits if is_there(each.name)]
            is_short = session is None and len(seen) < len(hits) == limit
            hits = find(limit, names()) if is_short else seen
        found = (t.Hit(session=each.name, seq=each.seq, type=each.type, text=each.text) for each in hits)
        return t.HitList(hits=_page(((each, len(each.text)) for each in found), limit)[0])

    # Turns.

    @on_session("write")
    async def send(self, caller: Caller, id: str, body: t.Send, key: str | None) -> t.Turn:
        """Begin a turn; with ``body.wait`` return it once it has ended."""
        key, sending = await self._begun(caller, id, body, key)
        if body.wait:
            sight = self._sight(caller, await self.seen(caller, id))
            async for _ in self._until_ended(id, key, sending, sight, chunks=False):
                continue
        elif sending is not None and sending.is_running:
            return t.Turn(key=key, status="running")
        return await self._turn(id, key)

    @on_session("write")
    async def send_watched(
        self, caller: Caller, id: str, body: t.Send, key: str | None, *, after: int | None = None
    ) -> AsyncIterator[t.Event | t.Chunk | t.Turn | None]:
        """Begin a turn, and return its events and chunks as they come, and in the end itself.

        Who has seen event ``after`` gets those behind it; else they begin with the turn.
        """
        following = self._following(caller, id, body, key, after)
        await anext(following)  # the turn has begun, or is refused
        return following

    async def _following(
        self, caller: Caller, id: str, body: t.Send, key: str | None, after: int | None
    ) -> AsyncIterator[t.Event | t.Chunk | t.Turn | None]:
        """Begin a turn and yield None, then what comes of it."""
        head = await self.opened(caller, id, after)
        feed = await self.feeds.open(id)  # before the turn, whose first pieces may come at once
        try:
            key, sending = await self._begun(caller, id, body, key)
            if after is None:
                known = await self.blocking(lambda: shown.find_turn(self.runtime.get(id), key))
                after = head.version if known is None else min(known.seq - 1, self.runtime.get(id).version)
            yield None
            sight = self._sight(caller, head)
            async for item in self._until_ended(id, key, sending, sight, after=after):
                yield item
        finally:
            self.feeds.leave(id, feed)

    async def _begun(
        self, caller: Caller, id: str, body: t.Send, key: str | None
    ) -> tuple[str, Sending | None]:
        self._check_open("send to another one")
        if body.client is not None:
            await self._check_owner(caller, id, body.client)
        key = self._ids.new() if key is None else key
        options: dict[str, Any] = {
            name: value
            for name in ("agent", "client", "timeout", "budget")
            if (value := getattr(body, name)) is not None
        }
        admit = partial(self._admit_send, caller, id, body.client)
        return key, await self.sends.begin(id, body.prompt, key, options, admit)

    async def _admit_send(self, caller: Caller, id: str, client: str | None) -> None:
        """Raise `Refused` for a caller that may begin no turn in a session now."""
        await self._admit(caller)
        belongs = await self.blocking(lambda: self.belongs(self.runtime.info(id)))
        if belongs.owner not in (None, caller.principal):
            # The turn's cost is the owner's: a limit isn't passed by in somebody else's session.
            await self._admit(caller._replace(principal=belongs.owner))
        await self.blocking(lambda: self._check_sender(caller, self.runtime.get(id), client))

    async def _admit(self, caller: Caller) -> None:
        """Raise `Refused` if the caller may begin nothing today."""
        if self._before_work is not None:
            await self._before_work(caller)

    def _check_open(self, instead: str) -> None:
        """Raise `Refused` if nothing may begin here any more."""
        if self._is_draining:
            raise Refused(503, "draining", f"this server is about to stop: {instead}")

    async def _check_work(self, caller: Caller, instead: str) -> None:
        """Raise `Refused` where nothing may begin: here any more, or for this caller today."""
        self._check_open(instead)
        await self._admit(caller)

    async def _until_ended(
        self,
        id: str,
        key: str,
        sending: Sending | None,
        sight: Sight | None,
        *,
        after: int | None = None,
        chunks: bool = True,
    ) -> AsyncIterator[t.Event | t.Chunk | t.Turn | None]:
        """Yield what comes until a turn has ended, in whatever process, and then the turn."""
        feed = await self.feeds.open(id)  # before the look, so that an end right behind that is seen
        try:
            after = feed.version if after is None else after
            is_over = sending is None and (await self._turn(id, key)).status != "running"

            def ends() -> bool:
                return is_over or (sending is not None and not sending.is_running)

            async for item in self.feeds.watch(
                id, after=after, chunks=chunks, until=ends, quiet=QUIET, sight=sight
            ):
                yield item
                # Another server says only in the log that it is done.
                ended = isinstance(item, t.Event) and item.type in _ENDS
                if sending is None and (ended or item is None):
                    is_over = (await self._turn(id, key)).status != "running"
        except Gone:
            raise _gone(id) from None
        finally:
            self.feeds.leave(id, feed)
        yield await self._turn(id, key)

    async def _turn(self, id: str, key: str) -> t.Turn:
        found = await self.blocking(partial(self.sends.known, id, key))
        if found is None:
            raise Refused(404, "not_found", f"session '{id}' has no turn of the key '{key}'")
        return found

    async def _prompt(self, id: str, prompt: Any, key: str | None, options: dict[str, Any]) -> TurnResult:
        loop = asyncio.get_running_loop()
        self.people.follow(lambda cancel: loop.call_soon_threadsafe(self.sends.cancel, *cancel))
        people = {"approvals": self.people.approvals, "inputs": self.people.inputs(id)}
        try:
            return await self.prompted.prompt(self._face, id, prompt, key=key, **people, **options)
        finally:
            self.people.leave()

    def _takes_keys(self, id: str, agent: str | None) -> bool:
        """Return whether the turns of whoever answers in a session have keys: those of programs have none."""
        names = self.prompted.names
        if agent is None:
            facts = self.runtime.get(id).agent_facts()
            if facts.get("definition") or not names:
                return True
            name = facts.get("agent_name", "")
            agent = name if name in names else names[0]
        return self.prompted.kind(agent) == "definition"

    @on_session("read")
    async def turn(self, caller: Caller, id: str, key: str) -> t.Turn:
        return await self._turn(id, key)

    @on_session("write")
    async def cancel(self, caller: Caller, id: str) -> bool:
        running = self.sends.running(id)
        if running is not None:
            return self.sends.cancel(id)

        def cancel() -> bool:
            key = self.sends.held(id)
            if key is None:
                return False
            self.people.cancel(Cancel(id, key), caller.principal)
            return True

        return await self.blocking(cancel)

    # Clients.

    @on_session("read")
    async def clients(self, caller: Caller, id: str) -> t.ClientList:
        return await self.blocking(lambda: self._clients(self.runtime.get(id)))

    def _clients(self, live: LiveSession) -> t.ClientList:
        view, timeout = live.view, self.runtime.controller_timeout

        def is_stale(record: dict[str, Any]) -> bool:
            return attaching.is_stale(live, record, timeout)

        return shown.clients(view.clients.values(), view.controller_id(), is_stale)

    @on_session("read")
    async def attach(
        self, caller: Caller, id: str, body: t.Attach, connection: str | None = None
    ) -> dict[str, Any]:
        """Attach a client; ``connection`` is the WebSocket that does it."""
        if body.mode != "observer" or body.takeover:
            await self.seen(caller, id, "write")
        attaching.check_size(body.client, body.metadata)
        await self._check_client(caller, id, body.client)
        metadata = attaching.marked(body.metadata, caller.principal, connection)

        def attach() -> dict[str, Any]:
            attaching.make_room(self.runtime, id, body.client)
            return self.runtime.attach(
                id, body.client, mode=body.mode, takeover=body.takeover, metadata=metadata
            )

        return await in_thread(attach)

    @on_session("write")
    async def takeover(self, caller: Caller, id: str, client: str) -> dict[str, Any]:
        attaching.check_size(client)
        await self._check_owner(caller, id, client)

        def takeover() -> dict[str, Any]:
            attaching.make_room(self.runtime, id, client)
            known = self.runtime.get(id).view.clients.get(client, {}).get("metadata", {})
            metadata = {**known, **attaching.marked({}, caller.principal)}
            return self.runtime.takeover(id, client, metadata=metadata)

        return await in_thread(takeover)

    @on_session("read")
    async def heartbeat(self, caller: Caller, id: str, client: str) -> dict[str, Any]:
        await self._check_client(caller, id, client)
        found: dict[str, Any] = await in_thread(lambda: self.runtime.heartbeat(id, client))
        return found

    @on_session("read")
    async def detach(self, caller: Caller, id: str, client: str) -> dict[str, Any]:
        if not caller.may_all("write"):
            await self._check_client(caller, id, client)
        found: dict[str, Any] = await in_thread(lambda: self.runtime.detach(id, client))
        return found

    @on_session("read")
    async def leave(self, caller: Caller, id: str, client: str, connection: str) -> None:
        """Detach a client that a connection has attached, unless something else has since."""
        await in_thread(lambda: attaching.detach(self.runtime, id, client, connection))

    async def _check_client(self, caller: Caller, id: str, client: str) -> None:
        """Refuse another principal's client, and the controller to callers who may only look."""
        await self._check_owner(caller, id, client)
        if await self.blocking(lambda: self.runtime.get(id).view.controller_id()) == client:
            await self.seen(caller, id, "write")

    async def _check_owner(self, caller: Caller, id: str, client: str) -> None:
        await self.blocking(lambda: attaching.check_owner(self.runtime.get(id), caller.principal, client))

    def _check_sender(self, caller: Caller, live: LiveSession, client: str | None) -> None:
        """Refuse a client of another principal, and without a client whatever passes by its controller."""
        if client is not None:
            attaching.check_owner(live, caller.principal, client)
        else:
            attaching.check_control(live, caller.principal, self.runtime.controller_timeout)

    # People.

    @needs("read")
    async def requests(self, caller: Caller, id: str | None = None) -> t.RequestList:
        if id is not None:
            await self.seen(caller, id)
        return t.RequestList(requests=await self.blocking(lambda: self._requests(caller, id)))

    def _requests(self, caller: Caller, id: str | None) -> list[t.Request]:
        sessions = self.sends.open_sessions() if id is None else [id]
        found = self.people.listed(sessions, lambda id: self.sends.at_work(self.runtime.get(id)) is not None)
        visible: dict[str | None, bool] = {None: caller.may_all("read")}
        for request in found:
            if request.session is not None and request.session not in visible:
                head = self.store.head(KIND, request.session)
                visible[request.session] = head is not None and self._sees(caller, info_of(head))
        found = [each for each in found if visible[each.session] and id in (None, each.session)]
        return found if id is not None else [*found, *self._runs.requests(_whose(caller))]

    @needs("approve")
    async def answer(self, caller: Caller, request_id: str, body: t.Answer) -> t.Request:
        found = await self.blocking(lambda: self._requests(caller, None))
        request = next((each for each in found if each.id == request_id), None)
        taken = Refused(409, "conflict", f"request '{request_id}' is answered already")
        if request is None:
            if await self.blocking(lambda: self.people.is_answered(request_id)):
                raise taken
            raise Refused(404, "not_found", f"no open request has the id '{request_id}'")
        await self._check_answerer(caller, request)
        refusals.check_answer(request, body)
        of = self.people if request.run is None else self._runs
        if not await self.blocking(lambda: of.answer(request, body, caller.principal)):
            raise taken
        return request

    async def _check_answerer(self, caller: Caller, request: t.Request) -> None:
        """Raise `Refused` for a request that the caller sees and may not answer."""
        if request.session is not None:
            await self.seen(caller, request.session, "approve")
        elif request.run is not None:
            await self.blocking(partial(self._check_run, caller, "approve", request.run))
        elif not caller.may_all("approve"):
            raise Refused(403, "forbidden", "this needs the scope `approve:all`")

    # Runs and waitpoints.

    def _check_run(self, caller: Caller, right: str, id: str) -> None:
        """Raise `RunNotFound` for a run that the caller doesn't see, `Refused` for one that it only sees."""
        belongs = Belongs(self._runs.owner(id))
        if not caller.may_with("read", belongs):
            raise RunNotFound(id)
        if not caller.may_with(right, belongs):
            raise Refused(403, "forbidden", f"only the owner of run '{id}' may do this")

    @needs("read")
    async def runs(
        self, caller: Caller, *, status: str | None = None, limit: int = PAGE, after: str | None = None
    ) -> t.RunList:
        _bounded("limit", limit)
        return await self.blocking(lambda: self._runs.listed(_whose(caller), status, limit, after))

    @needs("write")
    async def start(self, caller: Caller, body: t.StartRun) -> t.Run:
        await self._check_work(caller, "start the run at another one")

        def start() -> t.Run:
            return self._runs.start(self._runs.job(self.prompted, body), body.id, caller.principal)

        return await in_thread(start)

    @needs("read")
    async def run(self, caller: Caller, id: str) -> t.Run:
        return await self.blocking(lambda: self._runs.get(_whose(caller), id))

    @needs("read")
    async def run_steps(self, caller: Caller, id: str, *, after: int = 0) -> list[t.RunStep]:
        return await self.blocking(lambda: self._runs.steps(_whose(caller), id, after))

    async def run_events(
        self, caller: Caller, id: str, *, after: int = 0, quiet: float = QUIET
    ) -> AsyncIterator[t.RunStep | None]:
        """The run's steps as they are recorded, until it ends; None every 15 s without any."""
        await self.run(caller, id)
        async for step in self._run_feeds.steps(id, after=after, quiet=quiet):
            yield step

    @needs("write")
    async def steer(self, caller: Caller, id: str, body: t.Steer) -> t.Run:
        def steer() -> t.Run:
            self._check_run(caller, "write", id)
            run = self._runs.get(None, id)
            found = [
                live
                for live in map(self.runtime.get, self.sends.open_sessions())
                if shown.works_for(live, id)
            ]
            for live in found:
                live.append_message({"role": "user", "content": body.message})
            if not found:
                raise Refused(409, "conflict", f"run '{id}' can't be steered now: no agent of it is at work")
            return run

        return await self.blocking(steer)

    @needs("write")
    async def cancel_run(self, caller: Caller, id: str) -> t.Run:
        await self.blocking(partial(self._check_run, caller, "write", id))
        return await self.blocking(lambda: self._runs.cancel(None, id))

    @needs("write")
    async def resume(self, caller: Caller, id: str) -> t.Run:
        await self._check_work(caller, "have the run go on at another one")
        await self.blocking(partial(self._check_run, caller, "write", id))
        return await in_thread(lambda: self._runs.resume(None, id))

    @needs("read")
    async def waitpoints(self, caller: Caller) -> t.WaitpointList:
        return t.WaitpointList(waitpoints=await self.blocking(lambda: self._runs.waitpoints(_whose(caller))))

    @needs("approve")
    async def complete_waitpoint(self, caller: Caller, id: str, body: t.CompleteWaitpoint) -> t.Waitpoint:
        def complete() -> t.Waitpoint:
            whose, seen = _whose(caller, "approve"), _whose(caller)
            if (
                whose != seen
                and self._runs.has_waitpoint(seen, id)
                and not self._runs.has_waitpoint(whose, id)
            ):
                raise Refused(403, "forbidden", f"only the owner of waitpoint '{id}' may complete it")
            return self._runs.complete(whose, id, body.value, caller.principal)

        return await self.blocking(complete)


class Sight:
    """Whether a caller with whom a session is shared still may read it."""

    def __init__(self, service: Service, caller: Caller, of: SessionInfo) -> None:
        self._service = service
        self._caller = caller
        self._id = of.id
        self._owner = service.owner(of)
        self.is_lost = False

    async def look(self) -> None:
        """Take notice of what has happened before `take` was told of events."""
        try:
            await self._service.seen(self._caller, self._id)
        except Refused:
            self.is_lost = True

    def take(self, event: t.Event) -> None:
        """Take notice of an event of the session. What was lost stays so: the reader may ask again."""
        if event.type == REGISTER_SET and event.data.get("key") == sharing.REGISTER:
            belongs = Belongs(self._owner, sharing.shares_of(self._id, event.data.get("value")))
            self.is_lost = self.is_lost or not self._caller.may_with("read", belongs)


def _whose(caller: Caller, right: str = "read") -> str | None:
    """Return whose runs a caller has a right over; None: everybody's."""
    return None if caller.may_all(right) else caller.principal


def _share_list(belongs: Belongs) -> t.ShareList:
    return t.ShareList(shares=sharing.shown_shares(belongs.shares))


def _gone(id: str) -> Refused:
    return Refused(404, "gone", f"session '{id}' isn't there any more")


def _too_little(id: str, right: str) -> Refused:
    """Return the refusal of a caller who may read a session, and do less than it wants."""
    if right in (OWN, "admin"):
        return Refused(403, "forbidden", f"only the owner of session '{id}' may do this")
    what = f"this needs a share of session '{id}' for `{right}`, which its owner can give"
    return Refused(403, "forbidden", what)


def _page(items: Iterable[tuple[Item, int]], limit: int) -> tuple[list[Item], int | None]:
    """Return the items of a page, ``limit`` or about `LARGEST` bytes of them, and the number of the last one
    if there are more. Each comes with its bytes."""
    found: list[Item] = []
    size = 0
    for item, own in items:
        if len(found) == limit or (found and size >= LARGEST):
            return found, found[-1].seq
        found.append(item)
        size += own
    return found, None


def _bounded(name: str, value: int) -> None:
    if not 1 <= value <= MOST:
        raise Refused(422, "invalid", f"`{name}` must be 1 to {MOST}, got {value}")
