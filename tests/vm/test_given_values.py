"""What a Python program gives to Harn: converted where that is plain, else refused with the path to it."""

from __future__ import annotations

import asyncio
import datetime
import enum
import math
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, ClassVar
from uuid import UUID

import msgspec
import pydantic
import pytest

from harnpy import Host, HostError, People, UnsupportedValue, Vm, VmError, World
from harnpy.vm.values import Duration, Set
from harnpy.vm.values.given import DEEPEST, given


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Name(enum.StrEnum):
    ANN = "ann"


@dataclass
class Line:
    TAX: ClassVar[int] = 19
    item: str
    sizes: list[int] = field(default_factory=list)


class Order(pydantic.BaseModel):
    lines: list[int]
    who: str | None = None


class Point(msgspec.Struct):
    x: int


Pair = namedtuple("Pair", "left right")

AT = datetime.datetime(2026, 1, 31, 9, 15, tzinfo=datetime.UTC)

CONVERTED = {
    "a tuple": ((1, (2,)), [1, [2]]),
    "a dataclass": (Line("a", [1]), {"item": "a", "sizes": [1]}),
    "a pydantic model": (Order(lines=[1]), {"lines": [1], "who": None}),
    "a msgspec struct": (Point(1), {"x": 1}),
    "a named tuple": (Pair(1, "b"), {"left": 1, "right": "b"}),
    "an ordered dict": (OrderedDict(b=1, a=(2,)), {"b": 1, "a": [2]}),
    "a mapping": (MappingProxyType({"a": 1}), {"a": 1}),
    "an enum": ([Colour.RED, Level.HIGH, Name.ANN], ["red", 3, "ann"]),
    "an enum as key": ({Name.ANN: 1}, {"ann": 1}),
    "bytes": ([b"a", bytearray(b"b"), memoryview(b"c")], [b"a", b"b", b"c"]),
    "a moment": (AT, "2026-01-31T09:15:00+00:00"),
    "an id": (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    "a path": (PurePosixPath("a/b"), "a/b"),
    "the largest int": ([2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_what_stands_for_a_value_becomes_it(name: str) -> None:
    value, expected = CONVERTED[name]
    vm = Vm()
    vm.set_global("x", value)
    found = vm.run_source("return x")
    assert found == expected
    assert type(found) is type(expected)


def test_sets_times_and_floats() -> None:
    found = given({3, 1, 2}, "x")
    assert type(found) is Set
    assert found.items == [1, 2, 3]
    length = given(datetime.timedelta(seconds=2), "x")
    assert type(length) is Duration
    assert length.ms == 2000
    assert math.isnan(given(float("nan"), "x"))


EVERYTHING = """
struct P { x: int }
gen fn g() { emit 1 }
let all = [P({x: 1}), Ok(1), set([1]), 5s, 1 to 3, pair(1, 2), { x -> x }, len, iter([1]), g(), regex_match]
return all + [channel(1), atomic(1), spawn { 1 }, rng_seed(1)]
"""


def test_what_is_a_value_passes_as_it_is() -> None:
    everything = Vm().run_source(EVERYTHING)
    rows = [{"a": [1, 2.5, "c", None, True, b"d"], "b": {"c": {}}}, everything]
    assert given(rows, "x") is rows


def test_numpys_scalars_and_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    value = {"a": numpy.float64(1.5), "b": numpy.int32(2), "c": numpy.bool_(True), "d": numpy.arange(2)}
    assert given(value, "x") == {"a": 1.5, "b": 2, "c": True, "d": [0, 1]}
    assert [type(each) for each in given(value, "x").values()] == [float, int, bool, list]


def circle() -> Any:
    made: dict[str, Any] = {"a": []}
    made["a"].append(made)
    return made


def deep(levels: int) -> Any:
    made: Any = 1
    for _ in range(levels):
        made = [made]
    return made


REFUSED = {
    "a decimal": ({"orders": [{"price": Decimal("1.5")}]}, "orders[0].price", "Decimal"),
    "a fraction": ([Fraction(1, 2)], "[0]", "Fraction"),
    "a strange key": ({"a b": {"c": object()}}, '["a b"].c', "object"),
    "a model's field": ({"order": Order.model_construct(lines=[1, Decimal(2)])}, "order.lines[1]", "Decimal"),
    "a naive moment": ([datetime.datetime(2026, 1, 1)], "[0]", "x.astimezone()"),
    "a date": ([datetime.date(2026, 1, 1)], "[0]", "x.isoformat()"),
    "a part of a millisecond": ([datetime.timedelta(microseconds=1)], "[0]", "milliseconds"),
    "a large int": ({"n": 2**63}, "n", "64 bits"),
    "a number as key": ({"t": {1: "a"}}, "t", "the key 1, of the type int"),
    "no key": ({"t": {None: 1}}, "t", "the key None"),
    "a circle": (circle(), "a[0]", "contains itself"),
    "a function": ({"f": [print]}, "f[0]", "`register`"),
    "a generator": ({"g": (n for n in range(3))}, "g", "pass list(x)"),
    "a complex number": ([1j], "[0]", "complex"),
    "an object": (object(), "", "object"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_harn_cannot_hold_is_refused_with_the_path_to_it(name: str) -> None:
    value, path, words = REFUSED[name]
    with pytest.raises(UnsupportedValue) as refused:
        Vm().set_global("config", value)
    assert refused.value.path == path
    assert words in str(refused.value)
    assert str(refused.value).startswith(f"the global `config`: {path} " if path else "the global `config` ")


def test_too_deep_a_value_is_refused() -> None:
    assert given(deep(DEEPEST), "x") is not None
    with pytest.raises(UnsupportedValue, match="more than 500 deep"):
        given(deep(DEEPEST + 1), "x")


BAD = {"orders": [{"price": Decimal("1.5")}]}


async def later() -> Any:
    await asyncio.sleep(0)
    return BAD


class Bridge:
    def list(self) -> list[dict[str, Any]]:
        return [{"name": "quote", "schema": BAD}]

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return BAD


def throws() -> None:
    raise VmError.Thrown(BAD)


def doors() -> Vm:
    host = Host({"shop.quote": lambda params: BAD}, Bridge())
    vm = Vm(World(host=host, people=People(lambda request: BAD)))
    vm.register("now() -> any", lambda: BAD)
    vm.register("later() -> any", later)
    vm.register("throws() -> any", throws)
    return vm


DOORS = [
    "now()",
    "later()",
    "throws()",
    'host_call("shop.quote", {})',
    'host_tool_call("quote", {})',
    'ask_user("which?")',
]


@pytest.mark.parametrize("call", DOORS)
def test_every_result_comes_through_the_same_door(call: str) -> None:
    with pytest.raises(HostError, match=r"orders\[0\]\.price is of the type Decimal") as failed:
        doors().run_source(call)
    assert isinstance(failed.value.__cause__, UnsupportedValue)
    assert doors().run_source(f"return try {{ {call} }} catch (e) {{ e.type }}") == "UnsupportedValue"


ENTRANCES: dict[str, Callable[[Vm], Any]] = {
    "set_global": lambda vm: vm.set_global("x", BAD),
    "call": lambda vm: vm.call(vm.run_source("return { x -> x }"), BAD),
    "bind": lambda vm: vm.repl().bind("x", BAD),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_so_does_what_is_given_directly(entrance: str) -> None:
    with pytest.raises(UnsupportedValue, match=r": orders\[0\]\.price is of the type Decimal"):
        ENTRANCES[entrance](Vm())


def test_a_class_of_the_embedders_may_be_a_value() -> None:
    class Handle:
        type_name = "handle"

    handle, vm = Handle(), Vm()
    vm.set_global("handle", [handle])
    vm.register("same(x: any) -> bool", lambda x: x is handle)
    assert vm.run_source("return [type_of(handle[0]), same(handle[0])]") == ["handle", True]
