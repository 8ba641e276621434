"""Methods of iterators, generators, streams, channels and ranges. Spec: 02 §16, §17; 04 §8, §9.

Sinks pull in Python loops (`visit`), never through C: a callback may well run another sink. Ranges have those
methods here that need no iteration; all others go to an iterator.
"""

from __future__ import annotations

from harnpy.vm.declare import method
from harnpy.vm.errors import TypeFault
from harnpy.vm.values import Generator, Iter, Pair, Range, Set, display, iterators, type_name
from harnpy.vm.values.equality import Members, compare
from harnpy.vm.values.iterators import gather, visit
from harnpy.vm.values.operators import add

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from harnpy.vm.values import Fn, Value
    from harnpy.vm.values.iterators import Callback, Pull
    from harnpy.vm.vm import Vm

#: The sum of two smaller ints has 64 bits.
_HALF = 1 << 62


@method("iter", "map(f: callable) -> iter")
def map_(vm: Vm, self: Iter, f: Value) -> Iter:
    """`f(item)` of every item.

    Example: iter([1, 2]).map({ n -> n * 10 }).to_list()  // [10, 20]
    """
    return iterators.mapped(self.__next__, _callback(vm, f, "map"))


@method("iter", "filter(f: callable) -> iter")
def filter_(vm: Vm, self: Iter, f: Value) -> Iter:
    """The items for which `f(item)` is truthy.

    Example: iter([1, 2, 3]).filter({ n -> n > 1 }).to_list()  // [2, 3]
    """
    return iterators.filtered(self.__next__, _callback(vm, f, "filter"))


@method("iter", "flat_map(f: callable) -> iter")
def flat_map(vm: Vm, self: Iter, f: Value) -> Iter:
    """The items of `iter(f(item))` for every item.

    Example: iter([1, 2]).flat_map({ n -> [n, n] }).to_list()  // [1, 1, 2, 2]
    """
    g = _callback(vm, f, "flat_map")
    return iterators.flattened(self.__next__, lambda item: vm.iterate(g(0, item)))


@method("iter", "take(n: int) -> iter")
def take(vm: Vm, self: Iter, n: int | None) -> Iter:
    """The first `n` items.

    Example: range(1000000).iter().take(3).to_list()  // [0, 1, 2]
    """
    return iterators.taken(self.__next__, _length(n, "take"))


@method("iter", "skip(n: int) -> iter")
def skip(vm: Vm, self: Iter, n: int | None) -> Iter:
    """All but the first `n` items.

    Example: iter([1, 2, 3]).skip(2).to_list()  // [3]
    """
    return iterators.skipped(self.__next__, _length(n, "skip"))


@method("iter", "take_while(f: callable) -> iter")
def take_while(vm: Vm, self: Iter, f: Value) -> Iter:
    """The items before the first for which `f(item)` is falsy; that one is consumed.

    Example: iter([1, 2, 9, 1]).take_while({ n -> n < 5 }).to_list()  // [1, 2]
    """
    return iterators.taken_while(self.__next__, _callback(vm, f, "take_while"))


@method("iter", "skip_while(f: callable) -> iter")
def skip_while(vm: Vm, self: Iter, f: Value) -> Iter:
    """The items from the first one on for which `f(item)` is falsy.

    Example: iter([1, 2, 9, 1]).skip_while({ n -> n < 5 }).to_list()  // [9, 1]
    """
    return iterators.skipped_while(self.__next__, _callback(vm, f, "skip_while"))


@method("iter", "zip(other: any) -> iter")
def zip_(vm: Vm, self: Iter, other: Value) -> Iter:
    """Return pairs of items from both, until either ends.

    Example: iter([1, 2]).zip("ab").map({ p -> "${p.first}${p.second}" }).to_list()  // ["1a", "2b"]
    """
    return iterators.zipped(self.__next__, _pull(vm, other, "zip"))


@method("iter", "enumerate() -> iter")
def enumerate_(vm: Vm, self: Iter) -> Iter:
    """Pairs (position, item), from 0.

    Example: iter("ab").enumerate().map({ p -> "${p.first}${p.second}" }).to_list()  // ["0a", "1b"]
    """
    return iterators.enumerated(self.__next__)


@method("iter", "chain(other: any) -> iter")
def chain(vm: Vm, self: Iter, other: Value) -> Iter:
    """The items of this, then those of `other`.

    Example: iter([1]).chain([2, 3]).to_list()  // [1, 2, 3]
    """
    return iterators.chained(self.__next__, _pull(vm, other, "chain"))


@method("iter", "chunks(n: int) -> iter")
def chunks(vm: Vm, self: Iter, n: int | None) -> Iter:
    """Lists of `n` items; the last may be shorter.

    Example: iter([1, 2, 3]).chunks(2).to_list()  // [[1, 2], [3]]
    """
    if n is None or n < 1:
        raise TypeFault("iter.chunks: chunk size must be positive")
    return iterators.chunked(self.__next__, n)


