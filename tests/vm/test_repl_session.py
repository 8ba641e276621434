"""Inputs of one session build on each other, whatever they declare and in whatever order. Spec: 09 §5."""

from __future__ import annotations

import pytest

from harnpy import Vm, VmError
from harnpy.vm.front_end import ReplSession


@pytest.fixture
def repl() -> ReplSession:
    return Vm().repl()


def test_a_recursive_closure(repl: ReplSession) -> None:
    repl.run("let down = { n -> n == 0 ? 0 : down(n - 1) }")
    assert repl.run("down(5)") == 0


def test_closures_of_one_input_find_each_other(repl: ReplSession) -> None:
    repl.run("let f = { -> g() }; let g = { -> 1 }")
    assert repl.run("f()") == 1


def test_a_function_finds_what_a_later_input_declares(repl: ReplSession) -> None:
    repl.run("fn a() { return b() }")
    with pytest.raises(VmError, match="Undefined builtin: b"):
        repl.run("a()")
    repl.run("fn b() { return 42 }")
    assert repl.run("a()") == 42


def test_a_deferred_block_assigns_a_session_variable(repl: ReplSession) -> None:
    repl.run("var x = 1")
    repl.run("if true { defer { x = 2 } }")
    assert repl.run("x") == 2


def test_structs_enums_and_methods_stay(repl: ReplSession) -> None:
    repl.run("struct P { x: int }")
    repl.run("impl P { fn twice(self) { return self.x * 2 } }")
    repl.run("enum C { A\n B(n) }")
    assert repl.run("P {x: 4}.twice()") == 8
    assert repl.run("match C.B(3) { C.B(n) -> { n } _ -> { 0 } }") == 3


def test_a_failed_input_leaves_everything_as_it_was(repl: ReplSession) -> None:
    repl.run("var xs = [1]")
    repl.run('struct P { x: int }\nimpl P { fn name(self) { return "old" } }')
    with pytest.raises(VmError):
        repl.run('xs = xs.push(2)\nlet y = 1\nimpl P { fn name(self) { return "new" } }\nnil.foo')
    assert repl.run("xs") == [1]
    assert repl.run("P {x: 1}.name()") == "old"
    assert repl.names() == ["P", "xs"]


def test_sessions_outlive_a_failed_input(repl: ReplSession) -> None:
    repl.run('agent_session_open("s")')
    with pytest.raises(VmError):
        repl.run('agent_session_inject("s", {role: "user", content: "hi"})\nthrow 1')
    assert repl.run('agent_session_length("s")') == 1


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
def test_a_variable_that_a_closure_found_late_can_be_assigned(evaluator: str) -> None:
    session = Vm(evaluator=evaluator).repl()
    session.run("var total = { count -> if count == 0 { 0 } else { total(count - 1) + 1 } }")
    assert session.run("total(3)") == 3
    session.run("total = 5")
    assert session.run("total") == 5
