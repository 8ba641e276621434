"""Methods of sets. They compare with `==`, so that 1 and 1.0 coincide. Spec: 04 §7."""

from __future__ import annotations

from harnpy.vm.declare.builtin import method
from harnpy.vm.run.methods import lists
from harnpy.vm.values.equality import Members, contains_value
from harnpy.vm.values.objects import Set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Iter
    from harnpy.vm.vm import Vm

    Value = Any


@method("set", "count() -> int")
@method("set", "len() -> int")
def count(vm: Vm, self: Set) -> int:
    """The number of members.

    Example:
        set(1, 2).count()  // 2
    """
    return len(self.items)


@method("set", "empty() -> bool")
def empty(vm: Vm, self: Set) -> bool:
    """Whether there is no member.

    Example:
        set().empty()  // true
    """
    return not self.items


@method("set", "contains(v) -> bool")
def contains(vm: Vm, self: Set, v: Value) -> bool:
    """Whether a member equals `v`.

    Example:
        set(1, 2).contains(2)  // true
    """
    return contains_value(vm.paced(self.items), v)


@method("set", "add(v) -> set")
def add(vm: Vm, self: Set, v: Value) -> Set:
    """With `v`, unless a member equals it.

    Example:
        set(1).add(2)  // set(1, 2)
    """
    return self if contains_value(vm.paced(self.items), v) else Set([*self.items, v])


@method("set", "remove(v) -> set")
@method("set", "delete(v) -> set")
def remove(vm: Vm, self: Set, v: Value) -> Set:
    """Without the member that equals `v`.

    Example:
        set(1, 2).remove(1)  // set(2)
    """
    return _without(vm, self, Members([v]))


@method("set", "union(other: set) -> set")
def union(vm: Vm, self: Set, other: Value) -> Set:
    """The members of both.

    Example:
        set(1, 2).union(set(2, 3))  // set(1, 2, 3)
    """
    return Set(_distinct(vm, [*self.items, *other.items]).items) if type(other) is Set else self


@method("set", "intersect(other: set) -> set")
@method("set", "intersection(other: set) -> set")
def intersect(vm: Vm, self: Set, other: Value) -> Set:
    """The members that `other` has too.

    Example:
        set(1, 2).intersect(set(2, 3))  // set(2)
    """
    theirs = _members(vm, other)
    return Set([item for item in vm.paced(self.items) if theirs.has(item)])


@method("set", "difference(other: set) -> set")
def difference(vm: Vm, self: Set, other: Value) -> Set:
    """The members that `other` doesn't have.

    Example:
        set(1, 2).difference(set(2, 3))  // set(1)
    """
    return _without(vm, self, _members(vm, other))


@method("set", "symmetric_difference(other: set) -> set")
def symmetric_difference(vm: Vm, self: Set, other: Value) -> Set:
    """The members of one but not the other, those of this set first.

    Example:
        set(1, 2).symmetric_difference(set(2, 3))  // set(1, 3)
    """
    if type(other) is not Set:
        return self
    return Set(difference(vm, self, other).items + difference(vm, other, self).items)


@method("set", "is_subset(other: set) -> bool")
def is_subset(vm: Vm, self: Set, other: Value) -> bool:
    """Whether `other` has every member.

    Example:
        set(1).is_subset(set(1, 2))  // true
    """
    return type(other) is Set and not difference(vm, self, other).items


@method("set", "is_superset(other: set) -> bool")
def is_superset(vm: Vm, self: Set, other: Value) -> bool:
    """Whether every member of `other` is a member.

    Example:
        set(1, 2).is_superset(set(1))  // true
    """
    return type(other) is Set and not difference(vm, other, self).items


@method("set", "is_disjoint(other: set) -> bool")
def is_disjoint(vm: Vm, self: Set, other: Value) -> bool:
    """Whether no member is in `other`.

    Example:
        set(1).is_disjoint(set(2))  // true
    """
    return not intersect(vm, self, other).items


@method("set", "to_list() -> list")
def to_list(vm: Vm, self: Set) -> list[Value]:
    """The members in the order they came.

    Example:
        set(2, 1).to_list()  // [2, 1]
    """
    return self.items


@method("set", "map(f: callable) -> set")
def map_(vm: Vm, self: Set, f: Value) -> Set | None:
    """The distinct `f(member)`.

    Example:
        set(1, 2, 3).map({ n -> n % 2 })  // set(1, 0)
    """
    results = lists.map_(vm, self.items, f)
    return None if results is None else Set(_distinct(vm, results).items)


@method("set", "filter(f: callable) -> set")
def filter_(vm: Vm, self: Set, f: Value) -> Set | None:
    """The members for which `f(member)` is truthy.

    Example:
        set(1, 2, 3).filter({ n -> n > 1 })  // set(2, 3)
    """
    kept = lists.filter_(vm, self.items, f)
    return None if kept is None else Set(kept)


@method("set", "any(f: callable) -> bool")
def any_(vm: Vm, self: Set, f: Value) -> bool:
    """Whether `f(member)` is truthy for some member.

    Example:
        set(1, 2).any({ n -> n > 1 })  // true
    """
    return lists.any_(vm, self.items, f)


@method("set", "all(f: callable) -> bool")
@method("set", "every(f: callable) -> bool")
def all_(vm: Vm, self: Set, f: Value) -> bool:
    """Whether `f(member)` is truthy for every member.

    Example:
        set(1, 2).all({ n -> n > 0 })  // true
    """
    return lists.all_(vm, self.items, f)


@method("set", "iter() -> iter")
def iter_(vm: Vm, self: Set) -> Iter:
    """A lazy iterator over the members.

    Example:
        set(1, 2, 3).iter().take(2).to_list()  // [1, 2]
    """
    return vm.handle(self)


def _members(vm: Vm, value: Value) -> Members:
    """The members of a set; what isn't a set has none."""
    return _distinct(vm, value.items if type(value) is Set else [])


def _distinct(vm: Vm, items: list[Value]) -> Members:
    return Members(vm.paced(items), vm.paced)


def _without(vm: Vm, source: Set, unwanted: Members) -> Set:
    return Set([item for item in vm.paced(source.items) if not unwanted.has(item)])
