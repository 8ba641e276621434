"""The decisions behind a program, all from one seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Choices:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def below(self, count: int) -> int:
        """A number from 0 to ``count`` - 1."""
        return int(self._random() * count)

    def chance(self, percent: int) -> bool:
        return self._random() * 100 < percent

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        """One of the options, each with its weight."""
        left = self.below(sum(weight for weight, _ in options))
        for weight, option in options:
            left -= weight
            if left < 0:
                return option
        raise AssertionError("unreachable: the weights cover every number")
