"""Functions and methods that are written in place of their calls do what the calls do; so do fields that a
loop reads once."""

from __future__ import annotations

import pytest

from harnpy import LimitExceeded, Limits, Vm, VmError
from tests.vm.emit.test_bounds import output_of
from tests.vm.emit.test_text import text_of

#: Functions of two ints, with whether a call of them is written out.
FUNCTIONS = {
    "fn f(a, b) { return a + b }": True,
    "fn f(a, b) { return a > b && a != 3 }": True,
    "fn f(a: int, b: int) { return a * b }": True,
    "fn f(a, b) { return a / 2 - b % 3 }": True,
    "fn f(a: string, b) { return b + 1 }": False,
    "fn f(a, b = 2) { return a + b }": True,
    "fn f(a, b) { return a / b }": False,
    "fn f(a, b) { a + b }": False,
    "fn f(a, b) { println(a)\nreturn a + b }": False,
    "let k = 3\nfn f(a, b) { return a + b + k }": False,
    "fn f(a, ...b) { return a }": False,
    "fn f(a, b) { defer { println(a) }\nreturn a }": False,
    "fn f(a, b) { return f(a, b) }": False,
}
CALL = "fn g() { var s = 0\nfor i in 0 to 3 { s = s + f(i, 2) }\nreturn s }\n"
METHOD = "struct P { x: int\n y: int }\nimpl P { fn m(self, k) { return self.x * k - self.y } }\n"
LOOP = "fn g() { let p = P {x: 3, y: 1}\nvar s = 0\nfor i in 0 to 3 { s = s + p.m(i) }\nreturn s }\n"


def written(source: str) -> bool:
    return ".inlinable" in text_of(source)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_that_only_compute_are_written_out(function: str) -> None:
    assert written(f"{function}\n{CALL}") == FUNCTIONS[function]


def test_methods_that_only_compute_are_written_out() -> None:
    assert written(METHOD + LOOP)
    assert not written(METHOD.replace("self.y", "self.z") + LOOP)
    assert not written(METHOD + LOOP.replace("p.m(i)", "p?.m(i)"))
    assert not written(METHOD + LOOP.replace("p.m(i)", "p.m(...[i])"))
    assert not written(METHOD + LOOP.replace("p.m(i)", "p.m(i, 1)"))
    assert not written(METHOD + "impl P { fn m(self, k) { return 0 } }\n" + LOOP)
    nested = "fn h() { impl P { fn m(self, k) { return 0 } } }\n"
    assert not written(METHOD + nested + LOOP)


