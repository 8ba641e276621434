"""What happens to the comments, the imports and the literals of a source. Spec: 01 §12.

The text of a tree alone is tested in `test_printer`, what holds for every program in `properties`.
"""

from __future__ import annotations

import pytest

from harnpy.syntax.comments import Written
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.formatter import NotKept, check_kept, format_source
from harnpy.syntax.parser import parse
from tests.support import ROOT

DASHES = "-" * 77


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("", ""),
        ("\n\n", ""),
        ("// only this", "// only this\n"),
        ("#!/usr//bin/harnpy\n\na", "#!/usr//bin/harnpy\n\na\n"),
        ("#!/usr/bin/harnpy\n// c\na", "#!/usr/bin/harnpy\n// c\na\n"),
        ("a;b\n\n\nc // c", "a\nb\n\nc // c\n"),
        (
            "// head\n\n// a\na\n// b\n\n// c\nb\n\n\n// end",
            "// head\n\n// a\na\n// b\n\n// c\nb\n\n// end\n",
        ),
        ("/* c */ a; /* d */ b /* e */ // f", "/* c */\na\n/* d */\nb /* e */ // f\n"),
        (
            "fn f() { // c\n\n // d\n a // e\n\n /* f */ b\n // g\n}",
            "fn f() { // c\n  // d\n  a // e\n  /* f */ b\n  // g\n}\n",
        ),
        ('if x { f("ok") }\nlet a = 1\n\nlet b = 2', 'if x { f("ok") }\nlet a = 1\n\nlet b = 2\n'),
        ("fn f(){return 1}\nfn g() {\n}\nf()", "fn f() { return 1 }\n\nfn g() {\n}\n\nf()\n"),
        ("let x=try{f()}catch(e){nil}", "let x = try { f() } catch (e) { nil }\n"),
        ("if a { b; c } else { d }", "if a {\n  b\n  c\n} else {\n  d\n}\n"),
        ("for x in xs { if x { f(x) } }", "for x in xs { if x { f(x) } }\n"),
        (f"if x {{ {'y' * 95} }}", f"if x {{\n  {'y' * 95}\n}}\n"),
        ("fn f() { /* c */ }", "fn f() {\n  /* c */\n}\n"),
        ("fn f() { a /* c */ }", "fn f() {\n  a /* c */\n}\n"),
        ("try { a } catch { // c\n}", "try {\n  a\n} catch { // c\n}\n"),
        ("if a { b } // c\nelse { d }", "if a {\n  b // c\n} else {\n  d\n}\n"),
        ("if a {} // c\nelse { d }", "if a { // c\n} else {\n  d\n}\n"),
        ("if a { b }\n// c\nelse { d }", "if a {\n  b\n} else {\n  // c\n  d\n}\n"),
        (
            "try { a }\n// c\ncatch (e) { b }\nfinally { // d\n}",
            "try {\n  a\n} catch (e) {\n  // c\n  b\n} finally { // d\n}\n",
        ),
        ("f(a, // c\n b)", "f(\n  a, // c\n  b,\n)\n"),
        ("f(\n // c\n)", "f(\n  // c\n)\n"),
        ("f(a /* c */, /* d */ b)", "f(a /* c */, /* d */ b)\n"),
        ("let d = { // c\n a: 1 // d\n // e\n}", "let d = { // c\n  a: 1, // d\n  // e\n}\n"),
        ("let x = // c\n 1", "let x = 1 // c\n"),
        ("let x =\n // c\n 1", "// c\nlet x = 1\n"),
        ("a + // c\n b", "a // c\n  + b\n"),
        ("a - // c\n b - // d\n e", "// c\na \\\n  - b \\\n  - e // d\n"),
        ("xs // c\n .f() // d\n // e\n .g()", "xs // c\n  .f() // d\n  // e\n  .g()\n"),
        (
            "match x {\n // c\n 1 -> { a } // d\n 2 -> { // e\n b } }",
            "match x {\n  // c\n  1 -> { a } // d\n  2 -> { // e\n    b\n  }\n}\n",
        ),
        ("xs.map({ x -> // c\n x })", "xs.map(\n  { x -> // c\n    x\n  },\n)\n"),
        ("enum E { A, // a\n B }", "enum E {\n  A // a\n  B\n}\n"),
        ("struct S {\n // a\n a: int // b\n}", "struct S {\n  // a\n  a: int // b\n}\n"),
        ("type T = {a: int, // c\n b: int}", "type T = {\n  a: int, // c\n  b: int,\n}\n"),
        ("fn f(a, // c\n ...b) {}", "fn f(\n  a, // c\n  ...b\n) {\n}\n"),
        ("let {a, // c\n b} = d", "let {\n  a, // c\n  b,\n} = d\n"),
        ("@a // c\n@b(1, // d\n 2)\nfn f() {}", "@a // c\n@b(\n  1, // d\n  2,\n)\nfn f() {\n}\n"),
        ("fn f() {\n    /* a\n       b\n     */\n  c\n}", "fn f() {\n  /* a\n     b\n   */\n  c\n}\n"),
        ("let {a: a, b: c = 2 /* d */} = d", "let {a, b: c = 2 /* d */} = d\n"),
        ('"a${ x /* c */ }"', '"a${ x /* c */ }"\n'),
    ],
)
def test_comments_keep_their_places(source: str, text: str) -> None:
    assert format_source(source) == text
    assert format_source(text) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("/// a\nf", "/** a */\nf\n"),
        ("/// a\n/// b\nf", "/**\n * a\n * b\n */\nf\n"),
        ("/// a\n\n/// b\nf", "/** a */\n\n/** b */\nf\n"),
        ("/** a\n b */\nf", "/**\n * a\n * b\n */\nf\n"),
        ("/**\n * a\n *\n *     b\n */\nf", "/**\n * a\n *\n *     b\n */\nf\n"),
        ("/** a */ f", "/** a */\nf\n"),
        ("/** */", "/** */\n"),
        ("///\nf", "/** */\nf\n"),
        ("//// a\n/*** b */\nf", "//// a\n/*** b */\nf\n"),
        ("/// a */ b\n/// c\nf", "/// a */ b\n/// c\nf\n"),
        ("impl A {\n /// a\n fn f() {}\n}", "impl A {\n  /** a */\n  fn f() { }\n}\n"),
        ("f /// a", "f /// a\n"),
        (f"/// {'a' * 92}\nf", f"/** {'a' * 92} */\nf\n".replace(" */", " */")),
        (f"/// {'a' * 94}\nf", f"/**\n * {'a' * 94}\n */\nf\n"),
    ],
)
def test_documentation_is_written_in_one_way(source: str, text: str) -> None:
    assert format_source(source) == text
    assert format_source(text) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a\n//----\nb", f"a\n\n// {DASHES}\n\nb\n"),
        ("// ---- Title ----\na", f"// {DASHES}\n// Title\n// {DASHES}\n\na\n"),
        ("// -----\n// Title\n// ----\n// c\na", f"// {DASHES}\n// Title\n// {DASHES}\n\n// c\na\n"),
        ("// --- no ---\na", "// --- no ---\na\n"),
        ("fn f() {\n  // ------\n  a\n}", "fn f() {\n  // ------\n  a\n}\n"),
    ],
)
def test_bars(source: str, text: str) -> None:
    assert format_source(source) == text
    assert format_source(text) == text
    assert "// " + "-" * 17 in format_source(source, separator_width=20) or DASHES not in text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            'import "b"\n\nimport {y,x} from "std/z"\nimport "a"\nf()',
            'import { x, y } from "std/z"\nimport "a"\nimport "b"\n\nf()\n',
        ),
        (
            '// head\n\nimport "b" // of b\n// of a\nimport "a"',
            '// head\n\n// of a\nimport "a"\nimport "b" // of b\n',
        ),
        ('// head\nimport "b"\nimport "a"', '// head\nimport "a"\nimport "b"\n'),
        ('import { x } from "a"\nimport "a"', 'import "a"\nimport { x } from "a"\n'),
        ('import {b, // of b\n a} from "x"', 'import {\n  b, // of b\n  a,\n} from "x"\n'),
        ('f()\nimport "b"\nimport "a"', 'f()\n\nimport "b"\n\nimport "a"\n'),
    ],
)
def test_imports_are_sorted_with_their_comments(source: str, text: str) -> None:
    assert format_source(source) == text
    assert format_source(text) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            'fn f() {\n    g("""\n  a\n    b""")\n}',
            'fn f() {\n  g(\n    """\n  a\n    b""",\n  )\n}\n',
        ),
        ('let a = """say "x\\n" """', 'let a = """say "x\\n" """\n'),
        ('let a = """x"""', 'let a = "x"\n'),
        (
            'tool t() {\n description """\n   a\n """\n b }',
            'tool t() {\n  description """\n   a\n """\n  b\n}\n',
        ),
        ('"${ a+1 }" + "${a b}"', '"${a + 1}" + "${a b}"\n'),
        (r'"\${x} \q"', '"\\${x} \\\\q"\n'),
        ("((a ?? b)) + c ?? d", "(a ?? b) + c ?? d\n"),
        ("((a * b)) + (f(c ?? d))", "a * b + f(c ?? d)\n"),
        ("let s: stream<int> = g", "let s: Stream<int> = g\n"),
        (
            f"let x = a.bb(1).{'c' * 60}(2).d[0].{'e' * 30}({{ y -> y }}).f",
            f"let x = a\n  .bb(1)\n  .{'c' * 60}(2).d[0]\n  .{'e' * 30}({{ y -> y }}).f\n",
        ),
        (f"a.{'b' * 60}(1, {'c' * 60})", f"a.{'b' * 60}(\n  1,\n  {'c' * 60},\n)\n"),
        ("a\n.b({ x ->\n x })", "a\n  .b({ x -> x })\n"),
        ("a.b({ x ->\n x\n y })", "a.b(\n  { x ->\n    x\n    y\n  },\n)\n"),
        (
            "eval_pack p {\n f()\n a: 1\n summarize { g() }\n b: 2 }",
            "eval_pack p {\n  f()\n  a: 1\n  summarize {\n    g()\n  }\n  b: 2\n}\n",
        ),
    ],
)
def test_literals_and_line_breaks_of_the_source(source: str, text: str) -> None:
    assert format_source(source) == text
    assert format_source(text) == text


