"""Dates: what the time is, and timestamps from and to text, parts and zones. Spec: 04 §14, §20.

A *timestamp* is seconds since 1970 in UTC, an int where they are whole. What the time is, these ask the real
clock. An explicit nil is not an argument that is missing, so the builtins count theirs.
"""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.time.arguments import instant_from, ms_from, zone_from, zone_or_utc
from harnpy.dates import formats
from harnpy.dates.errors import DateError
from harnpy.dates.instants import FIRST, LAST, MILLISECOND, in_zone, instant_in_zone, on_calendar, to_number
from harnpy.dates.parsing import parse_date
from harnpy.dates.zones import zone
from harnpy.vm.declare.builtin import ABSENT
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.values.objects import Duration, display, type_name
from harnpy.world.clock import milliseconds, rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="time", counted=True)


# --- now ----------------------------------------------------------------------------------------------


@builtin("date_now() -> dict")
def date_now(vm: Vm) -> dict[str, Value]:
    """The date and time in UTC, to the millisecond, in parts, as `timestamp` and as `iso8601`.

    Example:
        date_now().year > 2000  // true
    """
    ms = milliseconds(vm.unguarded.clock.now())
    moment = in_zone(ms * MILLISECOND, zone("UTC"))
    return {**_parts(moment), "timestamp": ms / 1000, "iso8601": rfc3339(ms / 1000)}


@builtin("date_now_iso() -> string")
def date_now_iso(vm: Vm) -> str:
    """The date and time in UTC as RFC 3339, to the millisecond.

    Example:
        len(date_now_iso())  // 24
    """
    return _now_as_text(vm)


@builtin("date_iso() -> string", family="process")
def date_iso(vm: Vm) -> str:
    """The date and time in UTC as RFC 3339, to the millisecond. Spec: 04 §14, §20.

    Example:
        date_iso().starts_with("20")  // true
    """
    return _now_as_text(vm)


def _now_as_text(vm: Vm) -> str:
    return rfc3339(milliseconds(vm.unguarded.clock.now()) / 1000)


# --- in a zone ----------------------------------------------------------------------------------------


@builtin("date_in_zone(dt: int | float | dict, tz: string) -> dict")
def date_in_zone(vm: Vm, dt: Value = ABSENT, tz: Value = ABSENT) -> dict[str, Value]:
    """What clocks in a zone show in parts; also `offset_seconds`, `timestamp`, `iso8601`, `zone`.

    Example:
        date_in_zone(date_parse("2024-07-01T12:00:00Z"), "Asia/Tokyo").hour  // 21
    """
    instant = instant_from(dt)
    moment = in_zone(instant, zone_from(tz))
    return {
        **_parts(moment),
        "offset_seconds": formats.offset_seconds(moment),
        "timestamp": to_number(instant),
        "iso8601": formats.rfc3339(moment),
        "zone": display(tz),
    }


@builtin("date_to_zone(dt: int | float | dict, tz: string) -> string")
def date_to_zone(vm: Vm, dt: Value = ABSENT, tz: Value = ABSENT) -> str:
    """A time as RFC 3339 with the offset that a zone has then.

    Example:
        date_to_zone(0, "America/New_York")  // "1969-12-31T19:00:00-05:00"
    """
    return formats.rfc3339(in_zone(instant_from(dt), zone_from(tz)))


@builtin('date_format(dt: int | float | dict, format: string = "%Y-%m-%d %H:%M:%S", tz?: string) -> string')
def date_format(vm: Vm, dt: Value = ABSENT, format: Value = "%Y-%m-%d %H:%M:%S", tz: Value = "UTC") -> str:
    """A time by a format with the codes of strftime, in UTC or in a zone.

    Example:
        date_format(0, "%A, %d %B %Y")  // "Thursday, 01 January 1970"
    """
    return formats.formatted(in_zone(instant_from(dt), zone_from(tz)), display(format))


@builtin("weekday_name(dt: int | float | dict, tz?: string) -> string")
def weekday_name(vm: Vm, dt: Value = ABSENT, tz: Value = None) -> str:
    """The day of the week in English, in UTC or in a zone.

    Example:
        weekday_name(0)  // "Thursday"
    """
    return formats.weekday_name(in_zone(instant_from(dt), zone_or_utc(tz)))


@builtin("month_name(dt: int | float | dict, tz?: string) -> string")
def month_name(vm: Vm, dt: Value = ABSENT, tz: Value = None) -> str:
    """The month in English, in UTC or in a zone.

    Example:
        month_name(0)  // "January"
    """
    return formats.month_name(in_zone(instant_from(dt), zone_or_utc(tz)))


def _parts(moment: datetime) -> dict[str, Value]:
    return {
        "year": moment.year,
        "month": moment.month,
        "day": moment.day,
        "hour": moment.hour,
        "minute": moment.minute,
        "second": moment.second,
        "weekday": formats.weekday(moment),
    }


# --- from text and parts ------------------------------------------------------------------------------


@builtin("date_parse(text: string) -> int | float")
def date_parse(vm: Vm, text: Value = "") -> float:
    """The timestamp that a text says: RFC 3339, or numbers from the year on; in UTC without an offset.

    Example:
        date_parse("2024-01-01T01:00:00+01:00") == date_parse("2024-01-01")  // true
    """
    return to_number(parse_date(display(text)))


@builtin("date_from_components(components: dict, tz?: string) -> int | float")
def date_from_components(vm: Vm, components: Value = ABSENT, tz: Value = None) -> float:
    """The timestamp of `{year, month, day, hour?, minute?, second?}` in UTC or in a zone.

    Where clocks of the zone show that time twice, the earlier one.

    Example:
        date_from_components({year: 2024, month: 7, day: 1}, "Europe/Paris")  // 1719784800
    """
    if components is ABSENT:
        raise DateError("missing components argument")
    if type(components) is not dict:
        raise DateError(f"expected dict, got {type_name(components)}")
    date = [_component(components, name) for name in ("year", "month", "day")]
    time = [_component(components, name, 0) for name in ("hour", "minute", "second")]
    return to_number(instant_in_zone(on_calendar(*date, *time), zone_or_utc(tz)))


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
    """The timestamp of that long after a time, to the millisecond.

    Example:
        date_format(date_add(date_parse("2024-02-28"), 2d), "%F")  // "2024-03-01"
    """
    instant = (instant_from(dt) // MILLISECOND + ms_from(d)) * MILLISECOND
    if not FIRST <= instant <= LAST:
        raise DateError("timestamp overflow")
    return to_number(instant)


@builtin("date_diff(a: int | float | dict, b: int | float | dict) -> duration")
def date_diff(vm: Vm, a: Value = ABSENT, b: Value = ABSENT) -> Duration:
    """How long `a` is after `b`, to the millisecond; negative when it is before.

    Example:
        date_diff(date_parse("2024-03-01"), date_parse("2024-02-28"))  // 2d
    """
    return Duration(instant_from(a) // MILLISECOND - instant_from(b) // MILLISECOND)
