"""Expressions of a wanted type, which can't fail when they run. Spec: 03 §5."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from tests.check.soundness.kinds import (
    BOOL,
    FLOAT,
    INT,
    SCALARS,
    STRING,
    DictOf,
    Either,
    Enum,
    Function,
    Kind,
    ListOf,
    Optional,
    Outcome,
    Routine,
    Scalar,
    Scope,
    Shape,
    Struct,
    Tagged,
    Variable,
    Words,
)

#: Calls that a run of a program makes at most, so that each ends soon.
BUDGET = 400
WORDS = ["red", "green", "blue", "warm", "cold"]

Choice = Callable[[], str]


class Expressions:
    """``random`` decides everything; ``cost`` counts the calls made so far, ``times`` how often they run."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.routines: list[Routine] = []
        self.cost = 0
        self.times = 1
        self._names = 0

    @contextmanager
    def undone(self, random: Random) -> Iterator[None]:
        """What is made in here has random numbers of its own, and leaves no trace behind."""
        before = self.random, self.cost, self._names
        self.random = random
        try:
            yield
        finally:
            self.random, self.cost, self._names = before

    def name(self, prefix: str = "v") -> str:
        self._names += 1
        return f"{prefix}_{self._names}"

    def one(self, *choices: Choice) -> str:
        return self.random.choice(choices)()

    def of(self, kind: Kind, scope: Scope, depth: int = 2) -> str:
        """An expression whose type is exactly ``kind``, or one that the checker doesn't know."""
        choices: list[Choice] = [lambda: self.written(kind, scope, depth - 1)]
        variables = [one.name for one in scope.variables if one.kind == kind]
        if variables:
            choices += [lambda: self.random.choice(variables)] * 3
        if depth > 0:
            choices += self._composed(kind, scope, depth - 1)
        return self.one(*choices)

    def into(self, kind: Kind, scope: Scope, depth: int = 2) -> str:
        """An expression that fits ``kind``, perhaps with a type of fewer values."""
        if kind == FLOAT and self.random.random() < 0.3:
            return self.of(INT, scope, depth)
        if isinstance(kind, Optional) and self.random.random() < 0.4:
            return self.into(kind.inner, scope, depth)
        if isinstance(kind, Shape) and self.random.random() < 0.2:
            return self._fields(kind, scope, depth, extra=", extra: 1")
        return self.of(kind, scope, depth)

    # --- literals ---------------------------------------------------------------------------------

    def written(self, kind: Kind, scope: Scope, depth: int) -> str:
        """A literal, or what builds a value from such."""
        random = self.random
        match kind:
            case Scalar(name="int"):
                return str(random.randint(0, 20))
            case Scalar(name="float"):
                return f"{random.randint(0, 9)}.{random.choice('05')}"
            case Scalar(name="string"):
                return f'"{random.choice(WORDS)}"'
            case Scalar():
                return random.choice(["true", "false"])
            case ListOf(item=item):
                return f"[{', '.join(self.of(item, scope, depth) for _ in range(random.randint(1, 3)))}]"
            case DictOf(value=value):
                keys = random.sample("abc", random.randint(1, 3))
                return "{" + ", ".join(f"{key}: {self.into(value, scope, depth)}" for key in keys) + "}"
            case Shape():
                return self._fields(kind, scope, depth)
            case Struct(name=name, fields=fields):
                inside = ", ".join(f"{field}: {self.into(each, scope, depth)}" for field, each in fields)
                return f"{name} {{{inside}}}"
            case Enum(name=name, variants=variants):
                variant, payload = random.choice(variants)
                inside = ", ".join(self.into(each, scope, depth) for each in payload)
                return f"{name}.{variant}({inside})" if payload else f"{name}.{variant}"
            case Optional(inner=inner):
                return random.choice(["nil", self.into(inner, scope, depth)])
            case Either(members=members):
                return self.of(random.choice(members), scope, depth)
            case Words(words=words):
                return f'"{random.choice(words)}"'
            case Tagged(variants=variants):
                tag, field, each = random.choice(variants)
                return f'{{kind: "{tag}", {field}: {self.into(each, scope, depth)}}}'
            case Function(params=params, returns=returns):
                return self._closure(params, returns, scope)
            case Outcome(value=value):
                return random.choice([f"Ok({self.of(value, scope, depth)})", 'Err("missing")'])
        raise TypeError(kind)

    def _fields(self, shape: Shape, scope: Scope, depth: int, extra: str = "") -> str:
        fields = [f"{name}: {self.into(kind, scope, depth)}" for name, kind in shape.fields]
        for name, kind in shape.optional:
            if self.random.random() < 0.5:
                fields.append(f"{name}: {self.into(kind, scope, depth)}")
        return "{" + ", ".join(fields) + extra + "}"

    def _closure(self, params: tuple[Kind, ...], returns: Kind, scope: Scope) -> str:
        """A closure; it calls no function, for nobody knows how often it is called."""
        names = [self.name("p") for _ in params]
        typed = self.random.random() < 0.6
        heads = [f"{name}: {kind}" if typed else name for name, kind in zip(names, params, strict=True)]
        inside = scope.inner(
            *(Variable(name, kind, certain=typed) for name, kind in zip(names, params, strict=True))
        )
        return f"{{ {', '.join(heads)} -> {self.quiet(returns, inside)} }}"

    def quiet(self, kind: Kind, scope: Scope, depth: int = 1) -> str:
        """An expression without calls of the program's functions."""
        kept, self.routines = self.routines, []
        text = self.of(kind, scope, depth)
        self.routines = kept
        return text

    # --- compositions -----------------------------------------------------------------------------

    def _composed(self, kind: Kind, scope: Scope, depth: int) -> list[Choice]:
        choices: list[Choice] = [lambda: self._ternary(kind, scope, depth)]
        choices += [lambda one=one: self.call(one, scope, depth) for one in self._affordable(kind)]  # type: ignore[misc]
        choices += self._read(kind, scope)
        match kind:
            case Scalar(name="int"):
                choices += self._int(scope, depth)
            case Scalar(name="float"):
                choices.append(lambda: f"({self.of(FLOAT, scope, depth)} * {self.of(INT, scope, depth)})")
                choices.append(lambda: f"({self.of(INT, scope, depth)} / 2.0)")
                choices.append(lambda: f"(-{self.of(FLOAT, scope, 0)})")
            case Scalar(name="string"):
                choices += self._string(scope, depth)
            case Scalar():
                choices += self._bool(scope, depth)
            case ListOf(item=item):
                choices.append(lambda: f"({self.of(kind, scope, depth)} + {self.of(kind, scope, depth)})")
                choices.append(lambda: f"{self.of(kind, scope, depth)}[0:2]")
                choices.append(lambda: self._filtered(item, scope, depth))
            case DictOf(value=value):
                choices.append(
                    lambda: f"{self.of(kind, scope, 0)}.merge({{m: {self.of(value, scope, depth)}}})"
                )
        return choices

    def _ternary(self, kind: Kind, scope: Scope, depth: int) -> str:
        then, other = self.of(kind, scope, depth), self.of(kind, scope, depth)
        return f"({self.of(BOOL, scope, depth)} ? ({then}) : ({other}))"

    def _read(self, kind: Kind, scope: Scope) -> list[Choice]:
        """Fields, elements and inner values of variables that are of the type."""
        found: list[str] = []
        for one in scope.variables:
            match one.kind:
                case Shape(fields=fields) | Struct(fields=fields):
                    found += [f"{one.name}.{field}" for field, each in fields if each == kind]
                case Optional(inner=inner) if inner == kind:
                    found.append(f"({one.name} ?? {self.written(kind, scope, 0)})")
                    found.append(f"({one.name} != nil ? {one.name} : {self.written(kind, scope, 0)})")
                case ListOf(item=item) if item == kind:
                    found.append(f"({one.name}.count > 0 ? {one.name}[0] : {self.written(kind, scope, 0)})")
                case DictOf(value=value) if value == kind:
                    found.append(f"({one.name}.a ?? {self.written(kind, scope, 0)})")
                case Outcome(value=value) if value == kind:
                    found.append(f"unwrap_or({one.name}, {self.written(kind, scope, 0)})")
                case Function(params=params, returns=returns) if returns == kind:
                    arguments = ", ".join(self.written(each, scope, 0) for each in params)
                    found.append(f"{one.name}({arguments})")
        return [lambda text=text: text for text in found]  # type: ignore[misc]

    def _int(self, scope: Scope, depth: int) -> list[Choice]:
        return [
            lambda: (
                f"({self.of(INT, scope, depth)} {self.random.choice('+-*')} {self.of(INT, scope, depth)})"
            ),
            lambda: f"({self.of(INT, scope, depth)} {self.random.choice('/%')} {self.random.randint(1, 9)})",
            lambda: f"len({self.of(ListOf(self.random.choice(SCALARS)), scope, depth)})",
            lambda: f"{self.of(STRING, scope, depth)}.count",
            lambda: f"[{self.of(INT, scope, depth)}, 4][{self.random.randint(0, 1)}]",
        ]

    def _string(self, scope: Scope, depth: int) -> list[Choice]:
        return [
            lambda: f"({self.of(STRING, scope, depth)} + {self.of(STRING, scope, depth)})",
            lambda: f'"<${{{self.of(self.random.choice([INT, FLOAT, BOOL]), scope, depth)}}}>"',
            lambda: f"to_string({self.of(self.random.choice(SCALARS), scope, depth)})",
            lambda: f"{self.of(STRING, scope, depth)}.uppercase()",
            lambda: f'("{self.random.choice(WORDS)}" * {self.random.randint(1, 3)})',
            lambda: f'{self.of(ListOf(STRING), scope, depth)}.join(",")',
        ]

    def _bool(self, scope: Scope, depth: int) -> list[Choice]:
        compared = self.random.choice([INT, FLOAT, STRING])
        op = self.random.choice(["<", ">", "<=", ">=", "==", "!="])
        return [
            lambda: f"({self.of(compared, scope, depth)} {op} {self.of(compared, scope, depth)})",
            lambda: f"({self.of(BOOL, scope, depth)} && {self.of(BOOL, scope, depth)})",
            lambda: f"(!{self.of(BOOL, scope, 0)} || {self.of(BOOL, scope, depth)})",
            lambda: f"({self.of(INT, scope, depth)} in {self.of(ListOf(INT), scope, depth)})",
            lambda: f"{self.of(STRING, scope, depth)}.starts_with({self.of(STRING, scope, 0)})",
        ]

    def _filtered(self, item: Kind, scope: Scope, depth: int) -> str:
        name = self.name("p")
        test = self.quiet(BOOL, scope.inner(Variable(name, item, certain=False)))
        return f"{self.of(ListOf(item), scope, depth)}.filter({{ {name} -> {test} }})"

    # --- calls ------------------------------------------------------------------------------------

    def _affordable(self, kind: Kind) -> list[Routine]:
        """The functions that give the type, as long as calling one more isn't too much."""
        left = BUDGET - self.cost
        return [
            one
            for one in self.routines
            if one.word != "gen" and one.returns == kind and one.cost * self.times <= left
        ]

    def call(self, routine: Routine, scope: Scope, depth: int) -> str:
        self.cost += routine.cost * self.times
        left_out = self.random.randint(0, routine.defaults)
        params = routine.params[: len(routine.params) - left_out]
        return f"{routine.name}({', '.join(self.into(each, scope, min(depth, 1)) for each in params)})"
