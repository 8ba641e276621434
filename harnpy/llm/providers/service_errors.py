"""Errors of providers as `CallError`s, without secrets. Pure. Spec: 07 §1.7.

The official SDKs are built alike, so one reader serves both: an error has ``status_code``, ``body`` and
``response`` when the service responded, and a cause when it did not.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harnpy.formats.secrets.known_values import SecretValues
from harnpy.formats.secrets.masking import mask_secrets
from harnpy.formats.secrets.secret_names import is_secret_header_name
from harnpy.llm.configuration.known_providers import on_this_machine
from harnpy.llm.errors import CallBlocked, CallError, NobodyListens
from harnpy.net.header_grammar import retry_after
from harnpy.world.egress import EgressBlocked
from harnpy.world.response_bodies import TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.llm.configuration.known_providers import ProviderConfig

_DETAIL_CHARS = 600
_MASK = "[redacted]"
#: Shorter values of headers are not secrets.
_SECRET_CHARS = 8

_BY_STATUS = {
    **dict.fromkeys((401, 403), "auth"),
    **dict.fromkeys((404, 410), "not_found"),
    **dict.fromkeys((408, 504, 522, 524), "timeout"),
    429: "rate_limit",
    **dict.fromkeys((503, 529), "overloaded"),
}

#: The services' names for errors in the middle of a stream, where there is no HTTP status.
_BY_NAME = {
    **dict.fromkeys(("authentication_error", "permission_error", "invalid_api_key"), "auth"),
    **dict.fromkeys(("not_found_error", "model_not_found"), "not_found"),
    **dict.fromkeys(("rate_limit_error", "rate_limit_exceeded", "insufficient_quota"), "rate_limit"),
    **dict.fromkeys(("overloaded_error", "overloaded"), "overloaded"),
    **dict.fromkeys(("api_error", "server_error", "internal_server_error"), "server_error"),
    "timeout_error": "timeout",
    # Amazon's streams of events.
    "throttlingException": "rate_limit",
    "serviceUnavailableException": "overloaded",
    "modelTimeoutException": "timeout",
    **dict.fromkeys(("internalServerException", "modelStreamErrorException"), "server_error"),
}

#: Headers that say when to try again in milliseconds; the second is Azure's.
_IN_MS = ("retry-after-ms", "x-ms-retry-after-ms")
_NUMBER = re.compile(r"\d+(\.\d+)?", re.ASCII)

_REFUSED = "connection refused by"
#: The modules that raise network errors, whatever the SDK turns them into.
_WIRE = ("openai", "anthropic", "httpx2", "httpcore2", "anyio", "ssl")
#: The module that raises errors for streams of events that can't be unpacked.
_EVENT_STREAM = "botocore.eventstream"


class MalformedReply(Exception):
    """The service sent something that is not a reply."""


class ServiceError(Exception):
    """The service sent an error instead of a reply."""

    def __init__(self, body: Any) -> None:
        super().__init__(str(body))
        self.body = body


_MALFORMED = (MalformedReply, ValueError, RecursionError)


def call_error(error: Exception, config: ProviderConfig, now: float) -> CallError | None:
    """Return the `CallError` for an error of the SDK; None when ``error`` is a mistake of ours.

    ``now`` is in epoch seconds.
    """
    if isinstance(error, CallError):
        return error
    blocked = next((each for each in _causes(error) if isinstance(each, EgressBlocked)), None)
    if blocked is not None:
        return CallBlocked(redacted(f"{config.name}: {blocked}", config), blocked.place())
    if (large := too_large(error)) is not None:
        return _failed(config, "generic", str(large))
    body = getattr(error, "body", None)
    status = getattr(error, "status_code", None)
    if status is not None or body is not None:
        return _answered(error, body, status, config, now)
    if _root(error) == "botocore" and type(error).__module__ != _EVENT_STREAM:
        return _failed(config, "auth", f"the request can't be signed: {error}")
    if isinstance(error, _MALFORMED) or type(error).__module__ == _EVENT_STREAM:
        return _failed(config, "server_error", f"malformed response: {error}")
    if isinstance(error, OSError) or _root(error) in _WIRE:
        category, text = _broken(error, config)
        if _REFUSED in text and on_this_machine(config.base_url):
            return NobodyListens(
                category, redacted(f"{config.name}: {text}: no server is running there", config)
            )
        return _failed(config, category, text)
    return None


def _root(error: BaseException) -> str:
    """The package that defines an error."""
    return type(error).__module__.partition(".")[0]


def too_large(error: BaseException) -> TooLarge | None:
    """Return the error for too many bytes or events, whatever the SDK turned it into."""
    return next((each for each in _causes(error) if isinstance(each, TooLarge)), None)


def timed_out(config: ProviderConfig, seconds: float) -> CallError:
    return _failed(config, "timeout", f"timed out after {seconds:g} s")


def nothing_delivered(config: ProviderConfig, model: str, tokens: int, reason: str | None) -> CallError:
    """The error for a reply without text and without calls."""
    spent = f"completion_tokens={tokens}, stop reason {reason}"
    return _failed(config, "server_error", f"model '{model}' delivered no content ({spent})")


def refused(config: ProviderConfig, model: str, why: str) -> CallError:
    """The error for a stream of text that ends with a refusal and has no text."""
    return _failed(config, "generic", f"model '{model}' refused (content policy): {why}")


def cut_off(config: ProviderConfig) -> CallError:
    """The error for a stream that ended before the reply did."""
    text = "stream error: connection closed before the response was complete"
    return _failed(config, "transient_network", text)


def unusable_key(config: ProviderConfig) -> CallError | None:
    """The error for a key that no header can carry, with a line break or an example's dots; else None."""
    key = config.api_key or ""
    if key.isascii() and key.isprintable() and key == key.strip():
        return None
    return _failed(config, "auth", "the API key holds blanks or characters that no key has")


