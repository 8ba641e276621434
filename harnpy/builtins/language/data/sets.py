"""Functions of sets. Spec: 04 §7.

Members differ when their structural keys do, so `1` and `1.0` are two; the methods compare with `==`.
"""

from __future__ import annotations

from functools import partial

from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.run.methods.lists import unique
from harnpy.vm.values.equality import structural_key
from harnpy.vm.values.objects import Set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="collections")


@builtin("set(...items: any) -> set")
def make_set(vm: Vm, *items: Value) -> Set:
    """The distinct items of the lists and sets among the arguments, and the other arguments themselves.

    Example:
        set([1, 2], 2, 3).to_list()  // [1, 2, 3]
    """
    members: list[Value] = []
    for item in items:
        if type(item) is list:
            members += item
        elif type(item) is Set:
            members += item.items
        else:
            members.append(item)
    return Set(unique(vm, members))


@builtin("set_contains(s: set, item: any) -> bool")
def set_contains(vm: Vm, s: Value, item: Value) -> bool:
    """Whether `item` is a member; false unless `s` is a set.

    Example:
        set_contains(set(1, 2), 2)  // true
    """
    return type(s) is Set and structural_key(item) in _keys(vm, s)


@builtin("set_add(s: set, item: any) -> set")
def set_add(vm: Vm, s: Value, item: Value) -> Set:
    """The set with `item`.

    Example:
        set_add(set(1), 2)  // set(1, 2)
    """
    return Set(unique(vm, [*_set("set_add", s).items, item]))


@builtin("set_remove(s: set, item: any) -> set")
def set_remove(vm: Vm, s: Value, item: Value) -> Set:
    """The set without `item`.

    Example:
        set_remove(set(1, 2), 1)  // set(2)
    """
    return _without(vm, _set("set_remove", s), {structural_key(item)})


@builtin("set_union(a: set, b: set) -> set")
def set_union(vm: Vm, a: Value, b: Value) -> Set:
    """The members of `a`, then those that only `b` has.

    Example:
        set_union(set(1, 2), set(2, 3))  // set(1, 2, 3)
    """
    _both("set_union", a, b)
    return Set(unique(vm, a.items + b.items))


@builtin("set_intersect(a: set, b: set) -> set")
def set_intersect(vm: Vm, a: Value, b: Value) -> Set:
    """The members of `a` that `b` has too.

    Example:
        set_intersect(set(1, 2, 3), set(2, 3, 4))  // set(2, 3)
    """
    _both("set_intersect", a, b)
    theirs = _keys(vm, b)
    return Set([item for item in vm.paced(a.items) if structural_key(item) in theirs])


@builtin("set_difference(a: set, b: set) -> set")
def set_difference(vm: Vm, a: Value, b: Value) -> Set:
    """The members of `a` that `b` doesn't have.

    Example:
        set_difference(set(1, 2, 3), set(2))  // set(1, 3)
    """
    _both("set_difference", a, b)
    return _without(vm, a, _keys(vm, b))


@builtin("set_symmetric_difference(a: set, b: set) -> set")
def set_symmetric_difference(vm: Vm, a: Value, b: Value) -> Set:
    """The members that only `a` has, then those that only `b` has.

    Example:
        set_symmetric_difference(set(1, 2), set(2, 3))  // set(1, 3)
    """
    _both("set_symmetric_difference", a, b)
    return Set(_without(vm, a, _keys(vm, b)).items + _without(vm, b, _keys(vm, a)).items)


@builtin("set_is_subset(a: set, b: set) -> bool")
def set_is_subset(vm: Vm, a: Value, b: Value) -> bool:
    """Whether `b` has every member of `a`; false unless both are sets.

    Example:
        set_is_subset(set(1), set(1, 2))  // true
    """
    return _are_sets(a, b) and _keys(vm, a) <= _keys(vm, b)


@builtin("set_is_superset(a: set, b: set) -> bool")
def set_is_superset(vm: Vm, a: Value, b: Value) -> bool:
    """Whether `a` has every member of `b`; false unless both are sets.

    Example:
        set_is_superset(set(1, 2), set(1))  // true
    """
    return _are_sets(a, b) and _keys(vm, a) >= _keys(vm, b)


@builtin("set_is_disjoint(a: set, b: set) -> bool")
def set_is_disjoint(vm: Vm, a: Value, b: Value) -> bool:
    """Whether no member of `a` is in `b`; true unless both are sets.

    Example:
        set_is_disjoint(set(1, 2), set(3))  // true
    """
    return not _are_sets(a, b) or _keys(vm, a).isdisjoint(_keys(vm, b))


def _keys(vm: Vm, s: Set) -> set[Hashable]:
    return {structural_key(item) for item in vm.paced(s.items)}


def _without(vm: Vm, s: Set, unwanted: set[Hashable]) -> Set:
    return Set([item for item in vm.paced(s.items) if structural_key(item) not in unwanted])


def _are_sets(a: Value, b: Value) -> bool:
    return type(a) is Set and type(b) is Set


def _set(name: str, s: Value) -> Set:
    if type(s) is not Set:
        raise Thrown(f"{name}: first argument must be a set")
    return s


def _both(name: str, a: Value, b: Value) -> None:
    if not _are_sets(a, b):
        raise Thrown(f"{name}: arguments must be sets")
