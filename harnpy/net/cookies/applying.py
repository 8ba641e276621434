"""What a browser has after an answer: `Set-Cookie` headers applied to its cookies. Spec: 04 §16.4
"cookie_round_trip"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.net.cookies.dates import cookie_date
from harnpy.net.cookies.reading import Pair, read_pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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


def _is_over(attributes: Iterable[str], now: float) -> bool:
    """Return whether a cookie with the ``attributes`` is none any more; of repeated ones the last counts."""
    by_age: bool | None = None
    by_date = False
    for attribute in attributes:
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
