"""Functions of lists, dicts and sets; ranges, pairs and lazy iterators. Spec: 04 §2, §5, §7, §8, §9."""

from __future__ import annotations

from functools import partial

from harnpy.faults import paced
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault, Thrown, TypeFault
from harnpy.vm.run import list_methods
from harnpy.vm.run.list_methods import unique
from harnpy.vm.values import Iter, Pair, Range, Set, type_name
from harnpy.vm.values.equality import structural_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# Functions of lists and dicts, ranges, pairs and lazy iterators. Spec: 04 §2, §5, §8, §9.
#
# The list functions do what the methods of the same name do; their first argument must be a list.


@builtin("keys(d: dict) -> list", family="collections")
def keys(vm: Vm, d: Value) -> list[str]:
    """Return the keys in ascending order; `[]` for anything but a dict.

    Example: keys({b: 2, a: 1})  // ["a", "b"]
    """
    return sorted(d) if type(d) is dict else []


@builtin("values(d: dict) -> list", family="collections")
def values(vm: Vm, d: Value) -> list[Value]:
    """Return the values in key order; `[]` for anything but a dict.

    Example: values({b: 2, a: 1})  // [1, 2]
    """
    return [d[key] for key in paced(keys(vm, d))]


@builtin("entries(d: dict) -> list", family="collections")
def entries(vm: Vm, d: Value) -> list[Value]:
    """Return a dict `{key, value}` for each entry, in key order; `[]` for anything but a dict.

    Example: entries({b: 2, a: 1})  // [{key: "a", value: 1}, {key: "b", value: 2}]
    """
    return [{"key": key, "value": d[key]} for key in paced(keys(vm, d))]


@builtin("chunk(items: list, size: int = 1) -> list", family="collections", counted=True)
def chunk(vm: Vm, items: Value = ABSENT, size: Value = 1) -> list[Value]:
    """Return lists of `size` items each; the last may be shorter.

    Example: chunk([1, 2, 3, 4, 5], 2)  // [[1, 2], [3, 4], [5]]
    """
    return list_methods.chunk(vm, _list("chunk", items), _int(size, 1))


@builtin("window(items: list, size: int = 2, step: int = 1) -> list", family="collections", counted=True)
def window(vm: Vm, items: Value = ABSENT, size: Value = 2, step: Value = 1) -> list[Value]:
    """Return lists of `size` neighbours, each beginning `step` items after the one before.

    Example: window([1, 2, 3], 2)  // [[1, 2], [2, 3]]
    """
    return list_methods.window(vm, _list("window", items), _int(size, 2), _int(step, 1))


@builtin("group_by(items: list, f: callable) -> dict", family="collections", counted=True)
def group_by(vm: Vm, items: Value = ABSENT, f: Value = ABSENT) -> dict[str, Value] | None:
    """Return a dict of lists of the items with the same text of `f(item)`, by that text.

    Example: group_by([1, 2, 3], { n -> n % 2 == 0 ? "even" : "odd" })  // {even: [2], odd: [1, 3]}
    """
    _list("group_by", items)
    _callback(vm, "group_by", f)
    return list_methods.group_by(vm, items, f)


@builtin("partition(items: list, f: callable) -> dict", family="collections", counted=True)
def partition(vm: Vm, items: Value = ABSENT, f: Value = ABSENT) -> dict[str, list[Value]]:
    """Return `{match, no_match}`: the items for which `f(item)` is truthy, and the others.

    The method `.partition()` differs: it returns a list of two lists.

    Example: partition([1, 2, 3], { n -> n > 1 })  // {match: [2, 3], no_match: [1]}
    """
    _list("partition", items)
    matches = _callback(vm, "partition", f)
    sides: dict[str, list[Value]] = {"match": [], "no_match": []}
    for item in paced(items):
        sides["match" if matches(0, item) else "no_match"].append(item)
    return sides


@builtin("dedup_by(items: list, f: callable) -> list", family="collections", counted=True)
def dedup_by(vm: Vm, items: Value = ABSENT, f: Value = ABSENT) -> list[Value]:
    """Return the first item for each distinct `f(item)`; an int and a float are distinct.

    Example: dedup_by(["a", "bb", "c"], { s -> len(s) })  // ["a", "bb"]
    """
    _list("dedup_by", items)
    key_of = _callback(vm, "dedup_by", f)
    firsts: dict[Hashable, Value] = {}
    for item in paced(items):
        firsts.setdefault(structural_key(key_of(0, item)), item)
    return list(firsts.values())


