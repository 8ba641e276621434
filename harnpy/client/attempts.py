"""What a client does about a request, whoever carries it: how it is written, read, and when it is made again.

A request that certainly wasn't carried out is made again, any other only if it `repeats`. Spec: 11 §3.
"""

from __future__ import annotations

import time
from random import random
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

import httpx2
import msgspec

from harnpy.client.errors import ApiError
from harnpy.client.types import Failure
from harnpy.formats.json import refuse_depth
from harnpy.net.header_grammar import retry_after
from harnpy.net.http_request import PASSING, Retries

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from harnpy.client.api_calls import Call

R = TypeVar("R")

#: Statuses of a request that was not carried out, and may be another time.
_LATER = frozenset((429, 503))
#: Statuses of what stands before a server: nobody knows what became of the request.
_BETWEEN = frozenset((502, 504))
_PAUSES = Retries(backoff=0.1)
_LONGEST_PAUSE = 2.0


class Server:
    """A server, or several on one store: ``url`` is where requests go now.

    A request that failed is made again for ``patience`` seconds.
    """

    def __init__(self, urls: Sequence[str], headers: httpx2.Headers, timeout: float, patience: float) -> None:
        self.urls = tuple(url.rstrip("/") for url in urls)
        self.url = self.urls[0]
        self.headers = headers
        self.timeout = timeout
        self.patience = patience

    def leave(self, url: str) -> None:
        """Go to the next server, unless another request has left this one already."""
        if url == self.url:
            self.url = self.urls[(self.urls.index(url) + 1) % len(self.urls)]


def server_at(url: str | Sequence[str], token: str | None, timeout: float, patience: float) -> Server:
    """Raise ValueError for what can't be a server's address, or no token."""
    urls = [url] if isinstance(url, str) else [*url]
    for each in urls or [""]:
        _check(each)
    headers = httpx2.Headers({"accept": "application/json"})
    if token is not None:
        if not token.isascii() or not token.isprintable() or not token.strip() == token != "":
            raise ValueError("the token has characters that no token has")
        headers["authorization"] = f"Bearer {token}"
    return Server(urls, headers, timeout, patience)


def _check(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the address of a server is a URL such as http://127.0.0.1:4721")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(
            "the address of a server has no user, `?` or `#`: give http://HOST:PORT, and the token by itself"
        )


def tls(server: Server) -> ssl.SSLContext | bool:
    """Return what a server's certificate is checked by, which takes long to read, and http doesn't need."""
    if all(url[:6].lower() != "https:" for url in server.urls):
        return False
    from harnpy.world.http_client import usual_tls

    return usual_tls()


# A request.


def _request_of(call: Call[Any], server: Server, url: str) -> dict[str, Any]:
    headers, content = server.headers.copy(), None
    if call.body is not None:
        content = msgspec.json.encode(call.body)
        headers["content-type"] = "application/json"
    if call.key is not None:
        headers["idempotency-key"] = call.key
    return {
        "method": call.method,
        "url": url + call.path,
        "params": call.query or None,
        "headers": headers,
        "content": content,
        "timeout": httpx2.Timeout(server.timeout),
    }


def reply_of(call: Call[R], response: httpx2.Response, server: Server) -> R:
    """Return what a response says. Raise `ApiError` for one that isn't a harnpy server's."""
    if response.status_code == 204:
        return cast(R, None)
    try:
        refuse_depth(response.content)
        if call.part is None:
            return msgspec.json.decode(response.content, type=call.reply)
        parts = msgspec.json.decode(response.content, type=dict[str, msgspec.Raw])
        return msgspec.json.decode(parts[call.part], type=call.reply)
    except (msgspec.MsgspecError, KeyError, ValueError):
        raise not_harnpy(response, server) from None


def problem_of(response: httpx2.Response, server: Server) -> ApiError:
    """Return what a response other than 2xx means."""
    try:
        refuse_depth(response.content)
        error = msgspec.json.decode(response.content, type=Failure).error
    except (msgspec.MsgspecError, ValueError):
        return not_harnpy(response, server)
    return ApiError(response.status_code, error.code, error.message)


def not_harnpy(response: httpx2.Response, server: Server) -> ApiError:
    """Return the error for a response that no harnpy server gives."""
    kind = response.headers.get("content-type", "").partition(";")[0] or "nothing"
    text = f"what answers at {server.url} is no harnpy server: it returned {response.status_code} with {kind}"
    return ApiError(response.status_code, "not_harnpy", text)


# The attempts at a request.


class Attempts:
    """The attempts at one request. ``met``: the server has answered before, so it may come back."""

    def __init__(self, call: Call[Any], server: Server, met: bool) -> None:
        self._call = call
        self._server = server
        self._url = server.url
        self._met = met
        #: Failures in a row, and since when nothing has come.
        self._failures = 0
        self._since: float | None = None

    def request(self) -> dict[str, Any]:
        """Return the request of the next attempt, as arguments of a client of httpx2."""
        self._url = self._server.url
        return _request_of(self._call, self._server, self._url)

    def broken(self, error: httpx2.RequestError) -> float:
        """Return the seconds until the next attempt, after one without a response. Raise `ApiError`."""
        from harnpy.world.http_client import failure

        if isinstance(error, httpx2.ReadTimeout) and self._call.waits:
            self.came()
            return 0.0
        url = self._url
        self._server.leave(url)
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            failed = failure(error)
            why = "it takes too long" if isinstance(error, httpx2.ConnectTimeout) else failed.text
            problem = ApiError(0, "unreachable", f"there is no connection to {url}: {why}")
            others = len(self._server.urls) - 1
            if self._failures >= others and not (self._met and failed.category in PASSING):
                raise problem from None
            return self._pause(problem)
        if isinstance(error, httpx2.ReadTimeout):
            problem = ApiError(0, "broken", f"{url} didn't answer within {self._server.timeout:g} s")
        elif isinstance(error, httpx2.TransportError):
            problem = ApiError(0, "broken", f"the connection to {url} broke before there was an answer")
        else:
            raise ApiError(0, "not_harnpy", f"the answer of {url} can't be read") from None
        if not self._call.repeats:
            raise problem from None
        return self._pause(problem)

    def answered(self, response: httpx2.Response) -> float | None:
        """Return the seconds until the next attempt; None where this one is done. Raise `ApiError`."""
        self._met = True
        if response.is_success:
            return None
        status = response.status_code
        problem = problem_of(response, self._server)
        if status not in _LATER and not (self._call.repeats and status in _BETWEEN):
            raise problem
        return self._pause(problem, retry_after(response.headers.get("retry-after"), time.time()))

    def came(self, *, news: bool = True) -> None:
        """Note that the server is there; without ``news`` that ends no row of failures."""
        self._met = True
        self._since = None
        if news:
            self._failures = 0

    def _pause(self, problem: ApiError, asked: float | None = None) -> float:
        """Return how long to wait: after a first failure not at all. Raise ``problem`` at patience's end."""
        self._server.leave(self._url)
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if asked is None:
            asked = (
                min(_PAUSES.pause(self._failures - 1, random()), _LONGEST_PAUSE) if self._failures else 0.0
            )
        self._failures += 1
        if now + asked > self._since + self._server.patience:
            raise problem from None
        return asked

    def ended(self) -> float:
        """Return the seconds until the next connection, after one that ended before the stream was over."""
        return self._pause(ApiError(0, "broken", f"{self._url} ends its streams before they are over"))
