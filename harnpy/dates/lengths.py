"""Lengths of time, in whole milliseconds. Spec: 04 §14, `duration_*`."""

from __future__ import annotations

import math

from harnpy.dates.errors import DateError

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000

#: Units that people read, the largest first.
_SHOWN = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": 1}
_MOST_SHOWN = 3
_LONGEST = 2**63 - 1


def milliseconds(number: float, unit: int) -> int:
    """Return ``number`` times ``unit``, rounded, halves away from zero. Raises `DateError`."""
    if not math.isfinite(number):
        raise DateError("value must be finite")
    if isinstance(number, int):
        return checked(number * unit)
    product = abs(number) * unit
    if product > _LONGEST:
        raise DateError("duration overflow")
    rounded = math.floor(product) + (product % 1 >= 0.5)
    return checked(-rounded if number < 0 else rounded)


def checked(ms: int) -> int:
    """Return ``ms``. Raises `DateError` when an int of programs can't hold it."""
    if not -_LONGEST - 1 <= ms <= _LONGEST:
        raise DateError("duration overflow")
    return ms


def whole_seconds(ms: int) -> int:
    """Return the seconds without their fraction."""
    return ms // SECOND if ms >= 0 else -(-ms // SECOND)


def for_people(ms: int) -> str:
    """Return ``3h 14m``: at most the three largest units that aren't zero, the rest cut off."""
    left, parts = abs(ms), []
    for unit, size in _SHOWN.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if ms < 0 else "") + (" ".join(parts[:_MOST_SHOWN]) or "0s")
