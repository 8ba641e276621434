"""Whatever a program does, a deadline ends it, and the Vm goes on. Spec: 05 §9."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnpy import Vm
from tests.counts import COUNT
from tests.hostile.clock import CpuClock
from tests.hostile.programs import PROGRAMS, setup_of
from tests.worlds import OwnWorld

EVALUATORS = ("compile", "walk")
#: Seconds of computing on a machine however slow. The deadline is over after 0.025, but a regex is given all
#: of its 0.5; on an idle machine of 2026 all of them end within 0.6.
_MOST = 5.0


def _runs() -> Iterator[tuple[str, str]]:
    """Each program in its turn compiled or walked, in a campaign both."""
    for number, name in enumerate(PROGRAMS):
        yield name, EVALUATORS[number % 2]
        if COUNT.campaign:
            yield name, EVALUATORS[1 - number % 2]


@pytest.mark.parametrize(("name", "evaluator"), list(_runs()))
def test_a_deadline_ends_it(
    name: str, evaluator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown: list[tuple[str, float]] = []
    world = OwnWorld(stdout=lambda text: shown.append((text, time.process_time())), clock=CpuClock())
    vm = Vm(world, evaluator=evaluator)
    vm.run_source(
        f'{setup_of(name)}\nprintln("begin")\nprintln(try {{ deadline 500ms {{\n{PROGRAMS[name]}\n}} }})'
    )
    (_, begin), (result, end) = shown
    assert result == "Result.Err(Deadline exceeded)\n"
    assert end - begin < _MOST
    vm.run_source("println(range(3).sum())")
    assert shown[-1][0] == "3\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_request_to_end_ends_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown: list[str] = []
    vm = Vm(OwnWorld(stdout=shown.append, clock=CpuClock()))
    vm.run_source(f"{setup_of(name)}\nprintln(cancel_graceful(spawn {{\n{PROGRAMS[name]}\n}}, 1h))")
    assert "kind:cancelled:VM cancelled by host" in shown[0]


@pytest.mark.parametrize(
    "call", ["json_stringify(large)", "json_stringify({a: [large]})", "random_shuffle(large)"]
)
def test_a_deadline_ends_one_long_call(call: str) -> None:
    shown: list[str] = []
    vm = Vm(OwnWorld(stdout=shown.append, clock=CpuClock()))
    vm.run_source(f"let large = range(300000).to_list()\nprintln(try {{ deadline 10ms {{ {call} }} }})")
    assert shown == ["Result.Err(Deadline exceeded)\n"]


def test_a_deadline_ends_a_wait_for_input() -> None:
    reading, writing = os.pipe()
    shown: list[str] = []
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w") as person:
        vm = Vm(OwnWorld(stdout=shown.append, stdin=stdin))
        vm.run_source("println(try { deadline 10ms { read_line() } })")
        # What is written too late is not lost.
        person.write("one\ntwo\nthree\n")
        person.flush()
        vm.run_source("println(read_line())\nprintln(deadline 1h { read_line() })")
        person.close()
        vm.run_source("println(deadline 1h { read_stdin() })")
    assert shown == ["Result.Err(Deadline exceeded)\n", "one\n", "two\n", "three\n\n"]
