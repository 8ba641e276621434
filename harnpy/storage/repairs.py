"""What stands in the place of a record that can't be read any more: one that says so. Spec: 10 §C6.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.json import encode

from harnpy.storage.contract import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The type of such a record.
REPAIRED = "store_repaired"


def report(seq: int, time: int, more: int, details: dict[str, Any]) -> Row:
    """Return the record that reports a repair, as number ``seq``."""
    return Row(seq, REPAIRED, time, encode(details).decode(), more)


def replacements(present: Iterable[tuple[int, int, int]], first: int, last: int) -> Iterator[Row]:
    """Return a record for each one that is missing among ``first`` … ``last``.

    ``present`` are those that are there, from the one before ``first`` on: their numbers, times, and how
    many of the same append follow.
    """
    due, time, more = first, 0, 0
    for seq, found_time, found_more in [*present, (last + 1, 0, 0)]:
        for missing in range(due, seq):
            more = max(0, more - 1)
            detail = "the record was missing or could not be read"
            yield report(missing, time or found_time, more, {"dropped_events": 1, "detail": detail})
        due, time, more = seq + 1, found_time, found_more
