"""A person's answer as the value that the program asked for. Spec: 07 §14.6."""

from __future__ import annotations

from harnpy.builtins.bridge.domain_values import HarnValues
from harnpy.builtins.language.data.types import to_float, to_int
from harnpy.schemas.checking import check
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import Duration, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.schemas.canonical import Schema
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

_BOOLS = {"true": True, "false": False}


def expected(vm: Vm, answer: Value, schema: Schema) -> Value:
    """Fill in the defaults of a canonical schema. Throws what is wrong with the answer."""
    value, errors = check(answer, schema, HarnValues(vm), defaults=True)
    if errors:
        raise Thrown("; ".join(errors))
    return value


def coerced(vm: Vm, answer: Value, default: Value) -> Value:
    """Return ``answer`` as a value of ``default``'s type, or the default itself if it doesn't fit."""
    kind = type_name(default)
    if kind in _CONVERSIONS:
        value = _CONVERSIONS[kind](vm, answer)
    else:
        value = answer if type_name(answer) == kind else None
    return default if value is None else value


def _int(vm: Vm, answer: Value) -> int | None:
    return None if type(answer) is bool else to_int(vm, answer)


def _float(vm: Vm, answer: Value) -> float | None:
    return to_float(vm, answer)


def _bool(vm: Vm, answer: Value) -> bool | None:
    if type(answer) is str:
        return _BOOLS.get(answer.lower())
    return answer if type(answer) is bool else None


def _string(vm: Vm, answer: Value) -> str:
    return display(answer)


def _duration(vm: Vm, answer: Value) -> Duration | None:
    if type(answer) is int:
        return Duration(answer)
    return answer if type(answer) is Duration else None


_CONVERSIONS: dict[str, Callable[[Vm, Value], Value]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "string": _string,
    "duration": _duration,
}
