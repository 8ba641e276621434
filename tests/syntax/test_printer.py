"""Canonical text, row by row. Spec: 01 §12."""

from __future__ import annotations

import pytest

from harnpy.syntax.parser import parse
from harnpy.syntax.printer import print_program


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            'fn  f(a,b=2){ let d={x:1,"y z":[1,2]};return a+b*d.x }',
            'fn f(a, b = 2) {\n  let d = {x: 1, ["y z"]: [1, 2]}\n  return a + b * d.x\n}',
        ),
        ("if a{b}else if c{d}else{e}", "if a {\n  b\n} else if c {\n  d\n} else {\n  e\n}"),
        ("try{a}catch e{b}finally{c}", "try {\n  a\n} catch (e) {\n  b\n} finally {\n  c\n}"),
        ('import "b"\nimport{x,y}from"a"\nf()', 'import "b"\nimport { x, y } from "a"\n\nf()'),
        ("{x->x+1}", "{ x -> x + 1 }"),
        ("{ -> 5}", "{ -> 5 }"),
        ("{ x -> \n f(x)\n g(x) }", "{ x ->\n  f(x)\n  g(x)\n}"),
        ("let f = fn(x){return x}", "let f = fn(x) { return x }"),
        (
            "match x {1|2 if y->{a} _->{\nb\nc}}",
            "match x {\n  1 | 2 if y -> { a }\n  _ -> {\n    b\n    c\n  }\n}",
        ),
        ("Point{x:1}", "Point {x: 1}"),
        ('{for:1,"select":2,["ok"]:3,[k]:4}', '{for: 1, ["select"]: 2, ok: 3, [k]: 4}'),
        ("a || b && c", "a || (b && c)"),
        ("(a + b) + c", "a + b + c"),
        ("a + (b + c)", "a + (b + c)"),
        ("(a * b) + c", "a * b + c"),
        ("-(a.b)", "-a.b"),
        ("-(-a)", "-(-a)"),
        ("!(a && b)", "!(a && b)"),
        ("(f()?) - 1", "(f()?) - 1"),
        ("1d; 90m; 1500ms; 0s; 2h", "24h\n\n90m\n\n1500ms\n\n0ms\n\n2h"),
        ("2.0; 9223372036854775808", "2.0\n\n9223372036854776000.0"),
        (r'"a\n\t\"\\\${x} $y \r"', r'"a\n\t\"\\\${x} $y \\r"'),
        (r'r"a\b"', r'r"a\b"'),
        ('"a${ x+1 }b"', '"a${x + 1}b"'),
        ("let x:[int]|nil=a", "let x: list<int> | nil = a"),
        ("enum E{A,B(x:int)}", "enum E {\n  A\n  B(x: int)\n}"),
        ("struct S{a:int,b?:string}", "struct S {\n  a: int\n  b?: string\n}"),
        ("@a @b(1,x:y) pub fn f(){}", "@a\n@b(1, x: y)\npub fn f() {\n}"),
        ('tool t(){description "d"\nf()}', 'tool t() {\n  description "d"\n  f()\n}'),
        ('skill s{a 1;b "c"}', 'skill s {\n  a 1\n  b "c"\n}'),
        (
            "parallel each xs with{max_concurrent:2}{x->f(x)} as stream",
            "parallel each xs with { max_concurrent: 2 } { x ->\n  f(x)\n} as stream",
        ),
        ("a to b exclusive |> f", "a to b exclusive |> f"),
        ("c ? ([1]) : [2]", "c ? ([1]) : [2]"),
        ("while (a) { break }", "while a {\n  break\n}"),
    ],
)
def test_canonical_text(source: str, text: str) -> None:
    assert print_program(parse(source)) == text + "\n"


def test_an_empty_program_is_empty() -> None:
    assert print_program(parse("// only this\n")) == ""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("call(first, second)", "call(\n  first,\n  second,\n)"),
        ("[first, second, third]", "[\n  first,\n  second,\n  third,\n]"),
        ("{first: 1, second: 2}", "{\n  first: 1,\n  second: 2,\n}"),
        ("fn long(first, second) {}", "fn long(\n  first,\n  second,\n) {\n}"),
        ('import { first, second } from "x"', 'import {\n  first,\n  second,\n} from "x"'),
        ("first + second + third", "first\n  + second\n  + third"),
        ("first - second - third", "first \\\n  - second \\\n  - third"),
        ("first |> second |> third", "first\n  |> second\n  |> third"),
    ],
)
def test_what_is_too_long_is_broken(source: str, text: str) -> None:
    assert print_program(parse(source), line_width=18) == text + "\n"


def test_an_item_over_several_lines_breaks_its_sequence() -> None:
    assert print_program(parse("f(a, { x ->\n x\n y })")) == "f(\n  a,\n  { x ->\n    x\n    y\n  },\n)\n"
