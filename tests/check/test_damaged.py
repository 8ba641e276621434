"""Damaged programs: diagnostics, whatever the text; the first error is where the damage is. Spec: 01 §9."""

from __future__ import annotations

from collections import Counter
from random import Random

from harnpy.syntax.diagnostic import Lines, SyntaxFault, rendered
from harnpy.syntax.parser import parse
from harnpy.syntax.structure import check_structure
from tests.check.damage import DAMAGES, Damaged, damaged
from tests.check.programs import diagnostics
from tests.counts import COUNT
from tests.syntax.programs import programs

PROGRAMS = COUNT.damaged_programs
#: How far from the damage the first error may be, in lines, and how often it is no further.
NEAR, OFTEN = 3, 0.9


def is_program(text: str) -> bool:
    try:
        return not check_structure(parse(text), text)
    except SyntaxFault:
        return False


def is_near(damage: Damaged, line: int) -> bool:
    return any(abs(line - each) <= NEAR for each in damage.lines)


def test_damaged_programs_have_diagnostics_near_the_damage() -> None:
    random = Random(COUNT.seed)
    sources = programs()
    # Long programs are damaged more often: in a short one everything is near.
    weights = [len(source) for source in sources]
    near, far = Counter[str](), Counter[str]()
    for number in range(PROGRAMS):
        kind = list(DAMAGES)[number % len(DAMAGES)]
        source = random.choices(sources, weights)[0]
        damage = damaged(random, kind, source) if is_program(source) else None
        if damage is None:
            continue
        found = diagnostics(damage.text, linted=True)
        lines = Lines(damage.text)
        assert all(rendered(each, lines, "damaged.harn").startswith(each.severity) for each in found)
        if not is_program(damage.text):
            assert found[0].span is not None
            (near if is_near(damage, found[0].span.line) else far)[kind] += 1
    print({kind: f"{near[kind]} of {near[kind] + far[kind]}" for kind in DAMAGES})
    assert near.total() >= OFTEN * (near.total() + far.total()), far
    assert near.total() > PROGRAMS // 2
