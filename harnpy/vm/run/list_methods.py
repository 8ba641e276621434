"""Methods of lists; each returns a new value. Spec: 04 §5.

A method that takes a callback returns its neutral result when given no callable (02 §14.4).
"""

from __future__ import annotations

from harnpy.faults import paced
from harnpy.vm.declare import method
from harnpy.vm.values import display
from harnpy.vm.values.equality import compare, contains_value, equal, structural_key
from harnpy.vm.values.operators import add

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence
    from typing import Any

    from harnpy.vm.values import Iter, Value
    from harnpy.vm.vm import Vm

    Items = list[Any]
    List = list[Value]

# Sorting, extremes and sums over Harn values. Spec: 02 §3.2, 04 §0.6.


#: Keys that are sorted without a look at the signal, if Python orders them.
_RUN = 1 << 15


def in_order(vm: Vm, items: Sequence[Value], keys: Sequence[Value]) -> list[Value]:
    """The items ascending by the key at the same position, stable."""
    sortable: Sequence[Any] = keys
    if not _is_native(keys):
        from functools import cmp_to_key

        from harnpy.vm.values.iterators import paced_calls

        # `compare` calls no Harn code, so going through C is safe here.
        key_of = cmp_to_key(paced_calls(compare, vm.signal, vm.poll))
        sortable = [key_of(key) for key in paced(keys)]
        places = sorted(range(len(items)), key=sortable.__getitem__)
    elif len(items) > _RUN and vm.signal.pending:
        places = _sorted_in_runs(vm, keys)
    else:
        places = sorted(range(len(items)), key=sortable.__getitem__)
    return [items[i] for i in paced(places)]


def _sorted_in_runs(vm: Vm, keys: Sequence[Any]) -> list[int]:
    """The positions in the order of their keys: runs of them, then two and two together, with polls."""
    count = len(keys)
    runs = [list(range(at, min(at + _RUN, count))) for at in range(0, count, _RUN)]
    for run in runs:
        vm.poll()
        run.sort(key=keys.__getitem__)
    while len(runs) > 1:
        vm.poll()
        # Python finds the two runs, and merges them in linear time.
        runs.append(sorted(runs.pop(0) + runs.pop(0), key=keys.__getitem__))
    return runs[0]


def first_extreme(vm: Vm, items: Sequence[Value], keys: Sequence[Value], sign: int) -> Value:
    """The item with the greatest (``sign`` 1) or least (-1) key, the first of several; nil if none."""
    if not items:
        return None
    best = 0
    for i, key in enumerate(paced(keys)):
        if compare(key, keys[best]) == sign:
            best = i
    return items[best]


def sum_of(numbers: Iterable[int | float]) -> int | float:
    """The sum from left to right; an int unless there is a float."""
    total: int | float = 0
    for x in numbers:
        total = add(total, x)
    return total


def _is_native(keys: Sequence[Value]) -> bool:
    """Return true if Python orders the keys as Harn does."""
    kinds = set(map(type, keys))
    return kinds == {int} or kinds == {str} or (kinds == {float} and not [x for x in keys if x != x])


# Items put together: into one text, or into one list.


def joined(vm: Vm, items: Items, sep: str) -> str:
    """The display text of the items, ``sep`` in between."""
    texts = [display(item) for item in paced(items)]
    if len(texts) > 1:
        vm.sizes.check_text(sum(map(len, texts)) + len(sep) * (len(texts) - 1))
    return sep.join(texts)


def spliced(vm: Vm, items: Items) -> Items:
    """The items, in place of each list its own."""
    flat: Items = []
    for item in paced(items):
        if type(item) is list:
            flat += item
            vm.sizes.check_items(len(flat))
        else:
            flat.append(item)
    return flat


@method("list", "count() -> int")
def count(vm: Vm, self: List) -> int:
    """The number of items.

    Example: [1, 2].count()  // 2
    """
    return len(self)


@method("list", "empty() -> bool")
def empty(vm: Vm, self: List) -> bool:
    """Return true if there is no item.

    Example: [].empty()  // true
    """
    return not self


@method("list", "map(f: callable) -> list")
def map_(vm: Vm, self: List, f: Value) -> List | None:
    """`f(item)` of every item.

    Example: [1, 2].map({ n -> n * 10 })  // [10, 20]
    """
    g = vm.callback(f, 1)
    return None if g is None else [g(0, item) for item in paced(self)]


