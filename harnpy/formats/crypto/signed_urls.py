"""URLs that carry claims, an expiry and a signature. Spec: 04 §16.3 "signed_url".

The signature covers a canonical form: origin, path and the sorted query; the order of the parameters and the
spelling of their escapes don't count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

from harnpy.faults import NamedMisuse, paced
from harnpy.formats.crypto.encodings import percent_encoded, to_base64url
from harnpy.formats.crypto.primitives import equal_in_constant_time, hmac_sha256

_VERSION = "harn-signed-url-v1"
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
#: What a path may hold as it is, besides letters, digits and `-._~`.
#: No name of a host is longer.
_LONGEST_HOST = 253 * 4
_PATH = "/%:@!$&'()*+,;="
_DOT_SEGMENT = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)
_INT = re.compile(r"-?[0-9]{1,19}")


class UrlError(NamedMisuse):
    """A URL can't be signed or verified as asked."""


class Names(NamedTuple):
    """The names of the parameters that aren't claims."""

    signature: str = "sig"
    expires: str = "exp"
    kid: str = "kid"


class _Url(NamedTuple):
    place: str
    """Origin and path."""
    pairs: Sequence[tuple[str, str]]
    """Names and values, percent-encoded in the one way that is signed."""


def signed_url(
    base: str, claims: Mapping[str, str], secret: str, expires_at: int, names: Names, kid: str | None
) -> str:
    """Return ``base`` with the claims, the expiry and a signature. Raises UrlError."""
    reserved = next((name for name in names if name in claims), None)
    if reserved is not None:
        raise UrlError(f"claims cannot contain reserved parameter `{reserved}`")
    if not secret:
        raise UrlError("secret must not be empty")
    place, given = _parsed("base", base)
    added = {**claims, names.expires: str(expires_at), **({} if kid is None else {names.kid: kid})}
    names = _escaped_names(names)
    pairs = [pair for pair in given if pair[0] not in names]
    pairs += [(_escaped(name), _escaped(value)) for name, value in added.items()]
    signature = _signature(secret, place, pairs)
    return f"{place}?{_query([*pairs, (names.signature, signature)])}"


def verification(
    url: str, secrets: str | Mapping[str, str], now: int, names: Names, skew: int
) -> dict[str, Any]:
    """Return ``{valid, reason, signature_valid, expired, expires_at, kid, claims}``. Raises UrlError.

    ``secrets``: one, or one for each kid. ``now``, ``skew``: seconds.
    """
    place, pairs = _parsed("url", url)
    names = _escaped_names(names)
    signatures, expiries, kids = ([value for name, value in pairs if name == each] for each in names)
    if len(signatures) != 1:
        return _verdict("missing_signature")
    if len(expiries) != 1:
        return _verdict("missing_expiry")
    expires_at = _int(expiries[0])
    if expires_at is None:
        return _verdict("invalid_expiry")
    if len(kids) > 1:
        return _verdict("duplicate_kid", expires_at=expires_at)
    kid = unquote(kids[0]) if kids else None
    claims = {unquote(name): unquote(value) for name, value in paced(pairs) if name not in names}
    secret = secrets if isinstance(secrets, str) else secrets.get(kid) if kid is not None else None
    if not secret:
        return _verdict("unknown_key", expires_at=expires_at, kid=kid, claims=claims)
    expected = _signature(secret, place, [pair for pair in pairs if pair[0] != names.signature])
    genuine = equal_in_constant_time(expected.encode(), signatures[0].encode())
    expired = now > expires_at + skew
    reason = "bad_signature" if not genuine else "expired" if expired else "ok"
    return _verdict(
        reason, signature_valid=genuine, expired=expired, expires_at=expires_at, kid=kid, claims=claims
    )


def _verdict(
    reason: str,
    *,
    signature_valid: bool = False,
    expired: bool = False,
    expires_at: int | None = None,
    kid: str | None = None,
    claims: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    return {
        "valid": reason == "ok",
        "reason": reason,
        "signature_valid": signature_valid,
        "expired": expired,
        "expires_at": expires_at,
        "kid": kid,
        "claims": dict(claims or {}),
    }


def _parsed(what: str, text: str) -> _Url:
    """Return the canonical place of a URL, and its parameters. ``what`` is the argument's name."""
    try:
        parts = urlsplit(text)
        origin = _origin(what, parts.scheme, parts.hostname, parts.port) if parts.netloc else ""
    except ValueError:
        raise UrlError(f"{what} is not a valid URL") from None
    if parts.netloc.rpartition("@")[1]:
        raise UrlError(f"{what} must not hold a user name or password")
    if not origin and (parts.scheme or not parts.path.startswith("/")):
        raise UrlError(f"{what} must be an absolute URL with a host, or a path that starts with `/`")
    path = "/".join(quote(_utf8(name), safe=_PATH) for name in paced((parts.path or "/").split("/")))
    if _DOT_SEGMENT.search(path):
        raise UrlError(f"{what} must not have `.` or `..` segments: clients resolve them before they ask")
    pieces = [piece.partition("=") for piece in paced(parts.query.split("&")) if piece]
    return _Url(origin + path, [(_canonical(name), _canonical(value)) for name, _, value in pieces])


def _origin(what: str, scheme: str, host: str | None, port: int | None) -> str:
    if not scheme or not host:
        raise UrlError(f"{what} must be an absolute URL with a host, or a path that starts with `/`")
    if len(host) > _LONGEST_HOST:
        raise UrlError(f"{what} is not a valid URL")
    name = f"[{host}]" if ":" in host else host.encode("idna").decode()
    return f"{scheme}://{name}" + ("" if port in (None, _DEFAULT_PORTS.get(scheme)) else f":{port}")


def _signature(secret: str, place: str, pairs: Sequence[tuple[str, str]]) -> str:
    content = "\n".join([_VERSION, place, _query(pairs)])
    return to_base64url(hmac_sha256(_utf8(secret), [content.encode()]))


def _query(pairs: Sequence[tuple[str, str]]) -> str:
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _escaped_names(names: Names) -> Names:
    return Names(*map(_escaped, names))


def _canonical(form: str) -> str:
    """Return a form-encoded text in the one way that is signed."""
    return percent_encoded(unquote_to_bytes(_utf8(form.replace("+", " "))))


def _escaped(text: str) -> str:
    return percent_encoded(_utf8(text))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _int(text: str) -> int | None:
    """Return a 64-bit int."""
    if not _INT.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
