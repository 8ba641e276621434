"""Dates and durations: what the time is, timestamps from and to text, parts and zones. Spec: 04 §14, §20.

A *timestamp* is seconds since 1970 in UTC, an int where they are whole. These builtins read the real clock.
An explicit nil differs from a missing argument, so they count their arguments.
"""

from __future__ import annotations

from functools import partial

from harnpy.formats import dates
from harnpy.formats.dates import (
    FIRST,
    LAST,
    MILLISECOND,
    DateError,
    in_zone,
    instant_from_number,
    instant_in_zone,
    instant_to_number,
    on_calendar,
    parse_date,
)
from harnpy.formats.time_zones import zone
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.values import Duration, display, type_name
from harnpy.world.clock import milliseconds, rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, tzinfo

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


def instant_from(dt: Value) -> int:
    """Return the instant of a timestamp, or of a dict that has one."""
    if dt is ABSENT:
        raise DateError("missing timestamp argument")
    number = dt.get("timestamp") if type(dt) is dict else dt
    if type(number) is not int and type(number) is not float:
        raise DateError(f"expected timestamp number or date dict, got {type_name(dt)}")
    return instant_from_number(number)


def zone_from(tz: Value) -> tzinfo:
    """Return the zone of that name; any value counts as its text."""
    if tz is ABSENT:
        raise DateError("missing timezone argument")
    return zone(display(tz))


def zone_or_utc(tz: Value) -> tzinfo:
    """Return UTC for nil."""
    return zone("UTC" if tz is None else display(tz))


def ms_from(d: Value) -> int:
    """Return the length of a duration."""
    if d is ABSENT:
        raise DateError("missing duration argument")
    if type(d) is not Duration:
        raise DateError(f"expected duration, got {type_name(d)}")
    return d.ms


def number_from(n: Value) -> float:
    if n is ABSENT:
        raise DateError("missing value argument")
    if type(n) is not int and type(n) is not float:
        raise DateError(f"expected number, got {type_name(n)}")
    return n


builtin = partial(declare, family="time", counted=True)


# --- now ----------------------------------------------------------------------------------------------


@builtin("date_now() -> dict")
def date_now(vm: Vm) -> dict[str, Value]:
    """Return the date and time in UTC, to the millisecond, in parts, as `timestamp` and as `iso8601`.

    Example: date_now().year > 2000  // true
    """
    ms = milliseconds(vm.unguarded.clock.now())
    moment = in_zone(ms * MILLISECOND, zone("UTC"))
    return {**_parts(moment), "timestamp": ms / 1000, "iso8601": rfc3339(ms / 1000)}


@builtin("date_now_iso() -> string")
def date_now_iso(vm: Vm) -> str:
    """Return the date and time in UTC as RFC 3339, to the millisecond.

    Example: len(date_now_iso())  // 24
    """
    return _now_as_text(vm)


@builtin("date_iso() -> string", family="process")
def date_iso(vm: Vm) -> str:
    """Return the date and time in UTC as RFC 3339, to the millisecond. Spec: 04 §14, §20.

    Example: date_iso().starts_with("20")  // true
    """
    return _now_as_text(vm)


def _now_as_text(vm: Vm) -> str:
    return rfc3339(milliseconds(vm.unguarded.clock.now()) / 1000)


# --- in a zone ----------------------------------------------------------------------------------------


@builtin("date_in_zone(dt: int | float | dict, tz: string) -> dict")
def date_in_zone(vm: Vm, dt: Value = ABSENT, tz: Value = ABSENT) -> dict[str, Value]:
    """Return the time in a zone in parts; also `offset_seconds`, `timestamp`, `iso8601`, `zone`.

    Example: date_in_zone(date_parse("2024-07-01T12:00:00Z"), "Asia/Tokyo").hour  // 21
    """
    instant = instant_from(dt)
    moment = in_zone(instant, zone_from(tz))
    return {
        **_parts(moment),
        "offset_seconds": dates.offset_seconds(moment),
        "timestamp": instant_to_number(instant),
        "iso8601": dates.rfc3339(moment),
        "zone": display(tz),
    }


@builtin("date_to_zone(dt: int | float | dict, tz: string) -> string")
def date_to_zone(vm: Vm, dt: Value = ABSENT, tz: Value = ABSENT) -> str:
    """Return a time as RFC 3339 with the zone's offset at that time.

    Example: date_to_zone(0, "America/New_York")  // "1969-12-31T19:00:00-05:00"
    """
    return dates.rfc3339(in_zone(instant_from(dt), zone_from(tz)))


@builtin('date_format(dt: int | float | dict, format: string = "%Y-%m-%d %H:%M:%S", tz?: string) -> string')
def date_format(vm: Vm, dt: Value = ABSENT, format: Value = "%Y-%m-%d %H:%M:%S", tz: Value = "UTC") -> str:
    """Return a time in a strftime format, in UTC or in a zone.

    Example: date_format(0, "%A, %d %B %Y")  // "Thursday, 01 January 1970"
    """
    return dates.formatted(in_zone(instant_from(dt), zone_from(tz)), display(format))


@builtin("weekday_name(dt: int | float | dict, tz?: string) -> string")
def weekday_name(vm: Vm, dt: Value = ABSENT, tz: Value = None) -> str:
    """Return the day of the week in English, in UTC or in a zone.

    Example: weekday_name(0)  // "Thursday"
    """
    return dates.weekday_name(in_zone(instant_from(dt), zone_or_utc(tz)))


