"""What the two evaluators have in common, where a program can't show it."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from harnpy import Vm, VmError, World
from harnpy.check.checker import ABOVE, VISITS
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import CompileFault
from harnpy.vm.emit.program import WRITERS
from harnpy.vm.resolve import types
from harnpy.vm.run import parameter_types
from harnpy.vm.walk.program import EVALUATORS


def test_both_know_every_node() -> None:
    tables = (WRITERS.expressions, WRITERS.forms, WRITERS.statements)
    written = {kind for table in tables for kind in table.entries}
    assert written - set(EVALUATORS) == {ast.Spread}
    assert set(EVALUATORS) - written == set()


def test_every_place_in_a_table_of_nodes_is_that_of_a_function() -> None:
    for table in (WRITERS.expressions, WRITERS.forms, WRITERS.statements, VISITS, ABOVE):
        assert [kind for kind in table.entries if not callable(table[kind])] == []
        assert table[ast.Program] is None


def test_every_checked_type_has_its_classes() -> None:
    assert set(parameter_types.SCALARS) == types.SCALARS


def test_an_unknown_evaluator_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown evaluator 'jit': there are 'compile' and 'walk'"):
        Vm(evaluator="jit")


def test_functions_that_are_walked_are_values_of_the_embedding() -> None:
    vm = Vm(evaluator="walk")
    double = vm.run_source("return { x -> x * 2 }")
    assert vm.call(double, 21) == 42
    with pytest.raises(VmError, match="Cannot multiply nil and int"):
        vm.call(double)


def test_a_walked_program_waits_inside_an_event_loop() -> None:
    source = """
        fn items() { yield 1; sleep(1ms); yield 2 }
        var sum = 0
        for x in items() { sum = sum + x }
        return sum
    """
    assert asyncio.run(Vm(evaluator="walk").run_async(source)) == 3


def test_inputs_of_a_repl_are_walked() -> None:
    session = Vm(evaluator="walk").repl()
    session.run("var x = 1\nfn next() { return later() }")
    session.run("fn later() { return x + 1 }")
    assert session.run("x = 5\nnext()") == 2
    with pytest.raises(VmError):
        session.run("x = 7\nnil.a")
    assert session.run("x") == 7


def test_what_a_generator_holds_is_let_go_with_it() -> None:
    """Nothing of its body runs when it is dropped, not even `finally`, as in a compiled program."""

    class Token:
        type_name = "token"

    written: list[str] = []
    vm = Vm(World(streams=Streams(written)), evaluator="walk")
    token = Token()
    watched = weakref.ref(token)
    vm.set_global("token", token)
    pulled = vm.run_source(
        'fn items(held) { try { yield held\n yield 2 } finally { println("ran") } }\n'
        "let it = items(token)\nfor x in it { break }\nreturn 1"
    )
    assert pulled == 1
    vm.set_global("token", None)
    del token
    vm.run_source("return 1")
    gc.collect()
    assert watched() is None
    assert written == []


class Streams:
    """Streams that note what is written."""

    def __init__(self, written: list[str]) -> None:
        self.write_out = self.write_err = written.append

    def isatty(self, stream: str) -> bool:
        return False


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize(
    "program", ["println(" + " + ".join(["1"] * 40_000) + ")", '"a"' + ".trim()" * 40_000]
)
def test_a_chain_that_python_cannot_recurse_through_is_refused(evaluator: str, program: str) -> None:
    with pytest.raises(CompileFault, match="line 1: an expression is too long; put parts"):
        Vm(evaluator=evaluator).run_source(program)
