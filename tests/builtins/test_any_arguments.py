"""Whatever a builtin is given, it answers or fails as a Harn program may fail: never a Python error."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harnpy.builtins import catalog
from harnpy.vm.errors import VmError
from harnpy.vm.values import Duration, EnumValue, Iter, Pair, Range, Rng, Set, Struct
from tests.builtins.conftest import FakeVm, make_fn
from tests.builtins.returned import is_as_declared
from tests.counts import COUNT

FAMILIES = {
    "io",
    "types",
    "strings",
    "collections",
    "math",
    "testing",
    "streams",
    "json_schema",
    "crypto",
    "time",
    "bytes",
    "compression",
}
NAMES = [found.name for found in catalog.all_declarations() if found.family in FAMILIES]

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 5),
    st.floats(),
    st.sampled_from([math.nan, math.inf, -0.0, 1e308, b"", b"\xff", Duration(0), Range(0, 3), Range(3, 0)]),
    st.text(max_size=8),
    st.sampled_from(["a_b", "{}{x}", "{{ x }}", "(a)+", "$1", "[1,", "imsx", "error", "always", "dns"]),
)
#: Each builtin gets values of its own: what is made is drawn as a function and the list that it takes.
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["mode", "max", "x", "category", "é"]), inner, max_size=3),
        st.tuples(st.sampled_from([Set, Iter]), st.lists(inner, max_size=3)),
        st.tuples(st.just(lambda items: Pair(*items)), st.lists(inner, min_size=2, max_size=2)),
        inner.map(lambda item: (lambda items: EnumValue("Result", "Err", tuple(items)), [item])),
        inner.map(lambda item: (lambda items: Struct("P", {"x": items[0]}), [item])),
    ),
    max_leaves=6,
)
CALLABLES = st.sampled_from([make_fn(lambda a=None, b=None: b), make_fn(lambda a=None, b=None: [a])])


@settings(max_examples=COUNT.examples(20))
@given(arguments=st.lists(VALUES, max_size=4), callback=CALLABLES)
def test_every_builtin_survives(arguments: list[Any], callback: Any) -> None:
    """All of them with the same arguments: making those takes longer than the calls."""
    for name in NAMES:
        try:
            survives(name, made(arguments), callback)
        except BaseException as error:
            error.add_note(f"in {name}")
            raise


def made(value: Any) -> Any:
    """Make what a drawn value stands for."""
    if type(value) is tuple:
        make, items = value
        return make(made(items))
    if type(value) is list:
        return [made(item) for item in value]
    if type(value) is dict:
        return {key: made(item) for key, item in value.items()}
    return value


def survives(name: str, arguments: list[Any], callback: Any) -> None:
    vm = FakeVm()
    found = catalog.find(name)
    assert found is not None
    if arguments and "callable" in found.signature_text:
        arguments[-1] = callback
    with suppress(VmError):
        result = vm.run(name, *arguments)
        assert is_as_declared(found, result)
        if type(result) is Iter:
            for _ in range(20):
                with suppress(VmError, StopIteration):
                    result.__next__()


@given(st.text("{}-#iforendx if'\"\\ |:.[0]()=!&,\nrawlsetuhc", max_size=40))
@example("{{ include '' }}")
@example("{{ include '.' }}")
@example("{{ include '\x00' }}")
def test_every_template_renders_or_fails_cleanly(template: str) -> None:
    with suppress(VmError):
        FakeVm().run("render_string", template, {"x": [1, "a", {"x": None}]})


def test_rng_handles_are_taken_anywhere() -> None:
    import random

    vm = FakeVm()
    rng = Rng(random.Random(1))
    for name in NAMES:
        with suppress(VmError):
            vm.run(name, rng, rng, rng)
