"""Simulated time, which most tests of timers and all conformance programs run in."""

from __future__ import annotations

import time

import pytest

from harnpy import Vm, VmError
from tests.clock import SimulatedClock

pytestmark = pytest.mark.usefixtures("clock")


def test_sleepers_wake_in_the_order_of_their_times_and_nobody_waits() -> None:
    begin = time.monotonic()
    assert Vm().run_source("return parallel each [2, 1] { hours -> sleep(hours * 3600000)\n hours }") == [
        2,
        1,
    ]
    assert time.monotonic() - begin < 3600


def test_a_loop_that_never_waits_meets_its_deadline() -> None:
    with pytest.raises(VmError, match="Deadline exceeded"):
        Vm().run_source("deadline 20ms { while true { } }")


def test_a_process_takes_the_time_that_it_takes(clock: SimulatedClock) -> None:
    before = clock.passed
    assert Vm().run_source('return shell("sleep 0.1; echo done").stdout') == "done\n"
    assert clock.passed > before


def test_a_wait_for_nobody_is_an_error() -> None:
    with pytest.raises(VmError, match="deadlock"):
        Vm().run_source('receive(channel("c"))')
