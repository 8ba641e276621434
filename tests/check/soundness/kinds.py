"""The types that generated programs have, and how annotations write them. Spec: 03 §3."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Kind:
    """A type; `str` is its annotation."""

    def __str__(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Scalar(Kind):
    name: str

    def __str__(self) -> str:
        return self.name


INT, FLOAT, STRING, BOOL = map(Scalar, ("int", "float", "string", "bool"))
SCALARS = (INT, FLOAT, STRING, BOOL)


@dataclass(frozen=True, slots=True)
class ListOf(Kind):
    item: Kind

    def __str__(self) -> str:
        return f"list<{self.item}>"


@dataclass(frozen=True, slots=True)
class DictOf(Kind):
    value: Kind

    def __str__(self) -> str:
        return f"dict<string, {self.value}>"


@dataclass(frozen=True, slots=True)
class Shape(Kind):
    """``alias``: the name under which a `type` declares it."""

    fields: tuple[tuple[str, Kind], ...]
    optional: tuple[tuple[str, Kind], ...] = ()
    alias: str | None = None

    @property
    def body(self) -> str:
        fields = [f"{name}: {kind}" for name, kind in self.fields]
        return "{" + ", ".join(fields + [f"{name}?: {kind}" for name, kind in self.optional]) + "}"

    def __str__(self) -> str:
        return self.alias or self.body


@dataclass(frozen=True, slots=True)
class Struct(Kind):
    """``named``: whether an `impl` gives it the methods of the interface."""

    name: str
    fields: tuple[tuple[str, Kind], ...]
    named: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Enum(Kind):
    name: str
    variants: tuple[tuple[str, tuple[Kind, ...]], ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Optional(Kind):
    inner: Kind

    def __str__(self) -> str:
        return f"{self.inner} | nil"


@dataclass(frozen=True, slots=True)
class Either(Kind):
    """A union of scalars."""

    members: tuple[Scalar, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.members))


@dataclass(frozen=True, slots=True)
class Words(Kind):
    """An alias of a union of string literals."""

    alias: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return self.alias


@dataclass(frozen=True, slots=True)
class Tagged(Kind):
    """An alias of a union of shapes with a tag ``kind``."""

    alias: str
    variants: tuple[tuple[str, str, Kind], ...]
    """The value of the tag, the other field and its type."""

    def __str__(self) -> str:
        return self.alias


@dataclass(frozen=True, slots=True)
class Function(Kind):
    params: tuple[Kind, ...]
    returns: Kind

    def __str__(self) -> str:
        return f"fn({', '.join(map(str, self.params))}) -> {self.returns}"


@dataclass(frozen=True, slots=True)
class Outcome(Kind):
    """`Result<value, string>`."""

    value: Kind

    def __str__(self) -> str:
        return f"Result<{self.value}, string>"


@dataclass(frozen=True, slots=True)
class Variable:
    """``certain``: the checker knows its type. ``param``: of a function, so `return` knows it as well."""

    name: str
    kind: Kind
    mutable: bool = False
    certain: bool = True
    param: bool = False


@dataclass(frozen=True, slots=True)
class Routine:
    """A declared function. ``word``: `fn`, or `gen` for one that gives several of ``returns``.

    ``defaults``: how many of the last parameters may be left out. ``cost``: the calls that one call makes.
    """

    name: str
    params: tuple[Kind, ...]
    returns: Kind
    word: str = "fn"
    defaults: int = 0
    cost: int = 1


@dataclass(slots=True)
class Scope:
    """What is visible at a place, and where that is."""

    variables: list[Variable] = field(default_factory=list)
    returns: Kind | None = None
    """What the function around must return."""
    direct: bool = False
    """Whether a `return` here is one that the checker compares (03 §8.1)."""
    file_level: bool = False
    handled: bool = False
    """Whether an error here would be caught."""
    emits: Kind | None = None
    loops: int = 0

    def inner(self, *variables: Variable, **changed: object) -> Scope:
        """A block inside; what it declares stays there."""
        scope = Scope(
            [*self.variables, *variables],
            self.returns,
            self.direct,
            False,
            self.handled,
            self.emits,
            self.loops,
        )
        for name, value in changed.items():
            setattr(scope, name, value)
        return scope

    def narrowed(self, name: str, kind: Kind) -> Scope:
        """A block in which a variable is known to be of another type."""
        scope = self.inner()
        scope.variables = [
            Variable(one.name, kind, False, one.certain, one.param) if one.name == name else one
            for one in scope.variables
        ]
        return scope
