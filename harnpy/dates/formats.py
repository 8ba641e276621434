"""Dates as text: RFC 3339, and by a format with percent codes, in English. Spec: 04 §14."""

from __future__ import annotations

import re

from harnpy.dates.errors import DateError
from harnpy.dates.instants import SECOND, instant_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

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


def formatted(moment: datetime, format: str) -> str:
    """Return ``format`` with its codes replaced by parts of an aware ``moment``. Raises `DateError`."""

    def shown(code: re.Match[str]) -> str:
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
