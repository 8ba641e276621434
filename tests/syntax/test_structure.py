"""Structure errors. Spec: 01 §10, 03 §1."""

from __future__ import annotations

import pytest

from harnpy.syntax import ast
from harnpy.syntax.parser import parse
from harnpy.syntax.structure import check_structure

_LOOP = "outside of loop"
_TRY = "try* requires an enclosing function (fn, tool, or pipeline) so the rethrow has a target"
_SPREAD = "spread (...) can only be used inside list literals, dict literals, or function call arguments"


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [
        ("break", 1, f"break {_LOOP}"),
        ("\ncontinue", 2, f"continue {_LOOP}"),
        ("for x in y {\n xs.map({ x -> break })\n}", 2, f"break {_LOOP}"),
        ("while a {\n fn f() { continue }\n}", 2, f"continue {_LOOP}"),
        ("while a { parallel each b { c -> break } }", 1, f"break {_LOOP}"),
        ("try* f()", 1, _TRY),
        ("let a = 99999999999999999999w", 1, "duration literal is too large"),
        ("let a = ...b", 1, _SPREAD),
        ("@acp_tool\nstruct S {}", 1, "@acp_tool can only be applied to function declarations"),
        ("@acp_skill\ntool t() {}", 1, "@acp_skill can only be applied to function declarations"),
        ("@acp_tool(a: b)\nfn f() {}", 1, "attribute argument must be a literal value"),
    ],
)
def test_violations(source: str, line: int, text: str) -> None:
    fault = check_structure(parse(source), source)[0]
    assert (fault.line, fault.text) == (line, text)
    assert fault.message == f"Compile error at line {line}: {text}"
    head, _, place = fault.render().partition("\n")
    assert head == f"error: compile error: {fault.message}"
    assert place.startswith(f"  --> <script>:{line}:")


@pytest.mark.parametrize(
    "source",
    [
        "for x in y { if x { break } else { try { continue } catch (e) { break } } }",
        "while a { match b { c -> { break } } }",
        "fn f() { try* g() }",
        "tool t() { try* g() }",
        "pipeline p() { for x in y { try* x } }",
        "f(...a); [...b]; {...c}; d.e(...f); G {h: 1, ...i}",
        "match a { 1 | 2 -> { } }",
        "@acp_tool(a: 1)\nfn f() {}",
        "a" + " + a" * 20_000,
    ],
)
def test_sound_programs(source: str) -> None:
    assert check_structure(parse(source), source) == []


def test_every_violation_is_found_in_source_order() -> None:
    source = "break\ntry* f()\ncontinue"
    assert [fault.line for fault in check_structure(parse(source), source)] == [1, 2, 3]


def test_an_or_pattern_stands_in_a_match_arm_only() -> None:
    name = ast.Name(0, 0, "a")
    program = ast.Program(0, 0, (ast.Binary(0, 0, "|", name, name),))
    (fault,) = check_structure(program, "a | a")
    assert fault.text == "or-pattern (|) can only appear as a match arm pattern"