@builtin("month_name(dt: int | float | dict, tz?: string) -> string")
def month_name(vm: Vm, dt: Value = ABSENT, tz: Value = None) -> str:
    """Return the month in English, in UTC or in a zone.

    Example: month_name(0)  // "January"
    """
    return dates.month_name(in_zone(instant_from(dt), zone_or_utc(tz)))


def _parts(moment: datetime) -> dict[str, Value]:
    return {
        "year": moment.year,
        "month": moment.month,
        "day": moment.day,
        "hour": moment.hour,
        "minute": moment.minute,
        "second": moment.second,
        "weekday": dates.weekday(moment),
    }


# --- from text and parts ------------------------------------------------------------------------------


@builtin("date_parse(text: string) -> int | float")
def date_parse(vm: Vm, text: Value = "") -> float:
    """Return the timestamp of a text in RFC 3339, or numbers from the year on; in UTC without an offset.

    Example: date_parse("2024-01-01T01:00:00+01:00") == date_parse("2024-01-01")  // true
    """
    return instant_to_number(parse_date(display(text)))


@builtin("date_from_components(components: dict, tz?: string) -> int | float")
def date_from_components(vm: Vm, components: Value = ABSENT, tz: Value = None) -> float:
    """Return the timestamp of `{year, month, day, hour?, minute?, second?}` in UTC or in a zone.

    If the zone's clocks show that time twice, the earlier one is returned.

    Example: date_from_components({year: 2024, month: 7, day: 1}, "Europe/Paris")  // 1719784800
    """
    if components is ABSENT:
        raise DateError("missing components argument")
    if type(components) is not dict:
        raise DateError(f"expected dict, got {type_name(components)}")
    date = [_component(components, name) for name in ("year", "month", "day")]
    time = [_component(components, name, 0) for name in ("hour", "minute", "second")]
    return instant_to_number(instant_in_zone(on_calendar(*date, *time), zone_or_utc(tz)))


def _component(components: dict[str, Value], name: str, default: int | None = None) -> int:
    value = components.get(name, default)
    if name not in components and default is None:
        raise DateError(f"missing {name}")
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise DateError(f"{name} must be an integer, got {type_name(value)}")
    return value


# --- counting -----------------------------------------------------------------------------------------


@builtin("date_add(dt: int | float | dict, d: duration) -> int | float")
def date_add(vm: Vm, dt: Value = ABSENT, d: Value = ABSENT) -> float:
    """Return the timestamp of a time plus a duration, to the millisecond.

    Example: date_format(date_add(date_parse("2024-02-28"), 2d), "%F")  // "2024-03-01"
    """
    instant = (instant_from(dt) // MILLISECOND + ms_from(d)) * MILLISECOND
    if not FIRST <= instant <= LAST:
        raise DateError("timestamp overflow")
    return instant_to_number(instant)


@builtin("date_diff(a: int | float | dict, b: int | float | dict) -> duration")
def date_diff(vm: Vm, a: Value = ABSENT, b: Value = ABSENT) -> Duration:
    """Return how long `a` is after `b`, to the millisecond; negative if it is before.

    Example: date_diff(date_parse("2024-03-01"), date_parse("2024-02-28"))  // 2d
    """
    return Duration(instant_from(a) // MILLISECOND - instant_from(b) // MILLISECOND)


# Making durations and reading their length. Spec: 04 §14.


def duration_builtin(signature: str, unit: int, what: str, example: str) -> Callable[..., Duration]:
    """Declare the function that makes a duration of so many ``unit`` milliseconds."""

    def duration(vm: Vm, n: Value = ABSENT) -> Duration:
        return Duration(dates.length_of(number_from(n), unit))

    duration.__doc__ = f"Return the duration of `n` {what}, rounded to milliseconds.\n\nExample: {example}"
    return builtin(signature)(duration)


duration_ms = duration_builtin(
    "duration_ms(n: int | float) -> duration", 1, "milliseconds", "duration_ms(250)  // 250ms"
)
duration_seconds = duration_builtin(
    "duration_seconds(n: int | float) -> duration",
    dates.SECOND_MS,
    "seconds",
    "duration_seconds(1.5)  // 1500ms",
)
duration_minutes = duration_builtin(
    "duration_minutes(n: int | float) -> duration", dates.MINUTE_MS, "minutes", "duration_minutes(2)  // 2m"
)
duration_hours = duration_builtin(
    "duration_hours(n: int | float) -> duration", dates.HOUR_MS, "hours", "duration_hours(1.5)  // 90m"
)
duration_days = duration_builtin(
    "duration_days(n: int | float) -> duration", dates.DAY_MS, "times 24 hours", "duration_days(2)  // 2d"
)


@builtin("duration_to_seconds(d: duration) -> int")
def duration_to_seconds(vm: Vm, d: Value = ABSENT) -> int:
    """Return the whole seconds in a duration, truncated.

    Example: duration_to_seconds(2m)  // 120
    """
    return dates.whole_seconds(ms_from(d))


@builtin("duration_to_human(d: duration) -> string")
def duration_to_human(vm: Vm, d: Value = ABSENT) -> str:
    """Return the three largest units of a duration that aren't zero, like `3h 14m`; `0s` if all are.

    Example: duration_to_human(duration_minutes(194))  // "3h 14m"
    """
    return dates.length_for_people(ms_from(d))
