"""The clock of a Vm's programs: whose it is, and how long it stays mocked. Spec: 04 §14, 05 §13."""

from __future__ import annotations

import pytest

from harnpy import Vm
from harnpy.builtins.agents.event_log import log_of
from tests.builtins.conftest import FakeVm
from tests.clock import SimulatedClock
from tests.worlds import OwnWorld


def test_a_mocked_clock_belongs_to_one_program() -> None:
    vm, other = Vm(), Vm()
    assert vm.run_source("mock_time(5)\nreturn now_ms()") == 5
    assert other.run_source("return now_ms()") > 5
    assert vm.run_source("return now_ms()") > 5
    assert vm.run_source("return elapsed()") == 0


def test_functions_of_a_program_that_has_ended_see_the_clock_it_left() -> None:
    vm = Vm()
    function = vm.run_source("mock_time(5)\nreturn { -> advance_time(2) }")
    assert [vm.call(function), vm.call(function)] == [7, 9]


def test_inputs_of_a_session_share_the_clock() -> None:
    session = Vm().repl()
    session.run("mock_time(5)")
    assert session.run("now_ms()") == 5


def test_only_what_programs_see_is_mocked() -> None:
    clock = SimulatedClock(1000.0, tick=0)
    vm = Vm(OwnWorld(clock=clock))
    vm.run_source("mock_time(5)\nsleep(3s)")
    assert clock.passed >= 3
    assert vm.world.clock.now() == 0.005
    assert vm.world.held().clock is vm.world.clock
    assert vm.unguarded.clock.now() == 1000 + clock.passed


def test_topics_are_dated_by_the_mocked_clock_and_by_the_real_one_after_it() -> None:
    vm = Vm()
    vm.run_source("""
        mock_time(1785335405481)
        event_log.emit("t", "k", 1)
        unmock_time()
        event_log.emit("t", "k", 1)
    """)
    mocked, real = (event.occurred_at_ms for _, event in log_of(vm).read_range("t"))
    assert mocked == 1_785_335_405_481
    assert real not in (None, mocked)


def test_a_sleep_of_a_mocked_clock_waits_for_nobody(vm: FakeVm) -> None:
    vm.run("sleep_ms", 20)
    vm.run("mock_time", 0)
    vm.run("sleep_ms", 1000)
    assert vm.tasks.slept == [0.02]
    assert vm.run("now_ms") == 1000


@pytest.mark.parametrize("name", ["date_now", "date_now_iso", "date_iso", "timer_start"])
def test_these_keep_real_time(vm: FakeVm, name: str) -> None:
    before = vm.run(name)
    vm.run("mock_time", 0)
    assert vm.run(name) == before


def test_the_date_of_the_real_clock(vm: FakeVm) -> None:
    vm.world.time = 1_700_000_000.9996
    assert vm.run("date_now_iso") == vm.run("date_iso") == "2023-11-14T22:13:20.999Z"
    assert vm.run("date_now") == {
        "year": 2023,
        "month": 11,
        "day": 14,
        "hour": 22,
        "minute": 13,
        "second": 20,
        "weekday": 2,
        "timestamp": 1_700_000_000.999,
        "iso8601": "2023-11-14T22:13:20.999Z",
    }


def test_a_timer_measures_real_time(vm: FakeVm) -> None:
    timer = vm.run("timer_start", "load")
    vm.world.time += 2.5
    assert vm.run("timer_end", timer) == 2500
    assert vm.out == "[timer] load: 2500ms\n"
