"""Time zones by their IANA names, from the package `tzdata`: the same on every machine. Spec: 04 §14.

Its files are opened by path: `importlib.resources` would take longer to load than all the rest of this room.
"""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import cache
from importlib import import_module
from os.path import dirname, join

from harnpy.formats.dates import DateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO


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
    with _open("zones") as file:
        return frozenset(file.read().decode().split())


@cache
def _read(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    with _open("zoneinfo", *name.split("/")) as file:
        return ZoneInfo.from_file(file, name)


def _open(*path: str) -> BinaryIO:
    return open(join(dirname(import_module("tzdata").__file__ or ""), *path), "rb")
