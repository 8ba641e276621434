"""Numbers: rounding, powers, roots, angles, logarithms. Spec: 04 §10.

For anything but a number the result is nil. Nothing raises Python's arithmetic errors: what has no real value
is NaN or an infinity, as IEEE 754 has it.
"""

from __future__ import annotations

import math
from functools import partial

from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values import operators

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="math")

_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1
_INT_BITS = 64


def is_number(value: Value) -> bool:
    """Whether `n` is an int or a float; a bool is neither."""
    return type(value) is int or type(value) is float


@builtin("abs(n: any) -> any")
def absolute(vm: Vm, n: Value) -> Value:
    """The distance from zero, of the number's own type; a float for the least int.

    Example:
        [abs(-3), abs(2.5)]  // [3, 2.5]
    """
    if not is_number(n):
        return None
    return float(-n) if n == _MIN_INT else abs(n)


@builtin("min(a: any, b: any) -> any")
def least(vm: Vm, a: Value, b: Value) -> Value:
    """The smaller of two numbers, a float if either is one. For lists use the method.

    Example:
        min(2, 3)  // 2
    """
    return _extreme(a, b, min)


@builtin("max(a: any, b: any) -> any")
def greatest(vm: Vm, a: Value, b: Value) -> Value:
    """The greater of two numbers, a float if either is one. For lists use the method.

    Example:
        max(2, 3.5)  // 3.5
    """
    return _extreme(a, b, max)


def _extreme(a: Value, b: Value, choose: Callable[[Value, Value], Value]) -> Value:
    if not is_number(a) or not is_number(b):
        return None
    if type(a) is type(b) is int:
        return choose(a, b)
    a, b = float(a), float(b)
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return choose(a, b)


@builtin("floor(n: any) -> any")
def floor(vm: Vm, n: Value) -> int | None:
    """The greatest int not above `n`. Fails for infinities, NaN and what doesn't fit 64 bits.

    Example:
        [floor(1.8), floor(-1.2)]  // [1, -2]
    """
    return _to_int(n, math.floor)


@builtin("ceil(n: any) -> any")
def ceil(vm: Vm, n: Value) -> int | None:
    """The least int not below `n`. Fails for infinities, NaN and what doesn't fit 64 bits.

    Example:
        [ceil(1.2), ceil(-1.2)]  // [2, -1]
    """
    return _to_int(n, math.ceil)


@builtin("round(n: any) -> any")
def round_away(vm: Vm, n: Value) -> int | None:
    """The nearest int, halves away from zero. Fails for infinities, NaN and what doesn't fit 64 bits.

    Example:
        [round(2.5), round(-2.5)]  // [3, -3]
    """
    return _to_int(n, _round)


def _round(x: float) -> int:
    whole = math.trunc(x)
    return whole + int(math.copysign(1, x)) if abs(x - whole) >= 0.5 else whole


def _to_int(n: Value, rounded: Callable[[float], int]) -> int | None:
    if type(n) is not float:
        return n if type(n) is int else None
    if not math.isfinite(n):
        raise RuntimeFault("cannot convert non-finite float to int")
    result = rounded(n)
    if not _MIN_INT <= result <= _MAX_INT:
        raise RuntimeFault("float is outside the representable int range")
    return result


@builtin("pow(base: any, exponent: any) -> any")
def power(vm: Vm, base: Value, exponent: Value) -> Value:
    """`base` to the `exponent`: an int for ints that give one in 64 bits, otherwise a float.

    Example:
        [pow(2, 10), pow(2, -1)]  // [1024, 0.5]
    """
    if not is_number(base) or not is_number(exponent):
        return None
    exact = _int_power(base, exponent) if type(base) is type(exponent) is int else None
    return operators.power(float(base), float(exponent)) if exact is None else exact


def _int_power(base: int, exponent: int) -> int | None:
    """The exact power, None if it doesn't fit 64 bits; not computed when it clearly doesn't."""
    if exponent >= _INT_BITS:
        if base not in (-1, 0, 1):
            return None
        exponent = exponent % 2 + 2
    power: int | None = base**exponent if exponent >= 0 else None
    return power if power is not None and _MIN_INT <= power <= _MAX_INT else None


