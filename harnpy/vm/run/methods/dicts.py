"""Methods of dicts; order, where it shows, is that of the keys. Spec: 04 §6.

Any other name calls the entry of that name, if it is callable; generated code sees to that.
"""

from __future__ import annotations

from harnpy.vm.declare.builtin import method
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Iter
    from harnpy.vm.vm import Vm

    Value = Any


@method("dict", "keys() -> list")
def keys(vm: Vm, self: Dict) -> list[str]:
    """The keys in ascending order.

    Example:
        {b: 2, a: 1}.keys()  // ["a", "b"]
    """
    return sorted(self)


@method("dict", "values() -> list")
def values(vm: Vm, self: Dict) -> list[Value]:
    """The values in the order of their keys.

    Example:
        {b: 2, a: 1}.values()  // [1, 2]
    """
    return [self[key] for key in vm.paced(sorted(self))]


@method("dict", "entries() -> list")
def entries(vm: Vm, self: Dict) -> list[Value]:
    """A dict `{key, value}` for each entry, in key order.

    Example:
        {a: 1}.entries()  // [{key: "a", value: 1}]
    """
    return [{"key": key, "value": self[key]} for key in vm.paced(sorted(self))]


@method("dict", "count() -> int")
def count(vm: Vm, self: Dict) -> int:
    """The number of entries.

    Example:
        {a: 1, b: 2}.count()  // 2
    """
    return len(self)


@method("dict", "has(key: string) -> bool")
def has(vm: Vm, self: Dict, key: str) -> bool:
    """Whether there is an entry `key`, be it nil.

    Example:
        {a: nil}.has("a")  // true
    """
    return key in self


@method("dict", "get(key: string, default = nil) -> any")
def get(vm: Vm, self: Dict, key: str, default: Value) -> Value:
    """The value of entry `key`; `default` if there is no such entry.

    Example:
        [{a: 1}.get("a"), {a: 1}.get("b", 0)]  // [1, 0]
    """
    return self.get(key, default)


@method("dict", "merge(other: dict) -> dict")
def merge(vm: Vm, self: Dict, other: Value) -> Dict:
    """With the entries of `other` added; on equal keys `other` wins.

    Example:
        {a: 1, b: 2}.merge({b: 3})  // {a: 1, b: 3}
    """
    return {**self, **other} if type(other) is dict else self


@method("dict", "map_values(f: callable) -> dict")
def map_values(vm: Vm, self: Dict, f: Value) -> Dict | None:
    """The same keys with `f(value)`.

    Example:
        {a: 1}.map_values({ v -> v * 10 })  // {a: 10}
    """
    g = vm.callback(f, 1)
    return None if g is None else {key: g(0, self[key]) for key in vm.paced(sorted(self))}


@method("dict", "map_keys(f: callable) -> dict")
@method("dict", "rekey(f: callable) -> dict")
def map_keys(vm: Vm, self: Dict, f: Value) -> Dict | None:
    """The same values under the display text of `f(key)`; of colliding keys the last one wins.

    Example:
        {a: 1}.map_keys({ key -> uppercase(key) })  // {A: 1}
    """
    g = vm.callback(f, 1)
    return None if g is None else {display(g(0, key)): self[key] for key in vm.paced(sorted(self))}


@method("dict", "filter(f: callable) -> dict")
def filter_(vm: Vm, self: Dict, f: Value) -> Dict | None:
    """The entries for which `f(value)` is truthy.

    Example:
        {a: 1, b: 2}.filter({ v -> v > 1 })  // {b: 2}
    """
    g = vm.callback(f, 1)
    return None if g is None else {key: self[key] for key in vm.paced(sorted(self)) if g(0, self[key])}


@method("dict", "remove(key: string) -> dict")
def remove(vm: Vm, self: Dict, key: str) -> Dict:
    """Without the entry `key`.

    Example:
        {a: 1, b: 2}.remove("a")  // {b: 2}
    """
    return {k: v for k, v in self.items() if k != key}


@method("dict", "iter() -> iter")
def iter_(vm: Vm, self: Dict) -> Iter:
    """A lazy iterator over a pair (key, value) for each entry, in key order.

    Example:
        {b: 2, a: 1}.iter().map({ p -> p.first }).to_list()  // ["a", "b"]
    """
    return vm.handle(self)
