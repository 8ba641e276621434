"""Making durations and reading their length. Spec: 04 §14."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.time.arguments import ms_from, number_from
from harnpy.dates import lengths
from harnpy.vm.declare.builtin import ABSENT
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.values.objects import Duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="time", counted=True)


@builtin("duration_ms(n: int | float) -> duration")
def duration_ms(vm: Vm, n: Value = ABSENT) -> Duration:
    """`n` milliseconds; a float is rounded to whole ones.

    Example:
        duration_ms(250)  // 250ms
    """
    return _duration(n, 1)


@builtin("duration_seconds(n: int | float) -> duration")
def duration_seconds(vm: Vm, n: Value = ABSENT) -> Duration:
    """`n` seconds, rounded to milliseconds.

    Example:
        duration_seconds(1.5)  // 1500ms
    """
    return _duration(n, lengths.SECOND)


@builtin("duration_minutes(n: int | float) -> duration")
def duration_minutes(vm: Vm, n: Value = ABSENT) -> Duration:
    """`n` minutes, rounded to milliseconds.

    Example:
        duration_minutes(2)  // 2m
    """
    return _duration(n, lengths.MINUTE)


@builtin("duration_hours(n: int | float) -> duration")
def duration_hours(vm: Vm, n: Value = ABSENT) -> Duration:
    """`n` hours, rounded to milliseconds.

    Example:
        duration_hours(1.5)  // 90m
    """
    return _duration(n, lengths.HOUR)


@builtin("duration_days(n: int | float) -> duration")
def duration_days(vm: Vm, n: Value = ABSENT) -> Duration:
    """`n` times 24 hours, rounded to milliseconds.

    Example:
        duration_days(2)  // 2d
    """
    return _duration(n, lengths.DAY)


def _duration(n: Value, unit: int) -> Duration:
    return Duration(lengths.milliseconds(number_from(n), unit))


@builtin("duration_to_seconds(d: duration) -> int")
def duration_to_seconds(vm: Vm, d: Value = ABSENT) -> int:
    """The whole seconds in a duration; the rest is cut off.

    Example:
        duration_to_seconds(2m)  // 120
    """
    return lengths.whole_seconds(ms_from(d))


@builtin("duration_to_human(d: duration) -> string")
def duration_to_human(vm: Vm, d: Value = ABSENT) -> str:
    """The three largest units of a duration that aren't zero, like `3h 14m`; `0s` for none.

    Example:
        duration_to_human(duration_minutes(194))  // "3h 14m"
    """
    return lengths.for_people(ms_from(d))
