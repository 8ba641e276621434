"""The token pass: line breaks, brace classes, contextual words. Spec: 01 §3, §8."""

from __future__ import annotations

import pytest

from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.layout import arrange
from harnpy.syntax.lexer import lex
from harnpy.syntax.parser import parse


def kinds(text: str) -> str:
    tokens = lex(text, 0, len(text))
    arrange(tokens)
    return " ".join(tokens.kinds[:-1])


def parses(text: str) -> bool:
    try:
        parse(text)
    except SyntaxFault:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # 8.1 dict, closure, block
        ("{a: 1}", "LB IDENT : INT }"),
        ("{ x -> x }", "LB_ARROW1 IDENT -> IDENT }"),
        ("{\n x\n -> x }", "LB_ARROW1 IDENT -> IDENT }"),
        ("{ -> 5 }", "LB_ARROW -> INT }"),
        ("{ a, b -> a }", "LB_ARROW IDENT , IDENT -> IDENT }"),
        ("{ [a -> b] }", "LB [ IDENT -> IDENT ] }"),
        ("{ { a -> b } }", "LB LB_ARROW1 IDENT -> IDENT } }"),
        # 8.2 struct literal
        ("Foo {}", "IDENT LB_STRUCT }"),
        ("Foo {\n}", "IDENT LB_STRUCT }"),
        ("Foo {a: 1}", "IDENT LB_STRUCT IDENT : INT }"),
        ('Foo {"a": 1}', "IDENT LB_STRUCT STRING : INT }"),
        ("foo {}", "IDENT LB }"),
        ("Foo\n{}", "IDENT NL LB }"),
        ("Foo {a}", "IDENT LB IDENT }"),
        ("Foo {type: 1}", "IDENT LB type : INT }"),
        ("Foo {...a}", "IDENT LB ELLIPSIS IDENT }"),
        ("Foo { a: 1 -> }", "IDENT LB_STRUCT IDENT : INT -> }"),
        # 8.3 generic call
        ("f<int>(1)", "IDENT LT_GEN IDENT > ( INT )"),
        ("f<list<int>, {a?: T}, fn(A) -> B | nil>(1)", None),
        ("a < b > (c)", "IDENT LT_GEN IDENT > ( IDENT )"),
        ("a < b && c > (d)", "IDENT < IDENT && IDENT > ( IDENT )"),
        ("o.m<int>(1)", "IDENT . IDENT < IDENT > ( INT )"),
        ("f<>(1)", "IDENT < > ( INT )"),
        ("a < b > c", "IDENT < IDENT > IDENT"),
        # 8.4 question marks
        ("a?[0]", "IDENT Q_IDX [ INT ]"),
        ("a ? b : c", "IDENT Q_TERN IDENT : IDENT"),
        ("a ? -b : c", "IDENT Q_TERN - IDENT : IDENT"),
        ("a ? fn() {} : c", "IDENT Q_TERN fn ( ) LB } : IDENT"),
        ("a? + 1", "IDENT Q_TRY + INT"),
        ("a?\n(b)", "IDENT Q_TRY NL ( IDENT )"),
        ("a ? 5s : b", "IDENT Q_TRY DURATION : IDENT"),
        # 8.5, 8.6
        ("[...a]", "[ ELLIPSIS IDENT ]"),
        ("a not in b", "IDENT NOT_IN IDENT"),
        ("not", "IDENT"),
        # 8.7 contextual words
        ("gen fn f() {}", "GEN fn IDENT ( ) LB }"),
        ("gen = 1", "IDENT = INT"),
        ("parallel each xs { x -> x }", "parallel EACH IDENT LB_ARROW1 IDENT -> IDENT }"),
        ("each settle", "IDENT IDENT"),
        ("parallel xs with { max_concurrent: 1 } {}", None),
        ("with = 1", "IDENT = INT"),
        ("parallel each x {} as stream", "parallel EACH IDENT LB } AS STREAM"),
        ("as = stream", "IDENT = IDENT"),
        ("fn f() where T: U {}", "fn IDENT ( ) WHERE IDENT : IDENT LB_STRUCT }"),
        ("where = 1", "IDENT = INT"),
        ("fn f<out T>() {}", "fn IDENT < OUT IDENT > ( ) LB }"),
        ("fn f<out>() {}", "fn IDENT LT_GEN IDENT > ( ) LB }"),
        ('tool t() { description "x" }', "tool IDENT ( ) LB DESCRIPTION STRING }"),
        ('skill s { description "x" }', "skill IDENT LB IDENT STRING }"),
        ("eval_pack p { summarize { } }", "eval_pack IDENT LB SUMMARIZE LB } }"),
        ("f(summarize)", "IDENT ( IDENT )"),
        ("select { a from b {}\ntimeout 1s {} }", None),
        ("timeout = default", "IDENT = IDENT"),
        ("a.gen.each", "IDENT . IDENT . IDENT"),
        ("a.type\n.if", "IDENT . IDENT . IDENT"),
        ("a.select", "IDENT . select"),
    ],
)
def test_token_classes(text: str, expected: str | None) -> None:
    if expected is None:
        assert parses(text)
    else:
        assert kinds(text) == expected


@pytest.mark.parametrize("token", "|> || && == != < > <= >= ?? + * / % ** . ?.".split())
def test_a_line_break_before_a_continuation_is_none(token: str) -> None:
    assert "NL" not in kinds(f"a\n// note\n\n  {token} b")


@pytest.mark.parametrize("token", "|> || && == != < <= >= ?? + - * / % ** in = += : , ( [ . ?.".split())
def test_nor_is_one_after_an_operator_or_opener(token: str) -> None:
    assert "NL" not in kinds(f"a {token}\n\n b")


