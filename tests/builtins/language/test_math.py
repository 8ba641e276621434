"""Numbers, statistics, randomness, ids. Spec: 04 §10."""

from __future__ import annotations

import math
import random
import statistics
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy import Vm
from harnpy.builtins.language import math as numbers
from harnpy.builtins.language import math as ours

BIG = 2**63
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("abs", (-3,), 3),
        ("abs", (-3.5,), 3.5),
        ("abs", (-BIG,), 9223372036854775808.0),
        ("abs", (True,), None),
        ("abs", ("1",), None),
        ("abs", (), None),
        ("min", (1, 2), 1),
        ("min", (1, 2.0), 1.0),
        ("max", (1, 2.5), 2.5),
        ("max", (1, "2"), None),
        ("max", (1,), None),
        ("min", (NAN, 1.0), 1.0),
        ("max", (1, NAN), 1.0),
        ("floor", (-1.5,), -2),
        ("floor", (7,), 7),
        ("floor", ("7",), None),
        ("ceil", (1.2,), 2),
        ("ceil", (-0.5,), 0),
        ("round", (2.5,), 3),
        ("round", (-2.5,), -3),
        ("round", (0.49999999999999994,), 0),
        ("round", (-0.4,), 0),
        ("round", (4503599627370497.0,), 4503599627370497),
        ("sqrt", (25,), 5.0),
        ("sqrt", (True,), None),
        ("pow", (2, 10), 1024),
        ("pow", (2, 62), 2**62),
        ("pow", (2, 63), 2.0**63),
        ("pow", (-2, 63), -BIG),
        ("pow", (2, -1), 0.5),
        ("pow", (0, -1), INF),
        ("pow", (-1, BIG - 1), -1),
        ("pow", (-1, BIG - 2), 1),
        ("pow", (0, BIG - 1), 0),
        ("pow", (0, 0), 1),
        ("pow", (10, 1_000_000_000), INF),
        ("pow", (2.0, 3), 8.0),
        ("pow", (2, 0.5), math.sqrt(2)),
        ("pow", (-0.0, -3), -INF),
        ("pow", (2, "3"), None),
        ("sin", (0,), 0.0),
        ("cos", (0,), 1.0),
        ("tan", (0.0,), 0.0),
        ("asin", (1,), math.pi / 2),
        ("acos", (1,), 0.0),
        ("atan", (INF,), math.pi / 2),
        ("atan2", (1, -1), 3 * math.pi / 4),
        ("atan2", (1, None), None),
        ("ln", (0,), -INF),
        ("ln", (INF,), INF),
        ("log2", (8,), 3.0),
        ("log10", (0.0,), -INF),
        ("log10", (1000,), 3.0),
        ("exp", (1000,), INF),
        ("exp", (0,), 1.0),
        ("exp", (None,), None),
        ("sign", (-0.5,), -1),
        ("sign", (0.0,), 0),
        ("sign", (9,), 1),
        ("sign", ("9",), None),
        ("is_nan", (NAN,), True),
        ("is_nan", (1,), False),
        ("is_nan", ("NaN",), False),
        ("is_infinite", (-INF,), True),
        ("is_infinite", (1.0,), False),
    ],
)
def test_numbers(vm: Any, name: str, args: tuple[Any, ...], expected: Any) -> None:
    result = vm.run(name, *args)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("sqrt", -1.0),
        ("asin", 2),
        ("acos", -2),
        ("ln", -1),
        ("log2", -1),
        ("log10", NAN),
        ("sin", INF),
        ("sign", NAN),
    ],
)
def test_what_has_no_value_is_nan(vm: Any, name: str, n: Any) -> None:
    assert math.isnan(vm.run(name, n))


@pytest.mark.parametrize("name", ["floor", "ceil", "round"])
def test_floats_that_are_no_int(vm: Any, name: str) -> None:
    for n in (NAN, INF, -INF):
        assert vm.failure(name, n) == "Runtime error: cannot convert non-finite float to int"
    for n in (2.0**63, -1e300):
        assert vm.failure(name, n) == "Runtime error: float is outside the representable int range"
    assert vm.run(name, -(2.0**63)) == -BIG


@given(st.floats(-1e15, 1e15))
def test_round_takes_the_nearest_int(x: float) -> None:
    assert abs(numbers.round_away(None, x) - x) <= 0.5  # type: ignore[arg-type, operator]


@given(st.integers(-BIG, BIG - 1), st.integers(0, 200))
def test_int_powers_are_exact_or_floats(base: int, exponent: int) -> None:
    result = numbers.power(None, base, exponent)  # type: ignore[arg-type]
    exact = base**exponent
    if -BIG <= exact < BIG:
        assert result == exact
        assert type(result) is int
    else:
        assert type(result) is float


NUMBERS = st.lists(st.integers(-1000, 1000) | st.floats(-1000, 1000), min_size=2, max_size=20)


@given(NUMBERS, st.integers(0, 100))
def test_statistics_agree_with_the_standard_library(items: list[float], p: int) -> None:
    vm: Any = None
    close = {"rel_tol": 1e-9, "abs_tol": 1e-7}
    assert math.isclose(ours.mean(vm, items), statistics.fmean(items), **close)
    assert math.isclose(ours.median(vm, items), statistics.median(items), **close)
    assert math.isclose(ours.variance(vm, items, False), statistics.pvariance(items), **close)
    assert math.isclose(ours.variance(vm, items, True), statistics.variance(items), **close)
    assert math.isclose(ours.stddev(vm, items, True) ** 2, statistics.variance(items), **close)
    cuts = [float(min(items)), *statistics.quantiles(items, n=100, method="inclusive"), float(max(items))]
    assert math.isclose(ours.percentile(vm, items, p), cuts[p], **close)


