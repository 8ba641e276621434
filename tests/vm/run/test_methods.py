"""Methods of strings, lists, dicts, sets, ranges and iterators. Spec: 02 §14.4, §16–18; 04 §4–9."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.vm.declare import Signature
from harnpy.vm.errors import Thrown, TypeFault
from harnpy.vm.run import methods
from harnpy.vm.values import Duration, Generator, Iter, Pair, Range, Set, Stream, Struct, display
from harnpy.vm.values.equality import equal
from harnpy.vm.values.iterators import handle, iterator
from harnpy.vm.values.operators import Sizes
from harnpy.vm.vm import Signal


class FakeVm:
    """What methods need of a Vm, with Python functions for Harn's callables."""

    def callback(self, value: Any, n: int) -> Callable[..., Any] | None:
        return (lambda depth, *args: value(*args[:n])) if callable(value) else None

    signal = Signal()
    sizes = Sizes()

    def poll(self) -> None:
        """Nothing is ever due."""

    def iterate(self, value: Any) -> Iterator[Any]:
        return iterator(value, self.signal, self.poll)

    def handle(self, value: Any) -> Iter:
        return handle(value, self.signal, self.poll)

    def paced(self, items: Any) -> Any:
        return items


def call(receiver: Any, name: str, *args: Any) -> Any:
    """``receiver.name(args)``, bound as generated code binds it."""
    declaration = methods.method_of(type(receiver), name)
    assert declaration is not None, name
    return declaration.bind().call(FakeVm(), receiver, *args)


def chain(receiver: Any, *steps: Any) -> Any:
    """``receiver.a(x).b(y)`` for the steps ("a", x), ("b", y); a bare name takes no arguments."""
    for step in steps:
        receiver = call(receiver, *((step,) if isinstance(step, str) else step))
    return receiver


def items(handle: Iter) -> list[Any]:
    return call(handle, "to_list")  # type: ignore[no-any-return]


def same(found: Any, wanted: Any) -> bool:
    """Equal and of the same kind throughout: 1 is no 1.0 here."""
    return equal(found, wanted) and display(found) == display(wanted)


STRINGS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("héllo", ("count",), 5),
    ("héllo", ("len",), 5),
    ("", ("empty",), True),
    ("a5", ("contains", 5), True),
    ("ab", ("contains", ""), True),
    ("ab", ("contains",), True),
    ("ab", ("starts_with", "a"), True),
    ("ab", ("ends_with", "a"), False),
    ("a-b-c", ("replace", "-", "+"), "a+b+c"),
    ("ab", ("replace", "", "-"), "-a-b-"),
    ("ab", ("replace", "a"), None),
    ("ab", ("replace", "a", None), "nilb"),
    ("a,b,,c", ("split",), ["a", "b", "", "c"]),
    ("a-b", ("split", "-"), ["a", "b"]),
    ("ab", ("split", ""), ["", "a", "b", ""]),
    ("", ("split", ","), [""]),
    ("\u00a0 a\u3000", ("trim",), "a"),
    ("\u001ca", ("trim",), "\u001ca"),
    (" a ", ("trim_start",), "a "),
    (" a ", ("trim_end",), " a"),
    ("AbÉ", ("lowercase",), "abé"),
    ("AbÉ", ("lower",), "abé"),
    ("AbÉ", ("to_lower",), "abé"),
    ("ß", ("uppercase",), "SS"),
    ("ß", ("upper",), "SS"),
    ("ß", ("to_upper",), "SS"),
    ("héllo", ("substring", 1, 3), "él"),
    ("abc", ("substring",), "abc"),
    ("abc", ("substring", -5, 2), "ab"),
    ("abc", ("substring", 2, 1), ""),
    ("abc", ("substring", 1, -1), "bc"),
    ("abc", ("substring", "x", 9), "abc"),
    ("abcabc", ("index_of", "c"), 2),
    ("abc", ("index_of", "z"), -1),
    ("abcabc", ("last_index_of", "c"), 5),
    ("hé", ("chars",), ["h", "é"]),
    ("abc", ("char_at", 1), "b"),
    ("abc", ("char_at", -1), None),
    ("abc", ("char_at", 3), None),
    ("abc", ("char_at",), None),
    ("a\r\nb\n\nc", ("lines",), ["a", "b", "", "c"]),
    ("a\n", ("lines",), ["a"]),
    ("", ("lines",), []),
    ("a\n\n", ("lines",), ["a", ""]),
    ("ab", ("repeat", 2), "abab"),
    ("ab", ("repeat",), "ab"),
    ("ab", ("repeat", -1), ""),
    ("abc", ("reverse",), "cba"),
    ("7", ("pad_left", 3, "0x"), "007"),
    ("7", ("pad_left", 3), "  7"),
    ("7", ("pad_right", 3, ""), "7  "),
    ("777", ("pad_right", 2), "777"),
]


