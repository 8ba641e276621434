"""What is certain about the kinds of expressions, and what is left open."""

from __future__ import annotations

import pytest

from harnpy.syntax import ast
from harnpy.syntax.ast import walk
from harnpy.syntax.parser import parse
from harnpy.vm.resolve.kinds import Kinds, join
from harnpy.vm.resolve.names import Resolver


def kind_of_last(source: str) -> str:
    """The kind of the program's last expression."""
    program = parse(source)
    resolution = Resolver({"len", "range", "to_string", "println"}.__contains__, lambda name: False)
    return Kinds(resolution.program(program)).kind(program.items[-1])


def kinds_of(source: str, name: str) -> list[str]:
    """The kinds of the uses of ``name``, in source order."""
    program = parse(source)
    resolution = Resolver({"len", "range"}.__contains__, lambda name: False).program(program)
    kinds = Kinds(resolution)
    nodes = [node for node in walk(program) if isinstance(node, ast.Name) and node.name == name]
    return [kinds.kind(node) for node in sorted(nodes, key=lambda node: node.start)]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("1", "int"),
        ("1.5", "num"),
        ("true", "bool"),
        ('"a"', "str"),
        ('"a${1}"', "str"),
        ("[1]", "list"),
        ("{a: 1}", "dict"),
        ("nil", "any"),
        ("1 + 2 * 3", "int"),
        ("1 + 2.5", "num"),
        ("-1", "int"),
        ('"a" + "b"', "str"),
        ("[1] + [2]", "list"),
        ('"a" + 1', "any"),
        ("7 / 2", "int"),
        ("7 % 2.5", "num"),
        ("7 / nil", "any"),
        ("1 < 2", "bool"),
        ("1 == nil", "bool"),
        ("true && 1", "bool"),
        ("!1", "bool"),
        ("nil ?? 1", "any"),
        ('len("a")', "int"),
        ("to_string(1)", "str"),
        ("unknown", "any"),
    ],
)
def test_expressions(source: str, kind: str) -> None:
    assert kind_of_last(source) == kind


def test_a_variable_is_everything_that_is_assigned_to_it() -> None:
    assert kinds_of("var x = 1\nx = x + 1\nx", "x")[-1] == "int"
    assert kinds_of("var x = 1\nx = 2.5\nx", "x")[-1] == "num"
    assert kinds_of('var x = 1\nx = "a"\nx', "x")[-1] == "any"
    assert kinds_of("var x = 1\nx += 2\nx", "x")[-1] == "int"


def test_variables_that_depend_on_one_another_settle_on_the_narrowest_kind() -> None:
    source = "var a = 0\nvar b = 1\nwhile a < 10 { let c = a\n a = b\n b = b + c }\nb"
    assert kinds_of(source, "b")[-1] == "int"
    assert kinds_of(source.replace("b + c", "b + c + 0.5"), "a")[-1] == "num"


def test_a_container_that_is_written_into_stays_one() -> None:
    assert kinds_of("var xs = [1]\nxs[0] = 2\nxs", "xs")[-1] == "list"
    assert kinds_of("var d = {a: 1}\nd.a = 2\nlet x = d.a\nx", "x")[-1] == "any"


FIB = "fn fib(n) { if n < 2 { return n }\n return fib(n - 1) + fib(n - 2) }\n"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("fn f() { return 1 }\nf()", "int"),
        ("fn f() { return 1.5 }\nf()", "num"),
        ("fn f() { if true { return 1 } }\nf()", "any"),
        ("fn f() { if true { return 1 } else { return 2 } }\nf()", "int"),
        ("fn f() { if true { return 1 }\n throw 1 }\nf()", "int"),
        ("fn f() { if true { return 1 }\n return nil }\nf()", "any"),
        ("fn f(r) { let x = r?\n return 1 }\nf(1)", "any"),
        ("gen fn f() { emit 1 }\nf()", "any"),
        ("fn f(n) { return n }\nf(1)", "any"),
        ("fn f(n) { return n }\nf(nil)", "any"),
        ("fn f(n) { return n }\nf(1, 2)", "any"),
        ("fn f(n) { return n }\nf(...[1])", "any"),
        ("fn f(n) { return n + 1 }\nf(2)\nf(1)", "int"),
        ("fn f(n) { return n + 1 }\nf(2.5)\nf(1)", "num"),
        ('fn f(n) { return n + n }\nf("a")\nf(1)', "any"),
        ("fn f(n: int) { return n + 1 }\nf(1)", "int"),
        ("fn f(n: int) { return n + 1 }\nf(nil)", "num"),
        ("fn f(n, m) { return n + 1 }\nf(1, nil)", "int"),
        (FIB + "fib(9)", "int"),
        (FIB + "fib(nil)", "any"),
        ("{a: {b: 1}}.a.b", "int"),
        ("{a: 1}.b", "any"),
        ("{a: 1, ...{}}.a", "any"),
        ("struct P { x: int }\nlet p = P {x: 1}\np.x", "int"),
        ("struct P { x: int }\nfn f(p) { return p.x }\nf(P {x: 1})", "int"),
        ("struct P { x: int }\nfn f(p) { return p.x }\nf(P {x: 1})\nf(P {x: 1.5})", "num"),
        ("true ? 1 : 2", "int"),
    ],
)
def test_fields_and_results(source: str, kind: str) -> None:
    assert kind_of_last(source) == kind