@method("iter", "windows(n: int) -> iter")
def windows(vm: Vm, self: Iter, n: int | None) -> Iter:
    """Lists of `n` neighbours, each one item further on.

    Example: iter([1, 2, 3]).windows(2).to_list()  // [[1, 2], [2, 3]]
    """
    if n is None or n < 1:
        raise TypeFault("iter.windows: window size must be positive")
    return iterators.windowed(self.__next__, n)


@method("iter", "iter() -> iter")
def iter_(vm: Vm, self: Iter) -> Iter:
    """The iterator itself.

    Example: iter([1, 2]).iter().to_list()  // [1, 2]
    """
    return self


@method("iter", "to_list() -> list")
def to_list(vm: Vm, self: Iter) -> list[Value]:
    """All items.

    Example: iter("abc").to_list()  // ["a", "b", "c"]
    """
    items: list[Value] = []
    gather(vm, self, items.append, items)
    return items


@method("iter", "to_set() -> set")
def to_set(vm: Vm, self: Iter) -> Set:
    """The distinct items in order of their first occurrence.

    Example: iter([1, 2, 1]).to_set()  // set(1, 2)
    """
    members = Members()
    gather(vm, self, members.add, members.items)
    return Set(members.items)


@method("iter", "to_dict() -> dict")
def to_dict(vm: Vm, self: Iter) -> dict[str, Value]:
    """The dict of pairs (key, value); later pairs win.

    Example: iter([pair("a", 1)]).to_dict()  // {a: 1}
    """
    entries: dict[str, Value] = {}

    def enter(pair: Value) -> None:
        if type(pair) is not Pair:
            raise TypeFault(f"iter.to_dict: expected pair, got {type_name(pair)}")
        if type(pair.first) is not str:
            raise TypeFault(f"iter.to_dict: expected string key, got {type_name(pair.first)}")
        entries[pair.first] = pair.second

    gather(vm, self, enter, entries)
    return entries


@method("iter", "count() -> int")
def count(vm: Vm, self: Iter) -> int:
    """Return the number of items.

    Example: iter("abc").count()  // 3
    """
    return _fold(self, 0, lambda n, _: n + 1)  # type: ignore[no-any-return]


@method("iter", "sum() -> int | float")
def sum_(vm: Vm, self: Iter) -> int | float:
    """The sum of the items, which must be numbers; 0 for none.

    Example: iter([1, 2, 3]).sum()  // 6
    """
    return _fold(self, 0, plus)  # type: ignore[no-any-return]


def called_back(f: Fn, item: Value) -> Value:
    """``f(item)`` from a chain of iterators; the frame of this function tells backtraces so."""
    return f.call(0, item)


def plus(total: Value, item: Value) -> Value:
    """One more item of a sum."""
    if type(item) is not int and type(item) is not float:
        raise TypeFault(f"iter.sum: expected number, got {type_name(item)}")
    if type(total) is int and type(item) is int and -_HALF < total < _HALF and -_HALF < item < _HALF:
        return total + item
    return add(total, item)


@method("iter", "min() -> any")
def min_(vm: Vm, self: Iter) -> Value:
    """The least item, the first of several; nil for none.

    Example: iter([3, 1]).min()  // 1
    """
    return _extreme(self, -1)


@method("iter", "max() -> any")
def max_(vm: Vm, self: Iter) -> Value:
    """The greatest item, the first of several; nil for none.

    Example: iter([3, 1]).max()  // 3
    """
    return _extreme(self, 1)


@method("iter", "reduce(...args: any) -> any")
def reduce(vm: Vm, self: Iter, *args: Value) -> Value:
    """`reduce(init, f)`: the last `acc = f(acc, item)`, beginning with `init`.

    Example: iter([1, 2, 3]).reduce(0, { sum, n -> sum + n })  // 6
    """
    if len(args) < 2:
        raise TypeFault("iter.reduce: expected (init, fn)")
    g = vm.callback(args[1], 2)
    if g is None:
        raise TypeFault("iter.reduce: second arg must be callable")
    return _fold(self, args[0], lambda acc, item: g(0, acc, item))


@method("iter", "first() -> any")
def first(vm: Vm, self: Iter) -> Value:
    """The next item, or nil; the rest stays available.

    Example: iter([7, 8]).first()  // 7
    """
    try:
        return self.__next__()
    except StopIteration:
        return None


@method("iter", "last() -> any")
def last(vm: Vm, self: Iter) -> Value:
    """The last item, or nil.

    Example: iter([7, 8]).last()  // 8
    """
    return _fold(self, None, lambda _, item: item)