def test_lines_that_all_end_in_crlf_keep_it() -> None:
    assert format_source("fn f(){\r\n// c\r\n}\r\n") == "fn f() {\r\n  // c\r\n}\r\n"
    assert format_source("a // c\r\nb\n") == "a // c\nb\n"


def test_a_long_and_a_deep_tree() -> None:
    many = " + ".join(f"x{i} /* {i} */" for i in range(20_000))
    assert format_source(many, line_width=10**6) == many + "\n"
    calls = "a" + ".f()" * 3000
    assert format_source(calls, line_width=10**6) == calls + "\n"
    deep = "[" * 150 + "]" * 150
    assert format_source(f"let x = {deep}", line_width=1000) == f"let x = {deep}\n"


def test_a_case_without_effect_is_not_dropped() -> None:
    with pytest.raises(NotKept, match="would change what is said at line 2"):
        format_source("fn f() { select { c from ch { a }\n timeout 1s { b }\n timeout 2s { a } } }")


def test_a_text_that_is_no_program_is_refused() -> None:
    with pytest.raises(SyntaxFault):
        format_source("let x =")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a // c\n\nf(2)", "the program at line 3"),
        ("a\n\nf(1)", "a comment at line 1"),
        ("a // c c\n\nf(1)", "a comment at line 1"),
        ("a // c\n\nf(", "the syntax at line 1"),
    ],
)
def test_nothing_is_written_that_would_lose_something(text: str, what: str) -> None:
    source = "a // c\n\nf(1)"
    check_kept(Written(source), parse(source), source)
    with pytest.raises(NotKept, match=what):
        check_kept(Written(source), parse(source), text)


@pytest.mark.parametrize("folder", ["stdlib", "examples"])
def test_our_own_programs_are_formatted(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.harn"))
    assert [file.name for file in files if format_source(source := file.read_text()) != source] == []
