"""What the checker takes a variable for, at every place of a program, against what it holds there.

Programs of branches, loops, guards, arms, closures and assignments, with looks at one variable in between. An
annotated `never` makes the checker say what it takes the variable for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from harnpy import Vm
from harnpy.check.checker import check_program
from harnpy.syntax.parser import parse
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.counts import COUNT

#: None of them is falsy but nil: the false side of a bare `x` promises no more (03 §6).
VALUES = {"int": ["1", "7"], "string": ['"a"'], "bool": ["true"], "nil": ["nil"], "float": ["0.5"]}
FORMS = [
    "x = VALUE",
    "if COND {\nBLOCK\n}",
    "if COND {\nBLOCK\n} else {\nBLOCK\n}",
    "if COND {\nBLOCK\n} else if COND {\nBLOCK\n} else {\nBLOCK\n}",
    "guard COND else {\nBLOCK\nreturn\n}",
    "for i in 0 to 2 {\nBODY\n}",
    "var NAME = 0\nwhile NAME < 2 && COND {\nNAME += 1\nBODY\n}",
    "var NAME = 0\nwhile COND {\nNAME += 1\nif NAME > 2 { break }\nBODY\n}",
    "try {\nBLOCK\n} catch (e) {\nBLOCK\n}",
    "match x {\nPATTERN -> {\nBLOCK\n}\n_ -> {\nLOOK\n}\n}",
    "let NAME = { ->\nBODY\n}\nNAME()",
]
_SAID = re.compile(r"'look(\d+)' declared as never, but assigned (.*)")


class Writer:
    """A function with one variable ``x``; ``looks`` counts the places where it is looked at."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.members = self.random.sample(sorted(VALUES), self.random.randint(2, 4))
        self.looks = 0

    def program(self) -> str:
        body = self.block(3, in_loop=False)
        calls = "\n".join(
            f"try {{ flow({value}, {flag}) }} catch (e) {{ nil }}"
            for value in self.random.sample([v for m in self.members for v in VALUES[m]], 2)
            for flag in ("true", "false")
        )
        return f"fn flow(p: {self.type}, c: bool) {{\nvar x: {self.type} = p\n{body}\n}}\n{calls}\n"

    @property
    def type(self) -> str:
        return " | ".join(self.members)

    def block(self, depth: int, *, in_loop: bool) -> str:
        statements = [self.look()]
        for _ in range(self.random.randint(1, 3)):
            statements += [self.statement(depth - 1, in_loop), self.look()]
        if depth < 3 and not self.random.randrange(5):
            leave = ["return", 'throw "t"', *(["break", "continue"] if in_loop else [])]
            statements.append(self.random.choice(leave))
        return "\n".join(statements)

    def look(self) -> str:
        self.looks += 1
        return f'let look{self.looks}: never = x\nprintln("{self.looks} ${{type_of(x)}}")'

    def statement(self, depth: int, in_loop: bool) -> str:
        form = self.random.choice(FORMS) if depth > 0 else "x = VALUE"
        self.looks += 1
        form = form.replace("NAME", f"v{self.looks}")
        parts = {
            "COND": lambda: self.condition(2),
            "BLOCK": lambda: self.block(depth, in_loop=in_loop),
            "BODY": lambda: self.block(depth, in_loop="{ ->" not in form),
            "LOOK": self.look,
            "PATTERN": self.pattern,
            "VALUE": self.value,
        }
        return re.sub("COND|BLOCK|BODY|LOOK|PATTERN|VALUE", lambda found: parts[found[0]](), form)

    def value(self) -> str:
        return self.random.choice(VALUES[self.random.choice(self.members)])

    def pattern(self) -> str:
        return " | ".join({self.value() for _ in range(self.random.randint(1, 2))})

    def condition(self, depth: int) -> str:
        kind = self.random.choice(self.members)
        atoms = ["x == nil", "x != nil", "x", f'type_of(x) == "{kind}"', f'"{kind}" != type_of(x)', "c"]
        if depth and self.random.randrange(2):
            sides = self.condition(depth - 1), self.condition(depth - 1)
            return self.random.choice(
                [f"!({sides[0]})", "({} && {})".format(*sides), "({} || {})".format(*sides)]
            )
        return self.random.choice(atoms)


def taken_for(source: str) -> dict[str, list[str]]:
    """By the number of a look the kinds that the checker thinks possible; only where it knows something."""
    found = check_program(parse(source), source, Vm().builtins.knowledge(), None)
    said = (_SAID.fullmatch(one.message) for one in found)
    return {match[1]: match[2].split(" | ") for match in said if match}


def held(source: str) -> Iterator[list[str]]:
    """The looks that the run takes: the number, and the kind of the value."""
    source = source.replace(": never", "")
    out: list[str] = []
    Vm(World(streams=RealStreams(stdout=out.append))).run_source(source)
    return (line.split() for line in "".join(out).splitlines())


def test_a_variable_is_what_the_checker_takes_it_for() -> None:
    looked = 0
    for seed in COUNT.seeds(COUNT.flow_programs):
        source = Writer(seed).program()
        known = taken_for(source)
        for look, kind in held(source):
            looked += look in known
            assert kind in known.get(look, [kind]), f"seed {seed}: look{look} is {kind}\n{source}"
    assert looked > COUNT.flow_programs
