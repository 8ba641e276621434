"""The filters of jq, each a function from a value to the list of results. Spec: 04 §11.4.

A set counts as the list of its items, a struct as an object. Values of other types are scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Protocol

from harnpy.formats.display import type_name

Value = Any
#: (value, run) to results.
Filter = Callable[[Value, "Run"], list[Value]]


class Run(Protocol):
    """The surroundings of the filters of one run."""

    def equal(self, a: Value, b: Value) -> bool: ...

    def items(self, value: Value) -> list[Value] | None:
        """Return the items of a list or set, None for anything else."""

    def made(self, results: int) -> None:
        """Called with the size of every list of results while it grows; may raise to stop."""


_TYPES = {"nil": "null", "bool": "boolean", "int": "number", "float": "number", "string": "string"}


def identity(value: Value, run: Run) -> list[Value]:
    return [value]


def literal(constant: Value) -> Filter:
    return lambda value, run: [constant]


def field(name: str) -> Filter:
    """The entry of an object; null where there is none."""
    return lambda value, run: [value.get(name) if isinstance(value, dict) else None]


def index(i: int) -> Filter:
    """The item, from the end when negative; null where there is none."""

    def apply(value: Value, run: Run) -> list[Value]:
        items = run.items(value) or []
        return [items[i] if -len(items) <= i < len(items) else None]

    return apply


def part(start: int | None, end: int | None) -> Filter:
    return lambda value, run: [(run.items(value) or [])[start:end]]


def each(value: Value, run: Run) -> list[Value]:
    """The items, or an object's values in key order; nothing of a scalar."""
    found = _inner(value, run)
    run.made(len(found))
    return found


def descendants(value: Value, run: Run) -> list[Value]:
    """The value, then all that is in it, depth first."""
    found, left = [], [value]
    while left:
        value = left.pop()
        found.append(value)
        left += reversed(_inner(value, run))
        run.made(len(found) + len(left))
    return found


def _inner(value: Value, run: Run) -> list[Value]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return run.items(value) or []


def in_turn(stages: Sequence[Filter]) -> Filter:
    """Each stage gets every result of the one before."""

    def apply(value: Value, run: Run) -> list[Value]:
        results = [value]
        for stage in stages:
            results = _collected((stage(each, run) for each in results), run)
        return results

    return stages[0] if len(stages) == 1 else apply


def side_by_side(filters: Sequence[Filter]) -> Filter:
    """The results of all filters, one after the other."""
    if len(filters) == 1:
        return filters[0]
    return lambda value, run: _collected((filter(value, run) for filter in filters), run)


def _collected(lists: Iterable[list[Value]], run: Run) -> list[Value]:
    found: list[Value] = []
    for results in lists:
        found += results
        run.made(len(found))
    return found


def is_true(filter: Filter, value: Value, run: Run) -> bool:
    """Return whether any result is true (04 §0.5)."""
    return any(filter(value, run))


def negated(filter: Filter) -> Filter:
    return lambda value, run: [not is_true(filter, value, run)]


def logical(first: Filter, others: Sequence[tuple[str, Filter]]) -> Filter:
    """The operands with `and` or `or` before each but the first, from left to right."""

    def apply(value: Value, run: Run) -> list[Value]:
        truth = is_true(first, value, run)
        for operator, operand in others:
            if truth == (operator == "and"):
                truth = is_true(operand, value, run)
        return [truth]

    return apply if others else first


def compared(operator: str, a: Filter, b: Filter) -> Filter:
    """The comparison of every result of ``a`` with every result of ``b``."""
    compare = _COMPARE[operator]

    def apply(value: Value, run: Run) -> list[Value]:
        found: list[Value] = []
        for right, left in product(b(value, run), a(value, run)):
            found.append(compare(left, right, run))
            run.made(len(found))
        return found

    return apply


def _less(a: Value, b: Value, run: Run) -> bool:
    """Only two numbers or two strings have an order."""
    kinds = {_TYPES.get(type_name(value)) for value in (a, b)}
    return kinds in ({"number"}, {"string"}) and bool(a < b)


_COMPARE: dict[str, Callable[[Value, Value, Run], bool]] = {
    "==": lambda a, b, run: run.equal(a, b),
    "!=": lambda a, b, run: not run.equal(a, b),
    "<": _less,
    ">": lambda a, b, run: _less(b, a, run),
}


def built(fields: Mapping[str, Filter]) -> Filter:
    """An object; each value is the first result, or null."""

    def apply(value: Value, run: Run) -> list[Value]:
        return [{key: next(iter(filter(value, run)), None) for key, filter in fields.items()}]

    return apply


def mapped(filter: Filter) -> Filter:
    """All results for the items, as one list; an empty one for what has no items."""
    return lambda value, run: [_collected((filter(item, run) for item in run.items(value) or ()), run)]


def selected(condition: Filter) -> Filter:
    return lambda value, run: [value] if is_true(condition, value, run) else []


def length(value: Value, run: Run) -> list[Value]:
    if value is None:
        return [0]
    items = value if isinstance(value, dict | str) else run.items(value)
    return [1 if items is None else len(items)]


def keys(value: Value, run: Run) -> list[Value]:
    if isinstance(value, dict):
        return [sorted(value)]
    return [list(range(len(run.items(value) or [])))]


def values(value: Value, run: Run) -> list[Value]:
    return [_inner(value, run)]


def kind(value: Value, run: Run) -> list[Value]:
    """jq's name of the type; of a type that JSON does not have, the language's."""
    if isinstance(value, dict):
        return ["object"]
    name = type_name(value)
    return ["array" if run.items(value) is not None else _TYPES.get(name, name)]
