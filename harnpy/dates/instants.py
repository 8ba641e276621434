"""Instants: to and from the numbers that programs have, in a zone, in a given place of the calendar.

The calendar is the Gregorian one, in years 1 to 9999. Spec: 04 §14.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal

from harnpy.dates.errors import DateError, NoSuchDate

SECOND = 1_000_000
MILLISECOND = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND

#: Each part of a moment after the year: its least and its greatest value.
_PARTS = {"month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59), "second": (0, 59)}


def from_number(seconds: float) -> int:
    """Return the instant of seconds since 1970; a float counts to the microsecond. Raises `DateError`."""
    if isinstance(seconds, int):
        instant = seconds * SECOND
    elif math.isfinite(seconds):
        # What the float is written as: what it is exactly may be just under the last digit.
        instant = round(Decimal(repr(seconds)) * SECOND)
    else:
        raise DateError("timestamp must be finite")
    if not FIRST <= instant <= LAST:
        raise DateError("timestamp out of range")
    return instant


def to_number(instant: int) -> float:
    """Return the seconds since 1970: an int when they are whole."""
    return instant / SECOND if instant % SECOND else instant // SECOND


def in_zone(instant: int, zone: tzinfo) -> datetime:
    """Return the instant as it is shown in ``zone``. Raises `DateError` outside the years 1 to 9999."""
    try:
        return (_EPOCH + instant * _MICROSECOND).astimezone(zone)
    except OverflowError:
        raise DateError("timestamp out of range") from None


def instant_of(moment: datetime) -> int:
    """Return the instant of an aware ``moment``."""
    return (moment - _EPOCH) // _MICROSECOND


def on_calendar(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    """Return the moment with these parts, in no zone. Raises `NoSuchDate`, naming the first wrong part."""
    if not 1 <= year <= 9999:
        raise NoSuchDate(f"Invalid year: {year}")
    given = (month, day, hour, minute, second)
    for (name, (least, most)), value in zip(_PARTS.items(), given, strict=True):
        if not least <= value <= most:
            raise NoSuchDate(f"Invalid {name}: {value} (must be {least}-{most})")
    try:
        return datetime(year, month, day, hour, minute, second)
    except ValueError:  # the month has fewer days
        raise NoSuchDate(f"Invalid date: {year:04d}-{month:02d}-{day:02d}") from None


def instant_in_zone(moment: datetime, zone: tzinfo) -> int:
    """Return when clocks in ``zone`` show ``moment``: the first time, where they do so twice.

    Raises `DateError` where they never do.
    """
    try:
        shown = moment.replace(tzinfo=zone)
        instant = instant_of(shown.astimezone(UTC))
        if in_zone(instant, zone).replace(tzinfo=None) != moment:
            raise DateError("local time does not exist in that timezone")
    except OverflowError:
        raise DateError("timestamp out of range") from None
    return instant
