"""`Journal`: what a server says of its requests, as lines and as numbers: never what is in them.

A line names the route, not the path, and no query: both may hold what was said. Spec: 11 §1.2.
"""

from __future__ import annotations

import traceback
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.json import compact_json
from harnpy.net.admission import CALLER
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.serve.metrics import Metrics
    from harnpy.world.connections import Application, AsgiMessage, Receive, Send

#: Where `Routed` notes, in a request's scope, which route it took.
_NOTES = "harnpy.notes"
_UNKNOWN = "unknown"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"})


class Line(NamedTuple):
    """One request, once it has ended."""

    time: str
    method: str
    route: str
    status: int
    ms: float
    bytes: int
    principal: str | None

    def json(self) -> str:
        return compact_json(self._asdict())

    def text(self) -> str:
        who = f" {self.principal}" if self.principal else ""
        return f"{self.time} {self.method} {self.route} {self.status} {self.ms:.1f} ms {self.bytes} B{who}"


FORMATS = {"json": Line.json, "text": Line.text}


class Journal:
    """``log`` gets a line for each request, in one of `FORMATS` (None: no lines), ``say`` what fails."""

    def __init__(
        self,
        app: Application,
        metrics: Metrics,
        now: Callable[[], float],
        say: Callable[[str], object],
        log: Callable[[str], object],
        format: str | None = None,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._now = now
        self._say, self._log = say, log
        self._shown = None if format is None else FORMATS[format]
        self._watchers = 0
        metrics.gauge("watchers", lambda: self._watchers)

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        notes: dict[str, str] = {}
        scope[_NOTES] = notes
        status, size, watches = 0, 0, 0
        begin = first = perf_counter()

        async def sent(message: AsgiMessage) -> None:
            nonlocal status, size, watches, first
            kind = message["type"]
            if kind.endswith("body"):
                size += len(message.get("body", b""))
            elif kind.endswith("response.start") or kind == "websocket.accept":
                status, first = message.get("status", 101), perf_counter()
                if status == 101 or _is_stream(message["headers"]):
                    watches = 1
                    self._watchers += 1
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            self._watchers -= watches
            method = scope.get("method", "WEBSOCKET")
            method, route = method if method in _METHODS else "OTHER", notes.get("route", _UNKNOWN)
            self._metrics.count("requests_total", method, route, str(status))
            self._metrics.observe("request_seconds", first - begin, route)
            if self._shown is not None:
                caller = scope.get(CALLER)
                ms = round((perf_counter() - begin) * 1000, 1)
                who = caller and caller.principal
                line = Line(rfc3339(self._now()), method, route, status, ms, size, who)
                self._log(self._shown(line))

    def failed(self, scope: AsgiMessage, error: Exception) -> None:
        """Say that something failed that nobody expected, and where; its text may tell what was said."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        route = scope[_NOTES].get("route", _UNKNOWN)
        where = f"{place.filename}:{place.lineno}"
        self._say(f"error: {scope['type']} {route}: {type(error).__name__} at {where}")


def note_route(scope: AsgiMessage, path: str) -> None:
    """Have the journal call the route of a request by its template."""
    if _NOTES in scope:
        scope[_NOTES]["route"] = path


class Routed:
    """A router, of whose routes the journal knows the templates. No two of them have the same endpoint."""

    def __init__(self, app: Application, routes: Iterable[Any]) -> None:
        self._app = app
        self._templates = {getattr(route, "endpoint", route.app): route.path for route in routes}

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        finally:
            # Starlette before 1.10 doesn't say which route it took, but whom it led to.
            path = getattr(scope.get("route"), "path", None) or self._templates.get(scope.get("endpoint"))
            if path is not None:
                note_route(scope, path)


def _is_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    for name, value in headers:
        if name == b"content-type":
            return value.startswith(b"text/event-stream")
    return False
