"""Callbacks that are written into loops do what the calls of the closures do."""

from __future__ import annotations

import pytest

from tests.vm.emit.test_bounds import output_of
from tests.vm.emit.test_text import text_of

#: Closures, with whether they only compute.
CLOSURES = {
    "{ x -> x * 2 + 1 }": True,
    "{ x -> x > 1 && x != 3 }": True,
    "{ x -> !(x % 3 == 0) }": True,
    "{ x -> x / 2 - k }": True,
    "{ x -> x }": True,
    '{ x -> "a" }': True,
    "{ x -> 7 }": True,
    "{ x -> x % k }": False,
    "{ x -> x.name }": False,
    "{ x -> f(x) }": False,
    "{ x -> n + x }": False,
    "{ x -> x == nil }": False,
    "{ x, y -> x }": False,
    "{ x: int -> x }": False,
    "{ x -> let y = x\n y }": False,
    '{ x -> "${x}" }': False,
}
LISTS = [
    "[]",
    "[1, 2, 3]",
    "[9223372036854775807, -1, 0]",
    "[1, 2.5, 3]",
    "[1, true]",
    '["a", 1]',
    "[1, nil]",
    "nil",
]
PRELUDE = "fn f(x) { return x }\nlet k = len([1, 2])\nlet n = f(1.5)\n"
CHAINS = [
    "iter(xs).map(C).count()",
    "iter(xs).filter(C).sum()",
    "iter(xs).filter({ x -> x > 0 }).map(C).take(2).count()",
    "iter(xs).take(2).filter(C).sum()",
    "iter(xs).map(C).map({ y -> y }).take(1).sum()",
]


@pytest.mark.parametrize("closure", CLOSURES)
def test_closures_that_only_compute_are_written_out(closure: str) -> None:
    for call in (f"xs.map({closure})", f"xs.filter({closure})"):
        written = "[list](vm, [x_" in text_of(f"{PRELUDE}fn g(xs) {{ return {call} }}")
        assert written == CLOSURES[closure]


def test_chains_whose_closures_only_compute_are_loops() -> None:
    assert "whole_items" in text_of("let n = iter([1]).map({ x -> x + 1 }).take(1).sum()")
    assert "whole_items" not in text_of("let n = iter([1]).map({ x -> println(x) }).take(1).sum()")
    assert "whole_items" not in text_of("let n = iter([1]).take(1).sum()")
    assert "whole_items" not in text_of("let n = 3\nlet m = iter([1]).map({ x -> x }).take(n).sum()")


@pytest.mark.parametrize("closure", [closure for closure, computes in CLOSURES.items() if computes])
def test_both_evaluators_agree(closure: str) -> None:
    calls = ["xs.map(C)", "xs.filter(C)", *CHAINS]
    for xs in LISTS:
        lines = [f"println(try {{ {call.replace('C', closure)} }})" for call in calls]
        source = f"{PRELUDE}let xs = {xs}\n" + "\n".join(lines)
        assert output_of(source, "compile") == output_of(source, "walk")


@pytest.mark.parametrize(
    "source", ["1 to 5", "range(3)", '"abc"', "{a: 1}", "set(1, 2)", "iter([1, 2])", "7"]
)
def test_chains_over_other_sources(source: str) -> None:
    program = f"println(try {{ iter({source}).map({{ x -> x + 1 }}).filter({{ x -> x > 2 }}).sum() }})"
    assert output_of(program, "compile") == output_of(program, "walk")


def test_an_error_in_a_callback_that_is_written_out_has_the_closures_frame() -> None:
    from harnpy import Vm, VmError

    for call in (
        "xs.map({ x -> x - 1 })",
        "iter(xs).map({ x -> x - 1 }).sum()",
        "iter(xs).filter({ x -> true }).sum()",
    ):
        frames = []
        for evaluator in ("compile", "walk"):
            with pytest.raises(VmError) as caught:
                Vm(evaluator=evaluator).run_source(f'fn f(xs) {{\n  return {call}\n}}\nf([1, "a"])')
            frames.append((caught.value.text, [(f.name, f.line, f.column) for f in caught.value.frames]))
        assert frames[0] == frames[1]


def test_a_result_has_one_holder() -> None:
    text = text_of("fn f(ys) { var xs = ys.map({ x -> x + 1 })\nxs[0] = 1\nreturn xs }")
    assert "xs_3 = t2\n  t2 = None" in text
