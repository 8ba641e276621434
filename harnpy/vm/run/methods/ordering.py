"""Sorting, extremes and sums over Harn values. Spec: 02 §3.2, 04 §0.6."""

from __future__ import annotations

from harnpy.vm.values.equality import compare
from harnpy.vm.values.operators import add

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from harnpy.vm.vm import Vm

    Value = Any


#: Keys that are sorted without a look at the signal, if Python orders them.
_RUN = 1 << 15


def in_order(vm: Vm, items: Sequence[Value], keys: Sequence[Value]) -> list[Value]:
    """The items ascending by the key at the same position, stable."""
    sortable: Sequence[Any] = keys
    if not _is_native(keys):
        from functools import cmp_to_key

        from harnpy.vm.run.pacing import paced_calls

        # `compare` calls no Harn code, so going through C is safe here.
        key_of = cmp_to_key(paced_calls(compare, vm.signal, vm.poll))
        sortable = [key_of(key) for key in vm.paced(keys)]
        places = sorted(range(len(items)), key=sortable.__getitem__)
    elif len(items) > _RUN and vm.signal.pending:
        places = _sorted_in_runs(vm, keys)
    else:
        places = sorted(range(len(items)), key=sortable.__getitem__)
    return [items[i] for i in places]


def _sorted_in_runs(vm: Vm, keys: Sequence[Any]) -> list[int]:
    """The positions in the order of their keys: runs of them, then two and two together, with polls."""
    count = len(keys)
    runs = [list(range(at, min(at + _RUN, count))) for at in range(0, count, _RUN)]
    for run in runs:
        vm.poll()
        run.sort(key=keys.__getitem__)
    while len(runs) > 1:
        vm.poll()
        # Python finds the two runs, and merges them in linear time.
        runs.append(sorted(runs.pop(0) + runs.pop(0), key=keys.__getitem__))
    return runs[0]


def first_extreme(vm: Vm, items: Sequence[Value], keys: Sequence[Value], sign: int) -> Value:
    """The item with the greatest (``sign`` 1) or least (-1) key, the first of several; nil if none."""
    if not items:
        return None
    best = 0
    for i, key in enumerate(vm.paced(keys)):
        if compare(key, keys[best]) == sign:
            best = i
    return items[best]


def sum_of(numbers: Iterable[int | float]) -> int | float:
    """The sum from left to right; an int unless there is a float."""
    total: int | float = 0
    for x in numbers:
        total = add(total, x)
    return total


def _is_native(keys: Sequence[Value]) -> bool:
    """Whether Python orders the keys as Harn does."""
    kinds = set(map(type, keys))
    return kinds == {int} or kinds == {str} or (kinds == {float} and not [x for x in keys if x != x])
