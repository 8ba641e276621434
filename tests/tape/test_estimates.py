"""Means and shares with their intervals, held against tables (13 §7)."""

from __future__ import annotations

import pytest

from harnpy.tape.estimates import Estimate, mean_of, share_of, student_t


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [
        *((1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (7, 2.365), (9, 2.262), (10, 2.228)),
        *((20, 2.086), (30, 2.042), (60, 2.000), (120, 1.980), (1000, 1.962)),
    ],
)
def test_student_t_is_that_of_the_tables(freedom: int, quantile: float) -> None:
    assert student_t(freedom) == pytest.approx(quantile, abs=0.0005)


def test_a_mean_has_the_interval_of_student() -> None:
    """The eight weights of a textbook: mean 4, standard deviation 2, half of the interval 2.3646 * 2 / √8."""
    found = mean_of([4 - 2, 4 + 2, 4 - 2, 4 + 2, 4, 4, 4 - 6**0.5, 4 + 6**0.5])
    assert found is not None
    assert (found.value, found.n) == (pytest.approx(4), 8)
    assert found.low == pytest.approx(4 - 2.36462 * 2 / 8**0.5, abs=1e-4)
    assert found.high == pytest.approx(4 + 2.36462 * 2 / 8**0.5, abs=1e-4)


def test_one_run_says_nothing_of_others() -> None:
    assert mean_of([3.0]) == Estimate(3.0, None, None, 1)
    assert mean_of([]) is None
    assert share_of(0, 0) is None


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        *((7, 8, 0.5291, 0.9776), (0, 8, 0.0, 0.3244), (8, 8, 0.6756, 1.0), (1, 1, 0.2065, 1.0)),
        *((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (1, 29, 0.0061, 0.1718)),
    ],
)
def test_a_share_has_the_interval_of_wilson(successes: int, n: int, low: float, high: float) -> None:
    """The last three are those of Newcombe's comparison of methods (1998)."""
    found = share_of(successes, n)
    assert found is not None
    assert (found.value, found.n) == (successes / n, n)
    assert found.low == pytest.approx(low, abs=0.0001)
    assert found.high == pytest.approx(high, abs=0.0001)