@pytest.mark.parametrize(("receiver", "step", "wanted"), STRINGS)
def test_string(receiver: str, step: tuple[Any, ...], wanted: Any) -> None:
    assert same(call(receiver, *step), wanted)


def _odd(x: int) -> bool:
    return x % 2 == 1


def _negate(x: int) -> int:
    return -x


LISTS: list[tuple[list[Any], tuple[Any, ...], Any]] = [
    ([1, 2], ("count",), 2),
    ([], ("empty",), True),
    ([1, 2], ("map", _negate), [-1, -2]),
    ([1, 2, 3], ("filter", _odd), [1, 3]),
    ([1, 2], ("flat_map", lambda x: [x, x] if x > 1 else x), [1, 2, 2]),
    ([1, 2, 3], ("reduce", 10, lambda acc, x: acc - x), 4),
    ([2, 3], ("find", _odd), 3),
    ([2], ("find", _odd), None),
    ([2, 3], ("find_index", _odd), 1),
    ([2], ("find_index", _odd), -1),
    ([2, 3], ("any", _odd), True),
    ([2, 3], ("all", _odd), False),
    ([3], ("every", _odd), True),
    ([2, 3], ("none", _odd), False),
    ([2], ("none", _odd), True),
    ([3, 1, 2], ("sort",), [1, 2, 3]),
    (["b", "é", "a"], ("sort",), ["a", "b", "é"]),
    ([2.5, 1, 2], ("sort",), [1, 2, 2.5]),
    ([True, False], ("sort",), [True, False]),
    ([Pair(1, "b"), Pair(1, "a")], ("sort",), [Pair(1, "a"), Pair(1, "b")]),
    ([Duration(2), Duration(1)], ("sort",), [Duration(1), Duration(2)]),
    (["bb", "a", "cc"], ("sort_by", len), ["a", "bb", "cc"]),
    ([1, 2], ("reverse",), [2, 1]),
    ([2, 1.0, 1], ("min",), 1.0),
    ([1, 2, 2.0], ("max",), 2),
    ([], ("min",), None),
    (["bb", "a", "c"], ("min_by", len), "a"),
    (["a", "bb", "cc"], ("max_by", len), "bb"),
    ([], ("max_by", len), None),
    ([1, "x", None, 2], ("sum",), 3),
    ([1, 0.5], ("sum",), 1.5),
    ([], ("sum",), 0),
    ([2**63 - 1, 1], ("sum",), -(2**63)),
    ([1, None, "a"], ("join", "-"), "1-nil-a"),
    ([1, 2], ("join",), "12"),
    ([1, 2], ("contains", 2.0), True),
    ([1], ("contains", True), False),
    ([1, 2.0], ("index_of", 2), 1),
    ([1], ("index_of", "1"), -1),
    (["a"], ("enumerate",), [{"index": 0, "value": "a"}]),
    ([1, 2, 3], ("zip", ["a", "b"]), [[1, "a"], [2, "b"]]),
    ([1], ("zip", 5), []),
    ([1, 2, 3, 4], ("slice", 1, -1), [2, 3]),
    ([1, 2, 3], ("slice", -2), [2, 3]),
    ([1, 2, 3], ("slice",), [1, 2, 3]),
    ([7, "7", None, 7, 7.0, "7"], ("unique",), [7, "7", None, 7.0]),
    ([1, 2, 1], ("unique",), [1, 2]),
    ([1, 2, 3], ("take", 2), [1, 2]),
    ([1, 2, 3], ("take", -1), []),
    ([1, 2, 3], ("take",), []),
    ([1, 2, 3], ("skip", 2), [3]),
    ([1, 2], ("skip", "x"), [1, 2]),
    ([1, 2], ("first",), 1),
    ([], ("first",), None),
    ([1, 2], ("first", 1), [1]),
    ([1, 2], ("first", "x"), 1),
    ([1, 2], ("last",), 2),
    ([1, 2, 3], ("last", 2), [2, 3]),
    ([1, 2], ("last", 9), [1, 2]),
    ([1, 2], ("last", 0), []),
    ([1, [2, [3]]], ("flatten",), [1, 2, [3]]),
    ([1], ("push", 2), [1, 2]),
    ([1, 2], ("pop",), [1]),
    ([], ("pop",), []),
    ([1, 2, 3], ("partition", _odd), [[1, 3], [2]]),
    ([1, 2, 3], ("group_by", _odd), {"true": [1, 3], "false": [2]}),
    ([1, 2, 3], ("chunk", 2), [[1, 2], [3]]),
    ([1, 2], ("chunk", 0), [[1], [2]]),
    ([1, 2], ("each_slice",), [[1], [2]]),
    ([1, 2, 3], ("window",), [[1, 2], [2, 3]]),
    ([1, 2, 3, 4, 5], ("each_cons", 2, 2), [[1, 2], [3, 4]]),
    ([1], ("sliding_window", 2), []),
    ([1, None, False], ("compact",), [1, False]),
    ([1, "1", 2], ("tally",), {"1": 2, "2": 1}),
]


