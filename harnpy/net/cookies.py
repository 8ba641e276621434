"""Cookies: read from requests, written for responses, signed, and kept as a browser keeps them (RFC 6265).

What comes from outside is never an error: `read_cookies` reports what is invalid. Signed values, and sessions
that live in their cookie, can be read by whoever has them; they can't be changed without the secret, and
nothing of them is stored here. Spec: 04 §16.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from harnpy.faults import MisuseError, paced
from harnpy.formats.crypto.encodings import EncodingError, from_base64url, to_base64url
from harnpy.formats.crypto.primitives import equal_in_constant_time, hmac_sha256
from harnpy.formats.json import JsonError, parse_json
from harnpy.net.header_grammar import is_token

_NO_VALUE = re.compile(r'[\x00-\x20\x7f-\x9f;,\\"]')
_NO_ATTRIBUTE = re.compile(r"[\x00-\x1f\x7f-\x9f;]")


class CookieError(MisuseError):
    """A cookie can't be written, signed or read as asked."""

    def __init__(self, message: str) -> None:
        super().__init__(f"cookie: {message}")


def is_value(text: str) -> bool:
    """Return whether ``text`` may be a cookie's value as it is."""
    return _NO_VALUE.search(text) is None


def is_attribute(text: str) -> bool:
    """Return whether ``text`` may stand behind `Path=`, `Domain=`, `Expires=`."""
    return text != "" and _NO_ATTRIBUTE.search(text) is None


class Pair(NamedTuple):
    name: str
    value: str


class Invalid(NamedTuple):
    """``reason``: `missing '='`, `invalid name` or `invalid value`."""

    segment: str
    reason: str


class Cookies(NamedTuple):
    """Every cookie in the order of the headers, and every segment that is none."""

    pairs: list[Pair]
    invalid: list[Invalid]

    def values(self) -> dict[str, str]:
        """Return the first value of each name."""
        return {pair.name: pair.value for pair in reversed(self.pairs)}

    def duplicates(self) -> dict[str, list[str]]:
        """Return all values of the names that are there more than once."""
        values: dict[str, list[str]] = {}
        for pair in self.pairs:
            values.setdefault(pair.name, []).append(pair.value)
        return {name: found for name, found in values.items() if len(found) > 1}


def read_cookies(headers: Iterable[str]) -> Cookies:
    """Return the cookies in the values of `Cookie` headers."""
    cookies = Cookies([], [])
    for header in headers:
        for piece in paced(header.split(";")):
            segment = piece.strip(" \t")
            if not segment:
                continue
            found = read_pair(segment)
            if isinstance(found, Pair):
                cookies.pairs.append(found)
            else:
                cookies.invalid.append(found)
    return cookies


def read_pair(segment: str) -> Pair | Invalid:
    """Return the cookie that ``segment`` is: `name=value`; quotes around the value are no part of it."""
    name, equals, value = segment.partition("=")
    if not equals:
        return Invalid(segment, "missing '='")
    name, value = name.strip(" \t"), _unquoted(value.strip(" \t"))
    if not is_token(name):
        return Invalid(segment, "invalid name")
    if not is_value(value):
        return Invalid(segment, "invalid value")
    return Pair(name, value)


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value


_SAME_SITE = {"lax": "Lax", "strict": "Strict", "none": "None"}
#: A moment that is past for every clock.
LONG_AGO = "Thu, 01 Jan 1970 00:00:00 GMT"


class Attributes(NamedTuple):
    """The bounds of a cookie. ``max_age``: seconds; ``expires``: an HTTP date, taken as given."""

    path: str | None = None
    domain: str | None = None
    max_age: int | None = None
    expires: str | None = None
    http_only: bool = False
    secure: bool = False
    same_site: str | None = None


#: What a cookie that says who somebody is should have.
SESSION_COOKIE = Attributes(path="/", http_only=True, secure=True, same_site="Lax")
DELETION = SESSION_COOKIE._replace(max_age=0, expires=LONG_AGO)


def set_cookie(name: str, value: str, attributes: Attributes) -> str:
    """Return the value of a `Set-Cookie` header. Raises CookieError."""
    if not is_token(name):
        raise CookieError("cookie name is empty or contains invalid characters")
    if not is_value(value):
        raise CookieError(
            "cookie value contains spaces, quotes, separators, or control characters; encode it first"
        )
    return "; ".join([f"{name}={value}", *_attributes(attributes)])


