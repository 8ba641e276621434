"""URLs, methods and headers as they may be sent. Spec: 04 §21.1."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from harnpy.net.http.errors import HttpError
from harnpy.net.parameters import is_token
from harnpy.text.display import display
from harnpy.text.urls import UrlError, build, parse, written_query
from harnpy.world.net.redaction import redacted_url

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict

#: What would end a header.
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Target(NamedTuple):
    """``url`` is as the program wrote it, with the query; ``canonical`` is sent to.

    That has no user, password and fragment; ``authorization`` is what user and password stand for.
    """

    url: str
    canonical: str
    authorization: str | None


def read_target(url: str, query: Dict) -> Target:
    """Return where a request goes. Raises `HttpError`."""
    if not url.lower().startswith(("http://", "https://")):
        raise HttpError(f"http: URL must start with http:// or https://, got '{redacted_url(url)}'")
    url = _with_query(url, query)
    try:
        parts = parse(url)
    except UrlError as error:
        raise HttpError(f"http: invalid URL '{redacted_url(url)}': {error}") from None
    authorization = None
    if parts.username is not None or parts.password is not None:
        authorization = basic(unquote(parts.username or ""), unquote(parts.password or ""))
    canonical = build(parts._replace(username=None, password=None, fragment=None))
    return Target(url, canonical, authorization)


def _with_query(url: str, query: Dict) -> str:
    pairs = written_query((key, display(query[key])) for key in sorted(query) if query[key] is not None)
    if not pairs:
        return url
    place, mark, fragment = url.partition("#")
    between = "" if place.endswith(("?", "&")) else "&" if "?" in place else "?"
    return f"{place}{between}{pairs}{mark}{fragment}"


def basic(user: str, password: str) -> str:
    """Return the credentials of RFC 7617."""
    return f"Basic {b64encode(f'{user}:{password}'.encode('utf-8', 'surrogatepass')).decode()}"


def read_method(method: str) -> str:
    """Return a method in capitals. Raises `HttpError`."""
    if not is_token(method):
        raise HttpError(f"http: invalid method '{method}': it must be one word, as GET")
    if method.upper() == "CONNECT":
        raise HttpError(f"http: invalid method '{method}': tunnels are what the option `proxy` is for")
    return method.upper()


def check_header(name: str, value: str) -> None:
    """Raise `HttpError` for a header that can't be sent. The message doesn't show the value."""
    if not is_token(name):
        raise HttpError(f"http: invalid header name '{name}': it must be one word, as content-type")
    if _CONTROL.search(value):
        raise HttpError(f"http: invalid header value for '{name}': it must be one line")
    if value != value.strip(" \t"):
        raise HttpError(f"http: invalid header value for '{name}': it must not begin or end with a blank")