@method("iter", "any(f: callable) -> bool")
def any_(vm: Vm, self: Iter, f: Value) -> bool:
    """Return true if `f(item)` is truthy for some item; stops there.

    Example: iter([1, 2]).any({ n -> n > 1 })  // true
    """
    g = _callback(vm, f, "any")
    return visit(self.__next__, lambda item: g(0, item))


@method("iter", "all(f: callable) -> bool")
def all_(vm: Vm, self: Iter, f: Value) -> bool:
    """Return true if `f(item)` is truthy for every item; stops at the first where it isn't.

    Example: iter([1, 2]).all({ n -> n > 1 })  // false
    """
    g = _callback(vm, f, "all")
    return not visit(self.__next__, lambda item: not g(0, item))


@method("iter", "find(f: callable) -> any")
def find(vm: Vm, self: Iter, f: Value) -> Value:
    """The first item for which `f(item)` is truthy, or nil; the rest stays available.

    Example: iter([1, 2, 3]).find({ n -> n > 1 })  // 2
    """
    return first(vm, iterators.filtered(self.__next__, _callback(vm, f, "find")))


@method("iter", "for_each(f: callable) -> nil")
def for_each(vm: Vm, self: Iter, f: Value) -> None:
    """Calls `f(item)` for every item.

    Example: iter("ab").for_each({ c -> print(c) })  // prints ab
    """
    g = _callback(vm, f, "for_each")
    _fold(self, None, lambda _, item: g(0, item))


@method("generator", "next() -> dict")
@method("stream", "next() -> dict")
def next_(vm: Vm, self: Generator) -> dict[str, Value]:
    """`{done: false, value: item}`, and `{done: true, value: nil}` ever after the last.

    Example:
        gen fn count() { emit 1
        emit 2 }
        count().next()  // {done: false, value: 1}
    """
    try:
        return {"done": False, "value": self.__next__()}
    except StopIteration:
        return {"done": True, "value": None}


@method("generator", "iter() -> iter")
@method("stream", "iter() -> iter")
@method("channel", "iter() -> iter")
def handle(vm: Vm, self: Iterable[Value]) -> Iter:
    """An iterator over the items; it shares them with every other consumer.

    Example:
        gen fn count() { emit 1
        emit 2 }
        count().iter().to_list()  // [1, 2]
    """
    return Iter(self)


def _callback(vm: Vm, f: Value, name: str) -> Callback:
    g: Callback | None = vm.callback(f, 1)
    if g is None:
        raise TypeFault(f"iter.{name}: expected callable")
    return g


def _length(n: int | None, name: str) -> int:
    if n is None or n < 0:
        raise TypeFault(f"iter.{name}: expected non-negative int")
    return n


def _pull(vm: Vm, other: Value, name: str) -> Pull:
    try:
        pull: Pull = vm.iterate(other).__next__
    except TypeFault:
        raise TypeFault(f"iter.{name}: expected iterable argument") from None
    return pull


def _fold(handle: Iter, acc: Value, f: Any) -> Value:
    """The last ``acc = f(acc, item)``."""
    pull = handle.__next__
    try:
        while True:
            acc = f(acc, pull())
    except StopIteration:
        return acc


def _extreme(handle: Iter, sign: int) -> Value:
    try:
        best = handle.__next__()
    except StopIteration:
        return None
    return _fold(handle, best, lambda best, item: item if compare(item, best) == sign else best)


@method("range", "len() -> int")
@method("range", "count() -> int")
def range_count(vm: Vm, self: Range) -> int:
    """The number of items, none when the bounds are reversed.

    Example: (1 to 3).len()  // 3
    """
    return self.size


@method("range", "empty() -> bool")
def range_empty(vm: Vm, self: Range) -> bool:
    """Return true if there is no item.

    Example: range(0).empty()  // true
    """
    return self.size == 0


@method("range", "contains(v) -> bool")
def range_contains(vm: Vm, self: Range, v: Any) -> bool:
    """Return true if `v` is an int inside the range.

    Example: (1 to 3).contains(3)  // true
    """
    return v in self


@method("range", "first() -> int | nil")
def range_first(vm: Vm, self: Range) -> int | None:
    """The first item, nil when there is none.

    Example: (3 to 5).first()  // 3
    """
    return self.at(0)


@method("range", "last() -> int | nil")
def range_last(vm: Vm, self: Range) -> int | None:
    """The last item, nil when there is none.

    Example: (3 to 5).last()  // 5
    """
    return self.stop - 1 if self.size else None


@method("range", "to_string() -> string")
def range_to_string(vm: Vm, self: Range) -> str:
    """The range as it is written.

    Example: (1 to 3).to_string()  // "1 to 3"
    """
    return display(self)