@method("list", "filter(f: callable) -> list")
def filter_(vm: Vm, self: List, f: Value) -> List | None:
    """The items for which `f(item)` is truthy.

    Example: [1, 2, 3].filter({ n -> n > 1 })  // [2, 3]
    """
    g = vm.callback(f, 1)
    return None if g is None else [item for item in paced(self) if g(0, item)]


@method("list", "flat_map(f: callable) -> list")
def flat_map(vm: Vm, self: List, f: Value) -> List | None:
    """Return `f(item)` of every item; lists among the results are spliced in, one level deep.

    Example: [1, 2].flat_map({ n -> [n, n] })  // [1, 1, 2, 2]
    """
    g = vm.callback(f, 1)
    return None if g is None else spliced(vm, [g(0, item) for item in paced(self)])


@method("list", "reduce(init, f: callable) -> any")
def reduce(vm: Vm, self: List, init: Value, f: Value) -> Value:
    """The last `acc = f(acc, item)`, beginning with `init`.

    Example: [1, 2, 3].reduce(0, { sum, n -> sum + n })  // 6
    """
    g = vm.callback(f, 2)
    if g is None:
        return None
    for item in paced(self):
        init = g(0, init, item)
    return init


@method("list", "find(f: callable) -> any")
def find(vm: Vm, self: List, f: Value) -> Value:
    """The first item for which `f(item)` is truthy, or nil.

    Example: [1, 2, 3].find({ n -> n > 1 })  // 2
    """
    i = find_index(vm, self, f)
    return None if i < 0 else self[i]


@method("list", "find_index(f: callable) -> int")
def find_index(vm: Vm, self: List, f: Value) -> int:
    """The position of the first item for which `f(item)` is truthy, or -1.

    Example: ["a", "b"].find_index({ s -> s == "b" })  // 1
    """
    g = vm.callback(f, 1)
    if g is not None:
        for i, item in enumerate(paced(self)):
            if g(0, item):
                return i
    return -1


@method("list", "any(f: callable) -> bool")
def any_(vm: Vm, self: List, f: Value) -> bool:
    """Return true if `f(item)` is truthy for some item.

    Example: [1, 2].any({ n -> n > 1 })  // true
    """
    return find_index(vm, self, f) >= 0


@method("list", "all(f: callable) -> bool")
@method("list", "every(f: callable) -> bool")
def all_(vm: Vm, self: List, f: Value) -> bool:
    """Return true if `f(item)` is truthy for every item.

    Example: [1, 2].all({ n -> n > 0 })  // true
    """
    g = vm.callback(f, 1)
    if g is not None:
        for item in paced(self):
            if not g(0, item):
                return False
    return True


@method("list", "none(f: callable) -> bool")
def none(vm: Vm, self: List, f: Value) -> bool:
    """Return true if `f(item)` is truthy for no item; without a callable, whether the list is empty.

    Example: [1, 2].none({ n -> n > 2 })  // true
    """
    return not self if vm.callback(f, 1) is None else find_index(vm, self, f) < 0


@method("list", "sort() -> list")
def sort(vm: Vm, self: List) -> List:
    """Ascending and stable; items that have no order keep theirs.

    Example: [3, 1, 2].sort()  // [1, 2, 3]
    """
    return in_order(vm, self, self)


@method("list", "sort_by(f: callable) -> list")
def sort_by(vm: Vm, self: List, f: Value) -> List | None:
    """Ascending by `f(item)`, stable.

    Example: ["ccc", "a", "bb"].sort_by({ s -> len(s) })  // ["a", "bb", "ccc"]
    """
    g = vm.callback(f, 1)
    return None if g is None else in_order(vm, self, [g(0, item) for item in paced(self)])


@method("list", "reverse() -> list")
def reverse(vm: Vm, self: List) -> List:
    """The items from last to first.

    Example: [1, 2, 3].reverse()  // [3, 2, 1]
    """
    return self[::-1]


@method("list", "min() -> any")
def min_(vm: Vm, self: List) -> Value:
    """The least item, the first of several; nil for an empty list.

    Example: [3, 1, 2].min()  // 1
    """
    return first_extreme(vm, self, self, -1)


