"""Dates as cookies have them, in any order and many spellings (RFC 6265, 5.1.1)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

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
