"""Atomics: integers that all tasks share. Spec: 05 §6."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.data.types import truncated
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.values.objects import Atomic
from harnpy.vm.values.operators import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="concurrency", counted=True)


@builtin("atomic(initial: any = 0) -> atomic")
def atomic(vm: Vm, initial: Value = 0) -> Atomic:
    """A 64-bit integer that every task which holds it shares.

    A float is cut towards zero, true counts as 1; anything else but an int is 0.

    Example:
        let hits = atomic(40)
        atomic_add(hits, 2)
        atomic_get(hits)  // 42
    """
    if type(initial) is float:
        return Atomic(truncated(initial))
    return Atomic(int(initial) if type(initial) in (int, bool) else 0)


@builtin("atomic_get(a: atomic) -> int | nil")
def atomic_get(vm: Vm, a: Value = None) -> int | None:
    """The current value; nil for anything that is no atomic.

    Example:
        atomic_get(atomic(3))  // 3
    """
    return a.value if type(a) is Atomic else None


@builtin("atomic_set(a: atomic, value: int) -> int | nil")
def atomic_set(vm: Vm, a: Value = None, value: Value = None) -> int | None:
    """Store `value`; returns the former value. Wrong types change nothing and give nil.

    Example:
        let hits = atomic(3)
        [atomic_set(hits, 9), atomic_get(hits)]  // [3, 9]
    """
    if type(a) is not Atomic or type(value) is not int:
        return None
    before, a.value = a.value, value
    return before


@builtin("atomic_add(a: atomic, delta: int) -> int | nil")
def atomic_add(vm: Vm, a: Value = None, delta: Value = None) -> int | None:
    """Add `delta`, in 64 bits; returns the former value. Wrong types change nothing and give nil.

    Example:
        let hits = atomic(40)
        [atomic_add(hits, 2), atomic_get(hits)]  // [40, 42]
    """
    if type(a) is not Atomic or type(delta) is not int:
        return None
    before, a.value = a.value, wrap(a.value + delta)
    return before


@builtin("atomic_cas(a: atomic, expected: int, new: int) -> bool")
def atomic_cas(vm: Vm, a: Value = None, expected: Value = None, new: Value = None) -> bool:
    """Store `new` if the current value is `expected`; returns whether it was. Wrong types give false.

    Example:
        let slot = atomic(0)
        [atomic_cas(slot, 0, 7), atomic_cas(slot, 0, 9), atomic_get(slot)]  // [true, false, 7]
    """
    if type(a) is not Atomic or type(expected) is not int or type(new) is not int or a.value != expected:
        return False
    a.value = new
    return True
