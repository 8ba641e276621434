"""`Estimate`: a mean or a share with its 95 % interval, for what some runs say of all that could be made.

Spec: 13 §7.
"""

from __future__ import annotations

from math import cos, fsum, pi, sin, sqrt, tan
from statistics import NormalDist, stdev
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How often an interval is to contain what it estimates.
_LEVEL: Final = 0.95


class Estimate(Struct, frozen=True):
    """``value`` of ``n`` runs. ``low`` and ``high`` bound the interval, None where one run says nothing of
    others."""

    value: float
    low: float | None
    high: float | None
    n: int


def mean_of(values: Sequence[float]) -> Estimate | None:
    """Return the mean, with the interval of Student's t; None without values."""
    n = len(values)
    if not n:
        return None
    mean = fsum(values) / n
    if n == 1:
        return Estimate(mean, None, None, 1)
    half = student_t(n - 1) * stdev(values) / sqrt(n)
    return Estimate(mean, mean - half, mean + half, n)


def share_of(successes: int, n: int) -> Estimate | None:
    """Return a share, with Wilson's interval, which stays between 0 and 1; None without runs."""
    if not n:
        return None
    z2 = NormalDist().inv_cdf((1 + _LEVEL) / 2) ** 2
    share = successes / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    low = 0.0 if successes == 0 else middle - half
    return Estimate(share, low, 1.0 if successes == n else middle + half, n)


def student_t(freedom: int) -> float:
    """Return how far Student's t lies from 0 at most in 95 of 100 cases, with so many degrees of freedom."""
    low, high = 0.0, pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < _LEVEL else (low, middle)
    return tan(high) * sqrt(freedom)


def _within(angle: float, freedom: int) -> float:
    """Return the probability that t lies within ±tan(angle)·√freedom, by the finite series for whole degrees
    of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    is_odd = freedom % 2
    term, total = cos(angle) if is_odd else 1.0, 0.0
    for k in range(is_odd, freedom - 1, 2):
        total += term
        term *= cos(angle) ** 2 * (k + 1) / (k + 2)
    total *= sin(angle)
    return 2 / pi * (angle + total) if is_odd else total