@pytest.mark.parametrize(("receiver", "step", "wanted"), LISTS)
def test_list(receiver: list[Any], step: tuple[Any, ...], wanted: Any) -> None:
    before = receiver.copy()
    assert same(call(receiver, *step), wanted)
    assert all(a is b for a, b in zip(receiver, before, strict=True))


@pytest.mark.parametrize("f", [None, 5, "x"])
def test_without_a_callable_the_result_is_neutral(f: Any) -> None:
    for name in ("map", "filter", "find", "flat_map", "sort_by", "partition", "group_by", "min_by", "max_by"):
        assert call([1], name, f) is None
    assert call([1], "reduce", 0, f) is None
    assert call([1], "find_index", f) == -1
    assert (call([1], "any", f), call([1], "all", f)) == (False, True)
    assert (call([1], "none", f), call([], "none", f)) == (False, True)
    for name in ("map_values", "map_keys", "rekey", "filter"):
        assert call({"a": 1}, name, f) is None
    assert call(Set([1]), "map", f) is None
    assert (call(Set([1]), "any", f), call(Set([1]), "every", f)) == (False, True)


def test_short_circuit() -> None:
    seen: list[int] = []

    def note(x: int) -> bool:
        seen.append(x)
        return x > 1

    assert call([1, 2, 3], "any", note)
    assert call([2, 1, 3], "all", note) is False
    assert seen == [1, 2, 2, 1]


@given(st.lists(st.integers() | st.floats(allow_nan=False) | st.text(max_size=2) | st.none(), max_size=12))
def test_sorting_items_of_one_kind_is_pythons(mixed: list[Any]) -> None:
    for kind in (int, str, float):
        xs = [x for x in mixed if type(x) is kind]
        assert same(call(xs, "sort"), sorted(xs))
        assert same(call(xs, "sort_by", lambda x: Pair(x, 1)), sorted(xs))


