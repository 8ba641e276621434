"""What an expression is meant to be: a kind of value, and what is inside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """``item``: of a list, a set or a sequence, or a function's result. ``fields``: of a dict or a struct, or
    a function's parameters. ``name``: of a struct."""

    kind: str
    item: Shape | None = None
    fields: tuple[tuple[str, Shape], ...] = ()
    name: str = ""


INT, FLOAT, BOOL, STRING, NIL, ANY, ENUM = map(Shape, "int float bool string nil any enum".split())
#: Literals that say how deep a recursion goes.
SMALL, MANY = Shape("small"), Shape("many")
SCALARS = (INT, FLOAT, BOOL, STRING)


def list_of(item: Shape) -> Shape:
    return Shape("list", item)


def dict_of(**fields: Shape) -> Shape:
    return Shape("dict", None, tuple(fields.items()))


def function(result: Shape, *params: tuple[str, Shape]) -> Shape:
    return Shape("fn", result, params)


@dataclass(eq=False, slots=True)
class Variable:
    """A name that is in scope. ``cost``: how many statements a call of it runs, more or less."""

    name: str
    shape: Shape
    mutable: bool = False
    cost: int = 0
    #: Parameters that may be left out, counted from the end.
    optional: int = 0


def paths(text: str, shape: Shape, depth: int = 2) -> Iterator[tuple[str, Shape]]:
    """The places inside a value that can be read and assigned, itself first."""
    yield text, shape
    if depth == 0:
        return
    if shape.kind == "list" and shape.item:
        for index in ("0", "1", "-1"):
            yield from paths(f"{text}[{index}]", shape.item, depth - 1)
    elif shape.kind in ("dict", "struct"):
        for name, inner in shape.fields:
            yield from paths(f"{text}.{name}", inner, depth - 1)
