"""What cannot leave 64 bits is not reduced to them; what can, is, and the result is the walker's."""

from __future__ import annotations

import pytest

from harnpy import Vm
from tests.vm.emit.test_text import text_of

#: Bodies of a function of ints with the number of sums in them that are reduced.
REDUCED = {
    "let x = n + 1\nreturn x": 1,
    "let x = 7\nreturn x + 1": 0,
    "if n < 2 { return n }\nreturn n - 1": 0,
    "if n < 2 { println(n) }\nreturn n - 1": 1,
    "if !(n < 2) { return n - 1 }\nreturn n": 0,
    "if n < 2 { return 0 } else if n > 9 { return n - 1 }\nreturn 0": 0,
    "if n > 0 && n < 9 { return n * 2 }\nreturn 0": 0,
    "if n > 0 || n < 9 { return n * 2 }\nreturn 0": 1,
    "guard n > 0 else { return 0 }\nreturn n - 1": 0,
    "var i = 0\nwhile i < n { i = i + 1 }\nreturn i": 0,
    "var i = 0\nwhile i <= n { i = i + 1 }\nreturn i": 1,
    "var i = 0\nwhile i < n { i = i * 2\ni = i + 1 }\nreturn i": 2,
    "var i = 0\nwhile i < n { for j in 0 to 9 { i = i + 1 } }\nreturn i": 1,
    "var i = 0\nwhile i < n { if n > 9 { i = 9 }\ni = i + 1 }\nreturn i": 1,
    "var s = 0\nfor i in 0 to 9 { s = i * i + 1 }\nreturn s": 0,
    "var s = 0\nfor i in 0 to n { s = i + 1 }\nreturn s": 1,
    "var s = 0\nfor i in 0 to n exclusive { s = i + 1 }\nreturn s": 0,
    "var i = 5\nretry 2 { i = i + 1 }\nreturn i": 1,
    "var i = 5\ntry { i = n } catch (e) { i = i - 1 }\nreturn i": 1,
    "var i = 5\ndefer { i = i + n }\nreturn i": 1,
    "var i = 5\ni = n\nreturn i + 1": 1,
    "return n % 10 + 1": 0,
    "return n / 2 + 1": 0,
    "return n * n * n - n * n": 1,
    "return len([n]) + 1": 0,
}


@pytest.mark.parametrize("body", REDUCED)
def test_only_what_can_leave_64_bits_is_reduced(body: str) -> None:
    text = text_of(f"fn f(n) {{ {body} }}\nfn g() {{ return f(3) + 1 }}")
    version = text[text.index("def f2(") : text.index("return f2")]
    assert version.count("wrap(") == REDUCED[body]


EDGES = [0, 1, -1, 2**30, 2**62, 2**63 - 1, -(2**63) + 1]


@pytest.mark.parametrize("body", [body for body in REDUCED if "while" not in body and "for" not in body])
def test_both_evaluators_agree_at_the_edges(body: str) -> None:
    calls = "\n".join(f"println(f({edge}))" for edge in EDGES)
    source = f"fn f(n) {{ {body} }}\n{calls}\nprintln(f(0 - 9223372036854775807 - 1))"
    assert output_of(source, "compile") == output_of(source, "walk")


def output_of(source: str, evaluator: str) -> str:
    from harnpy.world import World
    from harnpy.world.streams import RealStreams

    out: list[str] = []
    Vm(World(streams=RealStreams(stdout=out.append)), evaluator=evaluator).run_source(source)
    return "".join(out)


#: Bodies of a loop over ``x``, with whether ``s`` is reduced to 64 bits in it, and not only behind it.
ADDING = {
    "s = s + x": False,
    "s += x": False,
    "s = x + s": False,
    "s = s + x * x - 1": False,
    "s = s - x": False,
    "s = s + x\ns -= 2": False,
    "if x > 0 { s = s + x }": False,
    "for y in [1, x] { s = s + y }": False,
    "if x > 2 { break }\ns = s + x": False,
    "try { s = s + x } catch (e) { println(e) }": False,
    "s = x - s": True,
    "s = s * x": True,
    "s = s + s": True,
    "s = s + x\nif s == 7 { println(s) }": True,
    "s = s + x\nlet f = { -> s }": True,
    "s = s + x\nif x == 3 { return s }": True,
}
VALUES = [
    "1, 2, 3",
    "9223372036854775807, 1, 1",
    "-9223372036854775807, -9, 5",
    "1, 2.5, 3",
    "9223372036854775807, 1, 0.5",
]


