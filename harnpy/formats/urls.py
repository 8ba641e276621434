"""URLs into their parts and back, and queries. Spec: 04 §17.

By `can_ada`, a binding of Ada, the parser of the WHATWG's URL standard that Node.js uses: what a browser
makes of a URL is what a program gets. `urllib.parse` would pass on hosts and ports that nothing accepts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, quote_plus

from harnpy.faults import paced, pieces

if TYPE_CHECKING:
    from collections.abc import Iterable

    from can_ada import URL

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_AUTHORITY = re.compile(r"[^:]*:[/\\]{2}(?:[^/\\?#]*@)?(\[[^\]/\\?#]*\]?|[^:/\\?#]*)(?::([^/\\?#]*))?")
_HOST = re.compile(r"\[[^\]]*\]|[^:/\\?#@]*")
_PORTS = 65_536
#: Characters that are encoded at once.
_PIECE = 4096


class UrlError(ValueError):
    """A text is no URL, or parts don't make one."""


class Url(NamedTuple):
    """The parts of a URL as it is canonically written; what it doesn't have is None."""

    scheme: str
    host: str | None
    port: int | None
    path: str
    query: str | None
    fragment: str | None
    username: str | None
    password: str | None


def parse(text: str) -> Url:
    """Return the parts of a URL; a default port is None. Raises `UrlError`."""
    url = _parsed(text)
    rest, _, fragment = url.href.partition("#")
    _, _, query = rest.partition("?")
    return Url(
        scheme=url.protocol[:-1],
        host=url.hostname or None,
        port=int(url.port) if url.port else None,
        path=_path(url),
        query=query if "?" in rest else None,
        fragment=fragment if "#" in url.href else None,
        username=url.username or None,
        password=url.password or None,
    )


def build(parts: Url) -> str:
    """Return the canonical URL of these parts. What has a meaning in a URL is encoded; `%XX` stays.

    Raises `UrlError`.
    """
    url = _base(parts)
    for name in ("username", "password", "port"):
        given = getattr(parts, name)
        if given is not None:
            _set(url, name, str(given))
    text: str = url.href
    if parts.query is not None:
        url.search = f"?{parts.query}"  # a setter drops the first sign
        text += url.search or "?"
    if parts.fragment is not None:
        url.hash = f"#{parts.fragment}"
        text += url.hash or "#"
    return text


def _base(parts: Url) -> URL:
    scheme, host = parts.scheme, parts.host
    if not _SCHEME.fullmatch(f"{scheme}:"):
        raise UrlError(f"invalid scheme '{scheme}'")
    if host is None and scheme.lower() != "file":
        return _parsed(f"{scheme}:{parts.path.replace('?', '%3F').replace('#', '%23')}")
    if host is not None and not _HOST.fullmatch(host):
        raise UrlError(f"invalid host '{host}'")
    url = _parsed(f"{scheme}://{host or ''}")
    url.pathname = parts.path.replace("^", "%5E")
    return url


def _set(url: URL, name: str, value: str) -> None:
    if name == "port" and not _is_port(value):
        raise UrlError(f"invalid port '{value}'")
    if not url.hostname or url.protocol == "file:":  # a setter would change nothing, in silence
        raise UrlError(f"{url.href} can't have a {name}")
    setattr(url, name, value)


def _parsed(text: str) -> URL:
    from can_ada import parse

    try:
        url = parse(text)
    except (ValueError, TypeError):  # the latter for half a character
        raise UrlError(_why(text)) from None
    if "^" in url.pathname:  # encoded by the standard since the end of 2024, and not yet by Ada 3.0
        url.pathname = url.pathname.replace("^", "%5E")
    return url


def _why(text: str) -> str:
    """Return why a text is no URL: the library doesn't say."""
    if not _SCHEME.match(text.lstrip()):
        return "relative URL without a base"
    found = _AUTHORITY.match(text.lstrip())
    host, port = (found[1], found[2]) if found else ("", None)
    if not host:
        return "empty host"
    return f"invalid port '{port}'" if port and not _is_port(port) else f"invalid host '{host}'"


def _path(url: URL) -> str:
    """Return the path; the space that ends one without a host is encoded, as the standard has it by now."""
    path: str = url.pathname
    return f"{path[:-1]}%20" if path.endswith(" ") else path


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) < _PORTS


def read_query(text: str) -> list[tuple[str, str]]:
    """Return the pairs of a form-encoded query, in order; a key without `=` has the value ``""``."""
    given = (each for each in paced(text.removeprefix("?").split("&")) if each)
    return [pair for each in given for pair in parse_qsl(each, keep_blank_values=True)]


def written_query(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the pairs form-encoded: `A-Za-z0-9*-._` as they are, a space as `+`, the rest as `%XX`."""
    return "&".join(f"{_form(key)}={_form(value)}" for key, value in pairs)


def _form(text: str) -> str:
    return "".join([quote_plus(each, safe="*") for each in pieces(text, _PIECE)]).replace("~", "%7E")
