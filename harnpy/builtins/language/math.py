"""Numbers: rounding, powers, roots, angles, logarithms, statistics. Spec: 04 §10.

For anything but a number the result is nil. Python's arithmetic errors are never raised: what has no real
value is NaN or an infinity, as IEEE 754 defines it.
"""

from __future__ import annotations

import math
from functools import partial

from harnpy.builtins.language.arguments import option, options
from harnpy.faults import paced
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault, TypeFault
from harnpy.vm.values import operators

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="math")

_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1
_INT_BITS = 64


def is_number(value: Value) -> bool:
    """Return true for an int or a float; a bool is neither."""
    return type(value) is int or type(value) is float


@builtin("abs(n: any) -> any")
def absolute(vm: Vm, n: Value) -> Value:
    """Return the distance from zero, of the number's own type; a float for the least int.

    Example: [abs(-3), abs(2.5)]  // [3, 2.5]
    """
    if not is_number(n):
        return None
    return float(-n) if n == _MIN_INT else abs(n)


def extreme_builtin(
    signature: str, choose: Callable[[Value, Value], Value], word: str, example: str
) -> Callable[..., Value]:
    """Declare a function that chooses one of two numbers."""

    def extreme(vm: Vm, a: Value, b: Value) -> Value:
        if not is_number(a) or not is_number(b):
            return None
        if type(a) is type(b) is int:
            return choose(a, b)
        a, b = float(a), float(b)
        if math.isnan(a) or math.isnan(b):
            return b if math.isnan(a) else a
        return choose(a, b)

    summary = f"Return the {word} of two numbers; a float if either is one. For lists use the method."
    extreme.__doc__ = f"{summary}\n\nExample: {example}"
    return builtin(signature)(extreme)


least = extreme_builtin("min(a: any, b: any) -> any", min, "smaller", "min(2, 3)  // 2")
greatest = extreme_builtin("max(a: any, b: any) -> any", max, "greater", "max(2, 3.5)  // 3.5")


def whole(n: Value, rounded: Callable[[float], int]) -> int | None:
    """Return an int made of a number, nil for what is none."""
    if type(n) is not float:
        return n if type(n) is int else None
    if not math.isfinite(n):
        raise RuntimeFault("cannot convert non-finite float to int")
    result = rounded(n)
    if not _MIN_INT <= result <= _MAX_INT:
        raise RuntimeFault("float is outside the representable int range")
    return result


def int_builtin(
    signature: str, rounded: Callable[[float], int], summary: str, example: str
) -> Callable[..., int | None]:
    """Declare a function that makes an int of a number."""

    def to_int(vm: Vm, n: Value) -> int | None:
        return whole(n, rounded)

    fails = "Fails for infinities, NaN and results that don't fit 64 bits."
    to_int.__doc__ = f"{summary} {fails}\n\nExample: {example}"
    return builtin(signature)(to_int)


def _round(x: float) -> int:
    whole = math.trunc(x)
    return whole + int(math.copysign(1, x)) if abs(x - whole) >= 0.5 else whole


floor = int_builtin(
    "floor(n: any) -> any",
    math.floor,
    "Return the greatest int that isn't above `n`.",
    "[floor(1.8), floor(-1.2)]  // [1, -2]",
)
ceil = int_builtin(
    "ceil(n: any) -> any",
    math.ceil,
    "Return the smallest int that isn't below `n`.",
    "[ceil(1.2), ceil(-1.2)]  // [2, -1]",
)


@builtin("round(n: any, digits?: int) -> any")
def round_away(vm: Vm, n: Value, digits: int | None = None) -> Value:
    """Return the nearest int, or with `digits` the nearest number with so many decimal places.

    Halves go away from zero, and a float counts as the decimal number that it is shown as: `round(2.675, 2)`
    is 2.68. Negative `digits` are tens, hundreds, …; an int stays one. Without `digits` it fails for
    infinities, NaN and what doesn't fit 64 bits.

    Example: [round(2.5), round(-2.5), round(2.675, 2)]  // [3, -3, 2.68]
    """
    if digits is None:
        return whole(n, _round)
    if not is_number(n):
        return None
    from harnpy.formats.numbers import MOST_PLACES, rounded

    if abs(digits) > MOST_PLACES:
        raise RuntimeFault(f"round: digits must be between {-MOST_PLACES} and {MOST_PLACES}, got {digits}")
    result = rounded(n, digits)
    if type(result) is int and not _MIN_INT <= result <= _MAX_INT:
        raise RuntimeFault("round: the result is outside the representable int range")
    return result