DICT = {"b": 2, "a": 1}
DICTS: list[tuple[tuple[Any, ...], Any]] = [
    (("keys",), ["a", "b"]),
    (("values",), [1, 2]),
    (("entries",), [{"key": "a", "value": 1}, {"key": "b", "value": 2}]),
    (("count",), 2),
    (("has", "a"), True),
    (("has", 5), False),
    (("get", "a", 9), 1),
    (("get", "z", 9), 9),
    (("get", "z"), None),
    (("get",), None),
    (("merge", {"b": 3, "c": 4}), {"a": 1, "b": 3, "c": 4}),
    (("merge", 5), DICT),
    (("map_values", _negate), {"a": -1, "b": -2}),
    (("filter", _odd), {"a": 1}),
    (("map_keys", lambda key: key + "x"), {"ax": 1, "bx": 2}),
    (("rekey", lambda key: 1), {"1": 2}),
    (("remove", "a"), {"b": 2}),
    (("remove", "z"), DICT),
]


@pytest.mark.parametrize(("step", "wanted"), DICTS)
def test_dict(step: tuple[Any, ...], wanted: Any) -> None:
    assert same(call(DICT, *step), wanted)
    assert DICT == {"b": 2, "a": 1}


def test_dict_callbacks_run_in_key_order() -> None:
    seen: list[Any] = []
    call(DICT, "map_values", seen.append)
    call(DICT, "filter", seen.append)
    call(DICT, "map_keys", seen.append)
    assert seen == [1, 2, 1, 2, "a", "b"]


def test_present_nil_is_present() -> None:
    assert call({"a": None}, "has", "a")
    assert call({"a": None}, "get", "a", 5) is None


@pytest.mark.parametrize("name", ["map", "len", "empty", "any", "find"])
def test_dicts_have_no_such_method(name: str) -> None:
    assert methods.method_of(dict, name) is None


# Sets

MEMBERS = st.lists(
    st.sampled_from([0, 1, 2, 1.0, 2.5, True, False, "1", "a", None, float(2**53), 2**53 + 1])
    | st.lists(st.sampled_from([1, 1.0, True]), max_size=2),
    max_size=6,
)


def _model(values: list[Any]) -> list[Any]:
    """Distinct by ==, in order of arrival: the list model of a set."""
    kept: list[Any] = []
    for value in values:
        if not _has(kept, value):
            kept.append(value)
    return kept


def _has(values: list[Any], x: Any) -> bool:
    return any(equal(value, x) for value in values)


@given(MEMBERS, MEMBERS)
def test_set_operations_are_those_of_distinct_lists(a: list[Any], b: list[Any]) -> None:
    a, b = _model(a), _model(b)
    left, right = Set(a), Set(b)

    def check(name: str, wanted: list[Any]) -> None:
        assert same(call(left, name, right).items, wanted)

    check("union", _model(a + b))
    check("intersect", [x for x in a if _has(b, x)])
    check("intersection", [x for x in a if _has(b, x)])
    check("difference", [x for x in a if not _has(b, x)])
    check("symmetric_difference", [x for x in a if not _has(b, x)] + [x for x in b if not _has(a, x)])
    assert call(left, "is_subset", right) == all(_has(b, x) for x in a)
    assert call(left, "is_superset", right) == all(_has(a, x) for x in b)
    assert call(left, "is_disjoint", right) == (not any(_has(b, x) for x in a))
    assert same(call(left, "map", lambda x: x).items, a)


@given(MEMBERS, MEMBERS)
def test_adding_and_removing_members(a: list[Any], values: list[Any]) -> None:
    for value in values:
        s = Set(_model(a))
        assert same(call(s, "add", value).items, _model([*a, value]))
        assert same(call(s, "remove", value).items, [x for x in s.items if not equal(x, value)])
        assert call(s, "contains", value) == _has(s.items, value)


