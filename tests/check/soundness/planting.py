"""Programs with one mistake each, whose line is known."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from tests.check.soundness.kinds import Scope
from tests.check.soundness.mistakes import MARK, MISTAKES
from tests.check.soundness.programs import program_of
from tests.check.soundness.statements import Lines, Statements
from tests.check.soundness.wrong import Wrong

#: Places that are tried for a mistake before it gives way to another.
_TRIES = 6


class Planted(NamedTuple):
    """``line`` counts from 1; ``name`` is the sort of mistake."""

    text: str
    line: int
    name: str


def planted(seed: int, sorts: Sequence[str] = tuple(MISTAKES)) -> Planted:
    """The program of a seed with one mistake in it, of one of the sorts."""
    count = _Counting()
    program_of(seed, count)
    random = Random(f"mistake {seed}")
    while True:
        name = random.choice(sorts)
        for _ in range(_TRIES):
            planting = _Planting(random, name, random.randrange(count.slots))
            text = program_of(seed, planting)
            if planting.done:
                line = text.count("\n", 0, text.index(MARK)) + 1
                return Planted(text.replace(MARK, ""), line, name)


class _Counting:
    """Counts the places between statements."""

    def __init__(self) -> None:
        self.slots = 0

    def __call__(self, program: Statements, scope: Scope) -> Lines:
        self.slots += 1
        return []


class _Planting:
    """Makes the mistake ``name`` at place number ``at``, if it is one there."""

    def __init__(self, random: Random, name: str, at: int) -> None:
        self.random = random
        self.name = name
        self.at = at
        self.done = False

    def __call__(self, program: Statements, scope: Scope) -> Lines:
        self.at -= 1
        if self.at != -1:
            return []
        with program.undone(self.random):
            lines = MISTAKES[self.name](Wrong(self.random), program, scope)
        if lines is None:
            return []
        self.done = True
        marked = any(MARK in line for line in lines)
        return lines if marked else [MARK + lines[0], *lines[1:]]
