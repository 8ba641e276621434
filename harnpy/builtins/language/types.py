"""Types of values, conversions between them, and ``Result``. Spec: 02 §2.4, §3.4, §19.5, 04 §2."""

from __future__ import annotations

import math
from functools import partial

from harnpy.faults import paced
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values import Builtin, EnumValue, Fn, Pair, Range, Set, display, type_name
from harnpy.vm.values.equality import equal, structural_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1
_MAX_DIGITS = 19

_SIZED = frozenset({str, bytes, list, dict})
_HAVE_IDENTITY = frozenset({list, dict, Set, Fn, Pair})
_HAVE_ADDRESS = frozenset({list, dict, Set, Fn, str, bytes})

_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


@builtin("type_of(value: any) -> string", family="types")
def type_of(vm: Vm, value: Value) -> str:
    """Return the name of the value's type: `int`, `string`, `closure`, `struct` …

    Example: [type_of(1), type_of(1.0), type_of({ x -> x })]  // ["int", "float", "closure"]
    """
    return type_name(value)


@builtin("to_string(value: any) -> string", family="types")
def to_string(vm: Vm, value: Value) -> str:
    """Return the value's text, as `println` shows it.

    Example: to_string([1, "a", nil])  // "[1, a, nil]"
    """
    return display(value)


@builtin("to_int(value: any) -> int?", family="types")
def to_int(vm: Vm, value: Value) -> int | None:
    """Return an int, a truncated float, or a string of digits, as an int; nil for anything else.

    A float beyond 64 bits becomes the nearest limit, NaN 0.

    Example: [to_int("42"), to_int(-7.9), to_int("4 apples")]  // [42, -7, nil]
    """
    if type(value) is int:
        return value
    if type(value) is float:
        return truncated(value)
    return parsed_int(value) if type(value) is str else None


def truncated(x: float) -> int:
    if math.isnan(x):
        return 0
    finite = min(max(x, -1e19), 1e19)
    return min(max(int(finite), _MIN_INT), _MAX_INT)