def test_set_basics() -> None:
    s = Set([1, "a"])
    assert (call(s, "count"), call(s, "len"), call(s, "empty")) == (2, 2, False)
    assert call(s, "to_list") == [1, "a"]
    assert call(s, "delete", 1.0).items == ["a"]
    assert call(Set([1, 2, 3]), "filter", _odd).items == [1, 3]
    assert call(Set([1, 2, 3]), "map", _odd).items == [True, False]
    assert call(Set([1, 2]), "any", _odd)
    assert not call(Set([1, 2]), "all", _odd)
    assert items(call(s, "iter")) == [1, "a"]


def test_set_methods_with_something_else() -> None:
    s = Set([1])
    for name in ("union", "difference", "symmetric_difference"):
        assert call(s, name, [1]).items == [1]
    assert call(s, "intersect", [1]).items == []
    assert (call(s, "is_subset", [1]), call(s, "is_superset", [1])) == (False, False)
    assert call(s, "is_disjoint", [1]) is True


# Ranges


def test_range_methods() -> None:
    r = Range(2, 5)
    assert (call(r, "len"), call(r, "count"), call(r, "empty")) == (4, 4, False)
    assert (call(r, "first"), call(r, "last")) == (2, 5)
    assert (call(r, "contains", 5), call(r, "contains", 5.0)) == (True, False)
    assert call(r, "to_string") == "2 to 5"
    assert call(Range(0, 3, exclusive=True), "last") == 2
    assert (call(Range(5, 1), "first"), call(Range(5, 1), "last")) == (None, None)
    assert call(Range(5, 1), "empty") is True


def test_other_methods_of_a_range_run_over_a_fresh_iterator() -> None:
    r = Range(1, 4)
    doubled = call(r, "map", lambda x: 2 * x)
    assert isinstance(doubled, Iter)
    assert items(doubled) == [2, 4, 6, 8]
    assert (call(r, "sum"), call(r, "sum")) == (10, 10)
    assert methods.method_of(Range, "nonsense") is None


def test_a_huge_range_is_lazy() -> None:
    seen: list[int] = []
    assert chain(Range(1, 50_000_000), ("map", seen.append), ("take", 4), "to_list") == [None] * 4
    assert seen == [1, 2, 3, 4]


# Iterators


ITERS: list[tuple[tuple[Any, ...], list[Any]]] = [
    (("map", _negate), [-1, -2, -3]),
    (("filter", _odd), [1, 3]),
    (("flat_map", lambda x: Range(1, x)), [1, 1, 2, 1, 2, 3]),
    (("take", 2), [1, 2]),
    (("take", 0), []),
    (("skip", 2), [3]),
    (("skip", 9), []),
    (("take_while", lambda x: x < 2), [1]),
    (("skip_while", lambda x: x < 2), [2, 3]),
    (("zip", "ab"), [Pair(1, "a"), Pair(2, "b")]),
    (("enumerate",), [Pair(0, 1), Pair(1, 2), Pair(2, 3)]),
    (("chain", {"k": 1}), [1, 2, 3, Pair("k", 1)]),
    (("chunks", 2), [[1, 2], [3]]),
    (("windows", 2), [[1, 2], [2, 3]]),
    (("windows", 4), []),
    (("iter",), [1, 2, 3]),
]


@pytest.mark.parametrize(("step", "wanted"), ITERS)
def test_combinator(step: tuple[Any, ...], wanted: list[Any]) -> None:
    source = Iter([1, 2, 3])
    derived = call(source, *step)
    assert display(source) == "<iter>"
    assert same(items(derived), wanted)
    assert display(derived) == "<iter (exhausted)>"
    assert items(derived) == []


