"""Signed values, and sessions that live in their cookie: nothing of them is kept here.

The values can be read by whoever has them; they can't be changed without the secret. Spec: 04 §16.4
"cookie_sign", "session_sign".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.crypto.encodings import EncodingError, from_base64url, to_base64url
from harnpy.crypto.hashes import equal_in_constant_time, hmac_sha256
from harnpy.net.cookies.rules import CookieError, is_value
from harnpy.text.json.reader import JsonError, parse_json

if TYPE_CHECKING:
    from typing import Any

_VERSION = "v1"


class Verdict(NamedTuple):
    """``content``: what was signed; ``error``: why there is none, or None."""

    content: Any = None
    error: str | None = None


MALFORMED = Verdict(error="malformed")
_INVALID_SIGNATURE = Verdict(error="invalid_signature")
_MALFORMED_PAYLOAD = Verdict(error="malformed_payload")


def signed(value: str, secret: str) -> str:
    """Return `value.signature`. Raises CookieError for what can't be the value of a cookie."""
    if not is_value(value):
        raise CookieError("cookie_sign value must not contain separators or control characters")
    return f"{value}.{_signature(value, secret)}"


def verified(text: str, secret: str) -> Verdict:
    """Return the value in a signed one."""
    value, dot, signature = text.rpartition(".")
    if not dot or not signature:
        return MALFORMED
    return Verdict(value) if _is_genuine(value, signature, secret) else _INVALID_SIGNATURE


def session_token(payload: str, secret: str) -> str:
    """Return `v1.payload.signature`; ``payload`` is a JSON text."""
    content = to_base64url(_utf8(payload))
    return f"{_VERSION}.{content}.{_signature(content, secret)}"


def session_payload(token: str, secret: str) -> Verdict:
    """Return the value in a session's token."""
    version, *parts = token.split(".")
    if version != _VERSION or len(parts) != 2 or not all(parts):
        return MALFORMED
    content, signature = parts
    if not _is_genuine(content, signature, secret):
        return _INVALID_SIGNATURE
    try:
        return Verdict(parse_json(from_base64url(content).decode("utf-8")))
    except (EncodingError, UnicodeDecodeError, JsonError):
        return _MALFORMED_PAYLOAD


def _is_genuine(content: str, signature: str, secret: str) -> bool:
    return equal_in_constant_time(_signature(content, secret).encode(), _utf8(signature))


def _signature(content: str, secret: str) -> str:
    # Anybody can sign with an empty secret, so a missing one must not go unnoticed.
    if not secret:
        raise CookieError("secret must not be empty")
    return to_base64url(hmac_sha256(_utf8(secret), [_utf8(content)]))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
