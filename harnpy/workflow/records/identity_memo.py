"""What has been made of the parts of a record, so that it is made once. Spec: 08 §8.4.

A part is never changed in place (see `record_writer`), so it is known by its identity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable


P = TypeVar("P")
T = TypeVar("T")


class Kept(Generic[P, T]):
    """Results by the parts that they were made of. They are kept as well: nothing else gets their ids."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[P, T]] = {}

    def of(self, part: P, make: Callable[[P], T]) -> T:
        """What ``make`` has made of ``part``, the first time that it was asked for."""
        known = self._made.get(id(part))
        if known is None:
            known = self._made[id(part)] = (part, make(part))
        return known[1]