@pytest.mark.parametrize(
    ("iterable", "kind"),
    [
        ("[1]", "int"),
        ("[1, 2.5]", "num"),
        ("[1, nil]", "any"),
        ("[]", "any"),
        ("[1] + [2]", "int"),
        ('[1] + ["a"]', "any"),
        ("[...[1], 2]", "int"),
        ("[...unknown, 2]", "any"),
        ("[[1]]", "list"),
        ('"abc"', "any"),
        ("{a: 1}", "any"),
        ("unknown", "any"),
        ("[1].push(2)", "int"),
        ('[1].push("a")', "any"),
        ("[1].push(...[2])", "any"),
        ("[1].filter({ x -> x > 1 })", "int"),
        ("[1].filter(unknown)", "any"),
        ("[1].map({ x -> x + 1 })", "int"),
        ('[1].map({ x -> "a" })', "str"),
        ("[1].map(unknown)", "any"),
        ("[1].map({ x -> x / 2.5 })", "num"),
        ("[1].map({ x: string -> x })", "any"),
        ("[1].map({ x, y -> x })", "any"),
        ("[1].map({ x -> let y = x\n y })", "any"),
        ("[1].map({ x -> [x?] })", "any"),
        ("[1].map({ x -> [if x > 1 { return 2 } else { 1 }] })", "any"),
        ("[1].map({ x -> [1] })", "list"),
        ("[1].other()", "any"),
        ("range(3)", "int"),
        ("range(3).map({ x -> x * 2 }).filter({ x -> x > 1 }).to_list()", "int"),
        ("(1 to 3).map({ x -> x * 2 })", "int"),
        ("[{a: 1}]", "dict"),
    ],
)
def test_loops_over_items(iterable: str, kind: str) -> None:
    assert kinds_of(f"for i in {iterable} {{ i }}", "i") == [kind]


def test_lists_that_grow() -> None:
    for more in ("xs = xs + [2]", "xs = xs.push(2)", "xs += [2]", "xs = [...xs, 2]"):
        source = f"var xs = [1]\nfor y in [1] {{ {more} }}\nfor i in xs {{ i }}"
        assert kinds_of(source, "i") == ["int"]
        assert kinds_of(source.replace("2]", '"a"]').replace("2)", '"a")'), "i") == ["any"]
    assert kinds_of("var xs = [1]\nxs[0] = 2.5\nfor i in xs { i }", "i") == ["any"]
    assert kinds_of("var xs = []\nfor y in [1] { xs = [xs] }\nxs", "xs")[-1] == "list"
    assert kinds_of("var xs = [1]\nfn f(ys) { for i in ys { i } }\nf(xs)", "i") == ["any"]


def test_strings_that_grow() -> None:
    assert kinds_of('var s = ""\ns = s + "a"\ns', "s")[-1] == "str"
    assert kinds_of('var s = ""\ns += "a"\ns', "s")[-1] == "str"
    assert kinds_of('var s = ""\ns = s + nil\ns', "s")[-1] == "any"
    assert kinds_of("var d = {}\nd = d + {a: 1}\nd", "d")[-1] == "dict"


def test_a_chain_of_method_calls_is_asked_about_once() -> None:
    source = "struct P { n: int }\nimpl P { fn more(self, k) { return P {n: self.n + k} } }\n"
    assert kind_of_last(f"{source}P {{n: 1}}{'.more(2)' * 40}") == "any"
    assert kind_of_last(f"[1]{'.map({ x -> x + 1 }).push(2)' * 40}") == "list"


def test_methods_of_structs() -> None:
    source = "struct P { n: int }\nimpl P { fn m(self, k) { return self.n + k } }\nlet p = P {n: 1}\n"
    assert kind_of_last(f"{source}p.m(1)") == "int"
    assert kind_of_last(f"{source}p.m(1.5)") == "num"
    assert kind_of_last(f"{source}p.m()") == "any"
    assert kind_of_last(f"{source}p?.m(1)") == "any"
    assert kind_of_last(f"{source}p.other(1)") == "any"
    assert kind_of_last(f"{source}impl P {{ fn m(self, k) {{ return nil }} }}\np.m(1)") == "any"


def test_counting_loops_have_ints() -> None:
    assert kinds_of("for i in 0 to 9 { i }", "i") == ["int"]
    assert kinds_of("for i in range(9) { i }", "i") == ["int"]
    assert kinds_of("fn range(n) { return [2.5] }\nfor i in range(9) { i }", "i") == ["num"]
    assert kinds_of("for i in 0 to 9 { i = nil\n i }", "i")[-1] == "any"


def test_captured_variables_keep_their_kind() -> None:
    assert kinds_of("let x = 1\nlet f = { -> x }", "x") == ["int"]


def test_a_name_that_is_bound_late_may_be_anything() -> None:
    assert kinds_of("let f = { -> g }\nlet g = 1", "g") == ["any"]


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("x: int", "num"),
        ("x: string", "str"),
        ("x: list", "list"),
        ("x: dict", "any"),
        ("x", "any"),
        ("...x", "list"),
    ],
)
def test_annotations_are_checked_on_entry(written: str, kind: str) -> None:
    assert kinds_of(f"fn f({written}) {{ x }}", "x") == [kind]


def test_join_is_the_narrowest_kind_that_covers_both() -> None:
    assert join(None, "int") == join("int", None) == join("int", "int") == "int"
    assert join("int", "num") == "num"
    assert join("int", "str") == join("bool", "num") == "any"
