"""Cookie headers, taken apart. What comes from outside is never an error: it is told what is invalid.

Spec: 04 §16.4 "cookie_parse".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.net.cookies.rules import is_value
from harnpy.net.parameters import is_token

if TYPE_CHECKING:
    from collections.abc import Iterable


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


def read(headers: Iterable[str]) -> Cookies:
    """Return the cookies in the values of `Cookie` headers."""
    cookies = Cookies([], [])
    for header in headers:
        for piece in header.split(";"):
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
