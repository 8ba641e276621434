"""Trees: what each construct becomes, where it stands. Spec: 01 §5-§7."""

from __future__ import annotations

import pytest

from harnpy.syntax import ast
from harnpy.syntax.ast import Node
from harnpy.syntax.parser import parse, parse_cached


def one(source: str) -> Node:
    (item,) = parse(source).items
    return item


def name(text: str) -> ast.Name:
    return ast.Name(0, 0, text)


def block(*statements: Node) -> ast.Block:
    return ast.Block(0, 0, statements)


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ("a |> b |> c", "(a |> b) |> c"),
        ("a to b |> f", "(a to b) |> f"),
        ("a ? b : c to d", "(a ? b : c) to d"),
        ("a || b ? c : d", "(a || b) ? c : d"),
        ("a || b && c", "a || (b && c)"),
        ("a && b == c", "a && (b == c)"),
        ("a == b == c", "(a == b) == c"),
        ("a == b < c", "a == (b < c)"),
        ("a < b in c", "(a < b) in c"),
        ("a < b + c", "a < (b + c)"),
        ("a + b ?? c", "a + (b ?? c)"),
        ("x ?? 0 > 0", "(x ?? 0) > 0"),
        ("a ?? b * c", "a ?? (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("2 * 3 ** 2", "2 * (3 ** 2)"),
        ("2 ** 3 ** 2", "2 ** (3 ** 2)"),
        ("-2 ** 2", "(-2) ** 2"),
        ("2 ** -1", "2 ** (-1)"),
        ("!x in xs", "(!x) in xs"),
        ("!a.b", "!(a.b)"),
        ("try* f().x", "try* (f().x)"),
        ("try* a + b", "(try* a) + b"),
        ("a.b[c]?.d(e)?", "((((a.b)[c])?.d(e))?)"),
        ("f(...a, b)", "f(...(a), (b))"),
        ("[T]", "[(T)]"),
    ],
)
def test_precedence(source: str, same: str) -> None:
    assert one(source) == one(same)


@pytest.mark.parametrize(
    ("source", "node"),
    [
        ('import "a"', ast.Import(0, 0, None, "a", False)),
        ('pub import {a, b} from "c"', ast.Import(0, 0, ("a", "b"), "c", True)),
        ('import { a as b } from "c"', ast.Import(0, 0, ("a", "as", "b"), "c", False)),
        ("a.type", ast.Member(0, 0, name("a"), "type", False)),
        ("a?.match()", ast.MethodCall(0, 0, name("a"), "match", (), True)),
        ("a?[b]", ast.Index(0, 0, name("a"), name("b"), True)),
        ("a[:b]", ast.Slice(0, 0, name("a"), None, name("b"))),
        ("a[b:]", ast.Slice(0, 0, name("a"), name("b"), None)),
        ("a[:]", ast.Slice(0, 0, name("a"), None, None)),
        ("a to b exclusive", ast.RangeTo(0, 0, name("a"), name("b"), True)),
        (
            "{for: 1}",
            ast.Dict(0, 0, (ast.DictEntry(0, 0, ast.Str(0, 0, "for", False), ast.Int(0, 0, 1), False),)),
        ),
        ("{[a]: b}", ast.Dict(0, 0, (ast.DictEntry(0, 0, name("a"), name("b"), True),))),
        ("a.b += 1", ast.Assign(0, 0, ast.Member(0, 0, name("a"), "b", False), "+=", ast.Int(0, 0, 1))),
        ("return", ast.Return(0, 0, None)),
        (
            "parallel 3 { x }",
            ast.Parallel(0, 0, "count", ast.Int(0, 0, 3), None, None, block(name("x")), False),
        ),
        (
            "parallel each a with { max_concurrent: b } { c -> } as stream",
            ast.Parallel(0, 0, "each", name("a"), name("b"), "c", block(), True),
        ),
        ("try { a }", ast.Try(0, 0, block(name("a")), None, None)),
        (
            "let x: true | [int] = a",
            ast.Let(
                0,
                0,
                ast.NamePattern(0, 0, "x"),
                ast.TypeUnion(
                    0,
                    0,
                    (
                        ast.TypeName(0, 0, "bool", ()),
                        ast.TypeName(0, 0, "list", (ast.TypeName(0, 0, "int", ()),)),
                    ),
                ),
                name("a"),
                False,
            ),
        ),
        (
            "for {a: b = 1, ...c} in d {}",
            ast.For(
                0,
                0,
                ast.DictPattern(0, 0, (ast.PatternEntry(0, 0, "a", "b", ast.Int(0, 0, 1)),), "c"),
                name("d"),
                block(),
            ),
        ),
        (
            "match a { b | c if d -> { e } }",
            ast.Match(0, 0, name("a"), (ast.Arm(0, 0, (name("b"), name("c")), name("d"), block(name("e"))),)),
        ),
        (
            "select { timeout 1 {}\ntimeout 2 {} }",
            ast.Select(0, 0, (ast.SelectCase(0, 0, "timeout", None, ast.Int(0, 0, 2), block()),)),
        ),
    ],
)
def test_constructs(source: str, node: Node) -> None:
    assert one(source) == node


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("My Pack!", "my_pack"),
        ("a--b__c", "a_b__c"),
        ("!!", "eval_pack_"),
        ("for", "eval_pack_for"),
        ("2nd", "eval_pack_2nd"),
        ("é", "eval_pack_"),
    ],
)
def test_an_eval_pack_is_named_after_its_id(id: str, name: str) -> None:
    pack = one(f'eval_pack "{id}" {{}}')
    assert isinstance(pack, ast.EvalPack)
    assert (pack.name, pack.id) == (name, id)


@pytest.mark.parametrize(
    "source",
    [
        "let a = 1",
        "  f(a, b)",
        "(a + b) * c",
        "a.b(c)[d]?",
        "fn f(a, b = 2) -> int {\n  return a\n}",
        "{ x -> x + 1 }",
        "if a { b } else if c { d }",
        "@a(1)\npub fn f() { }",
        'let s = "x${a}y"',
    ],
)
def test_a_statement_spans_its_text(source: str) -> None:
    node = one(source + "\n")
    assert source[node.start : node.end] == source.strip()


def test_operands_span_theirs() -> None:
    source = "foo(1) + bar.baz"
    node = one(source)
    assert isinstance(node, ast.Binary)
    assert source[node.left.start : node.left.end] == "foo(1)"
    assert source[node.right.start : node.right.end] == "bar.baz"


@pytest.mark.parametrize(
    "source",
    [
        "a" + " + a" * 20_000,
        "a" + ".b" * 20_000,
        "f(a)\n" * 20_000,
        "[" + "1, " * 20_000 + "]",
        "a" + " |> b" * 20_000,
    ],
    ids=["sum", "members", "statements", "list", "pipe"],
)
def test_long_flat_programs_parse(source: str) -> None:
    assert parse(source).items


def test_the_cached_tree_is_the_parsed_one(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("HARNPY_NO_CACHE", raising=False)
    source = 'let a = {x: 1}\nlog("${a.x}", nil, 5s)'
    first, second = parse_cached(source), parse_cached(source)
    assert first == second == parse(source)
    assert second.items[1].start == first.items[1].start == 15
