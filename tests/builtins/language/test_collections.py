"""Lists, dicts, sets, ranges, pairs and iterators by function. Spec: 04 §5, §7, §8, §9."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy import Vm
from harnpy.builtins.language import collections
from harnpy.vm.values import Iter, Pair, Range, Set
from harnpy.vm.values.equality import equal


def test_dict_functions_go_in_key_order(vm: Any) -> None:
    d = {"b": 1, "a": None}
    assert vm.run("keys", d) == ["a", "b"]
    assert vm.run("values", d) == [None, 1]
    assert vm.run("entries", d) == [{"key": "a", "value": None}, {"key": "b", "value": 1}]
    for name in ("keys", "values", "entries"):
        assert vm.run(name, [1]) == []
        assert vm.run(name) == []


def test_chunk_and_window(vm: Any) -> None:
    assert vm.run("chunk", [1, 2, 3], 2) == [[1, 2], [3]]
    assert vm.run("chunk", [1, 2]) == [[1], [2]]
    assert vm.run("chunk", [1, 2], 0) == [[1], [2]]
    assert vm.run("chunk", [1, 2], "2") == [[1], [2]]
    assert vm.run("window", [1, 2, 3]) == [[1, 2], [2, 3]]
    assert vm.run("window", [1, 2, 3, 4], 2, 2) == [[1, 2], [3, 4]]
    assert vm.run("window", [1], 2) == []
    assert vm.run("window", [1, 2], None, None) == [[1, 2]]


def test_functions_with_a_callback(vm: Any, fn: Any) -> None:
    odd = fn(lambda x: x % 2 == 1)
    assert vm.run("partition", [1, 2, 3], odd) == {"match": [1, 3], "no_match": [2]}
    assert vm.run("partition", [], odd) == {"match": [], "no_match": []}
    assert vm.run("group_by", [1, 2, 3], odd) == {"true": [1, 3], "false": [2]}
    assert vm.run("dedup_by", [1, 2, 3, 4.0], fn(lambda x: [x % 2])) == [1, 2, 4.0]
    assert vm.run("flat_map", [1, 2], fn(lambda x: [x, [x]] if x > 1 else x)) == [1, 2, [2]]


@pytest.mark.parametrize("name", ["chunk", "window", "group_by", "partition", "dedup_by", "flat_map"])
def test_list_arguments_are_checked(vm: Any, name: str) -> None:
    assert vm.failure(name) == f"Runtime error: {name}: first argument must be a list"
    assert vm.failure(name, None) == f"Type error: {name}: first argument must be a list, got nil"
    assert vm.failure(name, {}) == f"Type error: {name}: first argument must be a list, got dict"


@pytest.mark.parametrize("name", ["group_by", "partition", "dedup_by", "flat_map"])
def test_callbacks_are_checked(vm: Any, name: str) -> None:
    assert vm.failure(name, []) == f"Runtime error: {name}: callback is required"
    assert vm.failure(name, [], 5) == f"Type error: {name}: callback must be callable, got int"
    assert vm.failure(name, [], None) == f"Type error: {name}: callback must be callable, got nil"


def test_iter(vm: Any) -> None:
    assert list(vm.run("iter", "ab")) == ["a", "b"]
    assert [(p.first, p.second) for p in vm.run("iter", {"b": 1, "a": 2})] == [("a", 2), ("b", 1)]
    assert list(vm.run("iter", Range(1, 3))) == [1, 2, 3]
    handle = Iter([1])
    assert vm.run("iter", handle) is handle
    assert vm.failure("iter") == "Type error: iter: expected 1 argument"
    assert vm.failure("iter", 5) == "Type error: iter: value of type int is not iterable"
    assert vm.failure("iter", None) == "Type error: iter: value of type nil is not iterable"


def test_pair(vm: Any) -> None:
    assert equal(vm.run("pair", 1, None), Pair(1, None))
    for count in (0, 1, 3, 5):
        text = f"Type error: pair: expected 2 arguments, got {count}"
        assert vm.failure("pair", *range(count)) == text


def test_range(vm: Any) -> None:
    assert equal(vm.run("range", 4), Range(0, 4, exclusive=True))
    assert equal(vm.run("range", 2, 4), Range(2, 4, exclusive=True))
    assert vm.run("range", -1).size == 0
    assert vm.failure("range", "4") == "Type error: range(n): expected integer argument"
    assert vm.failure("range", True) == "Type error: range(n): expected integer argument"
    assert vm.failure("range", 1, 2.0) == "Type error: range(a, b): expected integer arguments"
    assert vm.failure("range", 1, None) == "Type error: range(a, b): expected integer arguments"
    assert vm.failure("range") == "Type error: range expects 1 or 2 integer arguments, got 0"
    assert vm.failure("range", 1, 2, 3) == "Type error: range expects 1 or 2 integer arguments, got 3"


def test_set(vm: Any) -> None:
    assert vm.run("set").items == []
    assert vm.run("set", [1, 2, 1]).items == [1, 2]
    assert vm.run("set", 3, [1], Set([3, 4]), {"a": 1}).items == [3, 1, 4, {"a": 1}]
    assert vm.run("set", [1, 1.0, "1", True, None, None]).items == [1, 1.0, "1", True, None]
    assert vm.run("set", [[1], [1], [1.0]]).items == [[1], [1.0]]


def test_set_functions_tell_int_from_float(vm: Any) -> None:
    s = Set([1, 2])
    assert not vm.run("set_contains", s, 1.0)
    assert vm.run("set_contains", s, 1)
    assert vm.run("set_add", s, 1.0).items == [1, 2, 1.0]
    assert vm.run("set_add", s, 2).items == [1, 2]
    assert vm.run("set_remove", s, 1).items == [2]
    assert vm.run("set_remove", s, 1.0).items == [1, 2]
    assert s.items == [1, 2]


def test_set_functions_of_what_is_no_set(vm: Any) -> None:
    s = Set([1])
    assert vm.failure("set_add", [1], 2) == "set_add: first argument must be a set"
    assert vm.failure("set_remove", None, 2) == "set_remove: first argument must be a set"
    for name in ("set_union", "set_intersect", "set_difference", "set_symmetric_difference"):
        assert vm.failure(name, s, [1]) == f"{name}: arguments must be sets"
        assert vm.failure(name, 1, s) == f"{name}: arguments must be sets"
    assert vm.run("set_contains", [1], 1) is False
    assert vm.run("set_is_subset", s, [1]) is False
    assert vm.run("set_is_superset", s, [1]) is False
    assert vm.run("set_is_disjoint", s, [1]) is True


MEMBERS = st.lists(st.integers(0, 6), max_size=6, unique=True)


@given(MEMBERS, MEMBERS)
def test_set_functions_are_set_algebra(left: list[int], right: list[int]) -> None:
    a, b, vm = Set(left), Set(right), Vm()
    x, y = set(left), set(right)
    assert collections.set_union(vm, a, b).items == left + [i for i in right if i not in x]
    assert collections.set_intersect(vm, a, b).items == [i for i in left if i in y]
    assert collections.set_difference(vm, a, b).items == [i for i in left if i not in y]
    assert set(collections.set_symmetric_difference(vm, a, b).items) == x ^ y
    assert collections.set_is_subset(vm, a, b) == (x <= y)
    assert collections.set_is_superset(vm, a, b) == (x >= y)
    assert collections.set_is_disjoint(vm, a, b) == x.isdisjoint(y)
    assert (a.items, b.items) == (left, right)
