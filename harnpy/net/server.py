"""The HTTP server of a program: its routes and hooks, whether it is ready, and how it responds to a request.

Pure: how a request arrives is the business of `asgi`. Spec: 04 §21.5.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote

from harnpy.faults import Fault, paced
from harnpy.net.server_messages import is_response, method_of, plain_response, response_of
from harnpy.net.server_options import HandlerFailed, OutOfTime, ServerFault, flag_option, number_option

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.net.server_messages import Request, Response

    #: A route, and what a path names.
    Found = tuple["Route", dict[str, str]]
    Function = Callable[..., Any]

    class Surroundings(Protocol):
        """The surroundings that a server needs."""

        def new_id(self) -> str:
            """Return an id for an error, under which it is logged."""

        def log(self, message: str) -> None:
            """Log a failure; secrets are removed there."""

        def within(self, milliseconds: int, call: Callable[[], Any]) -> Any:
            """Return the result of ``call``. Raises OutOfTime when it takes longer."""

# Routes: which function handles a request, and what its path names. Spec: 04 §21.5.


#: Method of a route for all of them.
ANY = "*"
_NAMED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}|:([A-Za-z_][A-Za-z0-9_]*)")


class Route(NamedTuple):
    """``segments`` are literal texts, and the names of parameters as one-tuples."""

    method: str
    segments: Sequence[str | tuple[str]]
    handler: Callable[[Any], Any]
    max_body_bytes: int | None = None
    timeout_ms: int | None = None

    def params(self, segments: Sequence[str]) -> dict[str, str] | None:
        """Return what a path names, by parameter; None when the path is another one."""
        if len(segments) != len(self.segments):
            return None
        found: dict[str, str] = {}
        for wanted, segment in zip(self.segments, segments, strict=True):
            if type(wanted) is tuple:
                # An empty segment names nothing, and dots would lead out of whatever a program joins them to.
                if segment in ("", ".", ".."):
                    return None
                found[wanted[0]] = segment
            elif wanted != segment:
                return None
        return found


def route(method: Any, template: Any, handler: Callable[[Any], Any], options: dict[str, Any]) -> Route:
    """Return a route. Raises ServerFault for a template that is none."""
    if type(template) is not str or not template.startswith("/"):
        raise ServerFault(f"a route's template begins with /, got {template!r}")
    segments: list[str | tuple[str]] = [_segment(text, template) for text in paced(template[1:].split("/"))]
    names = [segment for segment in segments if type(segment) is tuple]
    if len(names) != len(set(names)):
        raise ServerFault(f"a name comes twice in the template {template!r}")
    limit = number_option(options, "max_body_bytes", -1)
    timeout = number_option(options, "timeout_ms", 0, least=1)
    name = ANY if method == ANY else method_of(method)
    return Route(name, segments, handler, None if limit < 0 else limit, timeout or None)


def find_route(routes: Sequence[Route], method: str, path: str) -> Found | None:
    """Return the first route for a method and a percent-encoded path, with what the path names.

    HEAD goes where GET does unless there is a route of its own.
    """
    segments = [unquote(segment) for segment in paced(path[1:].split("/"))]
    found = _first(routes, method, segments)
    return _first(routes, "GET", segments) if found is None and method == "HEAD" else found


def _first(routes: Sequence[Route], method: str, path: Sequence[str]) -> Found | None:
    for each in routes:
        if each.method in (method, ANY):
            params = each.params(path)
            if params is not None:
                return each, params
    return None


def _segment(text: str, template: str) -> str | tuple[str]:
    named = _NAMED.fullmatch(text)
    if named:
        return (named[1] or named[2],)
    if "{" in text or "}" in text or text.startswith(":"):
        raise ServerFault(f"{text!r} in the template {template!r} must be {{name}} or :name")
    return unquote(text)


class Server:
    """``options`` are those of `SERVER`, which were checked."""

    def __init__(self, id: str, options: dict[str, Any], around: Surroundings) -> None:
        self.id = id
        self.max_body_bytes = number_option(options, "max_body_bytes", 1 << 20)
        self.keeps_bytes = flag_option(options, "retain_raw_body", True)
        self.is_ready = flag_option(options, "ready", True)
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
        return find_route(self.routes, request.method, request.path)

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
        return self._finished(request, request.shown({}, self.keeps_bytes), plain_response(status, message))

    def too_large(self, request: Request, actual: int, limit: int) -> Response:
        """Return the response to a request whose body has, or would have, ``actual`` bytes."""
        return self.refuse(request, 413, f"request body too large: {actual} > {limit} bytes")

    def _early(self, seen: dict[str, Any]) -> tuple[dict[str, Any], Response | None]:
        """Return the request as the hooks before it leave it, and the response if one of them has it."""
        if not self.ready():
            why = "the server is shut down" if self.is_shut_down else "the server is not ready"
            return seen, plain_response(503, why)
        for hook in self.before:
            result = hook(seen)
            if is_response(result):
                return seen, response_of(result)
            if result is not None:
                seen = _as_request(result)
        return seen, None

    def _routed(self, route: Route | None, seen: dict[str, Any]) -> Response:
        if route is None:
            return plain_response(404, f"no route for {seen.get('method')} {seen.get('path')}")
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
            return plain_response(504, f"the handler took longer than {error.milliseconds} ms")
        id = self._around.new_id()
        self._around.log(f"{self.id}: error {id} in {request.method} {request.path}: {_text(error)}")
        return plain_response(500, f"internal server error {id}")


def _as_request(result: Any) -> dict[str, Any]:
    if type(result) is not dict:
        raise HandlerFailed("a hook before requests returns nil, a request or a response")
    return result


def _text(error: Exception) -> str:
    return error.text if isinstance(error, HandlerFailed) else str(error)