def parsed_int(text: str) -> int | None:
    """Return the int that the whole text spells in decimal digits."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > _MAX_DIGITS:
        return None
    number = int(text)
    return number if _MIN_INT <= number <= _MAX_INT else None


@builtin("to_float(value: any) -> float?", family="types")
def to_float(vm: Vm, value: Value) -> float | None:
    """Return a number, or a string such as `"-2.5e3"`, `"inf"`, `"NaN"`, as a float; nil for anything else.

    Example: to_float("2.5e3")  // 2500.0
    """
    if type(value) is float or type(value) is int:
        return float(value)
    return parsed_float(value) if type(value) is str else None


def parsed_float(text: str) -> float | None:
    """Return the float that the whole text spells."""
    # Python also reads digits of other scripts, underscores and surrounding white space.
    if not text.isascii() or "_" in text or text != text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        return None


@builtin("to_list(value: any) -> list", family="types")
def to_list(vm: Vm, value: Value) -> list[Value]:
    """Return the items of a set in insertion order, a list itself, and any other value as a list of one.

    Example: to_list(set(3, 1, 3))  // [3, 1]
    """
    if type(value) is list:
        return value
    return value.items if type(value) is Set else [value]


@builtin("len(value: any) -> int", family="types")
def length(vm: Vm, value: Value) -> int:
    """Return the characters of a string, bytes, or items of a list, dict, set or range; 0 for anything else.

    Example: [len("naïve"), len([1, 2]), len(nil)]  // [5, 2, 0]
    """
    if type(value) in _SIZED:
        return len(value)
    if type(value) is Set:
        return len(value.items)
    return value.size if type(value) is Range else 0


@builtin("is_same(a: any, b: any) -> bool", family="types")
def is_same(vm: Vm, a: Value, b: Value) -> bool:
    """Return true if both are the same list, dict, set, closure or pair; other values are compared with `==`.

    Example:
        let a = [1]
        [is_same(a, a), is_same(a, [1])]  // [true, false]
    """
    return a is b if type(a) in _HAVE_IDENTITY else equal(a, b)


@builtin("addr_of(value: any) -> string", family="types")
def addr_of(vm: Vm, value: Value) -> str:
    """Return a text that identifies a value of its type: `list@<address>`, `int@42`, `builtin@len`.

    Example: addr_of(42)  // "int@42"
    """
    if type(value) in _HAVE_ADDRESS:
        return f"{type_name(value)}@{id(value):#x}"
    return f"{type_name(value)}@{value.name if type(value) is Builtin else display(value)}"


@builtin("hash_value(value: any) -> int", family="crypto")
def hash_value(vm: Vm, value: Value) -> int:
    """Return a number that is the same in every run for equal values of the same types.

    Example: [hash_value([1, 2]) == hash_value([1, 2]), hash_value(1) == hash_value("1")]  // [true, false]
    """
    code = _FNV_OFFSET
    for byte in paced(_key_text(structural_key(value)).encode()):
        code = (code ^ byte) * _FNV_PRIME % 2**64
    return code - 2**64 if code > _MAX_INT else code


def _key_text(key: Value) -> str:
    """Return a structural key as text: literals and type names only, which mark their own ends."""
    if type(key) is tuple:
        return " ".join([_key_text(part) for part in paced(key)])
    return key.__qualname__ if isinstance(key, type) else repr(key)


@builtin("unreachable(value?: any) -> never", family="types", counted=True)
def unreachable(vm: Vm, value: Value = ABSENT) -> NoReturn:
    """Fail: marks code that must never be reached.

    Example:
        let light = {colour: "red"}
        match light.colour {
          "red" -> { "stop" }
          "green" -> { "go" }
          _ -> { unreachable("a light is red or green") }
        }  // "stop"
    """
    detail = "" if value is ABSENT else f": {display(value)}"
    raise RuntimeFault(f"unreachable code was reached{detail}")


# ``Result``: a value or an error as a value. Spec: 04 §2, 02 §19.5.


result_builtin = partial(declare, family="types")


def _is(variant: str, value: Value) -> bool:
    return type(value) is EnumValue and value.enum == "Result" and value.variant == variant


def _payload(result: EnumValue) -> Value:
    return result.fields[0] if result.fields else None


@result_builtin("Ok(value?: any) -> Result")
def ok(vm: Vm, value: Value) -> EnumValue:
    """Return a successful Result.

    Example: unwrap(Ok(3))  // 3
    """
    return EnumValue("Result", "Ok", (value,))


@result_builtin("Err(error?: any) -> Result")
def err(vm: Vm, error: Value) -> EnumValue:
    """Return a failed Result.

    Example: is_err(Err("no such file"))  // true
    """
    return EnumValue("Result", "Err", (error,))


@result_builtin("is_ok(result: any) -> bool")
def is_ok(vm: Vm, result: Value) -> bool:
    """Return true if `result` is a `Result.Ok`.

    Example: is_ok(Ok(3))  // true
    """
    return _is("Ok", result)


@result_builtin("is_err(result: any) -> bool")
def is_err(vm: Vm, result: Value) -> bool:
    """Return true if `result` is a `Result.Err`.

    Example: is_err(Ok(3))  // false
    """
    return _is("Err", result)


@result_builtin("unwrap(result: any) -> any")
def unwrap(vm: Vm, result: Value) -> Value:
    """Return the payload of an Ok; fail on an Err. Any other value is returned unchanged.

    Example: unwrap(Ok("text"))  // "text"
    """
    if _is("Err", result):
        raise RuntimeFault(f"unwrap called on Err: {display(_payload(result))}")
    return _payload(result) if _is("Ok", result) else result


@result_builtin("unwrap_or(result: any, default?: any) -> any")
def unwrap_or(vm: Vm, result: Value, default: Value) -> Value:
    """Return the payload of an Ok, `default` for an Err, and any other value unchanged.

    Example: unwrap_or(Err("no such file"), "")  // ""
    """
    if _is("Err", result):
        return default
    return _payload(result) if _is("Ok", result) else result


@result_builtin("unwrap_err(result: any) -> any")
def unwrap_err(vm: Vm, result: Value) -> Value:
    """Return the payload of an Err; fail on anything else.

    Example: unwrap_err(Err("no such file"))  // "no such file"
    """
    if not _is("Err", result):
        raise RuntimeFault("unwrap_err called on non-Err")
    return _payload(result)
