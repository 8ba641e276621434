"""Syntax errors: wording, position, rendering, recovery. Spec: 01 §9, 09 §1.4."""

from __future__ import annotations

import pytest

from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse

ITEM = "top-level item separator (`;` or newline)"
STATEMENT = "statement separator (`;` or newline)"
ATTRIBUTE = (
    "Expected fn/tool/skill/eval_pack/pipeline/struct/enum/type/interface/impl declaration after `@attr`, "
    "got non-declaration statement at "
)
PUB = "fn, tool, skill, eval_pack, struct, enum, pipeline, or import after pub"
OPTION = "`parallel ... with { ... }`"


def fault(source: str) -> SyntaxFault:
    with pytest.raises(SyntaxFault) as caught:
        parse(source, file="d.harn")
    return caught.value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        # 9.2, examples
        ("let v =", "Unexpected end of file, expected expression"),
        ("fn g() {", "Unexpected end of file, expected }"),
        ("let v = (1\nlet w = 2", "Expected ), got let at 2:1"),
        ("let a = 1 let b = 2", f"Expected {ITEM}, got let at 1:11"),
        ("if ok { a() }; else { b() }", "Expected expression, got else at 1:16"),
        ("try { a() }; catch { b() }", "Expected expression, got catch at 1:14"),
        ("a();; b()", "Expected expression, got ; at 1:5"),
        ("; a()", "Expected expression, got ; at 1:1"),
        ("a()\n; b()", "Expected expression, got ; at 2:1"),
        # required tokens
        ("(a = 1)", "Expected ), got = at 1:4"),
        ("[1", "Unexpected end of file, expected ]"),
        ("f(1", "Unexpected end of file, expected )"),
        ("a[1 2]", "Expected ], got int(2) at 1:5"),
        ("if x y", "Expected {, got id(y) at 1:6"),
        ("retry cfg.n {}", "Expected {, got . at 1:10"),
        ("fn f {}", "Expected (, got { at 1:6"),
        ("{a 1}", "Expected :, got int(1) at 1:4"),
        ("c ? a", "Unexpected end of file, expected :"),
        ("let x", "Unexpected end of file, expected ="),
        ("match x { 1 { } }", "Expected ->, got { at 1:13"),
        ("let x: list<int = 1", "Expected >, got = at 1:17"),
        ("for x of y {}", "Expected in, got id(of) at 1:7"),
        ('import { a } "p"', "Expected from, got str(p) at 1:14"),
        ("guard x {}", "Expected else, got { at 1:9"),
        ("impl I { let }", "Expected fn, got let at 1:10"),
        ("for (a b) in x {}", "Expected ,, got id(b) at 1:8"),
        # separators
        ("fn f() { let x = 1 let y = 2 }", f"Expected {STATEMENT}, got let at 1:20"),
        ("f(x)(y)", f"Expected {ITEM}, got ( at 1:5"),
        ("a = b = 1", f"Expected {ITEM}, got = at 1:7"),
        ("fn f() { g() = 1 }", f"Expected {STATEMENT}, got = at 1:14"),
        ('tool t() { description "x" f() }', f"Expected tool body item {ITEM[15:]}, got id(f) at 1:28"),
        ("skill s { a 1 b 2 }", f"Expected skill field {ITEM[15:]}, got id(b) at 1:15"),
        ("eval_pack p { a: 1 b: 2 }", f"Expected eval_pack field {ITEM[15:]}, got id(b) at 1:20"),
        ("eval_pack p { summarize { } 3 }", f"Expected eval_pack item {ITEM[15:]}, got int(3) at 1:29"),
        ("eval_pack p { f() g() }", f"Expected eval_pack body statement {ITEM[15:]}, got id(g) at 1:19"),
        ("let x = 5sx", f"Expected {ITEM}, got id(sx) at 1:10"),
        ("a ? b : c ? d : e", f"Expected {ITEM}, got ? at 1:11"),
        # names
        ("let 1 = 2", "Expected variable name or destructuring pattern, got int(1) at 1:5"),
        (
            "let tool = 1",
            "Expected variable name or destructuring pattern, got 'tool' (reserved keyword) at 1:5",
        ),
        ("let {1} = 2", "Expected field name, got int(1) at 1:6"),
        ("let {a: 1} = 2", "Expected alias name, got int(1) at 1:9"),
        ("let [1] = 2", "Expected element name, got int(1) at 1:6"),
        ("let {...1} = 2", "Expected rest variable name, got int(1) at 1:9"),
        ("for (1, b) in x {}", "Expected pair pattern element, got int(1) at 1:6"),
        ("fn 1", "Expected function name, got int(1) at 1:4"),
        ("fn (x) { x }", "Expected function name, got ( at 1:4"),
        ("fn if() {}", "Expected function name, got 'if' (reserved keyword) at 1:4"),
        ("pipeline 1", "Expected pipeline name, got int(1) at 1:10"),
        ("pipeline a() extends 1", "Expected parent pipeline name, got int(1) at 1:22"),
        ("override 1", "Expected override name, got int(1) at 1:10"),
        ("tool 1", "Expected tool name, got int(1) at 1:6"),
        ("skill 1", "Expected skill name, got int(1) at 1:7"),
        ("skill s { 1 }", "Expected skill field name, got int(1) at 1:11"),
        ("enum 1", "Expected enum name, got int(1) at 1:6"),
        ("enum E { 1 }", "Expected variant name, got int(1) at 1:10"),
        ("struct 1", "Expected struct name, got int(1) at 1:8"),
        ("struct S { 1 }", "Expected field name, got int(1) at 1:12"),
        ("interface 1", "Expected interface name, got int(1) at 1:11"),
        ("interface I { fn 1 }", "Expected method name, got int(1) at 1:18"),
        ("interface I { type 1 }", "Expected associated type name, got int(1) at 1:20"),
        ("type 1", "Expected type name, got int(1) at 1:6"),
        ("type A = 1.5", "Expected type name, got float(1.5) at 1:10"),
        ("let x: = 1", "Expected type name, got = at 1:8"),
        ("let x: {1: int} = 1", "Expected field name, got int(1) at 1:9"),
        ("fn f<1>() {}", "Expected type parameter name, got int(1) at 1:6"),
        ("fn f() where A: 1 {}", "Expected type bound, got int(1) at 1:17"),
        ("fn f(1) {}", "Expected parameter name, got int(1) at 1:6"),
        ('import { 1 } from "x"', "Expected import name, got int(1) at 1:10"),
        ("@1 fn f() {}", "Expected attribute name, got int(1) at 1:2"),
        ("eval_pack 1", "Expected eval_pack name or string id, got int(1) at 1:11"),
        ("a.1", "Expected member name, got int(1) at 1:3"),
        ("x.select", "Expected member name, got select at 1:3"),
        ("{select: 1}", "Expected dict key, got select at 1:2"),
        ("try {} catch (1) {}", "Expected error variable, got int(1) at 1:15"),
        ("select { 1 }", "Expected select case variable, got int(1) at 1:10"),
        ('import { a } from r"x"', "Expected import path string, got rstr(x) at 1:19"),
        ('import "a${b}"', "Expected import path string, got istr(...) at 1:8"),
        ("import a", "Expected import path string, got id(a) at 1:8"),
        # texts of their own
        (
            "fn f(a = 1, b) {}",
            "Expected Required parameter cannot follow a parameter with a default value, got ) at 1:14",
        ),
        ("fn f(...a, b) {}", "Expected Rest parameter must be the last parameter, got , at 1:10"),
        ("fn f(...a,) {}", "Expected Rest parameter must be the last parameter, got , at 1:10"),
        ("let x = -\n1", "Expected expression, got \\n at 1:10"),
        ("while (a) && b {}", "Expected {, got && at 1:11"),
        ("select { }\na()", "Expected at least one select case, got \\n at 1:11"),
        ("select { }", "Unexpected end of file, expected at least one select case"),
        (
            "select { timeout 1s { }\ndefault { } }; 1",
            "Expected select cannot have both timeout and default, got ; at 2:14",
        ),
        ("@a let x = 1", ATTRIBUTE + "1:4"),
        ("@a\n@b\nf()", ATTRIBUTE + "3:1"),
        ('@a import "x"', ATTRIBUTE + "1:4"),
        ("a[1\nlet b = 2", "Expected ], got let at 2:1"),
        (
            "@a(1s) fn f() {}",
            "Expected attribute argument value (literal or identifier), got duration(1000ms) at 1:4",
        ),
        ("@a(-x) fn f() {}", "Expected number after '-' in attribute argument, got id(x) at 1:5"),
        ("pub let x = 1", f"Expected {PUB}, got let at 1:5"),
        (
            "parallel each xs with { foo: 1 } { }",
            f"Expected known option (only `max_concurrent` is supported in {OPTION}; "
            "got `foo`), got foo at 1:25",
        ),
        ("parallel each xs with { 1 } { }", f"Expected option name in {OPTION} block, got int(1) at 1:25"),
        (
            "parallel xs { x -> 1 } as stream",
            "Expected `as stream` is only valid after `parallel each ... { ... }`, got as stream at 1:24",
        ),
        (
            "parallel each xs { x -> 1 } as foo",
            "Expected `stream` after `parallel each ... as`, got id(foo) at 1:32",
        ),
        (
            'eval_pack "a" { summarize { 2 }\nsummarize { 3 } }',
            "Expected one summarize block, got duplicate summarize block at 2:1",
        ),
        (
            "let x = <<EOF\nabc",
            "Expected an expression — heredocs are only valid inside LLM tool-call argument JSON; for "
            'multiline strings in source code use triple-quoted `"""..."""`, '
            "got `<<` heredoc-like syntax at 1:9",
        ),
        # tokens
        ("let x = 1 2.0", f"Expected {ITEM}, got float(2) at 1:11"),
        ("let x = 1 2.5", f"Expected {ITEM}, got float(2.5) at 1:11"),
        ("import {\n a ;", "Expected }, got ; at 2:4"),
        ("if x { } 5s", f"Expected {ITEM}, got duration(5000ms) at 1:10"),
        ("import", "Unexpected end of file, expected import path string"),
        ('import\n"x"', "Expected import path string, got \\n at 1:7"),
        ("fn f(\n 1", "Expected parameter name, got int(1) at 2:2"),
    ],
)
def test_messages(source: str, message: str) -> None:
    assert fault(source).message == message


