"""One request and its response, redirects included, or what went wrong with it. Spec: 04 §21.1, 02 §19.8."""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import httpx2

from harnpy.world.connections import Failed, TooMuch, cut_off, misled, too_many_redirects
from harnpy.world.egress import Forbidden
from harnpy.world.http_client import SURFACE
from harnpy.world.responses import MOST_REDIRECTS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping

# What went wrong with a request, in one line and one category. Spec: 04 §21.1, 02 §19.8.
#
# The lines have no status codes and no numbers of their own: programs classify a thrown text by both. No line
# has what a URL or a header may hold in secret.


_QUOTED = re.compile(r":? b(?:ytearray\(b)?['\"]| should be in range ")
_NUMBERS = re.compile(r"\d+")
#: What a client raises when there is no complete response; `failure` knows each.
FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
_TIMEOUT, _NETWORK, _OTHER = "timeout", "transient_network", "generic"


def failure(error: Exception) -> Failed:
    """What an error of a client means, one of `FAILURES`."""
    category, text = _described(error)
    return Failed(category, text)


def _described(error: Exception) -> tuple[str, str]:
    match error:
        case httpx2.ConnectTimeout():
            return _TIMEOUT, f"Deadline exceeded: no connection{_at('to', error)} within connect_timeout_ms"
        case httpx2.PoolTimeout():
            return _TIMEOUT, "Deadline exceeded: too many connections are in use"
        case httpx2.TimeoutException():
            return _TIMEOUT, f"Deadline exceeded: nothing came{_at('from', error)} within read_timeout_ms"
        case httpx2.ConnectError():
            return _not_connected(error)
        case httpx2.ProxyError():
            return _OTHER, f"the proxy refused: {_words(str(error))}"
        case httpx2.NetworkError() if any(isinstance(cause, Forbidden) for cause in _causes(error)):
            return _OTHER, f"the connection{_at('to', error)} was cut by the egress policy"
        case httpx2.NetworkError():
            return _NETWORK, f"connection reset{_at('by', error)}"
        case httpx2.RemoteProtocolError():
            return _misbehaved(error)
        case httpx2.DecodingError():
            return _OTHER, "the body isn't what its content-encoding says"
        case httpx2.UnsupportedProtocol():
            return misled().category, misled().text
        case httpx2.LocalProtocolError():
            return _OTHER, f"it can't be sent: {_words(str(error))}"
        case ssl.SSLError():
            return _OTHER, f"TLS: {_reason(error)}"
    return _OTHER, f"{error}" or type(error).__name__


def _not_connected(error: httpx2.ConnectError) -> tuple[str, str]:
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return _OTHER, f"TLS: the certificate{_at('of', error)} isn't trusted: {cause.verify_message}"
            case ssl.SSLError():
                return _OTHER, f"TLS: {_reason(cause)}"
            case socket.gaierror():
                return _NETWORK, f"dns error: there is no address{_at('of', error)}"
            case ConnectionRefusedError():
                return _NETWORK, f"connection refused{_at('by', error)}"
    return _NETWORK, f"connection closed{_at('by', error)} before it was open"


def _misbehaved(error: httpx2.RemoteProtocolError) -> tuple[str, str]:
    text = str(error)
    if "incomplete" in text or "peer closed" in text or "disconnected" in text:
        return _NETWORK, f"connection closed{_at('by', error)} before the response was complete"
    return _OTHER, f"malformed response{_at('from', error)}: {_words(text)}"


def _words(text: str) -> str:
    """What a library says, without numbers, and without the bytes that it quotes."""
    return _NUMBERS.sub("", _QUOTED.split(text)[0]).strip()