SINKS: list[tuple[list[Any], tuple[Any, ...], Any]] = [
    ([1, 2], ("to_list",), [1, 2]),
    ([1, 1.0, 2, 1], ("to_set",), Set([1, 2])),
    ([Pair("a", 1), Pair("a", 2)], ("to_dict",), {"a": 2}),
    ([5, 6], ("count",), 2),
    ([1, 2], ("sum",), 3),
    ([1, 0.5], ("sum",), 1.5),
    ([], ("sum",), 0),
    ([2, 1, 1.0], ("min",), 1),
    ([1, 2.0, 2], ("max",), 2.0),
    ([], ("max",), None),
    ([1, 2], ("reduce", 10, lambda acc, x: acc - x), 7),
    ([1, 2], ("first",), 1),
    ([], ("first",), None),
    ([1, 2], ("last",), 2),
    ([], ("last",), None),
    ([2, 3], ("any", _odd), True),
    ([2], ("any", _odd), False),
    ([1, 2], ("all", _odd), False),
    ([], ("all", _odd), True),
    ([2, 3], ("find", _odd), 3),
    ([2], ("find", _odd), None),
    ([2], ("for_each", _odd), None),
]


@pytest.mark.parametrize(("source", "step", "wanted"), SINKS)
def test_sink(source: list[Any], step: tuple[Any, ...], wanted: Any) -> None:
    assert same(call(Iter(source), *step), wanted)


@pytest.mark.parametrize(
    ("source", "step", "message"),
    [
        *[
            ([1], (name, 5), f"iter.{name}: expected callable")
            for name in ("map", "filter", "flat_map", "take_while", "skip_while", "any", "all", "find")
        ],
        ([1], ("for_each",), "iter.for_each: expected callable"),
        ([1], ("take",), "iter.take: expected non-negative int"),
        ([1], ("take", -1), "iter.take: expected non-negative int"),
        ([1], ("skip", 1.0), "iter.skip: expected non-negative int"),
        ([1], ("zip", 5), "iter.zip: expected iterable argument"),
        ([1], ("chain",), "iter.chain: expected iterable argument"),
        ([1], ("chunks", 0), "iter.chunks: chunk size must be positive"),
        ([1], ("windows",), "iter.windows: window size must be positive"),
        ([1, "a"], ("sum",), "iter.sum: expected number, got string"),
        ([True], ("sum",), "iter.sum: expected number, got bool"),
        ([1], ("reduce", 0), "iter.reduce: expected (init, fn)"),
        ([1], ("reduce", 0, 5), "iter.reduce: second arg must be callable"),
        ([1], ("to_dict",), "iter.to_dict: expected pair, got int"),
        ([Pair(1, 2)], ("to_dict",), "iter.to_dict: expected string key, got int"),
    ],
)
def test_iterator_refusal(source: list[Any], step: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeFault) as caught:
        call(Iter(source), *step)
    assert caught.value.message == message


def test_flat_map_wants_iterable_results() -> None:
    with pytest.raises(TypeFault, match="iter: value of type int is not iterable"):
        items(call(Iter([1]), "flat_map", lambda x: x))


def test_derived_iterators_share_their_source() -> None:
    letters = call("abcd", "iter")
    assert items(call(letters, "take", 1)) == ["a"]
    assert call(letters, "first") == "b"
    assert items(call(letters, "skip", 1)) == ["d"]
    assert display(letters) == "<iter (exhausted)>"


def test_what_a_stopped_iterator_leaves_behind() -> None:
    it = Iter([1, 2, 3, 4, 5])
    assert items(call(it, "take_while", lambda x: x < 2)) == [1]
    assert same(items(call(it, "zip", [9])), [Pair(3, 9)])
    assert items(it) == [5]


def test_zip_pulls_the_left_side_first() -> None:
    left, right = Iter([1, 2, 3]), Iter(["a"])
    assert same(items(call(left, "zip", right)), [Pair(1, "a")])
    assert items(left) == [3]


def test_find_leaves_the_rest() -> None:
    it = Iter([1, 2, 3])
    assert call(it, "find", lambda x: x == 2) == 2
    assert items(it) == [3]