def test_nesting_has_a_limit() -> None:
    assert fault("(" * 300).message == "Nesting too deep (limit 200 levels) at 1:201"
    assert parse("(" * 199 + "a" + ")" * 199)


def test_an_error_shows_its_line_and_what_to_do() -> None:
    assert fault("let a = 1\n  let c = (1\n}\n").render() == (
        "error: expected ), found }\n"
        "  --> d.harn:3:1\n"
        "   |\n"
        " 3 | }\n"
        "   | ^ unexpected token [unclosed-bracket]\n"
        "  ::: d.harn:2:11\n"
        "   |\n"
        " 2 |   let c = (1\n"
        "   |           - opened here, never closed\n"
        "   = help: add a closing `)` to finish this expression or parameter list\n"
    )


def test_carets_are_as_many_as_the_token_has_characters() -> None:
    assert fault("pub break").render().splitlines()[3:] == [
        " 1 | pub break",
        "   |     ^^^^^ unexpected-token",
        "   = help: use `pub fn`, `pub pipeline`, `pub enum`, or `pub struct`",
    ]


def test_errors_of_the_lexer_are_one_a_line() -> None:
    source = "# one\nlet a = 'b' + 'c # d'\nlet b = `a`\nlet c = ) & $\nlet d = 'e\nlet e = \"f\nlet f = ?\n"
    assert [each.message for each in fault(source).diagnostics] == [
        "Unexpected character '#' at 1:1",
        "Unexpected character ''' at 2:9",
        "Unexpected character '`' at 3:9",
        "Unexpected character '&' at 4:11",
        "Unexpected character ''' at 5:9",
        "Unterminated string at 6:9",
    ]
    assert len(fault("'\n" * 100).diagnostics) == 20