def _reason(error: ssl.SSLError) -> str:
    # One that Python raises has a reason, one of ours a text.
    reason = getattr(error, "reason", None)
    return (
        reason.replace("_", " ").lower() if reason else str(error.args[-1] if error.args else "no handshake")
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what led to an error, also where several attempts failed."""
    left, seen = [error], set[int]()
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            left.extend(each.exceptions)
        left.extend(cause for cause in (each.__context__, each.__cause__) if cause is not None)


def _host(error: Exception) -> str:
    try:
        return error.request.url.host if isinstance(error, httpx2.RequestError) else ""
    except RuntimeError:  # it knows of no request
        return ""


def _at(word: str, error: Exception) -> str:
    host = _host(error)
    return f" {word} {host}" if host else ""


class Outgoing(Protocol):
    """A request as it is sent. Seconds to ``connect``, and between two pieces that are sent or ``read``.

    ``redirects``: how many are followed; None returns the response that redirects. ``decompress`` unpacks
    the body as its `content-encoding` says.
    """

    @property
    def method(self) -> str: ...
    @property
    def canonical(self) -> str:
        """The URL."""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def body(self) -> bytes | None: ...
    @property
    def connect(self) -> float | None: ...
    @property
    def read(self) -> float | None: ...
    @property
    def redirects(self) -> int | None: ...
    @property
    def decompress(self) -> bool: ...


class Incoming:
    """A response whose body has yet to be read. `aclose` it."""

    def __init__(self, response: httpx2.Response, decompress: bool) -> None:
        self.status = response.status_code
        self.headers = _joined(response.headers)
        self.charset = response.charset_encoding
        self._response = response
        self._decompress = decompress

    async def pieces(self, most: int | None) -> AsyncGenerator[bytes, None]:
        """Yield the body. Raises `Failed`, also when there are more than ``most`` bytes, unpacked or not."""
        read = self._response.aiter_bytes if self._decompress else self._response.aiter_raw
        left = most
        try:
            async with aclosing(read()) as pieces:
                async for piece in pieces:
                    if left is not None:
                        left -= len(piece)
                        if left < 0:
                            raise TooMuch(most or 0)
                    yield piece
        except FAILURES as error:
            problem = failure(error)
        else:
            return
        raise problem

    async def aclose(self) -> None:
        """Give the connection back; one with an unread body is closed."""
        await self._response.aclose()


async def exchange(client: httpx2.AsyncClient, surface: str, outgoing: Outgoing) -> Incoming:
    """Send a request and return the response to it.

    Raises `Failed`, `EgressBlocked`, and what the client's ``permit`` does.
    """
    times = {"connect": outgoing.connect, "pool": outgoing.connect}
    follows = outgoing.redirects is not None
    try:
        request = httpx2.Request(
            outgoing.method,
            outgoing.canonical,
            headers=encoded_headers(outgoing.headers),
            content=outgoing.body,
            extensions={
                "timeout": {**times, "read": outgoing.read, "write": outgoing.read},
                SURFACE: surface,
                MOST_REDIRECTS: outgoing.redirects or 0,
            },
        )
        client.cookies.set_cookie_header(request)
        response = await client.send(request, stream=True, follow_redirects=follows)
    except FAILURES as error:
        problem = cut_off() if client.is_closed else failure(error)
    except RuntimeError:
        # httpx2's word for a client that another task has closed.
        if not client.is_closed:
            raise
        problem = cut_off()
    else:
        if not follows or not response.has_redirect_location:
            return Incoming(response, outgoing.decompress)
        await response.aclose()
        problem = misled() if response.next_request is None else too_many_redirects()
    # Without its cause, which may hold what the request did.
    raise problem


def encoded_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Return headers as they are sent: values in UTF-8, also where they are no ASCII."""
    return [(name.encode(), value.encode("utf-8", "surrogatepass")) for name, value in headers]


def _joined(headers: httpx2.Headers) -> Mapping[str, str]:
    """The headers by their names in lower case; the values of one that is there several times are joined."""
    found: dict[str, str] = {}
    for raw_name, raw_value in headers.raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("utf-8", "replace")
        between = "\n" if name == "set-cookie" else ", "
        found[name] = f"{found[name]}{between}{value}" if name in found else value
    return found
