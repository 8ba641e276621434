"""Dates in text. Spec: 04 §14, `date_parse`."""

from __future__ import annotations

import re
from datetime import UTC

from harnpy.dates.errors import NoSuchDate
from harnpy.dates.instants import FIRST, LAST, SECOND, instant_of, on_calendar

_DATE = r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?"
_OFFSET = r"(?:[Zz]|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)(?::?(?P<seconds>\d\d))?)"
_WRITTEN = re.compile(rf"{_DATE}(?:[Tt ]{_TIME}(?: ?{_OFFSET})?)?", re.ASCII)
_PARTS = ("year", "month", "day", "hour", "minute", "second")
_DIGITS = re.compile(r"\d+", re.ASCII)
#: Digits of a number that is worth reading.
_LONGEST = 18
_DAY = 86_400


def parse_date(text: str) -> int:
    """Return the instant that ``text`` says, to the microsecond.

    It has the form of RFC 3339, in which the time, its seconds and the offset may be missing (UTC); or its
    first numbers are year, month, day and maybe hour, minute and second. Raises `NoSuchDate`.
    """
    written = _WRITTEN.fullmatch(text.strip())
    if written is None:
        return _of(_DIGITS.findall(text)[:6], text)
    parts = [written[name] for name in _PARTS if written[name]]
    ahead = _offset(written)
    instant = _of(parts, text) + _fraction(written["fraction"]) - ahead * SECOND
    if abs(ahead) >= _DAY or not FIRST <= instant <= LAST:
        raise _unreadable(text)
    return instant


def _of(parts: list[str], text: str) -> int:
    if len(parts) < 3 or any(len(part) > _LONGEST for part in parts):
        raise _unreadable(text)
    return instant_of(on_calendar(*map(int, parts)).replace(tzinfo=UTC))


def _fraction(digits: str | None) -> int:
    """The microseconds in the digits behind the point, rounded."""
    return (int(f"{digits or 0:0<7}"[:7]) + 5) // 10


def _offset(written: re.Match[str]) -> int:
    """The seconds that clocks are ahead of UTC; a day where there is no such offset."""
    hours, minutes, seconds = (int(written[name] or 0) for name in ("hours", "minutes", "seconds"))
    if minutes > 59 or seconds > 59:
        return _DAY
    ahead = (hours * 60 + minutes) * 60 + seconds
    return -ahead if written["sign"] == "-" else ahead


def _unreadable(text: str) -> NoSuchDate:
    return NoSuchDate(f"Cannot parse date: {text}")