def test_a_lexer_error_is_reported_alone() -> None:
    found = fault("let = 1\nlet s = 'x'")
    assert found.message == "Unexpected character ''' at 2:9"
    assert found.render() == (
        "error: Unexpected character ''' at 2:9\n"
        "  --> d.harn:2:9\n"
        "   |\n"
        " 2 | let s = 'x'\n"
        "   |         ^ here [foreign-syntax]\n"
        '   = help: in Harn, strings have double quotes: `"text"`\n'
    )


def test_the_end_of_the_file_may_have_no_line() -> None:
    assert fault("fn g() {\n").render() == (
        "error: unexpected end of file, expected }\n"
        "  --> d.harn:2:1\n"
        "   |\n"
        "  ::: d.harn:1:8\n"
        "   |\n"
        " 1 | fn g() {\n"
        "   |        - opened here, never closed\n"
        "   = help: add a closing `}` to finish this block\n"
    )
    assert fault("fn g() {").render() == (
        "error: unexpected end of file, expected }\n"
        "  --> d.harn:1:9\n"
        "   |\n"
        " 1 | fn g() {\n"
        "   |         ^ file ends here [unclosed-bracket]\n"
        "   = help: add a closing `}` to finish this block\n"
    )


def test_a_line_break_has_its_own_label() -> None:
    assert "line break not allowed here" in fault('import\n"x"').render()


def test_the_gutter_grows_with_the_line_number() -> None:
    assert fault("\n" * 9 + "let = 1").render().splitlines()[1:4] == [
        "   --> d.harn:10:5",
        "    |",
        " 10 | let = 1",
    ]


