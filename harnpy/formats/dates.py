"""Dates, times of day and lengths of time, as pure functions. Spec: 04 §14.

An *instant* is a point in time as whole microseconds since 1970, UTC; a length of time is whole milliseconds.
Where an instant is shown in a zone, it is an aware `datetime`. Nothing here knows what time it is.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal

from harnpy.faults import Fault, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class DateError(Fault):
    """A date or a length of time that can't be had; the message begins with the builtin that was asked."""

    def message_from(self, builtin: str) -> str:
        return f"{builtin}: {self.message}"


class NoSuchDate(Fault):
    """A text or numbers that are no date."""


# Instants: to and from the numbers that programs have, in a zone, in a given place of the calendar.
#
# The calendar is the Gregorian one, in years 1 to 9999. Spec: 04 §14.


SECOND = 1_000_000
MILLISECOND = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND

#: Each part of a moment after the year: its least and its greatest value.
_PARTS = {"month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59), "second": (0, 59)}


def instant_from_number(seconds: float) -> int:
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


def instant_to_number(instant: int) -> float:
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


# Dates as text: RFC 3339, and by a format with percent codes, in English. Spec: 04 §14.


#: From Sunday, as programs count them.
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

_CODE = re.compile(r"%(:z|\.?[369]f|.?)", re.DOTALL)


def weekday(moment: datetime) -> int:
    """Return the day of the week, Sunday being 0."""
    return moment.isoweekday() % 7


def weekday_name(moment: datetime) -> str:
    return WEEKDAYS[weekday(moment)]


def month_name(moment: datetime) -> str:
    return MONTHS[moment.month - 1]


def offset_seconds(moment: datetime) -> int:
    """Return how many seconds an aware ``moment`` is ahead of UTC."""
    offset = moment.utcoffset()
    assert offset is not None
    return offset.days * 86_400 + offset.seconds


def rfc3339(moment: datetime) -> str:
    """Return ``2026-03-29T16:30:00.250+02:00``: 3 or 6 decimals, or none where they are zero.

    Where clocks once were seconds off, the offset has them too (``+00:09:21``), as ISO 8601 allows.
    """
    micros = moment.microsecond
    decimals = "" if not micros else f".{micros // 1000:03d}" if micros % 1000 == 0 else f".{micros:06d}"
    return f"{_date(moment)}T{_time(moment)}{decimals}{_offset(moment, ':')}"


#: What writing a code costs, in items.
_CODE_ITEMS = 16


def formatted(moment: datetime, format: str) -> str:
    """Return ``format`` with its codes replaced by parts of an aware ``moment``. Raises `DateError`."""

    def shown(code: re.Match[str]) -> str:
        look(_CODE_ITEMS)
        write = _CODES.get(code[1])
        if write is None:
            raise DateError(f"unknown code '{code[0]}' in the format; a percent sign is written '%%'")
        return write(moment)

    return _CODE.sub(shown, format)


def _date(moment: datetime) -> str:
    return f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}"


def _time(moment: datetime) -> str:
    return f"{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}"


def _offset(moment: datetime, separator: str) -> str:
    seconds = offset_seconds(moment)
    minutes, odd = divmod(abs(seconds), 60)
    parts = [f"{part:02d}" for part in (*divmod(minutes, 60), odd)]
    return ("-" if seconds < 0 else "+") + separator.join(parts if odd else parts[:2])


def _nanoseconds(moment: datetime) -> str:
    return f"{moment.microsecond * 1000:09d}"