@builtin("format_number(n: any, opts?: dict) -> any")
def format_number(vm: Vm, n: Value, opts: Value = ABSENT) -> str | None:
    """Return a number as text. `opts`: `decimals`, how many decimal places it has (as many as it needs),
    `thousands` (`""`), what stands between groups of three digits, and `point` (`"."`).

    Example: format_number(1234567.5, {decimals: 2, thousands: ","})  // "1,234,567.50"
    """
    given = options("format_number", opts, ("decimals", "thousands", "point"))
    if not is_number(n):
        return None
    from harnpy.formats.numbers import MOST_PLACES, decimal_text

    places: int | None = option("format_number", given, "decimals", int, None)
    if places is not None and not 0 <= places <= MOST_PLACES:
        raise RuntimeFault(
            f"format_number: option `decimals` must be between 0 and {MOST_PLACES}, got {places}"
        )
    thousands: str = option("format_number", given, "thousands", str, "")
    return decimal_text(n, places, thousands, option("format_number", given, "point", str, "."))


@builtin("pow(base: any, exponent: any) -> any")
def power(vm: Vm, base: Value, exponent: Value) -> Value:
    """Return `base` to the `exponent`: an int for ints whose result fits 64 bits, otherwise a float.

    Example: [pow(2, 10), pow(2, -1)]  // [1024, 0.5]
    """
    if not is_number(base) or not is_number(exponent):
        return None
    exact = _int_power(base, exponent) if type(base) is type(exponent) is int else None
    return operators.power(float(base), float(exponent)) if exact is None else exact


def _int_power(base: int, exponent: int) -> int | None:
    """Return the exact power, None if it doesn't fit 64 bits; not computed when it clearly doesn't."""
    if exponent >= _INT_BITS:
        if base not in (-1, 0, 1):
            return None
        exponent = exponent % 2 + 2
    power: int | None = base**exponent if exponent >= 0 else None
    return power if power is not None and _MIN_INT <= power <= _MAX_INT else None


def real_builtin(
    signature: str, function: Callable[[float], float], summary: str, example: str
) -> Callable[..., float | None]:
    """Declare a function of one number, as a float."""

    def real(vm: Vm, n: Value) -> float | None:
        if not is_number(n):
            return None
        try:
            return function(float(n))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    real.__doc__ = f"{summary}\n\nExample: {example}"
    return builtin(signature)(real)


def _of_zero(logarithm: Callable[[float], float]) -> Callable[[float], float]:
    """Return a logarithm that has a value for zero, too."""
    return lambda x: -math.inf if x == 0 else logarithm(x)


sqrt = real_builtin(
    "sqrt(n: any) -> any", math.sqrt, "Return the square root as a float; NaN below zero.", "sqrt(16)  // 4.0"
)
sin = real_builtin(
    "sin(n: any) -> float?", math.sin, "Return the sine of an angle in radians.", "sin(0)  // 0.0"
)
cos = real_builtin(
    "cos(n: any) -> float?", math.cos, "Return the cosine of an angle in radians.", "cos(0)  // 1.0"
)
tan = real_builtin(
    "tan(n: any) -> float?", math.tan, "Return the tangent of an angle in radians.", "tan(0)  // 0.0"
)
asin = real_builtin(
    "asin(n: any) -> float?",
    math.asin,
    "Return the angle in radians whose sine is `n`; NaN outside -1 to 1.",
    "asin(0)  // 0.0",
)
acos = real_builtin(
    "acos(n: any) -> float?",
    math.acos,
    "Return the angle in radians whose cosine is `n`; NaN outside -1 to 1.",
    "acos(1)  // 0.0",
)
atan = real_builtin(
    "atan(n: any) -> float?",
    math.atan,
    "Return the angle in radians whose tangent is `n`.",
    "atan(1) * 4 == pi  // true",
)
ln = real_builtin(
    "ln(n: any) -> float?",
    _of_zero(math.log),
    "Return the natural logarithm; `-inf` of zero, NaN below.",
    "ln(e)  // 1.0",
)
log2 = real_builtin(
    "log2(n: any) -> float?",
    _of_zero(math.log2),
    "Return the logarithm to base 2; `-inf` of zero, NaN below.",
    "log2(8)  // 3.0",
)
log10 = real_builtin(
    "log10(n: any) -> float?",
    _of_zero(math.log10),
    "Return the logarithm to base 10; `-inf` of zero, NaN below.",
    "log10(1000)  // 3.0",
)
exp = real_builtin("exp(n: any) -> float?", math.exp, "Return e to the power of `n`.", "exp(0)  // 1.0")


