"""What a place in a program can see and may do: names, kinds of function, how often it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.vm.differential.choices import Choices
from tests.vm.differential.shapes import Shape, Variable

#: Kinds of statement or expression, each with its weight.
Makers = list[tuple[int, Callable[[], str]]]
#: What loops go over, likewise: the text, and the pattern for the items.
Sources = list[tuple[int, Callable[[], tuple[str, str]]]]
#: Few, so that scopes shadow each other. Functions and counters have names of their own.
NAMES = (*"abcdnpqsuvxy", "max")
#: Statements that a whole program may run, more or less.
MOST_COST = 1500
#: How often the innermost of nested loops may turn.
MOST_TURNS = 20


@dataclass(slots=True)
class Body:
    """A function body being written. ``kind``: `script`, `fn`, `closure`, `generator`, `stream`, `task`."""

    kind: str
    loops: int = 0
    turns: int = 1
    cost: int = 0
    #: What the function is meant to return.
    result: Shape | None = None
    #: Whether leaving the body here would skip what must happen, such as a channel being closed.
    bound: bool = False


class Scopes:
    """The state of a builder. Each method of the builders above it returns a piece of text."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.scopes: list[dict[str, Variable]] = [{}]
        self.bodies = [Body("script")]
        #: Statements that may still be written where this one is.
        self.left = 3
        self.count = 0
        #: The structs that the program declares, and their methods.
        self.structs: list[Shape] = []
        self.methods: list[Variable] = []
        #: Whether something was written that is likely to fail.
        self.risky = False

    # --- names --------------------------------------------------------------------------------------

    def visible(self) -> list[Variable]:
        """The variables that a name leads to here, each once."""
        seen: dict[str, Variable] = {}
        for scope in self.scopes:
            seen.update(scope)
        return list(seen.values())

    @property
    def can_say(self) -> bool:
        """Whether `say` can be called here: the variables of a pipeline are initialised before."""
        return "say" in self.scopes[0]

    def fresh(self) -> str:
        """A name that this scope has not got, and often no other either."""
        taken = set(self.scopes[-1])
        if self.choices.chance(60):
            taken |= {variable.name for variable in self.visible()}
        free = [name for name in NAMES if name not in taken]
        return self.choices.pick(free) if free else self.numbered("z")

    def numbered(self, letter: str) -> str:
        """A name that no other part of the program has."""
        self.count += 1
        return f"{letter}{self.count}"

    def declare(self, name: str, shape: Shape, mutable: bool = False, **known: int) -> Variable:
        variable = Variable(name, shape, mutable, **known)
        self.scopes[-1][name] = variable
        return variable

    @property
    def nesting(self) -> int:
        """How deep this place lies in blocks."""
        return len(self.scopes) - 1

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    # --- where we are -------------------------------------------------------------------------------

    @property
    def body(self) -> Body:
        return self.bodies[-1]

    @property
    def in_function(self) -> bool:
        return self.body.kind != "script"

    @property
    def in_declared_function(self) -> bool:
        """Whether the surroundings are the body of a `fn` or a pipeline, perhaps by way of closures."""
        return any(body.kind in ("fn", "generator", "stream") for body in self.bodies)

    @contextmanager
    def function(self, kind: str, result: Shape | None = None) -> Iterator[Body]:
        """A function's body, in a scope of its own."""
        body = Body(kind, result=result)
        self.bodies.append(body)
        try:
            with self.scope():
                yield body
        finally:
            self.bodies.pop()

    @contextmanager
    def loop(self, turns: int, *, is_loop: bool = True) -> Iterator[None]:
        """What runs ``turns`` times for each time that its surroundings run."""
        body = self.body
        outer = body.turns, body.loops
        body.turns *= max(turns, 1)
        body.loops += is_loop
        try:
            yield
        finally:
            body.turns, body.loops = outer

    def turns(self, most: int) -> int:
        """How often a loop may turn here; 0 when it had better not be."""
        return min(most, MOST_TURNS // self.body.turns)

    def affordable(self, cost: int) -> bool:
        return self.body.cost + self.body.turns * cost < MOST_COST

    def spend(self, cost: int) -> None:
        self.body.cost += self.body.turns * cost
