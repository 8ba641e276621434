"""Header values (RFC 9110): the grammar they share, `value; name=value; name="quoted"`; `Retry-After`."""

from __future__ import annotations

import re
from math import isfinite

from harnpy.faults import Fault, look

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[^;]*+")
#: A browser writes `filename="C:\x.txt"` with single backslashes: only `\"` and `\\` are escapes.
_PARAMETER = re.compile(
    rf';[ \t]*+(?:({_TOKEN.pattern})[ \t]*+=[ \t]*+(?:"((?:[^"\\]++|\\.)*+)"|([^;"]*+))[ \t]*+)?', re.DOTALL
)
#: What reading a parameter costs, in items.
_PARAMETER_ITEMS = 16
_ESCAPE = re.compile(r'\\([\\"])')
_ESCAPED = re.compile(r'[\\"]')


class Malformed(Fault):
    """A header value isn't `value; name=value; …`, or has a parameter twice. The message doesn't name it."""


def is_token(text: str) -> bool:
    """Return whether ``text`` may be the name of a header, a cookie or a parameter."""
    return _TOKEN.fullmatch(text) is not None


def quoted(text: str) -> str:
    """Return ``text`` as a quoted string."""
    return '"' + _ESCAPED.sub(r"\\\g<0>", text) + '"'


def value_and_parameters(text: str) -> tuple[str, dict[str, str]]:
    """Return what stands before the first `;`, and the parameters by lowercase names. Raises Malformed."""
    start = _VALUE.match(text)
    assert start is not None
    found: dict[str, str] = {}
    at = start.end()
    while at < len(text):
        look(_PARAMETER_ITEMS)
        parameter = _PARAMETER.match(text, at)
        if parameter is None or parameter.end() == at:
            raise Malformed(f"is malformed at position {at}")
        at = parameter.end()
        if at < len(text) and text[at] != ";":
            raise Malformed(f"is malformed at position {at}")
        name, in_quotes, plain = parameter.groups()
        if name is None:
            continue
        if name.lower() in found:
            raise Malformed(f"has `{name.lower()}` twice")
        found[name.lower()] = plain.rstrip(" \t") if in_quotes is None else _ESCAPE.sub(r"\1", in_quotes)
    return start[0].strip(" \t"), found


#: The most seconds that a service can make a program wait.
LONGEST_PAUSE = 60.0


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds that a `Retry-After` header asks to wait, from 0 to 60; None without a usable one.

    It has seconds or a date; ``now`` is in epoch seconds.
    """
    seconds = None if value is None else _seconds(value, now)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_PAUSE)


def _seconds(text: str, now: float) -> float | None:
    try:
        seconds = float(text)
        return seconds if isfinite(seconds) else None
    except ValueError:
        pass
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(text)
        # A zone of -0000, or none, would else be taken for the machine's own.
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, OverflowError):
        return None
