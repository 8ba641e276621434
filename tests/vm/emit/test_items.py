"""What is known of the items of lists leaves out tests, and never changes what a program does."""

from __future__ import annotations

import pytest

from harnpy import Vm
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.vm.emit.test_text import text_of

#: Statements that fill `xs`; with each, what a loop computes of its items is done both ways.
FILLING = [
    "var xs = [1, 2, 3]",
    "var xs = [9223372036854775807, 1]",
    "var xs = [1, true]",
    "var xs = [1, nil]",
    "var xs = [1, 2.5]",
    'var xs = ["a", "b"]',
    "var xs = []",
    "var xs = [1]\nxs = xs + [2]",
    'var xs = [1]\nxs = xs + ["a"]',
    "var xs = [1]\nxs[0] = true",
    "var xs = [1]\nlet ys = xs\nxs[0] = 2.5\nxs = ys",
    "var xs = [1]\nxs = xs.push(nil)",
    "var xs = [1]\nfor i in 0 to 3 { xs = [...xs, i] }",
    'var xs = [1]\nfor i in 0 to 3 { xs = xs.map({ x -> "${x}" }) }',
    "var xs = [1]\nlet f = { -> xs.push(2) }\nxs = f()",
    "var xs = nil\nxs = [1]",
    "fn make(n) { if n > 0 { return [n] }\nreturn [1.5] }\nvar xs = make(1)",
    "fn make(n) { return [n] }\nvar xs = make(1) + make(nil)",
    "let xs = range(3).map({ x -> x * 2 }).to_list()",
    'let xs = range(3).map({ x -> x == 1 ? "a" : x }).to_list()',
    "let xs = range(3).map({ x -> x })",
    "let xs = range(3)",
    "let xs = 1 to 3",
    "let xs = [1, 2].map({ x -> x + 1 }).filter({ x -> x > 1 })",
    "fn bad(x) { return Err(x) }\nlet xs = [1, 2].map({ x -> [bad(x)?] })",
    "let xs = [[1], [2]].map({ x -> x[0] })",
    "let xs = [{n: 1}, {n: 2}].map({ x -> x.n })",
    "let xs = [{n: 1}, {m: 2}].map({ x -> x.n })",
    "fn range(n) { return [true, n] }\nlet xs = range(3)",
    "fn range(n) { return [true, n] }\nlet xs = range(3).map({ x -> x })",
    "let xs = {map: { f -> [true] }}.map({ x -> 1 })",
    "struct L { n: int }\nimpl L { fn map(self, f) { return [true] } }\nlet xs = L {n: 1}.map({ x -> 1 })",
    "let xs = [1, 2]\nlet k = [true]\nlet ys = [...xs, ...k]",
]
USES = [
    "var s = 0\nfor x in xs { s = s + x }\nprintln(s)",
    "var s = 0\nfor x in xs { s = x * 2 - s }\nprintln(s)",
    "for x in xs { println(try { x - 1 }) }",
    "for x in xs { println(try { x < 2 })\nprintln(x == 1)\nprintln(`${x}`) }".replace("`", '"'),
    "println(xs.map({ x -> x == 1 }))",
    "println(xs.map({ x -> x + 1 }))",
    "println(xs.filter({ x -> x > 1 }))",
    "for i in 0 to 3 { println(xs.contains(i)) }",
    "for x in xs { for y in [x, x] { println(y) } }",
    "fn sum(ys) { var s = 0\nfor y in ys { s = s + y }\nreturn s }\nprintln(sum(xs))",
    "fn first(ys) { ys[0] = nil\nfor y in ys { return y }\nreturn 0 }\nprintln(first(xs))",
]


def outcome(source: str, evaluator: str) -> str:
    """What a program prints that is not checked before it runs."""
    out: list[str] = []
    vm = Vm(World(streams=RealStreams(stdout=out.append)), evaluator=evaluator)
    vm.run_source(source, checked=False)
    return "".join(out)


@pytest.mark.parametrize("filling", FILLING)
def test_both_evaluators_agree(filling: str) -> None:
    for use in USES:
        source = f"fn run() {{ {filling}\n{use} }}\nprintln(try {{ run() }})"
        assert outcome(source, "compile") == outcome(source, "walk"), use


#: Reads of entries that a sum expects to be there.
ENTRIES = [
    ("{a: 1, b: 2}", '["a", "b", "a"]'),
    ("{a: 1}", '["a", "b"]'),
    ("{a: nil}", '["a"]'),
    ("{a: true}", '["a"]'),
    ("[1, 2]", '["a"]'),
    ('"ab"', '["a"]'),
    ("nil", '["a"]'),
    ("P {a: 1}", '["a"]'),
    ("{a: 1}", "[1]"),
]


@pytest.mark.parametrize(("of", "names"), ENTRIES)
def test_entries_are_read_alike(of: str, names: str) -> None:
    for body in ("s = s + d[k]", "s = d[k] - s", "s = s + (d[k] ?? 5)", "s = d[k]\nd = {a: s + d[k]}"):
        source = (
            f"struct P {{ a: int }}\nfn run(d) {{ var s = 0\nfor k in {names} {{ {body} }}\nreturn s }}\n"
            f"fn again() {{ var d = {of}\nvar s = 0\nfor k in {names} {{ {body} }}\nreturn s }}\n"
            f"println(try {{ run({of}) }})\nprintln(try {{ again() }})"
        )
        assert outcome(source, "compile") == outcome(source, "walk"), body


@pytest.mark.parametrize("added", ['"b"', '"b" + "c"', '"b${s}"', "t", "nil", "1"])
def test_strings_grow_alike(added: str) -> None:
    for body in (f"s = s + {added}", f"s += {added}", f"defer {{ println(s) }}\ns = s + {added}"):
        source = (
            'fn run() { var s = "a"\nlet t = "x"\nlet u = s\nfor i in 0 to 3 { BODY }\nreturn [s, u] }\n'
            "println(try { run() })"
        ).replace("BODY", body)
        assert outcome(source, "compile") == outcome(source, "walk"), body


def test_items_of_known_kinds_are_not_asked() -> None:
    text = text_of("let xs = [1, 2]\nvar s = 0\nfor x in xs { s = s + x }\nlet ys = xs.map({ x -> x * 2 })")
    loop = text[text.index("for x_") : text.index("t1 = Fn")]
    assert "__class__" not in loop
    assert "if not signal.pending" in text
