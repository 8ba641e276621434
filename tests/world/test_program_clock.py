"""The clock that programs see, and may stop. Spec: 04 §14, 05 §13."""

from __future__ import annotations

import pytest

from harnpy.world.clock import ProgramClock, milliseconds, rfc3339
from tests.clock import SimulatedClock


@pytest.fixture
def real() -> SimulatedClock:
    return SimulatedClock(1000.0, tick=0)


def test_it_shows_real_time_until_it_is_stopped(real: SimulatedClock) -> None:
    clock = ProgramClock(real)
    real.passed = 5
    assert (clock.now(), clock.now_ms(), clock.passed()) == (1005, 1_005_000, 0)
    real.passed = 7.5
    assert clock.passed() == 2500
    clock.stop(42)
    real.passed = 9
    assert (clock.now(), clock.now_ms(), clock.passed(), clock.is_stopped) == (0.042, 42, 0, True)
    assert clock.advance(8) == 50
    assert (clock.now_ms(), clock.passed()) == (50, 8)
    clock.go()
    assert (clock.now_ms(), clock.passed(), clock.is_stopped) == (1_009_000, 4000, False)


def test_waiting_takes_real_time(real: SimulatedClock) -> None:
    clock = ProgramClock(real)
    clock.stop(0)
    clock.sleep(3)
    assert (clock.monotonic(), clock.now_ms()) == (3, 0)


def test_another_program_has_not_asked_yet(real: SimulatedClock) -> None:
    clock = ProgramClock(real)
    clock.passed()
    real.passed = 5
    clock.stop(0)
    clock.reset()
    assert (clock.passed(), clock.now()) == (0, 1005)


@pytest.mark.parametrize("ms", [0, 1, -1, 1_785_335_405_481, 253_402_300_799_999, -62_135_596_800_000])
def test_milliseconds_of_a_float(ms: int) -> None:
    assert milliseconds(ms / 1000) == ms
    assert milliseconds(ms / 1000 + 0.0009) == ms


def test_the_first_year_has_four_digits() -> None:
    assert rfc3339(-62_135_596_800) == "0001-01-01T00:00:00.000Z"
