"""A memo of what was computed from the parts of a record, by identity. Spec: 08 §8.4.

This is safe because a part is never changed in place (see `record_writer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable


P = TypeVar("P")
T = TypeVar("T")


class IdentityMemo(Generic[P, T]):
    """Results by the parts they were computed from. It keeps the parts, so that no other object gets their
    ids."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[P, T]] = {}

    def of(self, part: P, make: Callable[[P], T]) -> T:
        """Return ``make(part)``, computed once."""
        known = self._made.get(id(part))
        if known is None:
            known = self._made[id(part)] = (part, make(part))
        return known[1]
