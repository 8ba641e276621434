"""`Set-Cookie` headers. Spec: 04 §16.4 "cookie_serialize"."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.net.cookies.rules import CookieError, is_attribute, is_value
from harnpy.net.parameters import is_token

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAME_SITE = {"lax": "Lax", "strict": "Strict", "none": "None"}
#: A moment that is past for every clock.
LONG_AGO = "Thu, 01 Jan 1970 00:00:00 GMT"


class Attributes(NamedTuple):
    """Where and how long a cookie holds. ``max_age``: seconds; ``expires``: an HTTP date, taken as given."""

    path: str | None = None
    domain: str | None = None
    max_age: int | None = None
    expires: str | None = None
    http_only: bool = False
    secure: bool = False
    same_site: str | None = None


#: What a cookie that says who somebody is should have.
SESSION = Attributes(path="/", http_only=True, secure=True, same_site="Lax")
DELETION = SESSION._replace(max_age=0, expires=LONG_AGO)


def written(name: str, value: str, attributes: Attributes) -> str:
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