def test_colours_are_optional() -> None:
    found = fault("let = 1")
    assert "\x1b[" not in found.render()
    assert found.render(colour=True).startswith("\x1b[1;31merror\x1b[0m: ")


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("let = 1\nlet b = )\nc()", ["1:5", "2:9"]),
        ("let = 1; let b = )", ["1:5", "1:18"]),
        ("let = 1\nb()\nlet c = )", ["1:5", "3:9"]),
        ("fn f() {\n let x = (1\n}\nlet y = )\n", ["3:1", "4:9"]),
        ("if x {\n  let = 3\n  f()\n}\n}\nlet q = )\nz()", ["2:7", "6:9"]),
        ("let a = 1 2\nlet b = )", ["1:11", "2:9"]),
        # In the same block.
        (
            "fn f() {\n  if x {\n    let = 1\n  } else {\n    let b = )\n  }\n}\nlet 1 = 2",
            ["3:9", "5:13", "8:5"],
        ),
        ("xs.map({ x ->\n  let = 1\n  x.a.\n})\nlet b = )", ["2:7", "4:1", "5:9"]),
        ("let d = {a: 1 b: 2}\nlet e = {a: 1, b 2}\nlet f = )", ["2:18", "3:9"]),
        ("match a {\n  1 { }\n  2 -> { let = 1 }\n}\nlet b = )", ["2:5", "5:9"]),
        ("struct S {\n  1\n  2\n}\nlet b = )", ["2:3", "5:9"]),
        # What only follows from the first error isn't reported.
        ("let a = 1 2 3 4 5\n", ["1:11"]),
        ("else { a() }\nb()", ["1:1"]),
    ],
)
def test_parsing_goes_on_behind_the_statement(source: str, places: list[str]) -> None:
    found = [f"{d.span.line}:{d.span.column}" for d in fault(source).diagnostics if d.span]
    assert found == places


@pytest.mark.parametrize(
    ("source", "message", "opener"),
    [
        # The block that isn't closed, though the last `}` of the file is the one that is missing.
        (
            "fn f() {\n  if x {\n    a()\n  b()\n}\nfn g() {\n  c()\n}\n",
            "Expected }, got id(b) at 4:3",
            "2:8",
        ),
        ("fn f() {\n  if x {\n    a()\n}\nfn g() {\n  c()\n}\n", "Expected }, got } at 4:1", "2:8"),
        ("fn f() {\n  a()\n\nfn g() {\n}\n", "Expected }, got fn at 4:1", "1:8"),
        ("fn f() {\n  a(1, 2\n  b()\n}\n", "Expected ), got id(b) at 3:3", "2:4"),
        ("println((a)\nprintln(b)\nprintln(c)\n", "Expected ), got id(println) at 2:1", "1:8"),
        ("let xs = [\n  1,\n  2\nlet b = 1\n", "Expected ], got let at 4:1", "1:10"),
        ("let d = {\n  a: [1, 2,\n  b: 3,\n}\nlet e = 1\n", "Expected ], got id(b) at 3:3", "2:6"),
        ("f({\n  a: 1,\n)\ng()\n", "Expected }, got ) at 3:1", "1:3"),
        ("for i in x { f({\n  a: 1,\n})\ng()\n", "Expected }, got id(g) at 4:1", "1:12"),
        ("fn f() {\n  a()\n", "Unexpected end of file, expected }", "1:8"),
        ("fn f() {\n  g(\n", "Unexpected end of file, expected )", "2:4"),
        ("fn f() {\nfn g() {\n}\n", "Expected }, got fn at 2:1", "1:8"),
        # Nothing is indented, so the indentation tells nothing.
        ("if a {\nb()\nlet c = 1\n", "Unexpected end of file, expected }", "1:6"),
    ],
)
def test_the_bracket_that_is_not_closed_is_shown(source: str, message: str, opener: str) -> None:
    found = fault(source)
    (diagnostic,) = found.diagnostics
    (related,) = diagnostic.related
    assert (found.message, diagnostic.code) == (message, "unclosed-bracket")
    assert related.span is not None
    assert f"{related.span.line}:{related.span.column}" == opener
    assert related.message == "opened here, never closed"


def test_two_brackets_and_another_error_are_three_errors() -> None:
    source = "fn f() {\n  if x {\n    a()\n  b(1\n}\nlet = 1\nfn g() {\n  c(2\n}\n"
    assert [each.message for each in fault(source).diagnostics] == [
        "expected }, found id(b)",
        "expected ), found }",
        "expected variable name or destructuring pattern, found =",
        "expected ), found }",
    ]


def test_a_text_that_is_no_program_has_few_errors() -> None:
    assert len(fault("this is prose\n" * 500).diagnostics) == 20