@pytest.mark.parametrize(
    "word",
    "if while for match guard throw emit require let var fn spawn try parallel mutex defer select".split(),
)
def test_nor_after_a_word_that_needs_more(word: str) -> None:
    assert "NL" not in kinds(f"{word}\n a")


@pytest.mark.parametrize("word", "return yield retry deadline break continue".split())
def test_but_after_a_word_that_may_stand_alone(word: str) -> None:
    assert kinds(f"{word}\n a") == f"{word} NL IDENT"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a\n-b", "a; -b"),
        ("f(a\n- b)", "f(a, -b)"),
        ("[a\n-b]", "[a, -b]"),
        ("a\n(b)", "a; (b)"),
        ("a\n[b]", "a; [b]"),
        ("a \\\n- b", "a - b"),
        ("a \\\nin b", "a in b"),
        ("a /* \n */ - b", "a - b"),
        ("a /* \n */ b", "a; b"),
        ("a \\\n b", "a; b"),
        ("a >\n b", "a > b"),
        ("type A = list<int>\ntype B = int", "type A = list<int>; type B = int"),
        ("let x\n=\n1", "let x = 1"),
        ("for x\nin y\n{\n}", "for x in y {}"),
        ("fn f()\n{\n}", "fn f() {}"),
        ("if a\n{\n}\nelse\n{\n}", "if a {} else {}"),
        ("try {\n}\ncatch (e) {\n}\nfinally {\n}", "try {} catch (e) {} finally {}"),
        ("c ? a\n: b", "c ? a : b"),
        ('import {\n a\n b,\n}\nfrom "x"', 'import {a, b} from "x"'),
        ("return\n1", "return; 1"),
        ("f(\n a,\n\n b\n)", "f(a, b)"),
        ("let a = 1;\n\n\nlet b = 2;", "let a = 1\nlet b = 2"),
        ("{ x ->\n\n x\n\n}", "{ x -> x }"),
        ("let x: int |\n nil = 1", "let x: int | nil = 1"),
        ("{a: 1\n else: 2}", "{a: 1, else: 2}"),
        ("\n\n // only a comment\n", ""),
        ("a()\n}\n}\nb()", "a()\nb()"),
        ("}\na()", "a()"),
    ],
)
def test_line_breaks(text: str, same: str) -> None:
    assert parse(text) == parse(same)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a\n|> f", "a |> f"),
        ("[1 2 3]", "[1, 2, 3]"),
        ("f(1 2)", "f(1, 2)"),
        ("{a: 1 b: 2}", "{a: 1, b: 2}"),
        ("[1 -2]", "[1 - 2]"),
        ("[a (b)]", "[a(b)]"),
        ("{}", "({})"),
        ("if Foo { a: 1 } == x { y }", "if (Foo {a: 1}) == x { y }"),
        ("match STATE {} { a -> {} }", "match (STATE {}) { a -> {} }"),
        ("if done { }", "if (done) {\n}"),
        ("Foo {a: 1, ...rest, type: 2}", 'Foo {"a": 1, ...rest, "type": 2}'),
        ("a < b > (c)", "(a<b>(c))"),
        ("f(a < b, c > (d))", "f(a<b, c>(d))"),
        ("if a < b { c }", "if (a < b) { c }"),
        ("x < (y)", "(x) < y"),
        ("a < b && c > d", "(a < b) && (c > d)"),
        ("f()?", "(f()?)"),
        ("g(a?, b)", "g((a?), b)"),
        ("a? + 1", "(a?) + 1"),
        ("f()?.x", "(f())?.x"),
        ("xs[a ? 1 : 2]", "xs[(a ? 1 : 2)]"),
        ("xs[i:j]", "xs[(i):(j)]"),
        ("if x { { a -> b } }", "if (x) { ({ a -> b }) }"),
        ("fn f() { fn g() -> int { 1 } }", "fn f() {\n fn g() -> int { 1 }\n}"),
        ("parallel xs { x }", "parallel (xs) { x }"),
        ("(f)(x)", "f(x)"),
        ("retry 3 { f() }", "retry (3) { f() }"),
    ],
)
def test_readings(text: str, same: str) -> None:
    assert parse(text) == parse(same)


@pytest.mark.parametrize(
    "text",
    [
        "{ x }",
        "{ f() }",
        "Foo {...rest}",
        "Foo {[k]: 1}",
        "Foo {type: 1}",
        "ns.Foo {a: 1}",
        "f()? - 1",
        "f()? (x)",
        "c ? [1] : [2]",
        "c ? 5s : 1s",
        'c ? r"a" : r"b"',
        "c ? if a {} : b",
        "xs[a:b:c]",
        "x?[a:b]",
        "f(x)(y)",
        "xs[0](x)",
        "{ x -> x }(1)",
        "f(x) { y }",
        "let x: list<int>= 1",
        "a ? b : c ? d : e",
        "(a, b)",
        "fn (x) { x }",
        "const x = 1",
        "x++",
        "a..b",
        "a => b",
        "[a, b] = c",
        "x?.a = 1",
        "x?[0] = 1",
        "x[a:b] = 1",
        "f() = 1",
        "for k, v in d {}",
        "guard let x = y else {}",
        "try f()",
        "defer f()",
        "spawn f()",
        "mutex(x) {}",
        'import a from "x"',
        'import * from "x"',
        "fn f({a}) {}",
        "fn f(b?) {}",
        "struct S { label: string? }",
        "enum E { A = 1 }",
        "(\na\n- b)",
        'import\n"x"',
    ],
)
def test_not_harn(text: str) -> None:
    assert not parses(text)