@builtin("flat_map(items: list, f: callable) -> list", family="collections", counted=True)
def flat_map(vm: Vm, items: Value = ABSENT, f: Value = ABSENT) -> list[Value] | None:
    """Return `f(item)` of every item; lists among the results are spliced in, one level deep.

    Example: flat_map([1, 2], { n -> [n, n * 10] })  // [1, 10, 2, 20]
    """
    _list("flat_map", items)
    _callback(vm, "flat_map", f)
    return list_methods.flat_map(vm, items, f)


@builtin("iter(source: any) -> iter", family="collections", counted=True)
def lift(vm: Vm, source: Value = ABSENT) -> Iter:
    """Return a lazy iterator over a list, set, dict (pairs), string, range, generator or stream.

    An iterator is returned unchanged.

    Example: iter([3, 1, 2]).map({ n -> n * 2 }).to_list()  // [6, 2, 4]
    """
    if source is ABSENT:
        raise TypeFault("iter: expected 1 argument")
    return source if getattr(type(source), "type_name", None) == Iter.type_name else vm.handle(source)


@builtin("pair(first: any, second: any) -> pair", family="collections", counted=True)
def pair(vm: Vm, first: Value = ABSENT, second: Value = ABSENT, *surplus: Value) -> Pair:
    """Return two values as one.

    Example:
        let p = pair("a", 1)
        [p.first, p.second]  // ["a", 1]
    """
    if second is ABSENT or surplus:
        given = 2 + len(surplus) - (first is ABSENT) - (second is ABSENT)
        raise TypeFault(f"pair: expected 2 arguments, got {given}")
    return Pair(first, second)


@builtin("range(a: int, b?: int) -> range", family="math", counted=True)
def int_range(vm: Vm, a: Value = ABSENT, b: Value = ABSENT, *surplus: Value) -> Range:
    """Return the ints from 0, or from `a`, up to but not including the last argument.

    Example: [range(3).to_list(), range(2, 5).to_list()]  // [[0, 1, 2], [2, 3, 4]]
    """
    if a is ABSENT or surplus:
        raise TypeFault(f"range expects 1 or 2 integer arguments, got {2 + len(surplus) if surplus else 0}")
    if b is ABSENT:
        if type(a) is not int:
            raise TypeFault("range(n): expected integer argument")
        return Range(0, a, exclusive=True)
    if type(a) is not int or type(b) is not int:
        raise TypeFault("range(a, b): expected integer arguments")
    return Range(a, b, exclusive=True)


def _list(name: str, items: Value) -> list[Value]:
    if items is ABSENT:
        raise RuntimeFault(f"{name}: first argument must be a list")
    if type(items) is not list:
        raise TypeFault(f"{name}: first argument must be a list, got {type_name(items)}")
    return items


def _callback(vm: Vm, name: str, f: Value) -> Callable[..., Value]:
    if f is ABSENT:
        raise RuntimeFault(f"{name}: callback is required")
    callback: Callable[..., Value] | None = vm.callback(f, 1)
    if callback is None:
        raise TypeFault(f"{name}: callback must be callable, got {type_name(f)}")
    return callback


def _int(value: Value, default: int) -> int:
    return value if type(value) is int else default


# Functions of sets. Spec: 04 §7.
#
# Members differ when their structural keys do, so `1` and `1.0` are two; the methods compare with `==`.


set_builtin = partial(declare, family="collections")


