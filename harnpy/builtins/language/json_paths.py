"""Looking into data by JSON Pointer and by jq's expressions. Spec: 04 §11.3, §11.4."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.schemas import HarnValues
from harnpy.formats import json_pointer as pointer
from harnpy.formats.jq import JqError, parse
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="json_schema", counted=True)


@builtin("json_pointer(v: any, ptr: string) -> any")
def json_pointer(vm: Vm, v: Value = ABSENT, ptr: Value = ABSENT) -> Value:
    """Return the value at a JSON Pointer (`/users/0/name`), or nil; `""` is the whole value.

    Example: json_pointer({items: [{n: 1}, {n: 2}]}, "/items/1/n")  // 2
    """
    return _applied("json_pointer", pointer.found_at, v, ptr)


@builtin("json_pointer_set(v: any, ptr: string, new: any) -> any")
def json_pointer_set(vm: Vm, v: Value = ABSENT, ptr: Value = ABSENT, new: Value = ABSENT) -> Value:
    """Return `v` with `new` at a JSON Pointer: a key, an index, or `-` for the end of a list.

    The place's parent must exist; otherwise `v` is returned unchanged.

    Example: json_pointer_set({items: [1]}, "/items/0", 9)  // {items: [9]}
    """
    return _applied("json_pointer_set", pointer.with_value, v, ptr, new)


@builtin("json_pointer_delete(v: any, ptr: string) -> any")
def json_pointer_delete(vm: Vm, v: Value = ABSENT, ptr: Value = ABSENT) -> Value:
    """Return `v` without what is at a JSON Pointer; nil for `""`.

    Example: json_pointer_delete({a: 1, b: 2}, "/a")  // {b: 2}
    """
    return _applied("json_pointer_delete", pointer.without_value, v, ptr)


def _applied(name: str, apply: Callable[..., Value], v: Value, ptr: Value, *new: Value) -> Value:
    if ABSENT in (ptr, *new):
        raise Thrown(f"{name} requires {2 + len(new)} arguments")
    try:
        return apply(v, display(ptr), *new)
    except pointer.PointerError as error:
        raise Thrown(f"{name}: {error}") from None


@builtin("jq(v: any, expr: string) -> list")
def jq(vm: Vm, v: Value = ABSENT, expr: Value = ABSENT) -> list[Value]:
    """Return every result of a jq expression on `v`: `.users[] | select(.age > 30) | .name`.

    Example: jq({items: [{n: 1}, {n: 2}]}, ".items[].n")  // [1, 2]
    """
    return _results("jq", vm, v, expr)


@builtin("jq_first(v: any, expr: string) -> any")
def jq_first(vm: Vm, v: Value = ABSENT, expr: Value = ABSENT) -> Value:
    """Return the first result of a jq expression on `v`, or nil.

    Example: jq_first({items: [{n: 1}, {n: 2}]}, ".items[] | select(.n > 1)")  // {n: 2}
    """
    return next(iter(_results("jq_first", vm, v, expr)), None)


def _results(name: str, vm: Vm, v: Value, expr: Value) -> list[Value]:
    if expr is ABSENT:
        raise Thrown(f"{name} requires 2 arguments")
    try:
        filter = parse(display(expr))
    except JqError as error:
        raise Thrown(f"jq: {error}") from None
    return filter(v, _Run(vm))


class _Run(HarnValues):
    """The language's values for jq."""

    def made(self, results: int) -> None:
        self.look()
        self._vm.sizes.check_items(results)
