"""The ``stream`` namespace. Spec: 04 §9, 02 §17.5."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.vm.errors import Thrown
from harnpy.vm.values import Iter, Range, Set
from tests.builtins.conftest import FakeVm


class Feed:
    """A source whose items wait only when ``waiting`` says so."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.waiting = False

    def __iter__(self) -> Feed:
        return self

    def __next__(self) -> Any:
        if not self.items:
            raise StopIteration
        return self.items.pop(0)

    def ready(self) -> bool:
        return self.waiting


def test_combinators(vm: Any, fn: Any) -> None:
    even = fn(lambda x: x % 2 == 0)
    assert list(vm.run("stream.map", [1, 2], fn(lambda x: x * 10))) == [10, 20]
    assert list(vm.run("stream.filter", Range(1, 5), even)) == [2, 4]
    assert list(vm.run("stream.scan", [1, 2, 3], 10, fn(lambda acc, x: acc + x))) == [11, 13, 16]
    assert list(vm.run("stream.take", "abc", 2)) == ["a", "b"]
    assert list(vm.run("stream.take_until", [1, 3, 4, 5], even)) == [1, 3]
    assert [(p.first, p.second) for p in vm.run("stream.zip", [1, 2], Set(["a"]))] == [(1, "a")]
    assert vm.run("stream.fold", [1, 2], 10, fn(lambda acc, x: acc - x)) == 7
    assert vm.run("stream.first", [5, 6]) == 5
    assert vm.run("stream.first", []) is None
    assert vm.run("stream.collect", {"b": 1, "a": 2})[0].first == "a"


def test_everything_is_lazy_and_shares_its_source(vm: Any, fn: Any) -> None:
    seen: list[int] = []
    tapped = vm.run("stream.tap", Range(1, 10**15), fn(lambda x: seen.append(x)))
    assert seen == []
    assert list(vm.run("stream.take", tapped, 2)) == [1, 2]
    assert seen == [1, 2]
    assert vm.run("stream.first", tapped) == 3


def test_an_error_in_a_callback_loses_an_item_and_no_more(vm: Any, fn: Any) -> None:
    def refuse_two(x: int) -> int:
        if x == 2:
            raise Thrown("two")
        return x

    for name in ("stream.map", "stream.tap", "stream.filter"):
        handle = vm.run(name, [1, 2, 3], fn(refuse_two))
        assert handle.__next__() == 1
        with pytest.raises(Thrown):
            handle.__next__()
        assert handle.__next__() == 3


def test_take_until_consumes_the_item_that_ends_it(vm: Any, fn: Any) -> None:
    source = Iter([1, 2, 3])
    assert list(vm.run("stream.take_until", source, fn(lambda x: x == 2))) == [1]
    assert list(source) == [3]


def test_merge_takes_turns(vm: Any) -> None:
    assert list(vm.run("stream.merge", [1, 3], [2, 4])) == [1, 2, 3, 4]
    assert list(vm.run("stream.merge", ["a", "c"], ["b"])) == ["a", "b", "c"]
    assert list(vm.run("stream.merge", [], [1, 2, 3], [])) == [1, 2, 3]
    assert list(vm.run("stream.merge", [])) == []


def test_merge_skips_what_is_not_ready_and_waits_for_it(vm: Any) -> None:
    feed = Feed(["late", "later"])

    def wake() -> None:
        feed.waiting = len(vm.tasks.slept) >= 3

    vm.tasks.while_asleep = wake
    assert list(vm.run("stream.merge", feed, [1, 2])) == [1, 2, "late", "later"]
    assert vm.tasks.slept == [0.001] * 3


def test_interleave_waits_for_its_turn(vm: Any) -> None:
    assert list(vm.run("stream.interleave", [1, 2, 3], ["a"], Feed(["x", "y"]))) == [1, "a", "x", 2, "y", 3]
    assert vm.tasks.slept == []


@given(st.lists(st.lists(st.integers(), max_size=5), min_size=2, max_size=4))
def test_interleave_and_merge_are_a_round_robin(sources: list[list[int]]) -> None:
    expected = [
        source[i] for i in range(max(map(len, sources), default=0)) for source in sources if i < len(source)
    ]
    vm = FakeVm()
    assert list(vm.run("stream.interleave", *sources)) == expected
    assert list(vm.run("stream.merge", *sources)) == expected


def test_race_has_one_winner(vm: Any) -> None:
    second = Iter(["b"])
    assert list(vm.run("stream.race", [], [1, 2], second)) == [1, 2]
    assert list(second) == ["b"]
    assert list(vm.run("stream.race", Feed(["slow"]), [1])) == [1]
    assert list(vm.run("stream.race", [], [])) == []
    feed = Feed(["x"])
    vm.tasks.while_asleep = lambda: setattr(feed, "waiting", True)
    assert list(vm.run("stream.race", feed, [])) == ["x"]


