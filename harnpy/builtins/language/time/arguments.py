"""Reading what the builtins on time are given. Spec: 04 §14."""

from __future__ import annotations

from harnpy.dates.errors import DateError
from harnpy.dates.instants import from_number
from harnpy.dates.zones import zone
from harnpy.vm.declare.builtin import ABSENT
from harnpy.vm.values.objects import Duration, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo

    from harnpy.vm.values.objects import Value


def instant_from(dt: Value) -> int:
    """Return the instant of a timestamp, or of a dict that has one."""
    if dt is ABSENT:
        raise DateError("missing timestamp argument")
    number = dt.get("timestamp") if type(dt) is dict else dt
    if type(number) is not int and type(number) is not float:
        raise DateError(f"expected timestamp number or date dict, got {type_name(dt)}")
    return from_number(number)


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