def redacted(text: str, config: ProviderConfig) -> str:
    """``text`` without the key, the other headers of the configuration, and whatever looks like a secret."""
    headers = config.extra_headers
    hidden = [value for name, value in headers.items() if is_secret_header_name(name)]
    text = SecretValues([*config.secrets(), *hidden]).masked(text, _MASK)
    for value in sorted(headers.values(), key=len, reverse=True):
        if len(value) >= _SECRET_CHARS:
            text = text.replace(value, _MASK)
    return mask_secrets(text)


def _failed(config: ProviderConfig, category: str, text: str, after: float | None = None) -> CallError:
    return CallError(category, redacted(f"{config.name}: {text}", config), after)


def _answered(error: Exception, body: Any, status: Any, config: ProviderConfig, now: float) -> CallError:
    """The `CallError` for an error that the service sent."""
    names, detail = _read(body)
    # An error in the middle of a stream has the status of the stream, 200.
    if type(status) is not int or status < 400:
        status = next((int(name) for name in names if name.isdecimal()), None)
    category = _category(status, names)
    where = "error" if status is None else f"HTTP {status}{_phrase(status)}"
    kinds = ", ".join(name for name in names if not name.isdecimal())
    detail = _one_line(redacted(detail or str(error), config))
    text = f"{where} ({kinds}): {detail}" if kinds else f"{where}: {detail}"
    after = _retry_after(error, body, now)
    if after is None:
        return _failed(config, category, text)
    return _failed(config, category, f"{text}\nretry-after: {after:g}", after)


def _read(body: Any) -> tuple[list[str], str]:
    """The service's name for the error, and its message."""
    inner = _inner(body)
    if isinstance(inner, dict):
        names = [str(inner[key]) for key in ("type", "code") if inner.get(key) is not None]
        return names, str(inner.get("message") or inner.get("detail") or "")
    return [], "" if inner is None else str(inner)


def _inner(body: Any) -> Any:
    """Return what a body says of its error: what it has as ``error``, else the body."""
    if isinstance(body, list) and body:
        body = body[0]  # Google's
    return body.get("error", body) if isinstance(body, dict) else body


def _category(status: int | None, names: list[str]) -> str:
    if status is not None:
        return _BY_STATUS.get(status, "server_error" if status >= 500 else "generic")
    # A reply that breaks off without a name for it is no complaint about the request.
    other = "generic" if names else "server_error"
    return next((_BY_NAME[name] for name in names if name in _BY_NAME), other)


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _DETAIL_CHARS else text[:_DETAIL_CHARS] + "…"


def _retry_after(error: Exception, body: Any, now: float) -> float | None:
    """Return the seconds after which a service wants to be asked again, 0 to 60, if it says so."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name in _IN_MS:
        ms = str(headers.get(name) or "").strip()
        if _NUMBER.fullmatch(ms):
            return retry_after(str(float(ms) / 1000), now)
    after = retry_after(headers.get("retry-after"), now)
    return _retry_delay(body, now) if after is None else after


def _retry_delay(body: Any, now: float) -> float | None:
    """Return the seconds of a `google.rpc.RetryInfo` in the details of an error."""
    inner = _inner(body)
    details = inner.get("details") if isinstance(inner, dict) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and delay.endswith("s") and _NUMBER.fullmatch(delay[:-1]):
            return retry_after(delay[:-1], now)
    return None


def _broken(error: BaseException, config: ProviderConfig) -> tuple[str, str]:
    """The category and the message of a connection that failed."""
    chain = list(_causes(error))
    if any("Timeout" in type(each).__name__ for each in chain):
        return "timeout", "timed out waiting for the service"
    host = urlsplit(config.base_url).netloc.rpartition("@")[2]
    names = {type(each).__name__ for each in chain}
    if "ConnectionRefusedError" in names:
        return "transient_network", f"{_REFUSED} {host}"
    if "gaierror" in names:
        return "transient_network", f"dns error: the name in {host} is not known"
    if any("SSL" in name or "Certificate" in name for name in names):
        return "generic", f"no secure connection to {host}: {_one_line(str(chain[-1]))}"
    if "ConnectError" in names:
        return "transient_network", f"connection refused or unreachable: {host}"
    return "transient_network", f"connection closed by {host}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        left += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            left += each.exceptions