def test_broadcast_delivers_everything_to_everyone(vm: Any) -> None:
    source = Iter([1, 2, 3])
    one, two = vm.run("stream.broadcast", source, 2)
    assert one.__next__() == 1
    assert list(two) == [1, 2, 3]
    assert list(one) == [2, 3]
    assert list(two) == []


def test_throttle_waits_between_items(vm: Any) -> None:
    assert list(vm.run("stream.throttle", [1, 2, 3], 3)) == [1, 2, 3]
    assert vm.tasks.slept == [0.334, 0.334]
    vm.tasks.slept.clear()
    list(vm.run("stream.throttle", [1, 2], 100_000))
    list(vm.run("stream.throttle", [1, 2], 1e-300))
    assert vm.tasks.slept == [0.001, 2**63 / 1000]


def test_debounce_keeps_the_last_of_a_burst(vm: Any) -> None:
    assert list(vm.run("stream.debounce", ["x", "y"], 0)) == ["y"]
    assert vm.tasks.slept == [0.0]
    assert list(vm.run("stream.debounce", Feed([1, 2]), 20)) == [1, 2]
    assert vm.tasks.slept[1:] == [0.02, 0.02]
    assert list(vm.run("stream.debounce", [], 5)) == []


def test_collect_has_a_cap(vm: Any) -> None:
    assert vm.run("stream.collect", [1, 2], 2) == [1, 2]
    assert vm.run("stream.collect", [1], {"max": 1}) == [1]
    assert vm.run("stream.collect", [1], {}) == [1]
    assert len(vm.run("stream.collect", Range(1, 10_000), None)) == 10_000
    assert vm.run("stream.collect", [], 0) == []
    assert vm.failure("stream.collect", [1, 2], 1) == "Runtime error: stream.collect: max cap 1 exceeded"
    text = "Runtime error: stream.collect: max cap 10000 exceeded"
    assert vm.failure("stream.collect", Range(1, 10_001)) == text


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("map", (), "missing argument 1"),
        ("map", ([],), "missing argument 2"),
        ("map", ([], 5), "argument 2 must be callable, got int"),
        ("filter", ([], None), "argument 2 must be callable, got nil"),
        ("tap", ([],), "missing argument 2"),
        ("scan", ([],), "missing argument 2"),
        ("scan", ([], 0), "missing argument 3"),
        ("scan", ([], 0, "f"), "argument 3 must be callable, got string"),
        ("fold", ([], 0, "f"), "argument 3 must be callable, got string"),
        ("take", ([],), "missing argument 2"),
        ("take", ([], -1), "argument 2 must be a non-negative int, got int"),
        ("take", ([], 1.0), "argument 2 must be a non-negative int, got float"),
        ("take_until", ([], 1), "argument 2 must be callable, got int"),
        ("zip", (), "expected 2 streams, got 0"),
        ("zip", ([],), "expected 2 streams, got 1"),
        ("zip", ([], [], []), "expected 2 streams, got 3"),
        ("merge", (), "expected at least one stream"),
        ("race", (), "expected at least one stream"),
        ("interleave", ([],), "expected at least two streams"),
        ("broadcast", ([], 0), "argument 2 must be a positive int, got int"),
        ("broadcast", ([], "2"), "argument 2 must be a positive int, got string"),
        ("throttle", ([],), "missing argument 2"),
        ("throttle", ([], 0), "argument 2 must be a positive number, got int"),
        ("throttle", ([], -0.5), "argument 2 must be a positive number, got float"),
        ("throttle", ([], "9"), "argument 2 must be a positive number, got string"),
        ("throttle", ([], math.inf), "argument 2 must be a positive finite number"),
        ("throttle", ([], math.nan), "argument 2 must be a positive finite number"),
        ("debounce", ([], -1), "argument 2 must be a non-negative int, got int"),
        ("collect", (), "missing argument 1"),
        ("collect", ([], -1), "max must be a non-negative int, got int"),
        ("collect", ([], {"max": "9"}), "max must be a non-negative int, got string"),
        ("collect", ([], "9"), "second argument must be max int or options dict, got string"),
        ("first", (), "missing argument 1"),
    ],
)
def test_refusals(vm: Any, name: str, args: tuple[Any, ...], message: str) -> None:
    assert vm.failure(f"stream.{name}", *args) == f"Type error: stream.{name}: {message}"


@pytest.mark.parametrize("name", ["merge", "race", "first", "collect"])
def test_sources_must_be_iterable(vm: Any, name: str) -> None:
    assert vm.failure(f"stream.{name}", 5) == "Type error: iter: value of type int is not iterable"
