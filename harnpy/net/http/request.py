"""One request, as a program's arguments make it. Spec: 04 §21.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from harnpy.net.http.connection import read_settings
from harnpy.net.http.errors import HttpError
from harnpy.net.http.forms import form
from harnpy.net.http.reading import Given
from harnpy.net.http.retries import Retries, read_retries
from harnpy.net.http.targets import basic, check_header, read_method, read_target
from harnpy.text.display import display
from harnpy.version import __version__

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.world.net.settings import Settings

_TIMEOUT = 30.0
_REDIRECTS = 10
_ENCODINGS = "gzip, deflate, br"


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
        **({"accept-encoding": _ENCODINGS} if decompress else {}),
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
        return form(fields, disk.content)
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
    return basic(user.text("user") or "", user.text("password") or "")


def _headers(given: Given) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in given.mapping("headers").items():
        if value is not None:
            text = display(value)
            check_header(name, text)
            headers[name.lower()] = text
    return headers


def _check_framing(headers: dict[str, str], size: int) -> None:
    """Where the body ends is said by the client; a program may say the same."""
    if headers.get("content-length", str(size)) != str(size):
        raise HttpError(f"http: invalid header value for 'content-length': the body has {size} bytes")
    if "transfer-encoding" in headers:
        raise HttpError("http: invalid header value for 'transfer-encoding': a body is sent as it is")


def merged(session: Dict, request: Dict) -> dict[str, Any]:
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