@builtin("atan2(y: any, x: any) -> float?")
def atan2(vm: Vm, y: Value, x: Value) -> float | None:
    """Return the angle in radians of the point (`x`, `y`), in its quadrant.

    Example: atan2(-1, -1) < atan(1)  // true
    """
    return math.atan2(y, x) if is_number(y) and is_number(x) else None


@builtin("sign(n: any) -> int | float | nil")
def sign(vm: Vm, n: Value) -> Value:
    """Return -1, 0 or 1, as an int even for floats; NaN for NaN.

    Example: [sign(-2.5), sign(0), sign(9)]  // [-1, 0, 1]
    """
    if not is_number(n):
        return None
    return n if n != n else (n > 0) - (n < 0)


@builtin("is_nan(n: any) -> bool")
def is_nan(vm: Vm, n: Value) -> bool:
    """Return true if `n` is the float NaN.

    Example: is_nan(sqrt(-1))  // true
    """
    return type(n) is float and math.isnan(n)


@builtin("is_infinite(n: any) -> bool")
def is_infinite(vm: Vm, n: Value) -> bool:
    """Return true if `n` is an infinite float.

    Example: is_infinite(1.0 / 0)  // true
    """
    return type(n) is float and math.isinf(n)


# Statistics of a list of numbers, as floats. Spec: 04 §10.
#
# Sums run left to right in plain floats, so that a result is the same on every Python.


@builtin("mean(items: list) -> float")
def mean(vm: Vm, items: Value) -> float:
    """Return the arithmetic mean; `0.0` for an empty list.

    Example: mean([1, 2, 6])  // 3.0
    """
    numbers = _numbers("mean", items)
    return _mean(numbers) if numbers else 0.0


@builtin("median(items: list) -> float")
def median(vm: Vm, items: Value) -> float:
    """Return the middle item of the sorted list, or the mean of the two middle ones.

    Example: median([9, 1, 4, 2])  // 3.0
    """
    return _percentile(_some_numbers("median", items), 50.0)


@builtin("percentile(items: list, p: any) -> float")
def percentile(vm: Vm, items: Value, p: Value) -> float:
    """Return the value below which `p` per cent (0 to 100) of the items lie, interpolated linearly (R-7).

    Example: percentile([10, 20, 30, 40, 50], 90)  // 46.0
    """
    numbers = _some_numbers("percentile", items)
    if not is_number(p):
        raise TypeFault("percentile must be numeric")
    if not 0 <= p <= 100:
        raise RuntimeFault("percentile must be between 0 and 100")
    return _percentile(numbers, float(p))


@builtin("variance(items: list, sample: bool = false) -> float")
def variance(vm: Vm, items: Value, sample: Value) -> float:
    """Return the mean squared distance from the mean; with `sample`, divided by one item less.

    Example: [variance([1, 2, 3, 4, 5]), variance([1, 2, 3, 4, 5], true)]  // [2.0, 2.5]
    """
    return _variance("variance", items, sample)


@builtin("stddev(items: list, sample: bool = false) -> float")
def stddev(vm: Vm, items: Value, sample: Value) -> float:
    """Return the standard deviation, the square root of the `variance`.

    Example: stddev([2, 4, 4, 4, 5, 5, 7, 9])  // 2.0
    """
    return math.sqrt(_variance("stddev", items, sample))


def _numbers(name: str, items: Value) -> list[float]:
    if type(items) is not list:
        raise TypeFault(f"{name}: items must be a list")
    if not all(is_number(item) for item in paced(items)):
        raise TypeFault(f"{name} must be numeric")
    return [float(item) for item in paced(items)]


def _some_numbers(name: str, items: Value) -> list[float]:
    numbers = _numbers(name, items)
    if not numbers:
        raise RuntimeFault(f"{name}: items must not be empty")
    return numbers


def _sum(numbers: list[float]) -> float:
    total = 0.0
    for number in paced(numbers):
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
    squares = _sum([(number - center) * (number - center) for number in paced(numbers)])
    return squares / (len(numbers) - 1 if sample else len(numbers))
