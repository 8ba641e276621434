"""Methods of dicts and sets. Spec: 04 §6, §7.

The order of a dict, where it shows, is that of the keys. Any other name calls the entry of that name, if it
is callable; generated code sees to that. Sets compare with `==`, so that 1 and 1.0 coincide.
"""

from __future__ import annotations

from harnpy.faults import paced
from harnpy.vm.declare import method
from harnpy.vm.run import list_methods
from harnpy.vm.values import Set, display
from harnpy.vm.values.equality import Members, contains_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Iter, Value
    from harnpy.vm.vm import Vm


@method("dict", "keys() -> list")
def keys(vm: Vm, self: Dict) -> list[str]:
    """The keys in ascending order.

    Example: {b: 2, a: 1}.keys()  // ["a", "b"]
    """
    return sorted(self)


@method("dict", "values() -> list")
def values(vm: Vm, self: Dict) -> list[Value]:
    """The values in the order of their keys.

    Example: {b: 2, a: 1}.values()  // [1, 2]
    """
    return [self[key] for key in paced(sorted(self))]


@method("dict", "entries() -> list")
def entries(vm: Vm, self: Dict) -> list[Value]:
    """A dict `{key, value}` for each entry, in key order.

    Example: {a: 1}.entries()  // [{key: "a", value: 1}]
    """
    return [{"key": key, "value": self[key]} for key in paced(sorted(self))]


@method("dict", "count() -> int")
def dict_count(vm: Vm, self: Dict) -> int:
    """The number of entries.

    Example: {a: 1, b: 2}.count()  // 2
    """
    return len(self)


@method("dict", "has(key: string) -> bool")
def has(vm: Vm, self: Dict, key: str) -> bool:
    """Return true if there is an entry `key`, be it nil.

    Example: {a: nil}.has("a")  // true
    """
    return key in self


@method("dict", "get(key: string, default = nil) -> any")
def get(vm: Vm, self: Dict, key: str, default: Value) -> Value:
    """The value of entry `key`; `default` if there is no such entry.

    Example: [{a: 1}.get("a"), {a: 1}.get("b", 0)]  // [1, 0]
    """
    return self.get(key, default)


@method("dict", "merge(other: dict) -> dict")
def merge(vm: Vm, self: Dict, other: Value) -> Dict:
    """With the entries of `other` added; on equal keys `other` wins.

    Example: {a: 1, b: 2}.merge({b: 3})  // {a: 1, b: 3}
    """
    return {**self, **other} if type(other) is dict else self


@method("dict", "map_values(f: callable) -> dict")
def map_values(vm: Vm, self: Dict, f: Value) -> Dict | None:
    """The same keys with `f(value)`.

    Example: {a: 1}.map_values({ v -> v * 10 })  // {a: 10}
    """
    g = vm.callback(f, 1)
    return None if g is None else {key: g(0, self[key]) for key in paced(sorted(self))}


@method("dict", "map_keys(f: callable) -> dict")
@method("dict", "rekey(f: callable) -> dict")
def map_keys(vm: Vm, self: Dict, f: Value) -> Dict | None:
    """The same values under the display text of `f(key)`; of colliding keys the last one wins.

    Example: {a: 1}.map_keys({ key -> uppercase(key) })  // {A: 1}
    """
    g = vm.callback(f, 1)
    return None if g is None else {display(g(0, key)): self[key] for key in paced(sorted(self))}


@method("dict", "filter(f: callable) -> dict")
def dict_filter(vm: Vm, self: Dict, f: Value) -> Dict | None:
    """The entries for which `f(value)` is truthy.

    Example: {a: 1, b: 2}.filter({ v -> v > 1 })  // {b: 2}
    """
    g = vm.callback(f, 1)
    return None if g is None else {key: self[key] for key in paced(sorted(self)) if g(0, self[key])}


@method("dict", "remove(key: string) -> dict")
def dict_remove(vm: Vm, self: Dict, key: str) -> Dict:
    """Without the entry `key`.

    Example: {a: 1, b: 2}.remove("a")  // {b: 2}
    """
    rest = dict(self)
    rest.pop(key, None)
    return rest


@method("dict", "iter() -> iter")
def dict_iter(vm: Vm, self: Dict) -> Iter:
    """A lazy iterator over a pair (key, value) for each entry, in key order.

    Example: {b: 2, a: 1}.iter().map({ p -> p.first }).to_list()  // ["a", "b"]
    """
    return vm.handle(self)


@method("set", "count() -> int")
@method("set", "len() -> int")
def set_count(vm: Vm, self: Set) -> int:
    """The number of members.

    Example: set(1, 2).count()  // 2
    """
    return len(self.items)


@method("set", "empty() -> bool")
def empty(vm: Vm, self: Set) -> bool:
    """Return true if there is no member.

    Example: set().empty()  // true
    """
    return not self.items


@method("set", "contains(v) -> bool")
def contains(vm: Vm, self: Set, v: Value) -> bool:
    """Return true if a member equals `v`.

    Example: set(1, 2).contains(2)  // true
    """
    return contains_value(paced(self.items), v)


