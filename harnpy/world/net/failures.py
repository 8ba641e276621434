"""What went wrong with a request, in one line and one category. Spec: 04 §21.1, 02 §19.8.

The lines have no status codes and no numbers of their own: programs classify a thrown text by both. No line
has what a URL or a header may hold in secret.
"""

from __future__ import annotations

import re
import socket
import ssl
from typing import TYPE_CHECKING

import httpx2

from harnpy.world.net.egress import Forbidden
from harnpy.world.net.failed import Failed, misled

if TYPE_CHECKING:
    from collections.abc import Iterator

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
