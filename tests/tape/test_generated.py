"""Generated programs, recorded while the outside comes in a random order: replayed, they see the same.

Spec: 13 §3.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.tape import Recording, Replaying
from tests.counts import COUNT
from tests.tape.generated import TapedProgram
from tests.tape.worlds import Scattered, Untouched, came_to


@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.taped_programs))
def test_a_replay_is_the_run_again(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, tape, elsewhere = TapedProgram(seed).text, tmp_path / "run.tape", tmp_path / "elsewhere"
    (tmp_path / "work").mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path / "work")
    outside = Scattered(seed)
    vm = Vm(Recording(tape, outside))
    vm.provide("p", outside)
    vm.careful = True
    first = came_to(vm, lambda: vm.run_source(text, file="main.harn"))
    monkeypatch.chdir(elsewhere)
    untouched = Untouched()
    vm = Vm(Replaying(tape, untouched))
    vm.careful = True
    assert came_to(vm, vm.run_recorded) == first
    assert untouched.output() == (outside.output(), "".join(outside.errors))
    assert [*elsewhere.iterdir()] == []
