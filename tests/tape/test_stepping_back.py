"""Laws of stepping back, on generated programs: spec 13 §8."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from harnpy.cli.debugger.engine import into, out, over
from harnpy.tape import Tape
from tests.counts import COUNT
from tests.durable.generated import Program
from tests.support import ROOT
from tests.tape.debugged import Debugged, State, recorded

#: Moments of a program that are tried.
_TRIED = 6


@contextmanager
def debugged(tape: Tape) -> Iterator[Debugged]:
    run = Debugged(tape)
    try:
        yield run
    finally:
        run.close()


def check_laws(tape: Tape, random: Random) -> int:
    """Check the laws at random moments of a run; return how many moments it has."""
    with debugged(tape) as forward:
        states, frames = _all_moments(forward)
    last = len(states)
    moments = [random.randint(1, last) for _ in range(_TRIED)] if last else []
    with debugged(tape) as run:
        run.go_to("end")
        assert run.is_at_end, run.stop
        assert run.now == last + 1
        for moment in moments:
            # Beyond and back, from wherever it is.
            run.stand(moment)
            assert run.state() == states[moment - 1]
            _check_steps(run, moment, states, frames)
            _check_breakpoints(run, moment, states, random)
    return last


def _all_moments(run: Debugged) -> tuple[list[State], list[list[int]]]:
    """Return what is there at each moment, and the calls of its task, in one replay that goes forward."""
    states, frames = [], []
    while not run.is_at_end:
        states.append(run.state())
        frames.append([mark for _, mark in run.frames()])
        run.until(run.now + 1)
    return states, frames


def _check_steps(run: Debugged, moment: int, states: list[State], frames: list[list[int]]) -> None:
    task = states[moment - 1]["task"]

    def earlier(allowed: list[int] | None) -> int:
        own = [n for n in range(1, len(states) + 1) if states[n - 1]["task"] == task]
        fit = [n for n in own if n < moment and (allowed is None or frames[n - 1][0] in allowed)]
        return fit[-1] if fit else max(own[0] - 1, 1)

    for make, allowed in ((into, None), (over, frames[moment - 1]), (out, frames[moment - 1][1:])):
        run.stand(moment)
        run.back(make)
        assert run.now == earlier(allowed), make
        assert run.state() == states[run.now - 1]
        run.stand(moment)
        run.step(make)
        stays = not run.is_at_end and run.stop.task.id() == task
        if stays and (make is into or (make is over and run.frames()[0][1] == frames[moment - 1][0])):
            assert run.state() == states[run.now - 1]
            run.back(make)
            assert run.now == moment
            assert run.state() == states[moment - 1]


def _check_breakpoints(run: Debugged, moment: int, states: list[State], random: Random) -> None:
    """Back to the last breakpoint before, with a condition and without."""
    breakpoints = run.engine.breakpoints
    places = [state["tasks"][state["task"]][0][1:4] for state in states]
    path, line, _ = random.choice(places)
    for condition in (None, "1 > 2", "true"):
        breakpoints.clear()
        try:
            point = breakpoints.add(path, line, condition)
        except OSError:
            continue
        if point is None:
            continue
        history = run.engine.history
        hits = [n for n in range(1, moment) if breakpoints.at(*history.place(n)) is not None]
        run.stand(moment)
        run.back()
        expected = hits[-1] if hits and condition != "1 > 2" else 1
        assert run.now == expected
        assert run.state() == states[expected - 1]
    breakpoints.clear()


@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.stepped_programs))
def test_generated_programs(seed: int, tmp_path: Path) -> None:
    check_laws(recorded(tmp_path, Program(seed).text), Random(seed))


_CONFORMANCE = sorted(
    path
    for area in ("agents", "channels", "control", "functions", "generators", "sessions", "sync", "tasks")
    for path in (ROOT / "conformance" / area).glob("*.harn")
)


@pytest.mark.parametrize("number", range(COUNT.stepped_conformance))
def test_conformance_programs(number: int, tmp_path: Path) -> None:
    random = Random(COUNT.seed + number)
    path = random.choice(_CONFORMANCE)
    check_laws(recorded(tmp_path, path.read_text(encoding="utf-8")), random)
