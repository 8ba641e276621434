"""The rules about use and flow where their explanations do not reach: what they say, where not.

Spec: 03 §15.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from harnpy import Vm
from harnpy.check.findings import Finding
from harnpy.check.lint.fixing import apply
from harnpy.check.lint.rules import lint
from harnpy.check.lint.settings import Settings
from harnpy.syntax.parser import parse

if TYPE_CHECKING:
    from harnpy.check.knowledge import Knowledge


@cache
def _knowledge() -> Knowledge:
    return Vm().builtins.knowledge()


def found(rule: str, source: str, consumed: tuple[str, ...] = ()) -> list[Finding]:
    imports = Vm().imports_of(source, ".") if "import" in source else None
    settings = Settings(selected=[rule])
    return lint(source, parse(source), "a.harn", _knowledge(), imports, settings, consumed)


SILENT = {
    "unused-variable": [
        "let _a = 1",
        'let a = 1\nprintln("${a}")',
        "var a = 1\na = 2",
        "fn f() {\n  return later\n}\nlet later = 1\nprintln(f())",
        # A callee finds the functions of its callers (02 §7.4).
        "fn callee() { return helper() }\n"
        "fn caller() {\n  let helper = { -> 1 }\n  return callee()\n}\ncaller()",
        "pipeline base() {\n  let a = 1\n}\npipeline child() extends base {\n  println(a)\n}",
    ],
    "unused-pattern-binding": [
        "let {a, ...rest} = {a: 1}\nprintln(rest)",
        "match 1 { other -> { 2 } }",
        "for item in [1] { println(1) }",
        "let [_, b] = [1, 2]\nprintln(b)",
    ],
    "unused-parameter": [
        "struct P { x: int }\nimpl P {\n  fn m(self, other) { return 1 }\n}",
        "tool t(a: int) { 1 }",
        "pipeline default(task) { 1 }",
        "fn f(_a) { return 1 }",
        "fn f(a) { }",
        "fn f(a, b = a) { return b }",
        "override_me({ x -> { y -> x + y } })",
    ],
    "unused-import": [
        'pub import { clamp } from "std/math"',
        'import { clamp } from "std/math"\nprintln("${clamp(1, 2, 3)}")',
        'import { ApprovalRecord } from "std/hitl"\nfn f(a: ApprovalRecord) { return a }',
        'import { clamp } from "std/math"\nlet f = {limit: clamp}\nprintln(f)',
        'import "std/math"',
    ],
    "unused-function": [
        "fn f() { return 1 }",
        "pub fn f() { return 1 }\nprintln(1)",
        "fn f() { return g }\nfn g() { return 1 }\nprintln(f())",
        "@complexity(allow)\nfn f() { return 1 }\nprintln(1)",
        'fn f() { return 1 }\nprintln({handler: "f"})',
        "pub fn api() { return 1 }\ntool t(a: int) { a }\npipeline default() { 1 }",
        "fn _f() { return 1 }\nprintln(1)",
        "struct P { x: int }\nimpl P {\n  fn m(self) { return 1 }\n}\nprintln(P {x: 1})",
    ],
    "unused-type": [
        "struct P { x: int }",
        "struct P { x: int }\nprintln(P({x: 1}))",
        "enum E { A B }\nprintln(E.A)",
        "enum E { A(x: int) }\nfn f(v) { return match v { E.A(x) -> { x } } }\nprintln(f(1))",
        "interface I { fn m(self) -> int }\nfn f<T>(x: T) where T: I { return x.m() }\nprintln(f)",
        "struct _P { x: int }\nprintln(1)",
        "type T = int\nprintln(1)",
    ],
    "mutable-never-reassigned": [
        "var a = 1\na += 1",
        "var a = {b: 1}\na.b = 2",
        "var a = [1]\na[0] = 2",
        "var {a, b} = {a: 1, b: 2}\na = b",
        "var a = 1\nfn f() { a = 2 }\nf()",
        # Two declarations of a name in one block: only `var` may do that.
        "var a = 1\nlet a = 2\nprintln(a)",
        "pipeline base() {\n  var a = 1\n}\npipeline child() extends base {\n  a = 2\n}",
    ],
    "shadow-variable": [
        "fn f(x) { return x }\nfn g(x) { return x }",
        "for i in [1] { println(i) }\nfor i in [2] { println(i) }",
        "var a = 1\nvar a = 2\nprintln(a)",
        "let f = 1\nfn g() { let h = f\n  return h }",
        "try { f() } catch (e) { 1 }\ntry { f() } catch (e) { 2 }",
        "fn _unused(xs) { return xs.map({ _ -> 1 }).map({ _ -> 2 }) }",
    ],
    "undefined-function": [
        'import "./gone"\nanything()',
        "println(await(spawn { 1 }))\ncancel(1)",
        "fn f() { return g() }\nfn g() { return 1 }\nf()",
        "enum E { A }\nlet f = { -> 1 }\nprintln(f(), E.A, Ok(1))",
        'import { clamp } from "std/math"\nclamp(1, 2, 3)',
    ],
    "dead-code-after-return": [
        "fn f() {\n  return g()\n  fn g() { return 1 }\n}\nf()",
        "fn f() {\n  return nil\n  yield 1\n}\nf()",
        "fn f(c) {\n  if c { return 1 }\n  return 2\n}",
        "fn f(c) {\n  while c { break }\n  return 2\n}",
    ],
    "break-outside-loop": [
        "for x in [1] { if x { break } }",
        "while true { try { continue } catch (e) { break } }",
    ],
    "let-then-return": [
        "fn f() {\n  let x: int = 1\n  return x\n}",
        "fn f() {\n  var x = 1\n  return x\n}",
        "fn f() {\n  let x = 1\n  return x + 1\n}",
        "fn f() {\n  let go = { n -> n == 0 ? 0 : go(n - 1) }\n  return go\n}",
    ],
    "unnecessary-else-return": [
        "fn f(c) {\n  if c { return 1 } else { println(2) }\n}",
        "fn f(c) {\n  if c { return 1 } else if c == 2 { return 2 } else { return 3 }\n}",
    ],
    "cyclomatic-complexity": [f"@complexity(allow)\nfn f(a) {{ return {' && '.join('a' * 40)} }}"],
    "pipeline-return-type": [
        "pub pipeline default() { 1 }",
        "pipeline p() { 1 }",
        "pub pipeline test_x() { 1 }",
        "pub pipeline p() -> int { 1 }",
    ],
    "assert-outside-test": [
        "pipeline test_a() { assert(true) }",
        "@test\npipeline works() { assert_eq(1, 1) }",
        "fn helper() { assert(true) }\npipeline test_a() { helper() }",
        "fn same(a, b) { assert_eq(a, b) }",
        "fn assert(x) { return x }\nprintln(assert(1))",
    ],
    "require-in-test": ["pipeline default() { require true }"],
    "untyped-dict-access": [
        'println(llm_call("x", nil, {output_schema: {type: "dict"}}).data)',
        'let o = {}\nprintln(llm_call("x", nil, o).text)',
        "fn json_parse(x) { return {a: x} }\nprintln(json_parse(1).a)",
        'let answer = json_parse("{}")\nprintln(answer)',
    ],
    "prompt-injection-risk": ['llm_call("${1}", "constant")', 'llm_call("a", nil, {provider: "x${1}"})'],
    "unhandled-approval-result": [
        'let a = request_approval("x")\nprintln(a)',
        'fn ask() { request_approval("x") }\nprintln(ask())',
    ],
    "unhandled-result": [
        "fn f() -> Result<int, string> { return Ok(1) }\nfn g() { f() }\nprintln(g())",
        "fn f() -> Result<int, string> { return Ok(1) }\nf()?",
        "fn f() -> int { return 1 }\nf()\nprintln(1)",
        "fn f() -> Result<int, string> { return Ok(1) }\nfn g(f) {\n  f()\n  return 1\n}\nprintln(g(f))",
    ],
    "needless-await": [
        "let t = spawn { 1 }\nprintln(await(t))",
        "fn f(t) { return await(t) }\nprintln(f(1))",
        "var t = 1\nt = spawn { 1 }\nprintln(await(t))",
        "let ts = [spawn { 1 }]\nprintln(await(ts[0]))",
        "println(await(spawn { 1 } ?? nil))",
    ],
    "rebuilt-list": [
        "fn f(xs) {\n  var out = []\n  for x in xs { out = out + [x] }\n  return out\n}",
        "var out = []\nfor x in [1, 2] { out = out + [x, x] }",
        "var out = []\nfor x in [1, 2] { out = out + [out.count] }",
        "var out = [0]\nfor x in [1, 2] { out = out + [x] }",
        "var out = []\nfor x in [1, 2] {\n  if x > 1 { out = out + [x * 2] }\n}",
        "var out = []\nfor x in [1, 2] {\n  println(x)\n  out = out + [x]\n}",
        "fn f() {\n  var out = []\n  for x in [1, 2] { out = out + [g(x)?] }\n  return out\n}",
    ],
    "session-never-closed": [
        "let s = agent_session_open()\nagent_session_length(s)",
        "pipeline default() {\n  let s = agent_session_open()\n  agent_session_length(s)\n}",
        "fn f() {\n  let s = agent_session_open()\n  return s\n}",
        "fn f() {\n  let s = agent_session_open()\n  agent_session_length(s)\n  agent_session_close(s)\n}",
        'fn f() {\n  let s = agent_session_open("main")\n  agent_session_length(s)\n}',
        "fn f(use) {\n  let s = agent_session_open()\n  use(s)\n}",
        "fn f() {\n  let s = agent_session_open()\n  return { -> agent_session_length(s) }\n}",
    ],
}


@pytest.mark.parametrize(
    ("rule", "source"), [(rule, source) for rule, sources in SILENT.items() for source in sources]
)
def test_in_doubt_a_rule_is_silent(rule: str, source: str) -> None:
    assert [one.message for one in found(rule, source)] == []


SAID = [
    ("unused-parameter", "let f = { x, y -> x }\nprintln(f)", ["parameter `y` is declared but never used"]),
    ("unused-function", "fn f() { return f() }\nprintln(1)", ["function `f` is declared but never used"]),
    (
        "unused-function",
        'skill s { description "d" }\nprintln(1)',
        ["function `s` is declared but never used"],
    ),
    ("unused-type", "enum E { A }\nprintln(1)", ["enum `E` is declared but never referenced"]),
    ("unused-type", "interface I { }\nprintln(1)", ["interface `I` is declared but never referenced"]),
    (
        "shadow-variable",
        "let a = 1\nlet a = 2",
        ["cannot redeclare immutable variable `a` in the same scope"],
    ),
    (
        "shadow-variable",
        "let a = 1\nlet f = { a -> a }",
        ["variable `a` shadows a variable in an outer scope"],
    ),
    ("undefined-function", "zqzq(1)", ["function `zqzq` is not defined"]),
    (
        "dead-code-after-return",
        "fn f(c) {\n  if c { return 1 } else { throw 2 }\n  println(1)\n  println(2)\n}",
        ["unreachable code after a terminating statement"],
    ),
    (
        "break-outside-loop",
        "break\nfor x in [1] { spawn { continue } }",
        ["`break` used outside of a loop", "`continue` used outside of a loop"],
    ),
    (
        "unhandled-result",
        "Err(1)\nprintln(1)",
        ["the `Result` of `Err` is ignored, and an error in it with it"],
    ),
    (
        "unhandled-result",
        "fn f() -> Result<int, string> { return Ok(1) }\nfor x in [1] { f() }",
        ["the `Result` of `f` is ignored, and an error in it with it"],
    ),
    (
        "needless-await",
        'println(await(llm_call("x")), await(spawn { 1 }))',
        ["`await` of what is no task gives the value itself"],
    ),
    (
        "unhandled-result",
        'schema_check(1, {type: "int"})\nlet _checked = schema_check(1, {type: "int"})',
        ["the `Result` of `schema_check` is ignored, and an error in it with it"],
    ),
    (
        "rebuilt-list",
        "fn f(xs: list<int>) {\n  var out = []\n"
        "  for x in xs {\n    if x > 1 { out = out.push(x) }\n  }\n  return out\n}",
        ["`out` is built one item at a time; `filter` says so in one expression"],
    ),
    (
        "untyped-dict-access",
        'println(json_parse("[1]")[0])',
        ["subscript access on raw `json_parse()` result without schema validation"],
    ),
    (
        "require-in-test",
        "pipeline test_a() { for x in [1] { require x } }",
        ["`require` in a test pipeline should usually be an assertion"],
    ),
]


@pytest.mark.parametrize(("rule", "source", "messages"), SAID)
def test_what_a_rule_says(rule: str, source: str, messages: list[str]) -> None:
    assert [one.message for one in found(rule, source)] == messages


def test_a_function_that_another_file_imports() -> None:
    source = "fn f() { return 1 }\nprintln(1)"
    assert found("unused-function", source)
    assert not found("unused-function", source, consumed=("f",))


FIXES = [
    ("unused-variable", "let a = f()", "let _a = f()", True),
    ("unused-variable", "let a = 1\nlet _a = 2", None, True),
    ("mutable-never-reassigned", "var {a, b} = c", "let {a, b} = c", True),
    (
        "unused-import",
        'import { clamp, lerp } from "std/math"\nclamp(1)',
        'import { clamp } from "std/math"\nclamp(1)',
        True,
    ),
    ("unused-import", 'import { lerp } from "std/math"\nf()', "f()", True),
    ("unused-import", 'import { lerp } from "./lib"\nf()', "f()", False),
    ("let-then-return", "fn f() {\n  let x = [1]\n  return x\n}", "fn f() {\n  return [1]\n}", True),
    ("let-then-return", "fn f() {\n  let x = g()\n  return x\n}", "fn f() {\n  return g()\n}", False),
    (
        "unnecessary-else-return",
        "fn f(c) {\n  if c {\n    return 1\n  } else {\n    g()\n    return 2\n  }\n}",
        "fn f(c) {\n  if c {\n    return 1\n  }\n  g()\n  return 2\n}",
        True,
    ),
    (
        "unnecessary-else-return",
        "fn f(c) {\n  if c { return 1 } else { return 2 }\n}",
        "fn f(c) {\n  if c { return 1 }\n  return 2\n}",
        True,
    ),
    # What the else declares would be declared in the function's block.
    (
        "unnecessary-else-return",
        "fn f(c) {\n  if c {\n    return 1\n  } else {\n    let c = 2\n    return c\n  }\n}",
        None,
        True,
    ),
    ("needless-await", "println(await(1 + 2) * 3)", "println((1 + 2) * 3)", True),
]


@pytest.mark.parametrize(("rule", "source", "fixed", "safe"), FIXES)
def test_fixes(rule: str, source: str, fixed: str | None, safe: bool) -> None:
    (first, *_) = found(rule, source)
    assert (first.fix and apply(source, [first.fix])) == fixed
    assert first.fix is None or first.fix.safe is safe


def test_where_an_import_is_not_found_any_name_may_be_its() -> None:
    source = 'import "./gone"\nprintln(json_parse("{}").a, await(read_file("x")))'
    assert [
        found(rule, source) for rule in ("untyped-dict-access", "needless-await", "undefined-function")
    ] == [[]] * 3


@pytest.mark.parametrize(
    ("imports", "said"),
    [
        ('import { other } from "./nowhere"', True),
        ('import { json_parse } from "./nowhere"', False),
        ('import "./nowhere"', False),
        ('import "std/math"', True),
        ('import { clamp } from "std/math"\nimport "./nowhere"', False),
    ],
)
def test_a_builtin_is_one_unless_an_import_may_bring_its_name(imports: str, said: bool) -> None:
    assert bool(found("untyped-dict-access", f'{imports}\nprintln(json_parse("1").a)')) == said
