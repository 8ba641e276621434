"""Rules about layout, style and idiom: what they say, and what their fixes do. Spec: 03 §15."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from harnpy.check.findings import Finding
from harnpy.check.lint.rules import lint
from harnpy.check.lint.settings import Settings
from harnpy.syntax.comments import comments_of
from harnpy.syntax.parser import parse


class Case(NamedTuple):
    """A program with one finding of ``rule``; ``fixed`` is None where there is no fix."""

    rule: str
    source: str
    message: str
    fixed: str | None = None
    safe: bool = True


def found(source: str, *rules: str) -> list[Finding]:
    return lint(source, parse(source), "my_file.harn", settings=Settings(selected=rules))


def fixed(source: str, finding: Finding) -> str:
    assert finding.fix is not None
    for edit in sorted(finding.fix.edits, key=lambda edit: -edit.start):
        source = source[: edit.start] + edit.text + source[edit.end :]
    return source


BOOL, NIL, CAST = "comparison-to-bool", "redundant-nil-ternary", "unnecessary-cast"
LITERAL, SELF, EMPTY = "invalid-binary-op-literal", "pointless-comparison", "empty-block"
EAGER, CLONE, ARM = "eager-collection-conversion", "redundant-clone", "duplicate-match-arm"
NAME, DOC, LEGACY, HEADER = (
    "naming-convention",
    "missing-harndoc",
    "legacy-doc-comment",
    "require-file-header",
)
BLANK, COMMA, IMPORTS = "blank-line-between-items", "trailing-comma", "import-order"

_NIL = "ternary nil check over `x` can be replaced with `x ?? <fallback>`"
_FAILS = "operator '+' used with boolean or nil literal — this will cause a runtime error"
_BLANK = "top-level items should be separated by a blank line"
_COMMA = "multiline comma-separated list is missing a trailing comma"
_IMPORTS = "imports are not in canonical order (stdlib first, then alphabetical by path)"
_HEADER = "file is missing a `/** */` header doc block"

CASES = [
    Case(BOOL, "let a = x == true", "comparison to `true` is redundant", "let a = x", False),
    Case(BOOL, "let a = (x < 1) == true", "comparison to `true` is redundant", "let a = (x < 1)"),
    Case(BOOL, "let a = x in y != true", "`!= true` is redundant", "let a = !(x in y)"),
    Case(BOOL, "if (x && y) == false { z() }", "comparison to `false` is redundant", "if !(x && y) { z() }"),
    Case(BOOL, "let a = false != f(x)", "`!= false` is redundant", "let a = f(x)", False),
    Case(BOOL, "let a = x + 1 == false", "comparison to `false` is redundant", "let a = !(x + 1)", False),
    Case(
        BOOL,
        "let a = b &&\n  !c == // yes\n  true",
        "comparison to `true` is redundant",
    ),
    Case(BOOL, "if Done == true { f() }", "comparison to `true` is redundant"),
    Case(SELF, "let a = x == x", "expression is compared to itself with `==`", "let a = true", False),
    Case(SELF, 'let a = "b" != "b"', "expression is compared to itself with `!=`", "let a = false"),
    Case(
        SELF, "let a = x.y[0] == x.y[0]", "expression is compared to itself with `==`", "let a = true", False
    ),
    Case(SELF, "if true { f() }", "if condition is always `true`"),
    Case(SELF, "if x { f() } else if false { g() }", "if condition is always `false`"),
    Case(NIL, "let a = x == nil ? 1 : x", _NIL, "let a = x ?? 1"),
    Case(NIL, "let a = nil != x ? x : f(1) + 2", _NIL, "let a = x ?? (f(1) + 2)"),
    Case(NIL, "let a = (x == nil) ? (b && c) : (x)", _NIL, "let a = x ?? (b && c)"),
    Case(NIL, "let a = x == nil ? 1 /* one */ : x", _NIL),
    Case(NIL, "let a = x.y != nil ? x.y : {}", _NIL.replace("`x", "`x.y"), "let a = x.y ?? ({})"),
    Case(LITERAL, 'let a = "done: " + true', _FAILS, 'let a = "done: ${true}"'),
    Case(LITERAL, r'let a = nil + "\"x\""', _FAILS, r'let a = "${nil}\"x\""'),
    Case(LITERAL, "let a = x + nil", _FAILS),
    Case(LITERAL, 'let a = r"\\" + nil', _FAILS),
    Case(LITERAL, "let a = x % false", _FAILS.replace("+", "%")),
    Case(
        CAST,
        'let a = to_string("${b}")',
        "`to_string` is a no-op here — its argument is already a string",
        'let a = "${b}"',
    ),
    Case(
        CAST,
        "let a = 2 - to_int(-1)",
        "`to_int` is a no-op here — its argument is already an int",
        "let a = 2 - -1",
    ),
    Case(
        CAST,
        "let a = to_float(to_float(b))",
        "`to_float` is a no-op here — its argument is already a float",
        "let a = to_float(b)",
    ),
    Case(
        CAST,
        "let a = to_list([1]).sort()",
        "`to_list` is a no-op here — its argument is already a list",
        "let a = [1].sort()",
    ),
    Case(CAST, "let a = to_int(1).b()", "`to_int` is a no-op here — its argument is already an int"),
    Case(
        EAGER,
        "let a: list<int> = iter(b).map(f)",
        "expression is an iterator; expected list. Add .to_list() to materialize.",
        "let a: list<int> = iter(b).map(f).to_list()",
        False,
    ),
    Case(
        EAGER,
        "fn f(a) -> dict { if a { return (1 to 3).zip(b) }\n return {} }",
        "expression is an iterator; expected dict. Add .to_dict() to materialize.",
        "fn f(a) -> dict { if a { return (1 to 3).zip(b).to_dict() }\n return {} }",
        False,
    ),
    Case(CLONE, "f(1, x.y.clone())", "cloned value is immediately passed by value", "f(1, x.y)", False),
    Case(CLONE, "drop(x.clone())", "cloned value is immediately dropped", "drop(x)", False),
    Case(EMPTY, "if a != nil {\n}\nf()", "if block has an empty body", "f()"),
    Case(EMPTY, "if c {\n for b in 1 to 3 {}\n g()\n}", "for loop has an empty body", "if c {\n g()\n}"),
    Case(EMPTY, "let a = { b ->\n if b {\n }\n}", "if block has an empty body"),
    Case(EMPTY, "if f() {\n}", "if block has an empty body"),
    Case(EMPTY, "for a in b {\n}", "for loop has an empty body"),
    Case(EMPTY, "if a {\n} else { f() }", "if block has an empty body"),
    Case(EMPTY, "if a { f() } else if b {\n}", "if block has an empty body"),
    Case(EMPTY, "while f() {\n}", "while loop has an empty body"),
    Case(EMPTY, "try {\n} catch (e) {\n}", "try block has an empty body"),
    Case(ARM, 'match a { 1 | 2 -> { b } 2 -> { b } 1 | 2 -> { c } }', "duplicate match arm pattern"),
    Case(ARM, "match a { _ if b -> { 1 } _ if c -> { 2 } _ if b -> { 3 } }", "duplicate match arm pattern"),
    Case(NAME, "fn readOrder() { 1 }", "function `readOrder` should use snake_case"),
    Case(NAME, "tool Lookup() { 1 }", "function `Lookup` should use snake_case"),
    Case(NAME, "struct order_line { a: int }", "struct `order_line` should use PascalCase"),
    Case(NAME, "type order = string", "type `order` should use PascalCase"),
    Case(DOC, "// no doc\npub fn f() { 1 }", "public function `f` is missing a `/** */` doc comment"),
    Case(DOC, "/** far away */\n\npub fn f() { 1 }", "public function `f` is missing a `/** */` doc comment"),
    Case(
        LEGACY,
        "/// one\nfn f() { 1 }",
        "`///` doc comment(s) above this item should use `/** */` form",
        "/** one */\nfn f() { 1 }",
    ),
    Case(
        LEGACY,
        "let a = 1 // a\n\n///  one\n///\n/// two\n@test\npipeline p(t) { 1 }",
        "`///` doc comment(s) above this item should use `/** */` form",
        "let a = 1 // a\n\n/**\n *  one\n *\n * two\n */\n@test\npipeline p(t) { 1 }",
    ),
    Case(
        LEGACY,
        "/// one\n// two\nstruct S { a: int }",
        "adjacent `//` / `///` doc comment(s) above this item should use `/** */` form",
        "/**\n * one\n * two\n */\nstruct S { a: int }",
    ),
    Case(
        LEGACY,
        "/// a glob: **/*.harn\nfn f() { 1 }",
        "`///` doc comment(s) above this item should use `/** */` form",
    ),
    Case(HEADER, "// plain\nf()", _HEADER, "/** My file */\n\n// plain\nf()"),
    Case(HEADER, "#!/usr/bin/env harnpy\nf()", _HEADER, "#!/usr/bin/env harnpy\n/** My file */\n\nf()"),
    Case(BLANK, "fn f() {\n 1 }\nfn g() { 2 }", _BLANK, "fn f() {\n 1 }\n\nfn g() { 2 }"),
    Case(
        BLANK,
        'import "std/json" // all of it\n// of a\nlet a = 1',
        _BLANK,
        'import "std/json" // all of it\n\n// of a\nlet a = 1',
    ),
    Case(
        BLANK,
        "fn f() {\n 1 }\n// about g\n\nfn g() { 2 }",
        _BLANK,
        "fn f() {\n 1 }\n\n// about g\n\nfn g() { 2 }",
    ),
    Case(BLANK, "fn f() {\n 1 }; f()", _BLANK),
    Case(COMMA, "f(\n  1,\n  2 // two\n)", _COMMA, "f(\n  1,\n  2, // two\n)"),
    Case(COMMA, "let a = [\n  1, (2)\n]", _COMMA, "let a = [\n  1, (2),\n]"),
    Case(COMMA, "let a = x.f(1,\n  ...b\n)", _COMMA, "let a = x.f(1,\n  ...b,\n)"),
    Case(COMMA, "let a = {\n  b: 1,\n  c: 2\n}", _COMMA, "let a = {\n  b: 1,\n  c: 2,\n}"),
    Case(COMMA, "let a = P {\n  b: 1, c: 2\n}", _COMMA, "let a = P {\n  b: 1, c: 2,\n}"),
    Case(COMMA, "fn f(\n  a,\n  b = (1)\n) { a }", _COMMA, "fn f(\n  a,\n  b = (1),\n) { a }"),
    Case(
        IMPORTS,
        '// top\nimport "b" // the b\n// of json\nimport { x } from "std/json"\nimport "std/json"\nf()',
        _IMPORTS,
        '// top\nimport "std/json"\n// of json\nimport { x } from "std/json"\nimport "b" // the b\nf()',
    ),
    Case(IMPORTS, 'import "b"\nimport "a"', _IMPORTS, 'import "a"\nimport "b"', False),
    Case(IMPORTS, 'import "std/b"; import "std/a"', _IMPORTS),
]  # fmt: skip


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.rule}: {case.source}") for case in CASES])
def test_a_finding_and_its_fix(case: Case) -> None:
    (finding,) = found(case.source, case.rule)
    assert (finding.code, finding.severity, finding.label, finding.message) == (
        case.rule,
        "warning",
        f"lint[{case.rule}]",
        case.message,
    )
    assert (finding.fix and fixed(case.source, finding)) == case.fixed
    if finding.fix is not None and case.fixed is not None:
        assert finding.fix.safe == case.safe
        assert found(case.fixed, case.rule) == []
        assert _words(case.fixed) >= _words(case.source)


def _words(source: str) -> set[str]:
    """The words of the comments; the marks may have changed."""
    text = " ".join(source[comment.start : comment.end] for comment in comments_of(source))
    return set(text.split()) - {"//", "///", "/**", "*/", "*"}


SILENT = [
    "let a = x == y && f() == f() && x?.z == y",
    "let a = x == nil ? y : z\nlet b = f() == nil ? 1 : f()",
    "let a = x + y && true",
    "fn to_string(x) { x }\n\nlet a = to_string(\"b\")",
    "import \"./own\"\n\nlet a = to_string(\"b\")",
    "let to_int = { x -> x }\nto_int(1)",
    "let a: list<int> = iter(b).to_list()\nlet c: list = 1 to 3",
    "fn f() -> list { let g = { a -> return iter(a) }\n return g }",
    "impl P { fn clone(self) { self } }\n\nf(p.clone())",
    "if a {\n  // nothing to do\n}\ntry { f() } catch (e) {\n}",
    "match a { 1 -> { b } 2 -> { b } x if x > 1 -> { b } x -> { b } }",
    "fn _read_2() { 1 }\n\nstruct _Point3D { a: int }\n\ninterface HTTP { fn getIt() }\n\nenum E { a, b }",
    "/** doc */\n// harnpy: allow unused-function\npub fn f() { 1 }",
    "/** doc */\n// for maintainers\nfn f() { 1 }",
    "// harnpy: allow unused-function\nfn f() { 1 }",
    "// ----- tools -----\nfn f() { 1 }",
    "// for those who read the file\nfn f() { 1 }",
    "// about what follows\n\nfn f() { 1 }",
    "let a = 1\nlet b = 2\nf()",
    'import "std/a"\nimport "std/b"\nimport { x } from "std/b"\nimport "a"',
    'let a = 1\n\nimport "b"\nimport "a"',
    "f(1, { x ->\n  x\n})\nlet a = [1,\n  2]",
    "let a = [\n  1\n  2\n]\nlet b = [\n  1\n]",
    "let a = {\n  b: 1,\n  c: 2,\n}",
    "fn f(\n  a,\n  ...b\n) { a }",
    "enum E {\n  A,\n  B\n}",
    'let a = "${f(1,\n 2\n)} ${fn(x, y) { x }}"',
]  # fmt: skip


@pytest.mark.parametrize("source", SILENT)
def test_silence(source: str) -> None:
    rules = {case.rule for case in CASES} - {HEADER}
    assert [(one.code, one.message) for one in found(source, *rules)] == []


def test_a_header_is_enough() -> None:
    assert found("#!/usr/bin/env harnpy\n\n/** Says hello. */\n\nf()", HEADER) == []


def test_the_first_of_two_equal_arms_is_shown() -> None:
    source = "match a { 1 -> { b } 1 -> { c } }"
    (finding,) = found(source, ARM)
    (place,) = finding.places
    assert (place.start, finding.start) == (source.index("1"), source.rindex("1"))


@pytest.mark.parametrize(
    ("name", "help"),
    [("someHTTPName", "some_http_name"), ("readUTF8Text", "read_utf8_text"), ("Über", "über")],
)
def test_a_name_is_proposed(name: str, help: str) -> None:
    (finding,) = found(f"fn {name}() {{ 1 }}", NAME)
    assert finding.help == f"rename it to `{help}`"
