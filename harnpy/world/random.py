"""Chance: where random numbers come from."""

from __future__ import annotations

from random import Random as RealRandom
from random import Random as _Generator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol, TypeVar

    T = TypeVar("T")

    class Random(Protocol):
        def random(self) -> float:
            """A number from 0 to below 1."""

        def randint(self, a: int, b: int) -> int:
            """A whole number from ``a`` to ``b``, both included."""

        def choice(self, seq: Sequence[T]) -> T: ...

        def sample(self, population: Sequence[T], k: int) -> list[T]: ...


__all__ = ["RealRandom", "seeded"]


def seeded(seed: int) -> Random:
    """A generator whose numbers follow from ``seed``: no part of the world, but pure."""
    return _Generator(seed)