@method("set", "add(v) -> set")
def add(vm: Vm, self: Set, v: Value) -> Set:
    """With `v`, unless a member equals it.

    Example: set(1).add(2)  // set(1, 2)
    """
    return self if contains_value(paced(self.items), v) else Set([*self.items, v])


@method("set", "remove(v) -> set")
@method("set", "delete(v) -> set")
def set_remove(vm: Vm, self: Set, v: Value) -> Set:
    """Without the member that equals `v`.

    Example: set(1, 2).remove(1)  // set(2)
    """
    return _without(vm, self, Members([v]))


@method("set", "union(other: set) -> set")
def union(vm: Vm, self: Set, other: Value) -> Set:
    """The members of both.

    Example: set(1, 2).union(set(2, 3))  // set(1, 2, 3)
    """
    return Set(_distinct(vm, [*self.items, *other.items]).items) if type(other) is Set else self


@method("set", "intersect(other: set) -> set")
@method("set", "intersection(other: set) -> set")
def intersect(vm: Vm, self: Set, other: Value) -> Set:
    """The members that `other` has too.

    Example: set(1, 2).intersect(set(2, 3))  // set(2)
    """
    theirs = _members(vm, other)
    return Set([item for item in paced(self.items) if theirs.has(item)])


@method("set", "difference(other: set) -> set")
def difference(vm: Vm, self: Set, other: Value) -> Set:
    """The members that `other` doesn't have.

    Example: set(1, 2).difference(set(2, 3))  // set(1)
    """
    return _without(vm, self, _members(vm, other))


@method("set", "symmetric_difference(other: set) -> set")
def symmetric_difference(vm: Vm, self: Set, other: Value) -> Set:
    """The members of one but not the other, those of this set first.

    Example: set(1, 2).symmetric_difference(set(2, 3))  // set(1, 3)
    """
    if type(other) is not Set:
        return self
    return Set(difference(vm, self, other).items + difference(vm, other, self).items)


@method("set", "is_subset(other: set) -> bool")
def is_subset(vm: Vm, self: Set, other: Value) -> bool:
    """Return true if `other` has every member.

    Example: set(1).is_subset(set(1, 2))  // true
    """
    return type(other) is Set and not difference(vm, self, other).items


@method("set", "is_superset(other: set) -> bool")
def is_superset(vm: Vm, self: Set, other: Value) -> bool:
    """Return true if every member of `other` is a member.

    Example: set(1, 2).is_superset(set(1))  // true
    """
    return type(other) is Set and not difference(vm, other, self).items


@method("set", "is_disjoint(other: set) -> bool")
def is_disjoint(vm: Vm, self: Set, other: Value) -> bool:
    """Return true if no member is in `other`.

    Example: set(1).is_disjoint(set(2))  // true
    """
    return not intersect(vm, self, other).items


@method("set", "to_list() -> list")
def to_list(vm: Vm, self: Set) -> list[Value]:
    """The members in the order they came.

    Example: set(2, 1).to_list()  // [2, 1]
    """
    return self.items


@method("set", "map(f: callable) -> set")
def map_(vm: Vm, self: Set, f: Value) -> Set | None:
    """The distinct `f(member)`.

    Example: set(1, 2, 3).map({ n -> n % 2 })  // set(1, 0)
    """
    results = list_methods.map_(vm, self.items, f)
    return None if results is None else Set(_distinct(vm, results).items)


@method("set", "filter(f: callable) -> set")
def set_filter(vm: Vm, self: Set, f: Value) -> Set | None:
    """The members for which `f(member)` is truthy.

    Example: set(1, 2, 3).filter({ n -> n > 1 })  // set(2, 3)
    """
    kept = list_methods.filter_(vm, self.items, f)
    return None if kept is None else Set(kept)


@method("set", "any(f: callable) -> bool")
def any_(vm: Vm, self: Set, f: Value) -> bool:
    """Return true if `f(member)` is truthy for some member.

    Example: set(1, 2).any({ n -> n > 1 })  // true
    """
    return list_methods.any_(vm, self.items, f)


@method("set", "all(f: callable) -> bool")
@method("set", "every(f: callable) -> bool")
def all_(vm: Vm, self: Set, f: Value) -> bool:
    """Return true if `f(member)` is truthy for every member.

    Example: set(1, 2).all({ n -> n > 0 })  // true
    """
    return list_methods.all_(vm, self.items, f)


@method("set", "iter() -> iter")
def set_iter(vm: Vm, self: Set) -> Iter:
    """A lazy iterator over the members.

    Example: set(1, 2, 3).iter().take(2).to_list()  // [1, 2]
    """
    return vm.handle(self)


def _members(vm: Vm, value: Value) -> Members:
    """The members of a set; what isn't a set has none."""
    return _distinct(vm, value.items if type(value) is Set else [])


def _distinct(vm: Vm, items: list[Value]) -> Members:
    return Members(paced(items))


def _without(vm: Vm, source: Set, unwanted: Members) -> Set:
    return Set([item for item in paced(source.items) if not unwanted.has(item)])