_CODES: Mapping[str, Callable[[datetime], str]] = {
    "Y": lambda moment: f"{moment.year:04d}",
    "y": lambda moment: f"{moment.year % 100:02d}",
    "m": lambda moment: f"{moment.month:02d}",
    "d": lambda moment: f"{moment.day:02d}",
    "e": lambda moment: f"{moment.day:2d}",
    "j": lambda moment: f"{moment.timetuple().tm_yday:03d}",
    "H": lambda moment: f"{moment.hour:02d}",
    "I": lambda moment: f"{moment.hour % 12 or 12:02d}",
    "p": lambda moment: "AM" if moment.hour < 12 else "PM",
    "M": lambda moment: f"{moment.minute:02d}",
    "S": lambda moment: f"{moment.second:02d}",
    "T": _time,
    "F": _date,
    "A": weekday_name,
    "a": lambda moment: weekday_name(moment)[:3],
    "B": month_name,
    "b": lambda moment: month_name(moment)[:3],
    "Z": lambda moment: moment.tzname() or "",
    "z": lambda moment: _offset(moment, ""),
    ":z": lambda moment: _offset(moment, ":"),
    "s": lambda moment: str(instant_of(moment) // SECOND),
    "f": _nanoseconds,
    "3f": lambda moment: _nanoseconds(moment)[:3],
    "6f": lambda moment: _nanoseconds(moment)[:6],
    "9f": _nanoseconds,
    ".3f": lambda moment: "." + _nanoseconds(moment)[:3],
    ".6f": lambda moment: "." + _nanoseconds(moment)[:6],
    ".9f": lambda moment: "." + _nanoseconds(moment),
    "%": lambda moment: "%",
}


# Dates in text. Spec: 04 §14, `date_parse`.


_DATE = r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?"
_OFFSET = r"(?:[Zz]|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)(?::?(?P<seconds>\d\d))?)"
_WRITTEN = re.compile(rf"{_DATE}(?:[Tt ]{_TIME}(?: ?{_OFFSET})?)?", re.ASCII)
_PARSING_PARTS = ("year", "month", "day", "hour", "minute", "second")
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
    parts = [written[name] for name in _PARSING_PARTS if written[name]]
    ahead = _read_offset(written)
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


def _read_offset(written: re.Match[str]) -> int:
    """The seconds that clocks are ahead of UTC; a day where there is no such offset."""
    hours, minutes, seconds = (int(written[name] or 0) for name in ("hours", "minutes", "seconds"))
    if minutes > 59 or seconds > 59:
        return _DAY
    ahead = (hours * 60 + minutes) * 60 + seconds
    return -ahead if written["sign"] == "-" else ahead


def _unreadable(text: str) -> NoSuchDate:
    return NoSuchDate(f"Cannot parse date: {text}")


# Lengths of time, in whole milliseconds. Spec: 04 §14, `duration_*`.


SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000

#: Units that people read, the largest first.
_UNITS = {"d": DAY_MS, "h": HOUR_MS, "m": MINUTE_MS, "s": SECOND_MS, "ms": 1}
_MOST_UNITS = 3
_LONGEST_LENGTH = 2**63 - 1


def length_of(number: float, unit: int) -> int:
    """Return ``number`` times ``unit``, rounded, halves away from zero. Raises `DateError`."""
    if not math.isfinite(number):
        raise DateError("value must be finite")
    if isinstance(number, int):
        return checked_length(number * unit)
    product = abs(number) * unit
    if product > _LONGEST_LENGTH:
        raise DateError("duration overflow")
    rounded = math.floor(product) + (product % 1 >= 0.5)
    return checked_length(-rounded if number < 0 else rounded)


def checked_length(ms: int) -> int:
    """Return ``ms``. Raises `DateError` when an int of programs can't hold it."""
    if not -_LONGEST_LENGTH - 1 <= ms <= _LONGEST_LENGTH:
        raise DateError("duration overflow")
    return ms


def whole_seconds(ms: int) -> int:
    """Return the seconds without their fraction."""
    return ms // SECOND_MS if ms >= 0 else -(-ms // SECOND_MS)


def length_for_people(ms: int) -> str:
    """Return ``3h 14m``: at most the three largest units that aren't zero, the rest cut off."""
    left, parts = abs(ms), []
    for unit, size in _UNITS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if ms < 0 else "") + (" ".join(parts[:_MOST_UNITS]) or "0s")
