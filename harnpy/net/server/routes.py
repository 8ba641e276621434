"""Routes: which function handles a request, and what its path names. Spec: 04 §21.5."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from harnpy.net.server.faults import ServerFault, number
from harnpy.net.server.requests import method_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    #: A route, and what a path names.
    Found = tuple["Route", dict[str, str]]

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
    segments: list[str | tuple[str]] = [_segment(text, template) for text in template[1:].split("/")]
    names = [segment for segment in segments if type(segment) is tuple]
    if len(names) != len(set(names)):
        raise ServerFault(f"a name comes twice in the template {template!r}")
    limit = number(options, "max_body_bytes", -1)
    timeout = number(options, "timeout_ms", 0, least=1)
    name = ANY if method == ANY else method_of(method)
    return Route(name, segments, handler, None if limit < 0 else limit, timeout or None)


def find(routes: Sequence[Route], method: str, path: str) -> Found | None:
    """Return the first route for a method and a percent-encoded path, with what the path names.

    HEAD goes where GET does unless there is a route of its own.
    """
    segments = [unquote(segment) for segment in path[1:].split("/")]
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