#: Whole programs; what is in them is what could tell a call from the text of the function.
PROGRAMS = {
    "at the ends of 64 bits": (
        "fn f(a, b) { return a * b + 1 }\nfn g(n) { return f(n, n) + f(n, -1) }\n"
        "for n in [9223372036854775807, 4294967296, -9223372036854775807, 3] { println(g(n)) }\n"
        "println(f(9223372036854775807, 1))"
    ),
    "arguments that assign": (
        "fn f(a, b) { return a - b }\nfn g() { var n = 5\n"
        "let r = f(n, if n > 1 { n = 1\n 7 } else { 8 })\nreturn [r, n] }\nprintln(g())"
    ),
    "arguments that are calls": (
        "fn f(a, b) { return a - b * 2 }\nfn g() { var n = 1\n"
        "for i in 0 to 9 { n = f(f(i, n), f(n, f(2, i))) }\nreturn n }\nprintln(g())"
    ),
    "arguments in order": (
        "fn say(n) { println(n)\nreturn n }\nfn f(a, b) { return b - a }\n"
        "fn g() { return f(say(1), say(2)) }\nprintln(g())"
    ),
    "a variable by the name of the function": (
        "fn f(a, b) { return a + b }\nfn g(f) { return f(1, 2) }\n"
        "println(g({ a, b -> a * 10 + b }))\nprintln(f(1, 2))"
    ),
    "a closure by the name of the function": (
        "fn f(a) { return a + 1 }\nfn g() { let f = { a -> a + 10 }\nreturn f(1) }\nprintln(g())\n"
        "println(f(1))"
    ),
    "a function declared in a loop": ("for i in 0 to 3 { fn f(a) { return a + 1 }\nprintln(f(i)) }"),
    "a function declared later": (
        "fn g() { var s = 0\nfor i in 0 to 2 { s = s + f(i, 1) }\nreturn s }\n"
        "println(try { g() })\nfn f(a, b) { return a + b }\nprintln(g())"
    ),
    "a method declared later": (
        "struct P { x: int\n y: int }\n" + LOOP + "println(try { g() })\n"
        "impl P { fn m(self, k) { return self.x * k - self.y } }\nprintln(g())"
    ),
    "a method declared again": (
        METHOD + LOOP + "println(g())\nimpl P { fn m(self, k) { return k } }\nprintln(g())"
    ),
    "a method declared in a function": (
        METHOD + LOOP + "fn h(n) { impl P { fn m(self, k) { return k + n } } }\nprintln(g())\nh(4)\n"
        "println(g())\nh(5)\nprintln(g())"
    ),
    "a method of an `if`": (
        METHOD.replace("impl", "let yes = true\nif yes { impl") + "}\n" + LOOP + "println(try { g() })"
    ),
    "a receiver that changes": (
        METHOD + "fn g() { var p = P {x: 3, y: 1}\nvar s = 0\nfor i in 0 to 5 { s = s + p.m(i)\n"
        "p = P {x: s, y: i} }\nreturn s }\nprintln(g())"
    ),
    "a field that changes": (
        "fn g() { var p = {x: 3}\nvar s = 0\nfor i in 0 to 5 { s = s + p.x\np.x = s }\nreturn s }\n"
        "println(g())"
    ),
    "a record that an inner loop leaves alone": (
        "fn g() { var p = {x: 3}\nvar s = 0\nfor i in 0 to 5 { for j in 0 to 2 { s = s + p.x }\n"
        "p = {x: s % 7} }\nreturn s }\nprintln(g())"
    ),
    "a record of each turn": (
        "fn g() { var s = 0\nfor i in 0 to 5 { let p = {x: i}\nfor j in 0 to 2 { s = s + p.x } }\n"
        "return s }\n"
        "println(g())"
    ),
    "a record that a condition assigns": (
        "fn g() { var p = {x: 3}\nvar s = 0\nwhile (if s < 20 { p = {x: p.x + 1}\n true } else { false }) {\n"
        "s = s + p.x }\nreturn s }\nprintln(g())"
    ),
    "a record that a handler assigns": (
        "fn g() { var p = {x: 3}\nvar s = 0\nfor i in 0 to 5 { try { if i == 2 { throw 7 }\ns = s + p.x }\n"
        "catch (e) { p = {x: 100} } }\nreturn s }\nprintln(g())"
    ),
    "a record with an alias that changes": (
        "fn g() { let p = {x: 3}\nvar q = p\nvar s = 0\nfor i in 0 to 5 { q.x = q.x + p.x\ns = s + p.x }\n"
        "return [s, q] }\nprintln(g())"
    ),
    "a deferred loop": (
        "fn g() { var p = {x: 3}\nvar s = 0\ndefer { for i in 0 to 2 { s = s + p.x }\nprintln(s) }\n"
        "for i in 0 to 2 { p = {x: i} }\nreturn s }\nprintln(g())"
    ),
    "a generator": (
        "fn f(a, b) { return a + b }\n"
        "fn g() { let p = {x: 3}\nfor i in 0 to 4 { yield f(i, p.x) } }\nfor x in g() { println(x) }"
    ),
    "two loops with a call each": (
        METHOD + "fn g() { var s = 0\nfor i in 0 to 2 { let p = P {x: i, y: 1}\ns = s + p.m(i) }\n"
        "for i in 0 to 2 { let q = P {x: 9, y: i}\nfor j in 0 to 2 { s = s + q.m(j) } }\nreturn s }\n"
        "println(g())"
    ),
    "a receiver that is no variable": (
        METHOD
        + "fn g() { var s = 0\nfor i in 0 to 2 { s = s + P {x: i, y: 1}.m(i) }\nreturn s }\nprintln(g())"
    ),
    "a function that calls itself": (
        "fn fib(n) { if n < 2 { return n }\nreturn fib(n - 1) + fib(n - 2) }\n"
        "fn g() { return fib(9) }\nprintln(g())\nprintln(try { fib(nil) })\nprintln(fib(2.5))"
    ),
    "a function that calls itself both ways": (
        "fn down(n) { if n < 1 { return 0 }\nlet r = down(n - 2)\nif r > 5 { return down(n - 1) }\n"
        "return r + 1 }\nfn g() { return down(12) }\nprintln(g())"
    ),
    "a function that calls itself and others": (
        "fn other(n) { if n < 1 { return 0 }\nreturn down(n - 1) }\n"
        "fn down(n) { if n < 1 { return 0 }\nlet r = down(n - 3)\nreturn other(n - 1) }\n"
        "fn g() { return down(12) + 1 }\nprintln(g())"
    ),
    "functions of a loop that call themselves": (
        "var fs = []\nfor i in 0 to 2 { fn f(n) { if n < 1 { return 0 }\nreturn 1 + f(n - 1) }\n"
        "println(f(3))\nfs = fs.push(f) }\nfor h in fs { println(h(4)) }"
    ),
    "a parameter by the name of the function": (
        "fn f(f) { if f < 1 { return 0 }\nreturn 1 + f }\nfn g() { return f(3) }\nprintln(g())"
    ),
    "a recursion without end": (
        "fn f(n) { return 1 + f(n + 1) }\nfn g() { return f(1) }\nprintln(try { g() })"
    ),
    "more arguments than are known": (
        'fn f(a, b) { return b }\nfn g() { return f(...[1, "x"], 1) }\nprintln(try { g() + 1 })\n'
        "println(f(1, 2))"
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_both_evaluators_agree(program: str) -> None:
    source = PROGRAMS[program]
    assert output_of(source, "compile") == output_of(source, "walk")


@pytest.mark.parametrize("call", ["f(1, 2)", "P {x: 3, y: 1}.m(2)"])
def test_a_call_beyond_the_greatest_depth_is_refused(call: str) -> None:
    source = (
        METHOD + "fn f(a, b) { return a + b }\n"
        f"fn down(n) {{ if n == 0 {{ return {call} }}\nlet r = down(n - 1)\nreturn r }}\n"
        "println(try { down(N) })"
    )
    for depth in range(506, 514):
        text = source.replace("N", str(depth))
        assert output_of(text, "compile") == output_of(text, "walk")


def test_the_calls_are_steps_like_others() -> None:
    def needs(steps: int, evaluator: str) -> bool:
        source = "fn f(a, b) { return a + b }\n" + METHOD + CALL + LOOP.replace("fn g", "fn h") + "g()\nh()"
        try:
            Vm(evaluator=evaluator, limits=Limits(steps=steps)).run_source(source)
        except LimitExceeded:
            return True
        return False

    for steps in range(1, 30):
        assert needs(steps, "compile") == needs(steps, "walk")


def test_recorded_calls_are_made() -> None:
    source = (
        "fn f(a, b) { return a + b }\nfn fib(n) { if n < 2 { return n }\nreturn fib(n - 1) + fib(n - 2) }\n"
        + METHOD
        + CALL
        + LOOP.replace("fn g", "fn h")
        + "enable_tracing()\ng()\nh()\nfib(4)\nprintln(trace_spans().map({ s -> s.name }))"
    )
    assert output_of(source, "compile") == output_of(source, "walk")


def test_an_error_beside_a_call_has_the_same_frames() -> None:
    source = "fn f(a, b) { return a + b }\nfn g(x) {\n  return f(1, 2) + x\n}\ng(nil)"
    frames = []
    for evaluator in ("compile", "walk"):
        with pytest.raises(VmError) as caught:
            Vm(evaluator=evaluator).run_source(source)
        frames.append((caught.value.text, [(f.name, f.line, f.column) for f in caught.value.frames]))
    assert frames[0] == frames[1]


def test_a_loop_reads_fields_of_plain_values_once() -> None:
    text = text_of("let p = {x: 3, xs: [1]}\nfor i in 0 to 3 { println(p.x)\nprintln(p.xs) }")
    assert text.index("['x']") < text.index("for i_") < text.index("['xs']")
