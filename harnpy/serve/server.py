"""`harnpy serve`: the API and the portal of a store, behind its door, until it is told to stop. Spec: 11 §1.

`serve` makes everything; `Server` is what listens. To stop is to drain: no new prompts, turns that run may
end, then streams do. A turn or run that doesn't end in time is left to the next server on the store.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from contextlib import AsyncExitStack, closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route, Router

from harnpy import telemetry
from harnpy.durable import bodies
from harnpy.eventlog.bearer import BearerSessions
from harnpy.eventlog.topics import StoreEventLog, event_log_settings, opened, usual_settings
from harnpy.net.admission import CALLER
from harnpy.project import ManifestError
from harnpy.serve import api, portal
from harnpy.serve.agents import Agents
from harnpy.serve.budgets import Spending
from harnpy.serve.door import LONGEST_BODY, Door
from harnpy.serve.journal import Journal, Routed
from harnpy.serve.metrics import CONTENT_TYPE, Metrics
from harnpy.serve.service import Caller, Service
from harnpy.session.runtime import SessionRuntime
from harnpy.session.stores import store_settings
from harnpy.storage.opening import open_store, shown
from harnpy.workflow.engines import open_engine
from harnpy.world import World
from harnpy.world.clock import RealClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from harnpy import Vm
    from harnpy.serve.site import Site
    from harnpy.session.agents import TurnResult
    from harnpy.storage.contract import Store
    from harnpy.workflow.engines.contract import Engine, Job
    from harnpy.world.connections import Application, AsgiMessage, Listener, Receive, Send
    from harnpy.world.http import Listening

#: Seconds that a turn has to end, and that requests have once the turns have.
GRACE, _REQUESTS = 30.0, 2.0


class Output(NamedTuple):
    """``say`` gets lines about the server, ``log`` those of requests, in ``format`` (None: none)."""

    say: Callable[[str], object]
    log: Callable[[str], object]
    format: str | None = None


class Server:
    """The application of a service, with its own ``/healthz`` and ``/metrics``. To be made in a loop."""

    def __init__(
        self,
        service: Service,
        routes: Sequence[BaseRoute],
        site: Site,
        sessions: BearerSessions,
        output: Output,
        metrics: Metrics,
    ) -> None:
        self._service = service
        self._site = site
        self._metrics = metrics
        own = [
            Route("/healthz", self._health, methods=["GET"]),
            Route("/metrics", self._numbers, methods=["GET"]),
        ]
        every = [*routes, *own]
        router = Router(every, redirect_slashes=False)
        self.door = Door(
            Routed(_plain(router), every),
            site,
            sessions,
            on_drop=lambda: metrics.count("dropped_total"),
            on_error=lambda scope, error: self.app.failed(scope, error),
        )
        self.app = Journal(_traced(self.door), metrics, RealClock.now, *output)

    async def _health(self, request: Request) -> Response:
        if self._service.is_draining:
            return JSONResponse({"status": "draining"}, 503)
        return JSONResponse({"status": "ok"})

    async def _numbers(self, request: Request) -> Response:
        caller: Caller | None = request.scope.get(CALLER)
        if caller is not None:
            self._service.check(caller, "admin")
        return PlainTextResponse(self._metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def listen(self, listening: Listening) -> Listener:
        """Raises NotServed."""
        return await self._site.listen(self.app, listening, LONGEST_BODY)

    async def drain(self, listener: Listener, grace: float, hurry: asyncio.Event) -> int:
        """Let turns and runs end, then streams. Return how many are left to the next server.

        Meanwhile requests are answered, so that whoever watches sees the end of a turn. ``hurry`` ends the
        wait for turns.
        """
        draining = asyncio.ensure_future(self._service.drain(grace))
        hurrying = asyncio.ensure_future(hurry.wait())
        await asyncio.wait((draining, hurrying), return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        left = await draining if draining.done() else await self._service.drain(0.0)
        draining.cancel()
        self.door.close()
        await listener.close(_REQUESTS)
        return left


def _traced(app: Application) -> Application:
    """Return an application that goes on in the traces of its requests (11 §5)."""

    async def traced(scope: AsgiMessage, receive: Receive, send: Send) -> None:
        if not telemetry.is_on():
            await app(scope, receive, send)
            return
        with telemetry.within({name.decode(): value.decode("latin-1") for name, value in scope["headers"]}):
            await app(scope, receive, send)

    return traced


def _plain(router: Router) -> Application:
    """Answer what has no route as the API answers everything that isn't carried out."""

    async def routed(scope: AsgiMessage, receive: Receive, send: Send) -> None:
        scope["app"] = router  # then Starlette raises, instead of answering with a text
        try:
            await router(scope, receive, send)
        except HTTPException as error:
            method, status = scope.get("method", "a WebSocket"), error.status_code
            code, message = {
                404: ("not_found", "nothing is at this path"),
                405: ("method_not_allowed", f"{method} isn't what this path takes"),
            }.get(status, ("bad_request", str(error.detail)))
            body = {"error": {"code": code, "message": message}}
            await JSONResponse(body, status, error.headers)(scope, receive, send)

    return routed


