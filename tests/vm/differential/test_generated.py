"""The compiler does what the evaluator that defines the language does, in every generated program.

CI runs the same programs every time. `found/` keeps programs that once differed, each with all that it shows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.counts import COUNT
from tests.vm.differential.campaign import signature, smallest
from tests.vm.differential.outcomes import EVALUATORS, Program, outcome, outcomes
from tests.vm.differential.programs import program_of
from tests.vm.differential.reduce import reduced

PROGRAMS = COUNT.seeds(COUNT.differential_programs)
PARTS = 4
FOUND = sorted((Path(__file__).parent / "found").glob("*.harn"))


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNPY_NO_CACHE", "1")


@pytest.mark.parametrize("part", range(PARTS))
def test_generated_programs_do_the_same_when_walked(part: int) -> None:
    for seed in PROGRAMS[part::PARTS]:
        program = program_of(seed)
        if signature(program):
            small = smallest(program)
            pytest.fail(f"seed {seed}:\n{small}\n{outcomes(small)}", pytrace=False)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_what_once_differed(path: Path, evaluator: str) -> None:
    shown = str(outcome(Program(path.read_text(encoding="utf-8")), evaluator))
    assert shown == path.with_suffix(".outcome").read_text(encoding="utf-8")


def test_programs_mostly_run() -> None:
    """A generator of programs that are refused, or fail in their first lines, would find nothing."""
    seen = [outcome(program_of(seed), "compile") for seed in range(30)]
    assert sum(each.ending == "refused" for each in seen) == 0
    assert sum(each.ending == "value" for each in seen) > 15
    assert sum(each.output.count("\n") for each in seen) > 150


def test_reducing_leaves_what_matters() -> None:
    text = 'let a = 1\nif a == 1 {\n  println("no")\n  for x in [1, 2, a] { println(x / 0) }\n}\nprintln(a)\n'
    small = reduced(Program(text), lambda program: "Division" in outcome(program, "compile").text)
    assert "/ 0" in small.text
    assert len(small.text.splitlines()) <= 3
