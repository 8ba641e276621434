"""Sorting, extremes and sums over Harn values. Spec: 02 §3.2, 04 §0.6."""

from __future__ import annotations

from harnpy.vm.values.equality import compare
from harnpy.vm.values.operators import add

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Value = Any


def in_order(items: Sequence[Value], keys: Sequence[Value]) -> list[Value]:
    """The items ascending by the key at the same position, stable."""
    sortable: Sequence[Any] = keys
    if not _is_native(keys):
        from functools import cmp_to_key

        # `compare` calls no Harn code, so going through C is safe here.
        key_of = cmp_to_key(compare)
        sortable = [key_of(key) for key in keys]
    return [items[i] for i in sorted(range(len(items)), key=sortable.__getitem__)]


def first_extreme(items: Sequence[Value], keys: Sequence[Value], sign: int) -> Value:
    """The item with the greatest (``sign`` 1) or least (-1) key, the first of several; nil if none."""
    if not items:
        return None
    best = 0
    for i, key in enumerate(keys):
        if compare(key, keys[best]) == sign:
            best = i
    return items[best]


def sum_of(numbers: Sequence[int | float]) -> int | float:
    """The sum from left to right; an int unless there is a float."""
    total: int | float = 0
    for x in numbers:
        total = add(total, x)
    return total


def _is_native(keys: Sequence[Value]) -> bool:
    """Whether Python orders the keys as Harn does."""
    kinds = set(map(type, keys))
    return kinds == {int} or kinds == {str} or (kinds == {float} and not [x for x in keys if x != x])
