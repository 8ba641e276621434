"""One request, as a program's arguments make it: target, headers, body, connection and retries.

Spec: 04 §21.1.
"""

from __future__ import annotations

import os.path
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote

from harnpy.formats.display import display
from harnpy.formats.urls import UrlError, build, parse, written_query
from harnpy.net.errors import HttpError
from harnpy.net.header_grammar import LONGEST_PAUSE, is_token, retry_after
from harnpy.net.http_options import Given
from harnpy.net.multipart import Part, chosen_boundary, encoded_form, form_content_type
from harnpy.version import __version__
from harnpy.world.connections import USUAL, Settings
from harnpy.world.egress import redacted_url
from harnpy.world.unpacking import has_brotli

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.formats.dicts import Dict

# URLs, methods and headers as they may be sent. Spec: 04 §21.1.


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
        authorization = basic_auth(unquote(parts.username or ""), unquote(parts.password or ""))
    canonical = build(parts._replace(username=None, password=None, fragment=None))
    return Target(url, canonical, authorization)


def _with_query(url: str, query: Dict) -> str:
    pairs = written_query((key, display(query[key])) for key in sorted(query) if query[key] is not None)
    if not pairs:
        return url
    place, mark, fragment = url.partition("#")
    between = "" if place.endswith(("?", "&")) else "&" if "?" in place else "?"
    return f"{place}{between}{pairs}{mark}{fragment}"


def basic_auth(user: str, password: str) -> str:
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


# The options that say how a connection is made: `proxy`, `proxy_auth` and `tls`. Spec: 04 §21.1.


