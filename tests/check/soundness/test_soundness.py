"""The checker is right about generated programs: silent about those without an error, loud about one mistake.

Spec: 03.
"""

from __future__ import annotations

import pytest

from tests.check.programs import diagnostics
from tests.check.soundness.mistakes import MISTAKES
from tests.check.soundness.planting import planted
from tests.check.soundness.programs import program_of
from tests.counts import COUNT
from tests.vm.differential.outcomes import Program, outcome

PROGRAMS = COUNT.seeds(COUNT.typed_programs)
PARTS = 4
#: Of the mistakes, so many must be found, in hundredths.
FOUND = 98


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNPY_NO_CACHE", "1")


def shown(text: str) -> list[str]:
    """What the checker says of a program, each with its line and what stands there."""
    lines = text.split("\n")
    found = [(each.span.line if each.span else 0, each) for each in diagnostics(text)]
    return [f"{line}: {each.code}: {each.message}: {lines[line - 1].strip()}" for line, each in found]


@pytest.mark.parametrize("part", range(PARTS))
def test_well_typed_programs(part: int) -> None:
    for seed in PROGRAMS[part::PARTS]:
        text = program_of(seed)
        assert shown(text) == [], f"seed {seed}"
        ended = outcome(Program(text), "compile")
        assert ended.ending == "value", f"seed {seed}: {ended.text}"


@pytest.mark.parametrize("part", range(PARTS))
def test_one_mistake_is_found_where_it_is(part: int) -> None:
    tried, missed = 0, []
    for seed in PROGRAMS[part::PARTS]:
        text, line, name = planted(seed)
        tried += 1
        if all(each.span is None or each.span.line != line for each in diagnostics(text)):
            missed.append(f"seed {seed}, {name}: {text.splitlines()[line - 1].strip()}")
    assert len(missed) * 100 <= tried * (100 - FOUND), "\n".join(missed)


def test_programs_do_something() -> None:
    """Programs that show nothing, or have few constructs, would prove little."""
    texts = [program_of(seed) for seed in range(20)]
    assert sum(outcome(Program(text), "compile").output.count("\n") for text in texts) > 200
    for construct in ("match ", "while ", "parallel ", "gen fn ", "impl ", "try {", "guard ", "type_of("):
        assert sum(construct in text for text in texts) > 1, construct


@pytest.mark.parametrize("sort", MISTAKES)
def test_each_sort_of_mistake_is_found(sort: str) -> None:
    text, line, _ = planted(1, [sort])
    assert line in {each.span.line for each in diagnostics(text) if each.span}