def test_an_error_in_a_callback_loses_one_item_only() -> None:
    def fussy(x: int) -> int:
        if x == 2:
            raise Thrown("two")
        return x

    for step, rest in [
        (("map", fussy), [3, 4]),
        (("filter", fussy), [3, 4]),
        (("take_while", fussy), [3, 4]),
        (("flat_map", lambda x: [fussy(x)]), [3, 4]),
    ]:
        it = call(Iter([1, 2, 3, 4]), *step)
        with pytest.raises(Thrown):
            items(it)
        assert items(it) == rest
    chunks = chain(Iter([1, 2, 3, 4]), ("map", fussy), ("chunks", 2))
    with pytest.raises(Thrown):
        items(chunks)
    assert items(chunks) == [[1, 3], [4]]


@given(st.lists(st.integers(), max_size=8), st.integers(1, 4), st.integers(0, 9))
def test_lazy_and_eager_agree(xs: list[int], n: int, k: int) -> None:
    def lazy(*step: Any) -> Any:
        return items(call(Iter(xs), *step))

    assert lazy("chunks", n) == call(xs, "chunk", n)
    assert lazy("windows", n) == call(xs, "window", n)
    assert lazy("take", k) == call(xs, "take", k)
    assert lazy("skip", k) == call(xs, "skip", k)
    assert lazy("map", _negate) == call(xs, "map", _negate)
    assert lazy("filter", _odd) == call(xs, "filter", _odd)
    for name in ("sum", "min", "max", "count", "first", "last"):
        assert call(Iter(xs), name) == call(xs, name)


def test_a_long_chain_costs_no_c_stack() -> None:
    it = Iter([1, 2])
    for _ in range(20_000):
        it = call(it, "map", lambda x: x + 1)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200_000)
    try:
        assert call(it, "first") == 20_001
        assert items(it) == [20_002]
    finally:
        sys.setrecursionlimit(limit)


# Generators and streams


@pytest.mark.parametrize("kind", [Generator, Stream])
def test_next_and_iter(kind: type[Generator]) -> None:
    g = kind([1, None, 3])
    assert call(g, "next") == {"done": False, "value": 1}
    assert call(g, "next") == {"done": False, "value": None}
    assert items(call(g, "iter")) == [3]
    assert call(g, "next") == {"done": True, "value": None}
    assert display(g) == f"<{g.type_name} (done)>"


@pytest.mark.parametrize("name", ["map", "take", "to_list", "count"])
def test_other_names_of_a_generator_are_unknown(name: str) -> None:
    assert methods.method_of(Generator, name) is None
    assert methods.method_of(Stream, name) is None


# Declarations


RECEIVERS: dict[str, Any] = {
    "string": "ab",
    "list": [1],
    "dict": {"a": 1},
    "set": Set([1]),
    "range": Range(1, 2),
    "iter": Iter([1]),
    "generator": Generator([1]),
    "stream": Stream([1]),
}


@pytest.mark.parametrize("receiver", RECEIVERS)
def test_every_method_is_declared_properly(receiver: str) -> None:
    names = methods.method_names(receiver)
    assert names == sorted(set(names))
    assert "iter" in names
    for name in names:
        declaration = methods.method_of(type(RECEIVERS[receiver]), name)
        assert declaration is not None
        assert declaration.receiver == receiver
        assert declaration.summary
        assert Signature(declaration.signature_text).name == name == declaration.name
        declaration.bind()


@pytest.mark.parametrize("value", [5, 1.5, True, None, b"a", Pair(1, 2), Duration(1), Struct("P")])
def test_kinds_without_methods(value: Any) -> None:
    assert methods.method_of(type(value), "count") is None


def test_lists_have_no_len() -> None:
    assert methods.method_of(list, "len") is None


@pytest.mark.parametrize("receiver", ["int", "nonsense"])
def test_no_names_for_other_kinds(receiver: str) -> None:
    assert methods.method_names(receiver) == []