def _attributes(given: Attributes) -> Iterator[str]:
    if given.path is not None:
        yield _text("Path", given.path)
    if given.domain is not None:
        yield _text("Domain", given.domain)
    if given.max_age is not None:
        yield f"Max-Age={given.max_age}"
    if given.expires is not None:
        yield _text("Expires", given.expires)
    if given.http_only:
        yield "HttpOnly"
    if given.secure:
        yield "Secure"
    if given.same_site is not None:
        yield f"SameSite={_same_site(given.same_site, given.secure)}"


def _text(name: str, value: str) -> str:
    if not is_attribute(value):
        raise CookieError(f"{name} contains an invalid cookie attribute value")
    return f"{name}={value}"


def _same_site(given: str, secure: bool) -> str:
    found = _SAME_SITE.get(given.lower())
    if found is None:
        raise CookieError("same_site must be one of Lax, Strict, or None")
    if found == "None" and not secure:
        raise CookieError("SameSite=None requires Secure")
    return found


# Dates as cookies have them, in any order and many spellings (RFC 6265, 5.1.1).


_DELIMITERS = re.compile(r"[\t\x20-/;-@\[-`{-~]+")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?![0-9])")
_DAY = re.compile(r"([0-9]{1,2})(?![0-9])")
_YEAR = re.compile(r"([0-9]{2,4})(?![0-9])")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FIRST_YEAR = 1601


def cookie_date(text: str) -> float | None:
    """Return the seconds since 1970 of the date; None when it is none."""
    time = day = month = year = None
    for token in _DELIMITERS.split(text):
        if time is None and (found := _TIME.match(token)):
            time = tuple(map(int, found.groups()))
        elif day is None and (found := _DAY.match(token)):
            day = int(found[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (found := _YEAR.match(token)):
            year = _full_year(int(found[1]))
    if time is None or day is None or month is None or year is None or year < _FIRST_YEAR:
        return None
    hour, minute, second = time
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _full_year(year: int) -> int:
    if year < 70:
        return 2000 + year
    return 1900 + year if year < 100 else year


# What a browser has after an answer: `Set-Cookie` headers applied to its cookies. Spec: 04 §16.4
# "cookie_round_trip".


def applied(cookies: Mapping[str, str], headers: Iterable[str], now: float) -> dict[str, str]:
    """Return ``cookies`` after the ``headers``, by name. ``now``: seconds since 1970.

    Where a cookie holds (`Path`, `Domain`, `Secure`) isn't looked at; as in browsers, a header that is no
    cookie does nothing.
    """
    result = dict(cookies)
    for header in headers:
        first, *attributes = header.split(";")
        pair = read_pair(first.strip(" \t"))
        if not isinstance(pair, Pair):
            continue
        if _is_over(attributes, now):
            result.pop(pair.name, None)
        else:
            result[pair.name] = pair.value
    return dict(sorted(result.items()))


def cookie_header(cookies: Mapping[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in sorted(cookies.items()))


def _is_over(attributes: Sequence[str], now: float) -> bool:
    """Return whether a cookie with the ``attributes`` is none any more; of repeated ones the last counts."""
    by_age: bool | None = None
    by_date = False
    for attribute in paced(attributes):
        name, _, value = attribute.partition("=")
        name, value = name.strip(" \t").lower(), value.strip(" \t")
        if name == "max-age":
            over = _is_no_age(value)
            by_age = by_age if over is None else over
        elif name == "expires":
            date = cookie_date(value)
            by_date = by_date if date is None else date <= now
    return by_date if by_age is None else by_age


def _is_no_age(text: str) -> bool | None:
    """Return whether ``text`` is an integer of at most 0; None when it is no integer."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        return None
    return text != digits or not digits.strip("0")


_VERSION = "v1"


class Verdict(NamedTuple):
    """``content``: what was signed; ``error``: why there is none, or None."""

    content: Any = None
    error: str | None = None


MALFORMED = Verdict(error="malformed")
_INVALID_SIGNATURE = Verdict(error="invalid_signature")
_MALFORMED_PAYLOAD = Verdict(error="malformed_payload")


def signed_value(value: str, secret: str) -> str:
    """Return `value.signature`. Raises CookieError for what can't be the value of a cookie."""
    if not is_value(value):
        raise CookieError("cookie_sign value must not contain separators or control characters")
    return f"{value}.{_signature(value, secret)}"


def verified_value(text: str, secret: str) -> Verdict:
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
