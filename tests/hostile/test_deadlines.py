"""Whatever a program does, a deadline ends it, and the Vm goes on. Spec: 05 §9."""

from __future__ import annotations

import time

import pytest

from harnpy import Vm
from tests.hostile.clock import CpuClock
from tests.hostile.programs import PROGRAMS, SETUP
from tests.worlds import OwnWorld

#: Seconds of computing. The deadline is over after 0.05, but a regex is given all of its 0.5.
_MOST = 0.8


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_deadline_ends_it(name: str, evaluator: str) -> None:
    shown: list[tuple[str, float]] = []
    world = OwnWorld(stdout=lambda text: shown.append((text, time.process_time())), clock=CpuClock())
    vm = Vm(world, evaluator=evaluator)
    vm.run_source(f'{SETUP}\nprintln("begin")\nprintln(try {{ deadline 500ms {{\n{PROGRAMS[name]}\n}} }})')
    (_, begin), (result, end) = shown
    assert result == "Result.Err(Deadline exceeded)\n"
    assert end - begin < _MOST
    vm.run_source("println(range(3).sum())")
    assert shown[-1][0] == "3\n"
