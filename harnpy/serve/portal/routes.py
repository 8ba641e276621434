"""Where the portal's pages are, and what their requests are answered with. Spec: 11 §2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from harnpy.serve.api import At, caller_of
from harnpy.serve.portal import actions, runs, session, sessions, shell
from harnpy.serve.portal.live import Follower, run_stream
from harnpy.serve.refusals import Refused
from harnpy.serve.streams import send_stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.responses import Response

    from harnpy.serve.service import Caller, Service
    from harnpy.world.connections import Application, AsgiMessage, Receive, Send

    #: Answers a request of a caller; the ids in its path come behind.
    Handler = Callable[..., Awaitable[Application]]


class Page(At):
    """What is at one path, or what forms do there."""

    def __init__(self, path: str, method: str, handler: Handler) -> None:
        super().__init__(path)
        self.methods = {method}
        self._handler = handler

    def matches(self, scope: Any) -> Any:
        match, child = super().matches(scope)
        is_mine = scope["type"] == self.kind and scope["method"].replace("HEAD", "GET") in self.methods
        return (match, child) if is_mine else (match.NONE, {})

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        caller = caller_of(scope)
        answer: Application
        try:
            answer = await self._handler(Request(scope, receive), caller, *scope["harnpy.ids"])
        except Refused as refused:
            answer = shell.problem(refused.status, refused.message, caller)
        await answer(scope, receive, send)


class Stream:
    """Answers with server-sent events."""

    def __init__(self, frames: AsyncIterator[bytes]) -> None:
        self._frames = frames

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        await send_stream(self._frames, receive, send)


def routes(service: Service) -> list[BaseRoute]:
    """Return the portal's routes."""

    async def home(request: Request, caller: Caller) -> Response:
        return await sessions.sessions_page(service, caller, request.query_params)

    async def begin(request: Request, caller: Caller) -> Response:
        return await actions.begin(service, caller, await actions.form_of(request))

    async def session_(request: Request, caller: Caller, id: str) -> Response:
        return await session.session_page(service, caller, id, request.query_params)

    async def compare(request: Request, caller: Caller, id: str, other: str) -> Response:
        return await sessions.compare_page(service, caller, id, other)

    async def session_live(request: Request, caller: Caller, id: str) -> Stream:
        query = request.query_params
        found = await service.session(caller, id)
        after = request.headers.get("last-event-id") or query.get("after", "")
        if not (after.isascii() and after.isdigit() and len(after) < 16) or int(after) > found.seq:
            raise Refused(400, "bad_request", "A page says behind which event it goes on: load it again.")
        client = query.get("client") or session.new_client()
        return Stream(Follower(service, caller, found, client).frames(int(after)))

    async def session_verb(request: Request, caller: Caller, id: str, verb: str) -> Response:
        return await _verb(actions.SESSION_VERBS, "Sessions", request, caller, id, verb)

    async def answer(request: Request, caller: Caller, id: str) -> Response:
        return await actions.answer(service, caller, id, await actions.form_of(request))

    async def runs_(request: Request, caller: Caller) -> Response:
        return await runs.runs_page(service, caller, request.query_params)

    async def run(request: Request, caller: Caller, id: str) -> Response:
        return await runs.run_page(service, caller, id)

    async def run_live(request: Request, caller: Caller, id: str) -> Stream:
        return Stream(run_stream(service, caller, await service.run(caller, id)))

    async def run_verb(request: Request, caller: Caller, id: str, verb: str) -> Response:
        return await _verb(actions.RUN_VERBS, "Runs", request, caller, id, verb)

    async def search(request: Request, caller: Caller) -> Response:
        return await sessions.search_page(service, caller, request.query_params)

    async def _verb(
        verbs: dict[str, actions.Verb], of: str, request: Request, caller: Caller, id: str, verb: str
    ) -> Response:
        if verb not in verbs:
            raise Refused(404, "not_found", f"{of} have no form `{verb}`.")
        return actions.see(await verbs[verb](service, caller, id, await actions.form_of(request)))

    pages: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "/", home),
        ("POST", "/sessions", begin),
        ("GET", "/sessions/{id}", session_),
        ("GET", "/sessions/{id}/live", session_live),
        ("GET", "/sessions/{id}/compare/{other}", compare),
        ("POST", "/sessions/{id}/{verb}", session_verb),
        ("POST", "/requests/{id}", answer),
        ("GET", "/runs", runs_),
        ("GET", "/runs/{id}", run),
        ("GET", "/runs/{id}/live", run_live),
        ("POST", "/runs/{id}/{verb}", run_verb),
        ("GET", "/search", search),
    )
    return [
        Route("/static/{version}/{name}", shell.static, methods=["GET"]),
        Route(shell.SIGN_IN_PATH, shell.sign_in, methods=["GET"]),
        *(Page(path, method, handler) for method, path, handler in pages),
    ]
