"""``Result``: a value or an error as a value. Spec: 04 §2, 02 §19.5."""

from __future__ import annotations

from functools import partial

from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import EnumValue, display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="types")


def _is(variant: str, value: Value) -> bool:
    return type(value) is EnumValue and value.enum == "Result" and value.variant == variant


def _payload(result: EnumValue) -> Value:
    return result.fields[0] if result.fields else None


@builtin("Ok(value?: any) -> Result")
def ok(vm: Vm, value: Value) -> EnumValue:
    """The Result of a success.

    Example:
        unwrap(Ok(3))  // 3
    """
    return EnumValue("Result", "Ok", (value,))


@builtin("Err(error?: any) -> Result")
def err(vm: Vm, error: Value) -> EnumValue:
    """The Result of a failure.

    Example:
        is_err(Err("no such file"))  // true
    """
    return EnumValue("Result", "Err", (error,))


@builtin("is_ok(result: any) -> bool")
def is_ok(vm: Vm, result: Value) -> bool:
    """Whether `result` is a `Result.Ok`.

    Example:
        is_ok(Ok(3))  // true
    """
    return _is("Ok", result)


@builtin("is_err(result: any) -> bool")
def is_err(vm: Vm, result: Value) -> bool:
    """Whether `result` is a `Result.Err`.

    Example:
        is_err(Ok(3))  // false
    """
    return _is("Err", result)


@builtin("unwrap(result: any) -> any")
def unwrap(vm: Vm, result: Value) -> Value:
    """The payload of an Ok; an Err fails. Any other value is returned as it is.

    Example:
        unwrap(Ok("text"))  // "text"
    """
    if _is("Err", result):
        raise RuntimeFault(f"unwrap called on Err: {display(_payload(result))}")
    return _payload(result) if _is("Ok", result) else result


@builtin("unwrap_or(result: any, default?: any) -> any")
def unwrap_or(vm: Vm, result: Value, default: Value) -> Value:
    """The payload of an Ok, `default` for an Err; any other value is returned as it is.

    Example:
        unwrap_or(Err("no such file"), "")  // ""
    """
    if _is("Err", result):
        return default
    return _payload(result) if _is("Ok", result) else result


@builtin("unwrap_err(result: any) -> any")
def unwrap_err(vm: Vm, result: Value) -> Value:
    """The payload of an Err; anything else fails.

    Example:
        unwrap_err(Err("no such file"))  // "no such file"
    """
    if not _is("Err", result):
        raise RuntimeFault("unwrap_err called on non-Err")
    return _payload(result)