@pytest.mark.parametrize("body", ADDING)
def test_a_total_is_reduced_behind_its_loop(body: str) -> None:
    text = text_of(f"fn f(xs) {{ var s = 0\nfor x in xs {{ {body} }}\nreturn s }}")
    reduced = [line for line in text.splitlines() if "s_3 = wrap(s_3)" in line]
    assert any(line.startswith("   ") for line in reduced) == ADDING[body]
    assert any(not line.startswith("   ") for line in reduced) != ADDING[body]


@pytest.mark.parametrize("body", ADDING)
def test_both_evaluators_agree_on_totals(body: str) -> None:
    source = f"fn f(xs) {{ var s = 0\nfor x in xs {{ {body} }}\nreturn s }}\n"
    for values in [*VALUES, "1, true", '"a"', "nil", "2, [1]"]:
        call = f"println(try {{ f([{values}]) }})"
        assert output_of(source + call, "compile") == output_of(source + call, "walk")


def test_a_total_that_a_handler_sees_is_reduced_at_each_turn() -> None:
    source = """
fn f(xs) { var s = 0
  try { for x in xs { s = s + x
    if x == 3 { throw "stop" } } } catch (e) { println(s) }
  return s }
println(f([9223372036854775807, 1, 3]))
fn g(xs) { var s = 0
  defer { println(s) }
  for x in xs { s = s + x
    if x == 3 { throw "stop" } }
  return s }
println(try { g([9223372036854775807, 1, 3]) })
"""
    assert output_of(source, "compile") == output_of(source, "walk")


#: Bodies of a function ``b`` that ``a`` calls in tail position, with whether it is written out there.
MUTUAL = {
    "if n <= 0 { return 1 }\nreturn a(n - 1)": True,
    "if n <= 0 { return 1 } else { return a(n - 3) }": True,
    "if n == 7 { return nil }\nif n > 3 { return a(n - 1) }": True,
    "if n <= 0 { throw 1 }\nreturn a(n - 1)": False,
    "println(n)\nif n <= 0 { return 1 }\nreturn a(n - 2)": False,
    "if n <= 0 { return 1 }\nreturn a(nil)": False,
}


@pytest.mark.parametrize("body", MUTUAL)
def test_functions_that_call_each_other_in_tail_position(body: str) -> None:
    functions = f"fn a(n) {{ if n <= 0 {{ return 0 }}\nreturn b(n - 1) }}\nfn b(n) {{ {body} }}"
    text = text_of(f"{functions}\nprintln(a(3))\nprintln(b(3))")
    version = text.split("def f2(")[1].split("return f2")[0]
    assert ("while True" in version) == MUTUAL[body]
    calls = "\n".join(f"println(try {{ {f}({n}) }})" for f in "ab" for n in (0, 1, 7, 8, 30, 3000))
    assert output_of(f"{functions}\n{calls}", "compile") == output_of(f"{functions}\n{calls}", "walk")


#: Annotations of a parameter that isn't used, with an argument that the checks before a run let pass.
UNFIT = {
    '"x" | "z"': '"y"',
    "1 | 3": "2",
    "list<int>": '"s"',
    "{a: int}": "5",
    "nil | int": '"d"',
    "bool": "5",
}


@pytest.mark.parametrize("annotation", UNFIT)
def test_a_tail_call_that_is_written_out_leaves_out_no_check(annotation: str) -> None:
    """Found by a program: `b` written out in `a` took any argument, even to loop for ever."""
    source = f"""
fn a(n, t) {{ if n == 0 {{ return "a" }}
  return b(n - 1, t) }}
fn b(n, t: {annotation}) {{ if n == 0 {{ return "b" }}
  return a(n - 1, t) }}
println(try {{ a(3, {UNFIT[annotation]}) }} catch (e) {{ e }})
"""
    shown = output_of(source, "compile")
    assert "parameter 't'" in shown
    assert shown == output_of(source, "walk")


def test_a_function_of_the_programs_own_called_len_may_return_any_int() -> None:
    """Found by reading `unreduced`, which knew the call by its name."""
    source = """
fn len(x) { return x - 9223372036854775807 }
println(len(0) - 5)
println(if len(1) - 5 > 0 { "above" } else { "below" })
"""
    assert output_of(source, "compile") == output_of(source, "walk") == "9223372036854775804\nabove\n"
