"""What data and entries are refused for."""

from __future__ import annotations

from harnpy.faults import NamedMisuse


class DataError(NamedMisuse):
    """Data that is damaged, incomplete or not of the format; or entries that no archive can hold."""


def too_much(most: int) -> DataError:
    """Return the error for data that would unpack to more than ``most`` bytes."""
    return DataError(f"the data unpacks to more than max_bytes = {most}")