@builtin("sqrt(n: any) -> any")
def sqrt(vm: Vm, n: Value) -> float | None:
    """The square root as a float; NaN below zero.

    Example:
        sqrt(16)  // 4.0
    """
    return _real(n, math.sqrt)


@builtin("sin(n: any) -> float")
def sin(vm: Vm, n: Value) -> float | None:
    """The sine of an angle in radians.

    Example:
        sin(0)  // 0.0
    """
    return _real(n, math.sin)


@builtin("cos(n: any) -> float")
def cos(vm: Vm, n: Value) -> float | None:
    """The cosine of an angle in radians.

    Example:
        cos(0)  // 1.0
    """
    return _real(n, math.cos)


@builtin("tan(n: any) -> float")
def tan(vm: Vm, n: Value) -> float | None:
    """The tangent of an angle in radians.

    Example:
        tan(0)  // 0.0
    """
    return _real(n, math.tan)


@builtin("asin(n: any) -> float")
def asin(vm: Vm, n: Value) -> float | None:
    """The angle in radians whose sine is `n`; NaN outside -1 to 1.

    Example:
        asin(0)  // 0.0
    """
    return _real(n, math.asin)


@builtin("acos(n: any) -> float")
def acos(vm: Vm, n: Value) -> float | None:
    """The angle in radians whose cosine is `n`; NaN outside -1 to 1.

    Example:
        acos(1)  // 0.0
    """
    return _real(n, math.acos)


@builtin("atan(n: any) -> float")
def atan(vm: Vm, n: Value) -> float | None:
    """The angle in radians whose tangent is `n`.

    Example:
        atan(1) * 4 == pi  // true
    """
    return _real(n, math.atan)


@builtin("atan2(y: any, x: any) -> float")
def atan2(vm: Vm, y: Value, x: Value) -> float | None:
    """The angle in radians of the point (`x`, `y`), in its quadrant.

    Example:
        atan2(-1, -1) < atan(1)  // true
    """
    return math.atan2(y, x) if is_number(y) and is_number(x) else None


@builtin("ln(n: any) -> float")
def ln(vm: Vm, n: Value) -> float | None:
    """The natural logarithm; `-inf` of zero, NaN below.

    Example:
        ln(e)  // 1.0
    """
    return _log(n, math.log)


@builtin("log2(n: any) -> float")
def log2(vm: Vm, n: Value) -> float | None:
    """The logarithm to base 2; `-inf` of zero, NaN below.

    Example:
        log2(8)  // 3.0
    """
    return _log(n, math.log2)


@builtin("log10(n: any) -> float")
def log10(vm: Vm, n: Value) -> float | None:
    """The logarithm to base 10; `-inf` of zero, NaN below.

    Example:
        log10(1000)  // 3.0
    """
    return _log(n, math.log10)


@builtin("exp(n: any) -> float")
def exp(vm: Vm, n: Value) -> float | None:
    """e to the power of `n`.

    Example:
        exp(0)  // 1.0
    """
    return _real(n, math.exp)


def _log(n: Value, logarithm: Callable[[float], float]) -> float | None:
    return -math.inf if is_number(n) and n == 0 else _real(n, logarithm)


def _real(n: Value, function: Callable[[float], float]) -> float | None:
    if not is_number(n):
        return None
    try:
        return function(float(n))
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


@builtin("sign(n: any) -> int")
def sign(vm: Vm, n: Value) -> Value:
    """-1, 0 or 1, an int for floats too; NaN of NaN.

    Example:
        [sign(-2.5), sign(0), sign(9)]  // [-1, 0, 1]
    """
    if not is_number(n):
        return None
    return n if n != n else (n > 0) - (n < 0)


@builtin("is_nan(n: any) -> bool")
def is_nan(vm: Vm, n: Value) -> bool:
    """Whether `n` is the float NaN.

    Example:
        is_nan(sqrt(-1))  // true
    """
    return type(n) is float and math.isnan(n)


@builtin("is_infinite(n: any) -> bool")
def is_infinite(vm: Vm, n: Value) -> bool:
    """Whether `n` is an infinite float.

    Example:
        is_infinite(1.0 / 0)  // true
    """
    return type(n) is float and math.isinf(n)
