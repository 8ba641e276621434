"""The traps of docs/surprises.md are found, and no program of the repository falls into one. Spec: 03 §15."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.check.allow import silenced
from harnpy.check.findings import Finding
from harnpy.check.lint import discarded, traps
from harnpy.check.lint.fixing import apply, fix_all
from harnpy.check.lint.rules import RULES, lint
from harnpy.check.lint.settings import Settings
from harnpy.syntax.diagnostic import Lines, SyntaxFault
from harnpy.syntax.parser import parse_cached
from tests.counts import COUNT
from tests.support import ROOT
from tests.vm.differential.outcomes import Program, outcome
from tests.vm.differential.programs import program_of

TRAPS = frozenset(rule.id for rule in RULES if rule.check.__module__ in (discarded.__name__, traps.__name__))
_PROGRAM = re.compile(
    r"^## (.+?)$(?:(?!^## ).)*?^```harn\n(.*?)^```\n\n```text\n.*?^```\n"
    r"(?:\n`harnpy lint` finds it: (.*?)\.\n)?",
    re.MULTILINE | re.DOTALL,
)
_FOUND = _PROGRAM.findall((ROOT / "docs/surprises.md").read_text(encoding="utf-8"))
SURPRISES = [pytest.param(code, set(re.findall("`(.+?)`", named)), id=title) for title, code, named in _FOUND]


@pytest.fixture(scope="module")
def vm() -> Vm:
    return Vm()


def found(
    vm: Vm, source: str, settings: Settings | None = None, file: Path = ROOT / "a.harn"
) -> list[Finding]:
    imports = vm.imports_of(source, str(file.parent)) if "import" in source else None
    program = parse_cached(source)
    return silenced(source, lint(source, program, str(file), vm.builtins.knowledge(), imports, settings))


@pytest.mark.parametrize(("source", "named"), SURPRISES)
def test_the_page_says_what_is_found(vm: Vm, source: str, named: set[str]) -> None:
    assert {one.code for one in found(vm, source)} == named


def test_most_surprises_are_found() -> None:
    assert len(SURPRISES) == 23
    assert sum(bool(named) for _, _, named in _FOUND) >= 18


def test_each_trap_stands_on_the_page() -> None:
    named = {name for _, _, finds in _FOUND for name in re.findall("`(.+?)`", finds)}
    assert named - {"untyped-dict-access"} == TRAPS


def test_no_program_falls_into_one(vm: Vm) -> None:
    """Those that do it on purpose say so. A campaign looks at all programs."""
    settings = Settings(selected=TRAPS)
    paths = [path for name in ("conformance", "examples", "stdlib") for path in (ROOT / name).rglob("*.harn")]
    said = []
    for path in sorted(paths)[:: COUNT.traps_share]:
        source = path.read_text(encoding="utf-8")
        try:
            each = found(vm, source, settings, path)
        except SyntaxFault:
            continue
        said += [f"{path}:{Lines(source).line(one.start)}: {one.code}: {one.message}" for one in each]
    assert said == []


#: By rule, programs that it is silent about.
SILENT = {
    "discarded-value": [
        "fn f(xs) { xs.map({ x -> println(x) }) }\nf([1])",
        "var xs = [1]\nxs.map({ x -> println(x) })",
        "fn f(x) { println(x) }\n[1].map(f)",
        "fn f(g, xs) {\n  xs.map(g)\n  group_by(xs, g)\n  return 1\n}\nprintln(f(println, [1]))",
        "gen fn f() { yield 1 }\nlet g = f()\nto_list(g)",
        "let s = agent_session_open()\nprintln(s)\ns.push(1)",
        "struct Bag { n: int }\nimpl Bag {\n  fn add(self, x) { println(x) }\n}\n"
        "let bag = Bag {n: 1}\nbag.add(2)\nprintln(bag)",
        "let log = {push: { x -> println(x) }}\nlog.push(1)",
        'import { bag } from "./bag"\nbag.add(2)',
        "let it = iter([1, 2])\nit.first()\nprintln(it.first())",
        "try {\n  json_pointer_set(1, 2, 3)\n  println(1)\n} catch (e) { println(e) }",
        "let f = { xs -> xs.push(1) }\nprintln(f([]))",
        "let a = if true { [1].push(2) } else { [] }\nprintln(a)",
        "let next = receive\nnext(1)",
        "fn floor(x) { println(x) }\nfloor(1)",
    ],
    "missing-return": [
        "fn f(n) {\n  if n > 0 { return n * 2 }\n  println(n)\n}\nprintln(f(1))",
        "gen fn f(n) {\n  yield n\n  n\n}\nfor x in f(1) { println(x) }",
        "fn f(n) { nil }\nprintln(f(1))",
        'fn f(path) { write_file(path, "") }\nf("a")',
        "let f = fn(n) { n * 2 }\nprintln(f(1))",
        "tool t(n: int) { n * 2 }",
    ],
    "lost-assignment": [
        "var sum = 0\nfor n in [1] { if n { sum += n } }\nprintln(sum)",
        "let f = { n ->\n  var sum = 0\n  for x in n { sum += x }\n  sum }\nprintln(f([1]))",
        "var n = 0\nlet f = { ->\n  n += 1\n  n }\nprintln(f())",
        "var n = 0\npub fn next() {\n  n += 1\n}",
    ],
    "lost-task": [
        "let c = channel(1)\nspawn { send(c, 1) }\nprintln(receive(c))",
        'spawn { write_file("a", "b") }\nsleep(1)',
        "let t = spawn { throw 1 }\nawait(t)",
    ],
    "skipped-statement": [
        "println(1)",
        "let a = 1\n\nfn f() { return a }\n\npipeline default() { println(f()) }",
    ],
    "absent-field": [
        "let d = {a: 1}\nprintln([d?.b, d.b ?? 1, d.b == nil, d.a])\nif d.b { println(1) }",
        "var d = {a: 1}\nd.b = 2\nprintln(d.b)",
        "var d = {a: 1}\nd = {b: 2}\nprintln(d.b)",
        "let e = {b: 1}\nlet d = {a: 1, ...e}\nprintln(d.b)",
        'let k = "b"\nlet d = {a: 1, [k]: 2}\nprintln(d.b)',
        "let xs = [1, 2]\nprintln([xs[1], xs[-2], xs.count, xs.first])",
        "fn f(d) { return d.b }\nprintln(f({a: 1}))",
    ],
    "number-as-key": ['let d = {"1": 2}\nprintln(d["1"])', "let xs = [1]\nprintln(xs[0])"],
    "ignored-argument": ["println(max(1, 2))", "fn floor(x, y) { return x + y }\nprintln(floor(1, 2))"],
    "implicit-separator": ['println([split("a", ","), "a".split(",")])'],
    "pointless-length": ['println([len([1]), len("a")])', "fn f(x) { return len(x) }\nprintln(f(1))"],
    "loop-over-nothing": ["fn f(xs) { for x in xs { println(x) } }\nf(1)", "for i in 0 to 2 { println(i) }"],
    "logic-as-default": ["let a = true\nprintln(a || false)", "let b = 0\nprintln(b || len([]))"],
    "never-equal": [
        "println(1 == 1.0)",
        "fn f(x: int) { return x == 1.5 }\nprintln(f(1))",
        "println(len([]) == 1)",
    ],
    "truncated-division": ["println([6 / 2, 7 / 2.0, 7 / len([1])])"],
    "integer-overflow": ["println(9223372036854775806 + 1)"],
    "deep-glob": ['println([glob("**/*.md"), glob("a.md")])'],
    "unmocked-clock": [
        "println(date_now())\nmock_time(0)\nunmock_time()\nprintln(date_now())",
        "fn f() { return date_now() }\nmock_time(0)\nprintln(f())",
    ],
}


@pytest.mark.parametrize(("rule", "source"), [(rule, each) for rule, some in SILENT.items() for each in some])
def test_silence(vm: Vm, rule: str, source: str) -> None:
    assert [one.message for one in found(vm, source, Settings(selected=[rule]))] == []


#: Programs with one finding: its rule, its words, and the program after its fix.
CASES = [
    ("discarded-value", "var xs = []\nxs.push(1)", "`xs.push(1)`", "var xs = []\nxs = xs.push(1)"),
    ("discarded-value", "var n = 1\nfor x in [1] { n + x }", "`n + x`", "var n = 1\nfor x in [1] { n += x }"),
    ("discarded-value", "let xs = []\nxs.push(1)", "`xs.push(1)`", None),
    ("discarded-value", "var xs = []\nlet f = { ->\n  xs.push(1)\n  2 }", "`xs.push(1)`", None),
    ("discarded-value", "fn f(xs) {\n  if xs { xs.push(1) }\n  return xs\n}", "`xs.push(1)`", None),
    ("discarded-value", "var n = 1\nif n { n == 2 }", "`n == 2`", None),
    ("missing-return", "fn f(n) { if n { 1 } }", "`f`", "fn f(n) { if n { return 1 } }"),
    ("missing-return", "fn f() { cwd() }\nprintln(f())", "`f`", "fn f() { return cwd() }\nprintln(f())"),
    ("lost-assignment", "var n = 0\nfn f() { n += 1 }\nf()", "the function has its own", None),
    ("absent-field", "let d = {name: 1}\nprintln(d.nmae)", "no entry `nmae`", None),
    ("absent-field", "let xs = [1]\nprintln(xs.length)", "no property `length`", None),
    ("number-as-key", "var d = {}\nd[-31] = 2", '"-31"', 'var d = {}\nd["-31"] = 2'),
    ("ignored-argument", "println(floor(1.5, 1))", "takes 1 argument", None),
    ("loop-over-nothing", 'for c in "a" { c }', "string", 'for c in "a".chars() { c }'),
    ("truncated-division", "println(-7 / 2)", "`-7 / 2` is -3", "println(-7 / 2.0)"),
]


@pytest.mark.parametrize(("rule", "source", "words", "fixed"), CASES)
def test_a_finding_and_its_fix(vm: Vm, rule: str, source: str, words: str, fixed: str | None) -> None:
    (finding,) = found(vm, source, Settings(selected=[rule]))
    assert words in finding.message
    assert (apply(source, [finding.fix]) if finding.fix else None) == fixed


#: By rule, what may replace what it finds. `{}` is the last word of its message.
_SAME = {
    "absent-field": "nil",
    "discarded-value": "nil",
    "pointless-length": "0",
    "truncated-division": "({})",
    "never-equal": "{}",
}


@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.fixed_programs))
def test_what_is_said_of_generated_programs_is_true(
    vm: Vm, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNPY_NO_CACHE", "1")
    program = program_of(seed)
    text, end = program.text, len(program.text)
    for one in reversed(found(vm, text, Settings(selected=_SAME))):
        if one.end <= end:
            last = one.message.rsplit(" ", 1)[1]
            text, end = text[: one.start] + _SAME[one.code].format(last) + text[one.end :], one.start
    if not program.session and text != program.text:
        before, after = (outcome(Program(each, program.module), "compile") for each in (program.text, text))
        assert (before.ending, before.output) == (after.ending, after.output)


@pytest.mark.parametrize("statement", ["xs.push(1)", "xs + [1]", "xs == [1]"])
def test_nobody_proposes_let_where_an_assignment_was_meant(vm: Vm, statement: str) -> None:
    source = f"var xs = []\n{statement}\nprintln(xs)"
    assert {one.code for one in found(vm, source)} == {"discarded-value"}
    assert fix_all(source, lambda text: found(vm, text))[0] == source


@pytest.mark.parametrize(
    "source",
    [
        'let x = "a"\nx' + ".trim()" * 1000,
        'let x0 = "a"\n' + "".join(f"let x{i + 1} = x{i}.trim()\n" for i in range(1000)),
        "fn f(x) {\n  if x == 1 { 1 }" + " else if x == 2 { 2 }" * 300 + "\n}",
        "println(" + "1 + " * 5000 + '1 == "")',
    ],
    ids=["links", "names", "branches", "terms"],
)
def test_nothing_is_too_deep(vm: Vm, source: str) -> None:
    assert found(vm, source, Settings(selected=TRAPS)) is not None
