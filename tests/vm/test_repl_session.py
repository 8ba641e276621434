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


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
def test_what_a_failing_input_did_before_stays(evaluator: str) -> None:
    repl = Vm(evaluator=evaluator).repl()
    repl.run("var xs = [1]\nlet kept = 1")
    repl.run('struct P { x: int }\nimpl P { fn name(self) { return "old" } }')
    with pytest.raises(VmError):
        repl.run(
            'xs = xs.push(2)\nlet y = 1\nimpl P { fn name(self) { return "new" } }\nnil.foo\n'
            "let z = 1\nvar kept = 2"
        )
    assert repl.run("xs") == [1, 2]
    assert repl.run("P {x: 1}.name()") == "new"
    assert repl.run("y") == 1
    assert repl.names() == ["P", "kept", "xs", "y"]
    with pytest.raises(VmError, match="immutable binding: kept"):
        repl.run("kept = 3")


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
def test_a_name_may_be_declared_again(evaluator: str) -> None:
    repl = Vm(evaluator=evaluator).repl()
    for first, second, use, value in [
        ("let x = 1", 'let x = "a"', "x", "a"),
        ("let {a} = {a: 1}", "let {a} = {a: 2}", "a", 2),
        ("fn f() { return 1 }", "fn f(n) { return n }", "f(2)", 2),
        ("fn g() { return 1 }", "let g = 3", "g", 3),
        ("let h = 1", "fn h() { return 2 }", "h()", 2),
        ("let n = 1", "let n = n + 1", "n", 2),
        ("struct S { a: int }", "struct S { b: int }", "S {b: 1}.b", 1),
        ("enum E { A }", "enum E { B }", "E.B == E.B", True),
        ("type T = int", 'type T = string\nlet t: T = "a"', "t", "a"),
        ('import "std/json"', 'import "std/json"', "pretty(1)", "1"),
        ("let pretty = 1", 'import { pretty } from "std/json"', "pretty(2)", "2"),
    ]:
        repl.run(first)
        repl.run(second)
        assert repl.run(use) == value, second
    with pytest.raises(VmError, match="Cannot redeclare"):
        repl.run("if true { let i = 1; let i = 2 }")


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
def test_functions_call_the_newest_of_a_name_and_keep_the_values_they_captured(evaluator: str) -> None:
    repl = Vm(evaluator=evaluator).repl()
    repl.run("let x = 1\nfn f(a) { return a }")
    repl.run("fn calls() { return f(1) }\nlet closure = { -> f(1) }\nfn reads() { return x }")
    repl.run("fn ahead() { return behind() }\nfn behind() { return 1 }")
    repl.run("let x = 2\nfn f(a, b = 5) { return [a, b] }\nfn behind() { return 2 }")
    assert [repl.run("calls()"), repl.run("closure()")] == [[1, 5], [1, 5]]
    assert [repl.run("reads()"), repl.run("ahead()")] == [1, 2]


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