@method("list", "max() -> any")
def max_(vm: Vm, self: List) -> Value:
    """The greatest item, the first of several; nil for an empty list.

    Example: [3, 1, 2].max()  // 3
    """
    return first_extreme(vm, self, self, 1)


@method("list", "min_by(f: callable) -> any")
def min_by(vm: Vm, self: List, f: Value) -> Value:
    """The item with the least `f(item)`, the first of several; nil for an empty list.

    Example: ["ccc", "a"].min_by({ s -> len(s) })  // "a"
    """
    g = vm.callback(f, 1)
    return None if g is None else first_extreme(vm, self, [g(0, item) for item in paced(self)], -1)


@method("list", "max_by(f: callable) -> any")
def max_by(vm: Vm, self: List, f: Value) -> Value:
    """The item with the greatest `f(item)`, the first of several; nil for an empty list.

    Example: ["ccc", "a"].max_by({ s -> len(s) })  // "ccc"
    """
    g = vm.callback(f, 1)
    return None if g is None else first_extreme(vm, self, [g(0, item) for item in paced(self)], 1)


@method("list", "sum() -> int | float")
def sum_(vm: Vm, self: List) -> int | float:
    """The sum of the numbers among the items.

    Example: [1, 2, 3.5].sum()  // 6.5
    """
    numbers = [item for item in paced(self) if type(item) is int or type(item) is float]
    return sum_of(paced(numbers))


@method("list", 'join(sep: string = "") -> string')
def join(vm: Vm, self: List, sep: str) -> str:
    """The display text of the items, `sep` in between.

    Example: [1, 2].join(", ")  // "1, 2"
    """
    return joined(vm, self, sep)


@method("list", "contains(v) -> bool")
def contains(vm: Vm, self: List, v: Value) -> bool:
    """Return true if an item equals `v`.

    Example: [1, 2].contains(2)  // true
    """
    return contains_value(paced(self), v)


@method("list", "index_of(v) -> int")
def index_of(vm: Vm, self: List, v: Value) -> int:
    """The position of the first item that equals `v`, or -1.

    Example: ["a", "b"].index_of("b")  // 1
    """
    for i, item in enumerate(paced(self)):
        if equal(item, v):
            return i
    return -1


@method("list", "enumerate() -> list")
def enumerate_(vm: Vm, self: List) -> List:
    """A dict `{index, value}` for each item.

    Example: ["a", "b"].enumerate().map({ e -> "${e.index}${e.value}" })  // ["0a", "1b"]
    """
    return [{"index": i, "value": item} for i, item in enumerate(paced(self))]


@method("list", "zip(other: list) -> list")
def zip_(vm: Vm, self: List, other: Value) -> List:
    """Two-item lists of the items at the same position, as many as the shorter list has.

    Example: [1, 2].zip(["a", "b", "c"])  // [[1, "a"], [2, "b"]]
    """
    if type(other) is not list:
        return []
    return [[mine, theirs] for mine, theirs in zip(paced(self), other, strict=False)]


@method("list", "slice(start: int = 0, end?: int) -> list")
def slice_(vm: Vm, self: List, start: int, end: int | None) -> List:
    """From `start` up to, not including, `end`; negative positions count from the end.

    Example: [1, 2, 3, 4].slice(1, -1)  // [2, 3]
    """
    return self[start:end]


@method("list", "unique() -> list")
def unique(vm: Vm, self: List) -> List:
    """The first of equal items; an int and a float are never the same here.

    Example: [1, 2, 1].unique()  // [1, 2]
    """
    kept: dict[Hashable, Value] = {}
    for item in paced(self):
        kept.setdefault(structural_key(item), item)
    return list(kept.values())


@method("list", "take(n: int = 0) -> list")
def take(vm: Vm, self: List, n: int) -> List:
    """The first `n` items.

    Example: [1, 2, 3].take(2)  // [1, 2]
    """
    return self[: max(n, 0)]


@method("list", "skip(n: int = 0) -> list")
def skip(vm: Vm, self: List, n: int) -> List:
    """All but the first `n` items.

    Example: [1, 2, 3].skip(2)  // [3]
    """
    return self[max(n, 0) :]


@method("list", "first(n?: int) -> any")
def first(vm: Vm, self: List, n: int | None) -> Value:
    """The first item or nil; with `n`, the list of the first `n` items.

    Example: [[1, 2, 3].first(), [1, 2, 3].first(2), [].first()]  // [1, [1, 2], nil]
    """
    if n is not None:
        return self[: max(n, 0)]
    return self[0] if self else None


