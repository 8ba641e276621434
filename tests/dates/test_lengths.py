"""Lengths of time against exact arithmetic."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harnpy.formats import dates
from harnpy.formats.dates import DateError

UNITS = st.sampled_from([1, dates.SECOND_MS, dates.MINUTE_MS, dates.HOUR_MS, dates.DAY_MS])
MILLISECONDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-200_000_000, 200_000_000)
_SIZES = {"d": dates.DAY_MS, "h": dates.HOUR_MS, "m": dates.MINUTE_MS, "s": dates.SECOND_MS, "ms": 1}


@given(st.integers(-(2**63), 2**63 - 1) | st.floats(-1e6, 1e6), UNITS)
@example(0.5, 1)
@example(-2.5, 1)
@example(0.4999999999999999, 1)
def test_numbers_of_units(number: float, unit: int) -> None:
    # A float is multiplied as one, then rounded.
    exact = Decimal(number * unit).quantize(Decimal(1), ROUND_HALF_UP) if abs(number) < 1e6 else number * unit
    if -(2**63) <= exact < 2**63:
        assert dates.length_of(number, unit) == exact
    else:
        with pytest.raises(DateError, match="duration overflow"):
            dates.length_of(number, unit)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_is_not_finite_is_no_length(number: float) -> None:
    with pytest.raises(DateError, match="finite"):
        dates.length_of(number, 1)


@pytest.mark.parametrize("number", [1e19, -1e19, 2.0**63, 1e308])
def test_a_float_beyond_an_int_is_no_length(number: float) -> None:
    with pytest.raises(DateError, match="duration overflow"):
        dates.length_of(number, 1)


@given(MILLISECONDS)
def test_whole_seconds_are_cut_off(ms: int) -> None:
    assert dates.whole_seconds(ms) == int(Decimal(ms) / 1000)


@given(MILLISECONDS)
def test_what_people_read_adds_up_to_no_more_than_the_length(ms: int) -> None:
    text = dates.length_for_people(ms)
    parts = text.removeprefix("-").split(" ")
    assert 1 <= len(parts) <= 3
    units = [part.lstrip("0123456789") for part in parts]
    total = sum(int(part.removesuffix(unit)) * _SIZES[unit] for part, unit in zip(parts, units, strict=True))
    smallest = _SIZES[units[-1]]
    assert text.startswith("-") is (ms < 0)
    assert 0 <= abs(ms) - total < smallest or ms == 0
    assert [_SIZES[unit] for unit in units] == sorted((_SIZES[unit] for unit in units), reverse=True)
