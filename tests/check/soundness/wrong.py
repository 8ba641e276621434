"""Expressions that surely don't fit where they stand. Spec: 03 §4."""

from __future__ import annotations

from random import Random

from tests.check.soundness.kinds import (
    BOOL,
    FLOAT,
    INT,
    STRING,
    DictOf,
    Either,
    Enum,
    Kind,
    ListOf,
    Optional,
    Outcome,
    Scalar,
    Scope,
    Shape,
    Struct,
    Words,
)
from tests.check.soundness.statements import Statements


class Wrong:
    """``random`` chooses among what is wrong."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def value(self, program: Statements, kind: Kind, scope: Scope) -> str | None:
        """An expression of a type that surely doesn't fit ``kind``: a literal, or a variable."""
        variables = [one.name for one in scope.variables if one.certain and never_fits(one.kind, kind)]
        if variables and self.random.random() < 0.4:
            return self.random.choice(variables)
        literals = {'"text"': STRING, "17": INT, "2.5": FLOAT, "true": BOOL, "[true]": ListOf(BOOL)}
        fitting = [text for text, literal in literals.items() if never_fits(literal, kind)]
        fitting += self._nearly(program, kind)
        return self.random.choice(fitting)

    def _nearly(self, program: Statements, kind: Kind) -> list[str]:
        """What has the outline of the type, with something wrong inside."""
        match kind:
            case ListOf(item=Scalar() as item):
                return [f"[{self.value(program, item, Scope())}]"]
            case DictOf(value=Scalar() as value):
                return [f"{{a: {self.value(program, value, Scope())}}}"]
            case Shape(fields=fields) if isinstance(fields[0][1], Scalar):
                (name, inner), *others = fields
                rest = "".join(f", {one}: {program.written(each, Scope(), 0)}" for one, each in others)
                return [f"{{{name}: {self.value(program, inner, Scope())}{rest}}}", "{other: 1}"]
            case Struct(name=name):
                others_ = [one for one in program.structs if one.name != name]
                return [program.written(one, Scope(), 0) for one in others_]
            case Outcome(value=Scalar() as value):
                return [f"Ok({self.value(program, value, Scope())})"]
            case Scalar() | Either():
                return ["nil"]
        return []


def never_fits(actual: Kind, expected: Kind) -> bool:
    """Whether no value of one type is one of the other, or the checker says so (03 §4)."""
    if actual == expected:
        return False
    match actual, expected:
        case Optional(inner=inner), _ if not isinstance(expected, Optional):
            return True
        case _, Optional(inner=inner):
            return never_fits(actual, inner)
        case Optional(), _:
            return False
        case Either(members=members), _:
            return any(never_fits(one, expected) for one in members)
        case _, Either(members=members):
            return all(never_fits(actual, one) for one in members)
        case Scalar(name="int"), Scalar(name="float"):
            return False
        case (Words(), Scalar(name="string")) | (Scalar(name="string"), Words()):
            return False
        case Scalar(), _:
            return True
        case _, Scalar():
            return True
        case Struct() | Enum(), Struct() | Enum():
            return True
        case (ListOf(), Shape() | DictOf() | Struct() | Enum()) | (Shape() | DictOf(), ListOf()):
            return True
    return False
