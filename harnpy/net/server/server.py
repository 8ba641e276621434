"""A server: its routes and hooks, whether it is ready, and what it answers to a request. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.faults import Fault
from harnpy.net.server import routes as routing
from harnpy.net.server.faults import HandlerFailed, OutOfTime, flag, number
from harnpy.net.server.responses import is_response, plain, response_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from harnpy.net.server.requests import Request
    from harnpy.net.server.responses import Response
    from harnpy.net.server.routes import Found, Route

    Function = Callable[..., Any]

    class Surroundings(Protocol):
        """What a server needs of where it runs."""

        def new_id(self) -> str:
            """Return an id for an error, under which it is logged."""

        def log(self, message: str) -> None:
            """Log a failure; secrets are removed there."""

        def within(self, milliseconds: int, call: Callable[[], Any]) -> Any:
            """Return the result of ``call``. Raises OutOfTime when it takes longer."""


class Server:
    """``options`` are those of `SERVER`, which were checked."""

    def __init__(self, id: str, options: dict[str, Any], around: Surroundings) -> None:
        self.id = id
        self.max_body_bytes = number(options, "max_body_bytes", 1 << 20)
        self.keeps_bytes = flag(options, "retain_raw_body", True)
        self.is_ready = flag(options, "ready", True)
        self.is_shut_down = False
        self.routes: list[Route] = []
        self.before: list[Function] = []
        self.after: list[Function] = []
        self.checks: list[Function] = []
        self.on_shutdown: list[Function] = []
        self._around = around

    def handle(self) -> dict[str, Any]:
        """Return the value that programs know the server by."""
        return {"id": self.id, "kind": "http_server"}

    # --- readiness and the end ---------------------------------------------------------------------

    def ready(self) -> bool:
        """Return whether requests are handled: it was set ready, and every check says so."""
        return self.is_ready and not self.is_shut_down and all(check() is True for check in self.checks)

    def run_shutdown_hooks(self) -> None:
        """Call what is to be done at the end; each is called, whatever becomes of the others."""
        hooks, self.on_shutdown = self.on_shutdown, []
        for hook in hooks:
            try:
                hook()
            except (HandlerFailed, Fault) as error:
                self._around.log(f"{self.id}: a shutdown hook failed: {_text(error)}")

    # --- requests ----------------------------------------------------------------------------------

    def find(self, request: Request) -> Found | None:
        """Return the route of a request, and what its path names; its body may still be missing."""
        return routing.find(self.routes, request.method, request.path)

    def max_body_of(self, found: Found | None) -> int:
        """Return how long the body of a request may be."""
        limit = found[0].max_body_bytes if found else None
        return self.max_body_bytes if limit is None else limit

    def respond(self, request: Request) -> Response:
        """Return the response to a request whose body may be too long."""
        found = self.find(request)
        limit = self.max_body_of(found)
        if len(request.body) > limit:
            return self.too_large(request, len(request.body), limit)
        return self.handled(request, found)

    def handled(self, request: Request, found: Found | None) -> Response:
        """Return the response to a request: of the first hook before it that has one, or of its route.

        What fails is a 500 with an id, under which the error is logged.
        """
        seen = request.shown(found[1] if found else {}, self.keeps_bytes)
        try:
            seen, answer = self._early(seen)
            if answer is None:
                answer = self._routed(found[0] if found else None, seen)
        except (HandlerFailed, Fault) as error:
            answer = self._failed(request, error)
        return self._finished(request, seen, answer)

    def refuse(self, request: Request, status: int, message: str) -> Response:
        """Return the response to a request that is not handled, such as one with too long a body."""
        return self._finished(request, request.shown({}, self.keeps_bytes), plain(status, message))

    def too_large(self, request: Request, actual: int, limit: int) -> Response:
        """Return the response to a request whose body has, or would have, ``actual`` bytes."""
        return self.refuse(request, 413, f"request body too large: {actual} > {limit} bytes")

    def _early(self, seen: dict[str, Any]) -> tuple[dict[str, Any], Response | None]:
        """Return the request as the hooks before it leave it, and the response if one of them has it."""
        if not self.ready():
            why = "the server is shut down" if self.is_shut_down else "the server is not ready"
            return seen, plain(503, why)
        for hook in self.before:
            result = hook(seen)
            if is_response(result):
                return seen, response_of(result)
            if result is not None:
                seen = _as_request(result)
        return seen, None

    def _routed(self, route: Route | None, seen: dict[str, Any]) -> Response:
        if route is None:
            return plain(404, f"no route for {seen.get('method')} {seen.get('path')}")
        if route.timeout_ms is None:
            return response_of(route.handler(seen))
        return response_of(self._around.within(route.timeout_ms, lambda: route.handler(seen)))

    def _finished(self, request: Request, seen: dict[str, Any], answer: Response) -> Response:
        """Return what the hooks after it make of a response."""
        try:
            for hook in self.after:
                result = hook(seen, answer)
                if result is not None:
                    answer = response_of(result)
        except (HandlerFailed, Fault) as error:
            return self._failed(request, error)
        return answer

    def _failed(self, request: Request, error: Exception) -> Response:
        if isinstance(error, OutOfTime):
            return plain(504, f"the handler took longer than {error.milliseconds} ms")
        id = self._around.new_id()
        self._around.log(f"{self.id}: error {id} in {request.method} {request.path}: {_text(error)}")
        return plain(500, f"internal server error {id}")


def _as_request(result: Any) -> dict[str, Any]:
    if type(result) is not dict:
        raise HandlerFailed("a hook before requests returns nil, a request or a response")
    return result


def _text(error: Exception) -> str:
    return error.text if isinstance(error, HandlerFailed) else str(error)