class CountedAgents(Agents):
    """Agents whose turns are counted."""

    metrics: Metrics

    async def prompt(self, *given: Any, **options: Any) -> TurnResult:
        try:
            result = await super().prompt(*given, **options)
        except Exception:
            self.metrics.count("turns_total", "failed")
            raise
        self.metrics.count("turns_total", result.status)
        self.metrics.count("cost_usd_total", by=result.cost)
        for kind in ("input", "output"):
            number = (result.usage or {}).get(f"{kind}_tokens")
            if isinstance(number, int):
                self.metrics.count("tokens_total", kind, by=number)
        return result


class Options(NamedTuple):
    """``agents`` as of the command line; ``store`` is a URL, None: where the project keeps sessions."""

    agents: tuple[str, ...]
    store: str | None
    site: Site
    grace: float = GRACE
    #: Whether a one-time link is made even where there are keys.
    link: bool = False


class Place(NamedTuple):
    """Where a server is found: ``link`` is the one-time link, if there is one."""

    store: str
    url: str
    link: str | None


async def serve(
    options: Options,
    output: Output,
    bind: Callable[[Vm, str], object],
    on_ready: Callable[[Place], object],
    leave: Callable[[int], object],
) -> None:
    """Serve until SIGTERM or SIGINT.

    ``bind(vm, file)`` gives a program what its project says, and raises `ManifestError` where nobody trusts
    that. ``leave`` is called when turns or runs are left to the next server, and how many: it ends the
    process, for they must neither go on here nor be cancelled. Raises NotServed, and what opening the store
    or loading an agent raises.
    """
    world, site = World(), options.site
    async with AsyncExitStack() as stack:
        url = options.store or store_settings(world).url
        store = stack.enter_context(closing(open_store(url)))
        log, tokens = _logs(world, options, store, stack)
        agents = await stack.enter_async_context(
            CountedAgents(options.agents, store, new_vm=partial(_bound_vm, bind))
        )
        runtime = stack.enter_context(closing(SessionRuntime(store, agents=agents.loops, share_chunks=True)))
        agents.metrics = metrics = Metrics()

        async def within_budget(caller: Caller) -> None:
            if caller.limits is not None and caller.limits.cost_per_day is not None:
                await service.blocking(lambda: spending.check(caller))

        engine = stack.enter_context(closing(_engine(url, store, bind, output.say)))
        service = Service(runtime, agents, log=log, engine=engine, before_work=within_budget)
        spending = Spending(runtime, service.owner, world.clock.now)
        stack.push_async_callback(service.close)
        routes = [*api.routes(service), *portal.routes(service)]
        server = Server(service, routes, site, BearerSessions(tokens), output, metrics)
        with _signals() as (stop, hurry):
            listener = await server.listen(world.listening)
            service.keep_recovering()
            # What is there by now stays: the collector needn't look at it again and again.
            gc.freeze()
            link = None
            if site.is_local and (options.link or not site.keys):
                link = site.url(listener.port).removesuffix("/") + server.door.sign_in.new_link()
            on_ready(Place(shown(url), site.url(listener.port), link))
            await stop.wait()
            left = await server.drain(listener, options.grace, hurry)
            if left:
                store.flush()
                leave(left)


def _bound_vm(bind: Callable[[Vm, str], object], file: str) -> Vm:
    from harnpy import Vm

    vm = Vm()
    bind(vm, file)
    return vm


def _engine(
    url: str, store: Store, bind: Callable[[Vm, str], object], say: Callable[[str], object]
) -> Engine:
    """Return what does the runs, each with its project's settings, as `harnpy worker` has them.

    Programs open their sessions by the store's ``url``, which may have a password that the store hides.
    """

    def prepare(vm: Vm, job: Job) -> None:
        try:
            bind(vm, job.body["entry"])
        except ManifestError as error:  # nobody waits for this run here
            say(f"'{job.name}' is left to other workers: {error.message}")
            raise

    engine = open_engine("local", store, bodies=bodies(url, prepare))
    engine.on_unreadable = lambda what, reason: say(f"warning: {what}: {reason}")
    return engine


def _logs(
    world: World, options: Options, store: Store, stack: AsyncExitStack
) -> tuple[StoreEventLog, StoreEventLog]:
    """Return the event log of answers and waitpoints, and that of tokens.

    With ``--store`` all is there. Else programs wait where the project keeps events, or with the sessions,
    and tokens are where `harnpy tokens` puts them.
    """
    own = StoreEventLog(store)
    if options.store is not None:
        return own, own
    configured = event_log_settings(world)
    settings = configured or usual_settings(world)
    log = stack.enter_context(closing(StoreEventLog(opened(settings.url))))
    return (own if configured is None else log), log


@contextmanager
def _signals() -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Return what the first signal sets, and the second."""
    stop, hurry = asyncio.Event(), asyncio.Event()
    loop, numbers = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.getsignal(number) for number in numbers}

    def came() -> None:
        (hurry if stop.is_set() else stop).set()

    for number in numbers:
        loop.add_signal_handler(number, came)
    try:
        yield stop, hurry
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