@method("list", "last(n?: int) -> any")
def last(vm: Vm, self: List, n: int | None) -> Value:
    """The last item or nil; with `n`, the list of the last `n` items.

    Example: [[1, 2, 3].last(), [1, 2, 3].last(2), [].last()]  // [3, [2, 3], nil]
    """
    if n is not None:
        return self[-n:] if n > 0 else []
    return self[-1] if self else None


@method("list", "flatten() -> list")
def flatten(vm: Vm, self: List) -> List:
    """With the items of inner lists in their place, one level deep.

    Example: [[1], [2, [3]]].flatten()  // [1, 2, [3]]
    """
    return spliced(vm, self)


@method("list", "push(v) -> list")
def push(vm: Vm, self: List, v: Value) -> List:
    """With `v` at the end.

    Example:
        let old = [1]
        [old.push(2), old]  // [[1, 2], [1]]
    """
    return [*self, v]


@method("list", "pop() -> list")
def pop(vm: Vm, self: List) -> List:
    """Without the last item.

    Example: [1, 2, 3].pop()  // [1, 2]
    """
    return self[:-1]


@method("list", "partition(f: callable) -> list")
def partition(vm: Vm, self: List, f: Value) -> List | None:
    """`[matching, rest]`: the items for which `f(item)` is truthy, and the others.

    Example: [1, 2, 3].partition({ n -> n > 1 })  // [[2, 3], [1]]
    """
    g = vm.callback(f, 1)
    if g is None:
        return None
    matching: List = []
    rest: List = []
    for item in paced(self):
        (matching if g(0, item) else rest).append(item)
    return [matching, rest]


@method("list", "group_by(f: callable) -> dict")
def group_by(vm: Vm, self: List, f: Value) -> dict[str, List] | None:
    """Lists of the items with the same display text of `f(item)`, by that text.

    Example: ["ant", "bee", "ape"].group_by({ s -> s[0] })  // {a: ["ant", "ape"], b: ["bee"]}
    """
    g = vm.callback(f, 1)
    if g is None:
        return None
    groups: dict[str, List] = {}
    for item in paced(self):
        groups.setdefault(display(g(0, item)), []).append(item)
    return groups


@method("list", "chunk(size: int = 1) -> list")
@method("list", "each_slice(size: int = 1) -> list")
def chunk(vm: Vm, self: List, size: int) -> List:
    """Return lists of `size` items each; the last may be shorter.

    Example: [1, 2, 3].chunk(2)  // [[1, 2], [3]]
    """
    size = max(size, 1)
    return [self[i : i + size] for i in paced(range(0, len(self), size))]


@method("list", "window(size: int = 2, step: int = 1) -> list")
@method("list", "each_cons(size: int = 2, step: int = 1) -> list")
@method("list", "sliding_window(size: int = 2, step: int = 1) -> list")
def window(vm: Vm, self: List, size: int, step: int) -> List:
    """Return lists of `size` neighbours, each beginning `step` items after the one before.

    Example: [1, 2, 3].window(2)  // [[1, 2], [2, 3]]
    """
    size, step = max(size, 1), max(step, 1)
    starts = range(0, len(self) - size + 1, step)
    vm.sizes.check_items(len(starts) * size)
    return [self[i : i + size] for i in paced(starts)]


@method("list", "compact() -> list")
def compact(vm: Vm, self: List) -> List:
    """Without the nils.

    Example: [1, nil, 2].compact()  // [1, 2]
    """
    return [item for item in paced(self) if item is not None]


@method("list", "tally() -> dict")
def tally(vm: Vm, self: List) -> dict[str, int]:
    """Return the number of times that each display text occurs among the items.

    Example: ["a", "b", "a"].tally()  // {a: 2, b: 1}
    """
    counts: dict[str, int] = {}
    for item in paced(self):
        text = display(item)
        counts[text] = counts.get(text, 0) + 1
    return counts


@method("list", "iter() -> iter")
def iter_(vm: Vm, self: List) -> Iter:
    """A lazy iterator over the items.

    Example: [1, 2, 3].iter().take(2).to_list()  // [1, 2]
    """
    return vm.handle(self)