@set_builtin("set(...items: any) -> set")
def make_set(vm: Vm, *items: Value) -> Set:
    """Return a set of the arguments, with lists and sets among them replaced by their items.

    Example: set([1, 2], 2, 3).to_list()  // [1, 2, 3]
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


@set_builtin("set_contains(s: set, item: any) -> bool")
def set_contains(vm: Vm, s: Value, item: Value) -> bool:
    """Return true if `item` is a member; false unless `s` is a set.

    Example: set_contains(set(1, 2), 2)  // true
    """
    return type(s) is Set and structural_key(item) in _keys(vm, s)


@set_builtin("set_add(s: set, item: any) -> set")
def set_add(vm: Vm, s: Value, item: Value) -> Set:
    """Return the set with `item`.

    Example: set_add(set(1), 2)  // set(1, 2)
    """
    return Set(unique(vm, [*_set("set_add", s).items, item]))


@set_builtin("set_remove(s: set, item: any) -> set")
def set_remove(vm: Vm, s: Value, item: Value) -> Set:
    """Return the set without `item`.

    Example: set_remove(set(1, 2), 1)  // set(2)
    """
    return _without(vm, _set("set_remove", s), {structural_key(item)})


@set_builtin("set_union(a: set, b: set) -> set")
def set_union(vm: Vm, a: Value, b: Value) -> Set:
    """Return the members of `a`, then those that only `b` has.

    Example: set_union(set(1, 2), set(2, 3))  // set(1, 2, 3)
    """
    _both("set_union", a, b)
    return Set(unique(vm, a.items + b.items))


@set_builtin("set_intersect(a: set, b: set) -> set")
def set_intersect(vm: Vm, a: Value, b: Value) -> Set:
    """Return the members of `a` that `b` has too.

    Example: set_intersect(set(1, 2, 3), set(2, 3, 4))  // set(2, 3)
    """
    _both("set_intersect", a, b)
    theirs = _keys(vm, b)
    return Set([item for item in paced(a.items) if structural_key(item) in theirs])


@set_builtin("set_difference(a: set, b: set) -> set")
def set_difference(vm: Vm, a: Value, b: Value) -> Set:
    """Return the members of `a` that `b` doesn't have.

    Example: set_difference(set(1, 2, 3), set(2))  // set(1, 3)
    """
    _both("set_difference", a, b)
    return _without(vm, a, _keys(vm, b))


@set_builtin("set_symmetric_difference(a: set, b: set) -> set")
def set_symmetric_difference(vm: Vm, a: Value, b: Value) -> Set:
    """Return the members that only `a` has, then those that only `b` has.

    Example: set_symmetric_difference(set(1, 2), set(2, 3))  // set(1, 3)
    """
    _both("set_symmetric_difference", a, b)
    return Set(_without(vm, a, _keys(vm, b)).items + _without(vm, b, _keys(vm, a)).items)


@set_builtin("set_is_subset(a: set, b: set) -> bool")
def set_is_subset(vm: Vm, a: Value, b: Value) -> bool:
    """Return true if `b` has every member of `a`; false unless both are sets.

    Example: set_is_subset(set(1), set(1, 2))  // true
    """
    return _are_sets(a, b) and _keys(vm, a) <= _keys(vm, b)


@set_builtin("set_is_superset(a: set, b: set) -> bool")
def set_is_superset(vm: Vm, a: Value, b: Value) -> bool:
    """Return true if `a` has every member of `b`; false unless both are sets.

    Example: set_is_superset(set(1, 2), set(1))  // true
    """
    return _are_sets(a, b) and _keys(vm, a) >= _keys(vm, b)


@set_builtin("set_is_disjoint(a: set, b: set) -> bool")
def set_is_disjoint(vm: Vm, a: Value, b: Value) -> bool:
    """Return true if `a` and `b` have no common member, or aren't both sets.

    Example: set_is_disjoint(set(1, 2), set(3))  // true
    """
    return not _are_sets(a, b) or _keys(vm, a).isdisjoint(_keys(vm, b))


def _keys(vm: Vm, s: Set) -> set[Hashable]:
    return {structural_key(item) for item in paced(s.items)}


def _without(vm: Vm, s: Set, unwanted: set[Hashable]) -> Set:
    return Set([item for item in paced(s.items) if structural_key(item) not in unwanted])


def _are_sets(a: Value, b: Value) -> bool:
    return type(a) is Set and type(b) is Set


def _set(name: str, s: Value) -> Set:
    if type(s) is not Set:
        raise Thrown(f"{name}: first argument must be a set")
    return s


def _both(name: str, a: Value, b: Value) -> None:
    if not _are_sets(a, b):
        raise Thrown(f"{name}: arguments must be sets")
