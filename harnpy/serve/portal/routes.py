"""Where the portal's pages are, and what their requests are answered with. Spec: 11 §2."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse
from starlette.routing import Route

from harnpy.serve.portal import actions, shell
from harnpy.serve.portal.live import run_stream, session_stream
from harnpy.serve.portal.runs import run_page, runs_page
from harnpy.serve.portal.sessions import (
    compare_page,
    new_client,
    search_page,
    session_page,
    sessions_page,
)
from harnpy.serve.service import Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from harnpy.serve.service import Caller, Service

    Handler = Callable[[Request], Awaitable[Response]]


def caller_of(request: Request) -> Caller:
    """Return who calls, as the server's door has found out."""
    caller: Caller = request.scope["harnpy.caller"]
    return caller


def _shown(handler: Handler) -> Handler:
    """Show what isn't carried out as a page."""

    @wraps(handler)
    async def answered(request: Request) -> Response:
        try:
            return await handler(request)
        except Refused as refused:
            return shell.problem(refused.status, str(refused), caller_of(request))

    return answered


def routes(service: Service) -> list[BaseRoute]:
    """Return the portal's routes."""

    async def home(request: Request) -> Response:
        return await sessions_page(service, caller_of(request), request.query_params)

    async def begin(request: Request) -> Response:
        return await actions.begin(service, caller_of(request), await actions.form_of(request))

    async def session(request: Request) -> Response:
        id = request.path_params["id"]
        return await session_page(service, caller_of(request), id, request.query_params)

    async def compare(request: Request) -> Response:
        known = request.path_params
        return await compare_page(service, caller_of(request), known["id"], known["other"])

    async def session_live(request: Request) -> Response:
        caller, query = caller_of(request), request.query_params
        found = await service.session(caller, request.path_params["id"])
        after = request.headers.get("last-event-id") or query.get("after", "")
        if not (after.isascii() and after.isdigit()) or int(after) > found.seq:
            raise Refused(400, "bad_request", "A page says behind which event it goes on: load it again.")
        client = query.get("client") or new_client()
        return _stream(session_stream(service, caller, found, client, int(after)))

    async def session_verb(request: Request) -> Response:
        verb, caller = request.path_params["verb"], caller_of(request)
        if verb not in actions.SESSION_VERBS:
            raise Refused(404, "not_found", f"Sessions have no form `{verb}`.")
        form = await actions.form_of(request)
        return actions.see(await actions.SESSION_VERBS[verb](service, caller, request.path_params["id"], form))

    async def answer(request: Request) -> Response:
        form = await actions.form_of(request)
        return await actions.answer(service, caller_of(request), request.path_params["id"], form)

    async def runs(request: Request) -> Response:
        return await runs_page(service, caller_of(request), request.query_params)

    async def run(request: Request) -> Response:
        return await run_page(service, caller_of(request), request.path_params["id"])

    async def run_live(request: Request) -> Response:
        caller = caller_of(request)
        found = await service.run(caller, request.path_params["id"])
        return _stream(run_stream(service, caller, found))

    async def run_verb(request: Request) -> Response:
        verb, caller = request.path_params["verb"], caller_of(request)
        if verb not in actions.RUN_VERBS:
            raise Refused(404, "not_found", f"Runs have no form `{verb}`.")
        form = await actions.form_of(request)
        return actions.see(await actions.RUN_VERBS[verb](service, caller, request.path_params["id"], form))

    async def search(request: Request) -> Response:
        return await search_page(service, caller_of(request), request.query_params)

    looks: dict[str, Handler] = {
        "/": home,
        "/sessions/{id}": session,
        "/sessions/{id}/live": session_live,
        "/sessions/{id}/compare/{other}": compare,
        "/runs": runs,
        "/runs/{id}": run,
        "/runs/{id}/live": run_live,
        "/search": search,
    }
    forms: dict[str, Handler] = {
        "/sessions": begin,
        "/sessions/{id}/{verb}": session_verb,
        "/requests/{id}": answer,
        "/runs/{id}/{verb}": run_verb,
    }
    return [
        Route("/static/{version}/{name}", shell.static),
        Route(shell.SIGN_IN_PATH, shell.sign_in, methods=["GET"]),
        *(Route(path, _shown(handler), methods=["GET"]) for path, handler in looks.items()),
        *(Route(path, _shown(handler), methods=["POST"]) for path, handler in forms.items()),
    ]


def _stream(events: AsyncIterator[str]) -> Response:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)
