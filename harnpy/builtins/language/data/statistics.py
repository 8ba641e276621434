"""Statistics of a list of numbers, as floats. Spec: 04 §10.

Sums run left to right in plain floats, so that a result is the same on every Python.
"""

from __future__ import annotations

import math
from functools import partial

from harnpy.builtins.language.data.math import is_number
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import RuntimeFault, TypeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="math")


@builtin("mean(items: list) -> float")
def mean(vm: Vm, items: Value) -> float:
    """The arithmetic mean; `0.0` for an empty list.

    Example:
        mean([1, 2, 6])  // 3.0
    """
    numbers = _numbers("mean", items)
    return _mean(numbers) if numbers else 0.0


@builtin("median(items: list) -> float")
def median(vm: Vm, items: Value) -> float:
    """The middle item in order, or the mean of the two middle ones.

    Example:
        median([9, 1, 4, 2])  // 3.0
    """
    return _percentile(_some_numbers("median", items), 50.0)


@builtin("percentile(items: list, p: any) -> float")
def percentile(vm: Vm, items: Value, p: Value) -> float:
    """The value below which `p` per cent (0 to 100) of the items lie, interpolated linearly (R-7).

    Example:
        percentile([10, 20, 30, 40, 50], 90)  // 46.0
    """
    numbers = _some_numbers("percentile", items)
    if not is_number(p):
        raise TypeFault("percentile must be numeric")
    if not 0 <= p <= 100:
        raise RuntimeFault("percentile must be between 0 and 100")
    return _percentile(numbers, float(p))


@builtin("variance(items: list, sample: bool = false) -> float")
def variance(vm: Vm, items: Value, sample: Value) -> float:
    """The mean squared distance from the mean; with `sample`, divided by one item less.

    Example:
        [variance([1, 2, 3, 4, 5]), variance([1, 2, 3, 4, 5], true)]  // [2.0, 2.5]
    """
    return _variance("variance", items, sample)


@builtin("stddev(items: list, sample: bool = false) -> float")
def stddev(vm: Vm, items: Value, sample: Value) -> float:
    """The square root of the `variance`.

    Example:
        stddev([2, 4, 4, 4, 5, 5, 7, 9])  // 2.0
    """
    return math.sqrt(_variance("stddev", items, sample))


def _numbers(name: str, items: Value) -> list[float]:
    if type(items) is not list:
        raise TypeFault(f"{name}: items must be a list")
    if not all(is_number(item) for item in items):
        raise TypeFault(f"{name} must be numeric")
    return [float(item) for item in items]


def _some_numbers(name: str, items: Value) -> list[float]:
    numbers = _numbers(name, items)
    if not numbers:
        raise RuntimeFault(f"{name}: items must not be empty")
    return numbers


def _sum(numbers: list[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total


def _mean(numbers: list[float]) -> float:
    return _sum(numbers) / len(numbers)


def _percentile(numbers: list[float], p: float) -> float:
    ordered = sorted(numbers)
    rank = p / 100 * (len(ordered) - 1)
    below = int(rank)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    return low if rank == below else low + (high - low) * (rank - below)


def _variance(name: str, items: Value, sample: Value) -> float:
    numbers = _some_numbers(name, items)
    if sample and len(numbers) < 2:
        raise RuntimeFault("sample variance requires at least 2 values")
    center = _mean(numbers)
    squares = _sum([(number - center) * (number - center) for number in numbers])
    return squares / (len(numbers) - 1 if sample else len(numbers))