_SHA256 = re.compile(r"[0-9a-f]{64}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def read_settings(given: Given, readable: Callable[[str], str]) -> Settings:
    """``readable`` returns the absolute path of a file that is going to be read. Raises `HttpError`."""
    if given.value("proxy", "tls") is None:
        return USUAL
    return Settings(**_proxy(given), **_tls(given.inner("tls"), readable))


def _proxy(given: Given) -> dict[str, Any]:
    proxy, bypass = given.value("proxy"), ""
    if type(proxy) is dict:
        inner = given.inner("proxy")
        proxy, bypass = inner.value("url"), inner.text("no_proxy") or ""
        if proxy is None:
            raise HttpError("http: invalid proxy '': it has no url")
    if proxy is None:
        return {}
    url, auth = _proxy_url(display(proxy))
    return {
        "proxy": url,
        "proxy_auth": _proxy_auth(given.inner("proxy_auth")) or auth,
        "no_proxy": tuple(filter(None, map(_bypassed, bypass.split(",")))),
    }


def _proxy_url(text: str) -> tuple[str, tuple[str, str] | None]:
    try:
        parts = parse(text if _SCHEME.match(text) else f"http://{text}")
    except UrlError as error:
        raise HttpError(f"http: invalid proxy '{_without_user(text)}': {error}") from None
    if parts.scheme not in ("http", "https"):
        raise HttpError(
            f"http: invalid proxy '{_without_user(text)}': only http and https proxies are spoken to"
        )
    auth = None
    if parts.username is not None or parts.password is not None:
        auth = unquote(parts.username or ""), unquote(parts.password or "")
    bare = parts._replace(username=None, password=None, path="/", query=None, fragment=None)
    return build(bare), auth


def _without_user(url: str) -> str:
    return re.sub(r"(?<=//).*@", "", url, flags=re.DOTALL)


def _proxy_auth(given: Given) -> tuple[str, str] | None:
    user = given.text("user")
    return None if user is None else (user, given.text("pass", "password") or "")


def _bypassed(host: str) -> str:
    return host.strip().lower().removeprefix("*.").lstrip(".")


def _tls(given: Given, readable: Callable[[str], str]) -> dict[str, Any]:
    certificate, key = given.text("client_cert_path"), given.text("client_key_path")
    identity = given.text("client_identity_path")
    if identity is not None and (certificate or key):
        raise HttpError(
            "http: tls.client_identity_path holds both, give it or client_cert_path and client_key_path"
        )
    if key is not None and certificate is None:
        raise HttpError("http: tls.client_key_path needs client_cert_path")
    paths = {"ca": given.text("ca_bundle_path"), "certificate": certificate or identity, "key": key}
    pins = given.value("pinned_sha256")
    return {
        **{name: None if path is None else readable(path) for name, path in paths.items()},
        "pins": frozenset(map(_pin, pins if type(pins) is list else [] if pins is None else [pins])),
    }


def _pin(value: object) -> str:
    pin = display(value).replace(":", "").lower()
    if not _SHA256.fullmatch(pin):
        raise HttpError(f"http: tls.pinned_sha256 must be 64 hex digits, got '{display(value)}'")
    return pin


# The option `multipart`: a form as a request's body. Spec: 04 §21.1, §16.5.


_CONTENTS = ("value", "value_base64", "path")
_BINARY = "application/octet-stream"


def form_body(fields: list[Any], content_of: Callable[[str], bytes]) -> tuple[bytes, str]:
    """Return the body and its content type; ``content_of`` reads a file. Raises a `Fault`."""
    parts = [_part(at, field, content_of) for at, field in enumerate(fields)]
    boundary = chosen_boundary(
        (f"{part.name} {part.filename}" for part in parts), [part.content for part in parts]
    )
    return encoded_form(parts, boundary), form_content_type(boundary)


def _part(at: int, field: Any, content_of: Callable[[str], bytes]) -> Part:
    if type(field) is not dict or not field.get("name"):
        raise HttpError(f"http: multipart field {at} must be a dict with a name")
    given = [key for key in _CONTENTS if field.get(key) is not None]
    if len(given) != 1:
        raise HttpError(f"http: multipart field {at} must have one of value, value_base64 and path")
    source = field[given[0]]
    name, kind = field.get("filename"), field.get("content_type")
    if given[0] == "path":
        name = os.path.basename(display(source)) if name is None else name
        content = content_of(display(source))
    else:
        content = _content(at, given[0], source)
    if kind is None and name is not None:
        kind = _BINARY
    return Part(
        display(field["name"]),
        content,
        None if name is None else display(name),
        None if kind is None else display(kind),
    )


def _content(at: int, key: str, value: Any) -> bytes:
    if key == "value":
        return value if type(value) is bytes else display(value).encode("utf-8", "surrogatepass")
    try:
        return b64decode(display(value), validate=True)
    except ValueError:
        raise HttpError(f"http: multipart field {at}: value_base64 isn't Base64") from None


# When a request is sent again, and after which pause. Pure. Spec: 04 §21.1.


STATUSES = frozenset((408, 429, 500, 502, 503, 504))
METHODS = frozenset(("GET", "HEAD", "PUT", "DELETE", "OPTIONS"))
#: Failures without a response that may pass, as categories of 02 §19.8.
PASSING = ("timeout", "transient_network")
_SAYS_WHEN = (429, 503)
_JITTER = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """``most`` attempts after the first; ``backoff``: seconds of the first pause."""

    most: int = 0
    backoff: float = 1.0
    statuses: frozenset[int] = STATUSES
    methods: frozenset[str] = METHODS
    respects: bool = True

    def after_status(self, attempt: int, method: str, status: int) -> bool:
        """Return whether to try again after the response to ``attempt``, counted from 0."""
        return self.after_failure(attempt, method) and status in self.statuses

    def after_failure(self, attempt: int, method: str) -> bool:
        """Return whether to try again when ``attempt`` got no response, for a reason that may pass."""
        return attempt < self.most and method in self.methods

    def pause(self, attempt: int, chance: float) -> float:
        """Return the seconds to wait after ``attempt``; ``chance`` is from 0 to below 1."""
        # A float has no power of two for the thousandth attempt.
        base = min(self.backoff * 2.0 ** min(attempt, 64), LONGEST_PAUSE)
        return min(base * (1 - _JITTER + 2 * _JITTER * chance), LONGEST_PAUSE)

    def asked_for(self, status: int, header: str | None, now: float) -> float | None:
        """Return the seconds that a response asks to wait, up to 60; ``now`` is in epoch seconds."""
        return retry_after(header, now) if self.respects and status in _SAYS_WHEN else None


def read_retries(given: Given) -> Retries:
    """Raises `HttpError`."""
    inner = given.inner("retry")
    most = inner.count("max", default=given.count("retries", default=0))
    backoff = inner.seconds("backoff_ms", least=0)
    if backoff is None:
        backoff = given.seconds("backoff", least=0)
    statuses, methods = given.items("retry_on"), given.items("retry_methods")
    return Retries(
        most=most,
        backoff=1.0 if backoff is None else backoff,
        statuses=STATUSES if statuses is None else frozenset(map(_status, statuses)),
        methods=METHODS if methods is None else frozenset(display(each).upper() for each in methods),
        respects=given.flag("respect_retry_after", True),
    )


def _status(value: object) -> int:
    if type(value) is not int:
        raise HttpError(f"http: retry_on must be a list of statuses, got {display(value)}")
    return value


_TIMEOUT = 30.0
_REDIRECTS = 10


@cache
def _encodings() -> str:
    return "gzip, deflate, br" if has_brotli() else "gzip, deflate"


class Disk(Protocol):
    """The files that a request names, as the program may read them."""

    def readable(self, path: str) -> str:
        """Return the absolute path of a file that is going to be read. Raises unless that is allowed."""

    def content(self, path: str) -> bytes:
        """Return what is in a file. Raises a `Fault`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """``url`` is as it was written, with its query; ``canonical`` is where it is sent.

    Seconds that an attempt may take as a ``whole``, to ``connect``, and without anything to ``read``.
    ``redirects``: how many are followed, None for those that aren't. ``most``: the bytes of the body.
    """

    method: str
    url: str
    canonical: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    whole: float
    is_total: bool
    connect: float | None
    read: float | None
    retries: Retries
    redirects: int | None
    settings: Settings
    decompress: bool
    most: int | None


def read_request(name: str, method: str, url: str, options: Dict, disk: Disk, most: int | None) -> Request:
    """The request that the builtin ``name`` is to send; ``most`` bytes unless an option says otherwise.

    Raises `HttpError`.
    """
    given = Given(name, options)
    target = read_target(url, given.mapping("query"))
    method = read_method(method)
    body, content_type = _body(given, disk)
    decompress = given.flag("decompress", True)
    total = given.seconds("total_timeout_ms")
    headers = {
        "accept": "*/*",
        "user-agent": f"harnpy/{__version__}",
        **({"accept-encoding": _encodings()} if decompress else {}),
        **({"content-type": content_type} if content_type else {}),
        **_authorization(given, target.authorization),
        **_headers(given),
    }
    _check_framing(headers, len(body or b""))
    return Request(
        method=method,
        url=target.url,
        canonical=target.canonical,
        headers=tuple(headers.items()),
        body=body,
        whole=total or given.seconds("timeout_ms", "timeout") or _TIMEOUT,
        is_total=total is not None,
        connect=given.seconds("connect_timeout_ms"),
        read=given.seconds("read_timeout_ms"),
        retries=read_retries(given),
        redirects=given.count("max_redirects", default=_REDIRECTS)
        if given.flag("follow_redirects", True)
        else None,
        settings=read_settings(given, disk.readable),
        decompress=decompress,
        most=most if given.value("max_bytes") is None else given.count("max_bytes", default=0),
    )


def _body(given: Given, disk: Disk) -> tuple[bytes | None, str | None]:
    """Return the body and its content type, as far as the options say it."""
    body, fields = given.value("body"), given.value("multipart")
    if body is not None and fields is not None:
        raise HttpError("http: body and multipart options are mutually exclusive")
    if fields is not None:
        if type(fields) is not list:
            raise HttpError("http: multipart must be a list")
        return form_body(fields, disk.content)
    if body is None or type(body) is bytes:
        return body, None
    return display(body).encode("utf-8", "surrogatepass"), None


def _authorization(given: Given, of_url: str | None) -> dict[str, str]:
    value = _auth(given)
    if value is None:
        value = of_url
    if value is None:
        return {}
    check_header("authorization", value)
    return {"authorization": value}


def _auth(given: Given) -> str | None:
    auth = given.value("auth")
    if auth is None or type(auth) is str:
        return auth
    if type(auth) is not dict:
        raise given.wrong("auth", "a string or a dict", auth)
    inner = given.inner("auth")
    bearer = inner.text("bearer")
    if bearer is not None:
        return f"Bearer {bearer}"
    if inner.value("basic") is None:
        return None
    user = inner.inner("basic")
    return basic_auth(user.text("user") or "", user.text("password") or "")


def _headers(given: Given) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in given.mapping("headers").items():
        if value is not None:
            text = display(value)
            check_header(name, text)
            headers[name.lower()] = text
    return headers


def _check_framing(headers: dict[str, str], size: int) -> None:
    """Check that a program says the same of the body's end as the client does."""
    if headers.get("content-length", str(size)) != str(size):
        raise HttpError(f"http: invalid header value for 'content-length': the body has {size} bytes")
    if "transfer-encoding" in headers:
        raise HttpError("http: invalid header value for 'transfer-encoding': a body is sent as it is")


def merged_options(session: Dict, request: Dict) -> dict[str, Any]:
    """The options of a request in a session: its own come first; headers and query are those of both."""
    options = {**session, **request}
    for key, fold in (("headers", str.lower), ("query", str)):
        first, second = session.get(key), request.get(key)
        if type(first) is dict and type(second) is dict:
            options[key] = {fold(name): value for each in (first, second) for name, value in each.items()}
    if "body" in request or "multipart" in request:
        for key in ("body", "multipart"):
            if key not in request:
                options.pop(key, None)
    return options
