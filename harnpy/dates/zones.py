"""Time zones by their IANA names, from the `tzdata` package: the same on every machine. Spec: 04 §14."""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from harnpy.dates.errors import DateError

_DATA = files("tzdata")


def zone(name: str) -> tzinfo:
    """Return the zone called ``name``, in just that spelling. Raises `DateError`."""
    if name == "UTC":
        return UTC
    if name not in names():
        raise DateError(f"unknown timezone '{name}'")
    return _read(name)


@cache
def names() -> frozenset[str]:
    """Return the names of all zones."""
    return frozenset((_DATA / "zones").read_text(encoding="ascii").split())


@cache
def _read(name: str) -> ZoneInfo:
    with _DATA.joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)