def test_statistics_of_few(vm: Any) -> None:
    assert vm.run("mean", []) == 0.0
    assert type(vm.run("mean", [1, 3])) is float
    assert vm.run("median", [5]) == 5.0
    assert vm.run("percentile", [1, 2, 3, 4], 50) == 2.5
    assert vm.run("percentile", [1, 2], 12.5) == 1.125
    assert vm.run("variance", [1, 1]) == 0.0
    assert vm.run("stddev", [2, 4]) == 1.0


@pytest.mark.parametrize("name", ["mean", "median", "percentile", "variance", "stddev"])
def test_statistics_insist_on_numbers(vm: Any, name: str) -> None:
    assert vm.failure(name, "12", 5) == f"Type error: {name}: items must be a list"
    assert vm.failure(name, [1, "2"], 5) == f"Type error: {name} must be numeric"
    assert vm.failure(name, [True], 5) == f"Type error: {name} must be numeric"
    if name != "mean":
        assert vm.failure(name, [], 5) == f"Runtime error: {name}: items must not be empty"


def test_statistics_arguments(vm: Any) -> None:
    for p in (-1, 100.5, NAN):
        assert vm.failure("percentile", [1], p) == "Runtime error: percentile must be between 0 and 100"
    assert vm.failure("percentile", [1], "5") == "Type error: percentile must be numeric"
    for name in ("variance", "stddev"):
        assert vm.failure(name, [1], True) == "Runtime error: sample variance requires at least 2 values"
        assert vm.run(name, [1], False) == 0.0


def test_a_seed_fixes_the_numbers(vm: Any) -> None:
    def draw() -> list[Any]:
        rng = vm.run("rng_seed", 42)
        return [
            vm.run("random", rng),
            vm.run("random_int", rng, 1, 6),
            vm.run("random_choice", rng, ["a", "b", "c"]),
            vm.run("random_shuffle", rng, list(range(9))),
        ]

    assert draw() == draw()
    assert vm.failure("rng_seed", 1.0) == "Type error: rng_seed(seed): seed must be an integer"
    assert vm.failure("rng_seed") == "Type error: rng_seed(seed): seed must be an integer"


def test_random_numbers_come_from_the_host(vm: Any) -> None:
    vm.world.random = random.Random(1)
    first = vm.run("random")
    assert 0 <= first < 1
    vm.world.random = random.Random(1)
    assert vm.run("random") == first


def test_random_int(vm: Any) -> None:
    rng = vm.run("rng_seed", 1)
    assert {vm.run("random_int", rng, 1, 3) for _ in range(200)} == {1, 2, 3}
    assert vm.run("random_int", 5, 5) == 5
    assert -BIG <= vm.run("random_int", -BIG, BIG - 1) < BIG
    assert vm.run("random_int", 3, 1) is None
    assert vm.run("random_int", 3) is None
    assert vm.run("random_int", rng, 3) is None
    assert vm.run("random_int") is None
    assert vm.failure("random_int", 1.0, 2) == "Type error: random_int: min must be an integer"
    assert vm.failure("random_int", rng, 1, True) == "Type error: random_int: max must be an integer"


def test_random_items(vm: Any) -> None:
    items = list(range(20))
    assert vm.run("random_choice", items) in items
    assert vm.run("random_choice", []) is None
    assert vm.run("random_choice", "abc") is None
    assert vm.run("random_choice") is None
    assert sorted(vm.run("random_shuffle", items)) == items
    assert items == list(range(20))
    assert vm.run("random_shuffle", []) == []
    assert vm.run("random_shuffle", 5) is None


def test_new_ids_come_from_the_host(vm: Any) -> None:
    assert vm.run("uuid") == "018f0000-0000-7000-8000-000000000001"
    assert vm.run("uuid_v7") == "018f0000-0000-7000-8000-000000000002"
    assert vm.run("uuid_nil") == "00000000-0000-0000-0000-000000000000"


def test_uuid_v5(vm: Any) -> None:
    expected = str(uuid.uuid5(uuid.NAMESPACE_DNS, "example.com"))
    for namespace in ("dns", "DNS", "namespace_dns", str(uuid.NAMESPACE_DNS), f"{{{uuid.NAMESPACE_DNS}}}"):
        assert vm.run("uuid_v5", namespace, "example.com") == expected
    assert vm.run("uuid_v5", "x500", None) == str(uuid.uuid5(uuid.NAMESPACE_X500, "nil"))
    text = "Runtime error: uuid_v5: namespace must be a UUID or one of dns/url/oid/x500"
    assert vm.failure("uuid_v5", "web", "x") == text
    text = "Runtime error: uuid_v5(namespace, name): requires namespace and name"
    assert vm.failure("uuid_v5", "dns") == text
    assert vm.failure("uuid_v5") == text


def test_uuid_parse(vm: Any) -> None:
    canonical = "018f0000-abcd-7000-8000-00000000000a"
    bare = canonical.replace("-", "")
    for text in (canonical, canonical.upper(), bare, f"{{{canonical}}}", f"urn:uuid:{canonical}"):
        assert vm.run("uuid_parse", text) == canonical
    for text in ("", "x", bare[:-1], bare + "0", canonical + "\n", f"{{{canonical}", "0-" * 18, None, 5):
        assert vm.run("uuid_parse", text) is None


def test_many_items_are_shuffled_as_few_are() -> None:
    """In pieces, but in the order in which the generator's own `sample` has them."""
    items = list(range(100_001))
    expected = random.Random(7).sample(items, len(items))
    vm = Vm()
    vm.set_global("items", items)
    assert vm.run_source("return random_shuffle(rng_seed(7), items)") == expected
