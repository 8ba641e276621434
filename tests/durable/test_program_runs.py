"""Durable runs of programs: killed anywhere and begun again, they see the same and do nothing twice.

Spec: 10 §C19.1 "Program runs".
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from harnpy.workflow.engines.contract import Step
from tests.counts import COUNT
from tests.durable.generated import Program
from tests.durable.runs import MemoryRun, Outside, done, job_of, without_output


def asked_in(steps: Sequence[Step]) -> Counter[str]:
    """Return what models were asked, by the records of it."""
    counted: Counter[str] = Counter()
    for key, output in steps:
        if key.endswith(":model"):
            found = re.search(r"<([^>]*)>|too much: ([^\"]*)", json.dumps(output))
            assert found
            counted[found[1] or found[2]] += 1
    return counted


@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.durable_programs))
def test_a_killed_run_goes_on_as_if_nothing_had_been(seed: int, tmp_path: Path) -> None:
    program, chance = Program(seed), Random(seed)
    whole, outside = MemoryRun(), Outside()
    (tmp_path / "whole").mkdir()
    value = done(job_of(program.text, tmp_path / "whole"), whole, outside)
    assert value == {"n": seed}
    printed = outside.output()
    kills = min(COUNT.program_kills, whole.appends)
    for number in chance.sample(range(1, whole.appends + 1), kills):
        place = tmp_path / str(number)
        place.mkdir()
        job, outside = job_of(program.text, place), Outside()
        killed = MemoryRun(kill=lambda append, number=number: append == number)
        if done(job, killed, outside) is not None:
            continue  # it has printed faster this time, and so appended less
        first, asked = outside.output(), Counter(outside.asked)
        again = MemoryRun(killed.steps)
        assert done(job, again, outside) == value
        # No recorded reply is asked for again; what was asked without a record, once more.
        assert asked_in(killed.steps) <= asked
        assert outside.asked - asked >= asked_in(again.steps[len(killed.steps) :])
        if program.steady:
            assert outside.asked - asked == asked_in(again.steps[len(killed.steps) :])
        second = outside.output()
        # The record alone says what all of it prints.
        done(job, MemoryRun(without_output(again.steps)), outside)
        assert first + second == outside.output()
        if program.steady:
            assert first + second == printed
