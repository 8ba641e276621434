"""Arms, patterns that can't be right, and what a match leaves out. Spec: 03 §6, §8.2, §10.1."""

from __future__ import annotations

import pytest

from harnpy.check.exhaustiveness import check_coverage, check_exhaustive
from harnpy.check.findings import Findings
from harnpy.check.narrowing import arm_facts, check_arm
from harnpy.check.types.type_nodes import shown
from harnpy.syntax import ast
from tests.check.types.written import expression, types, written

DECLARED = """
enum Color { Red, Green, Blue(depth: int) }
enum Option<T> { Some(value: T), None }
type Shape = {kind: "sq", side: int} | {kind: "ci", radius: int} | {kind: "pt"}
type Mode = "on" | "off" | 3
type Maybe = int | nil
type Id = int
type Hue = Color
struct Point { x: int }
"""
SQ, CI, PT = '{kind: "sq", side: int}', '{kind: "ci", radius: int}', '{kind: "pt"}'

#: Of x, what is matched, the patterns of an arm, and what x is in it.
ARMS = """
int | string        ; x      ; 1          ; int
int | string | nil  ; x      ; 1 | nil    ; int | nil
int | string | nil  ; x      ; nil | 1    ; nil | int
int | string        ; x      ; true       ; =
int | string        ; x      ; 1 | _      ; =
int | string        ; x      ; other      ; =
int                 ; x      ; 1          ; =
Mode                ; x      ; "on"       ; "on"
Mode                ; x      ; 3 | "off"  ; 3 | "off"
"a" | string        ; x      ; "a"        ; "a"
"a" | string        ; x      ; "b"        ; string
Maybe               ; x      ; nil        ; nil
float | nil         ; x      ; -1.5       ; float
Shape               ; x.kind ; "sq"       ; SQ
Shape               ; x.kind ; "ci" | "pt" ; CI | PT
Shape               ; x.kind ; "ci" | _   ; =
Shape               ; x.side ; 1          ; =
any                 ; x      ; 1          ; =
"""


def _match(value: str, arms: str) -> ast.Match:
    blocks = "\n".join(f"{arm} -> {{ 0 }}" for arm in arms.split(" ;; ")) if arms else ""
    node = expression(f"match {value} {{\n{blocks}\n}}")
    assert isinstance(node, ast.Match)
    return node


@pytest.mark.parametrize("row", ARMS.strip().splitlines())
def test_what_holds_in_an_arm(row: str) -> None:
    type, value, patterns, expected = (part.strip() for part in row.split(";"))
    match = _match(value, patterns)
    (facts,) = arm_facts(match, {"x": written(type)}.get, types(DECLARED))
    found = shown(facts.types["x"]) if facts else "="
    assert found == expected.replace("SQ", SQ).replace("CI", CI).replace("PT", PT)


#: The type of what is matched, the patterns, and the kind of the literal that can't be one.
MISMATCHES = """
int            ; "a"      ; string
int            ; 1.5      ; -
float          ; 1        ; -
string         ; -1       ; int
string         ; 1.5      ; float
bool           ; 1        ; int
int | nil      ; true     ; bool
int | nil      ; nil      ; -
string         ; nil      ; -
Mode           ; 4        ; -
"a" | "b"      ; 4        ; int
"a" | "b"      ; "c"      ; -
list<int>      ; 1        ; int
{a: int}       ; "a"      ; string
Id             ; "a"      ; string
Color          ; "Red"    ; -
Point          ; 1        ; -
any            ; 1        ; -
int | any      ; "a"      ; -
unknown        ; 1        ; -
never          ; 1        ; -
T              ; 1        ; -
int            ; other    ; -
int            ; [1]      ; -
"""


@pytest.mark.parametrize("row", MISMATCHES.strip().splitlines())
def test_literals_of_a_kind_that_the_value_is_never_of(row: str) -> None:
    type, pattern, kind = (part.strip() for part in row.split(";"))
    findings = Findings()
    check_arm(_match("x", pattern).arms[0], written(type), types(DECLARED), findings)
    text = f"Match pattern type mismatch: matching {type} against {kind} literal"
    assert [found.message for found in findings.found] == ([] if kind == "-" else [text])


def test_a_value_without_a_type_is_matched_by_anything() -> None:
    findings = Findings()
    check_arm(_match("x", "1").arms[0], None, types(), findings)
    assert not findings.found


@pytest.mark.parametrize(
    ("pattern", "faults"),
    [('1 | "a" | nil | _ | -2', 0), ("1 | other", 1), ("[1] | {a: 1}", 2), ("Color.Red | 1", 1)],
)
def test_alternatives_are_literals(pattern: str, faults: int) -> None:
    findings = Findings()
    check_arm(_match("x", pattern).arms[0], None, types(DECLARED), findings)
    assert [found.code for found in findings.found] == ["or-pattern"] * faults


#: Of x, what is matched, the patterns of the arms, and what is missing.
MISSING = """
Color ; x ; Color.Red ; enum Color: missing variants "Green", "Blue"
Color ; x.variant ; "Red" ;; "Blue" ; enum Color: missing variants "Green"
Hue ; x ; Color.Red ;; "Blue" ; enum Color: missing variants "Green"
Color ; x ; ; enum Color: missing variants "Red", "Green", "Blue"
Color ; x ; Color.Red ;; Color.Green ;; Color.Blue ; -
Color ; x.variant ; "Red" | "Green" | "Blue" ; -
Color ; x ; Color.Red ;; Color.Blue(d) ; -
Color ; x ; Color.Red ;; other ; -
Color ; x ; Color.Red if y ; enum Color: missing variants "Green", "Blue"
Color ; x ; Other.Red ; -
Option ; x ; "Some" ; -
Option<int> ; x ; "Some" ; -
Result<int, string> ; x.variant ; "Ok" ; -
Shape ; x.kind ; "sq" ; tagged shape union: missing variants "ci", "pt"
Shape ; x.kind ; "sq" ;; "ci" | "pt" ; -
Shape ; x.kind ; "sq" ;; _ ; -
Shape ; x.side ; 1 ; -
{t: "a"} | {t: 3} ; x.t ; "b" ; tagged shape union: missing variants "a", 3
Shape ; x ; 1 ; -
Mode ; x ; "on" ; literal union: missing "off", 3
Mode ; x ; "on" | "off" ;; 3 ; -
Mode ; x ; _ ; -
"a" | "b" ; x ; r"a" ; literal union: missing "b"
"a" | nil ; x ; nil ; -
int | string | nil ; x ; 42 ; union type: missing string, nil
int | string | nil ; x ; 42 ;; "s" ;; nil ; -
int | string ; x ; 42 ;; [1] ; -
int | bool ; x ; true ; union type: missing int
int | Point ; x ; 1 ; union type: missing Point
Id | nil ; x ; nil ; union type: missing Id
Id | nil ; x ; nil ;; 1 ; -
Maybe | string ; x ; "s" ; union type: missing int, nil
int | list<int> ; x ; 1 ; -
int | any ; x ; 1 ; -
int | T ; x ; 1 ; -
int ; x ; 1 ; -
unknown ; x ; 1 ; -
"""


@pytest.mark.parametrize("row", MISSING.strip().splitlines())
def test_what_a_match_leaves_out(row: str) -> None:
    type, value, arms, expected = (part.strip() for part in row.replace(" ;; ", "\0").split(";"))
    match, findings = _match(value, arms.replace("\0", " ;; ")), Findings()
    member = isinstance(match.value, ast.Member)
    seen = (None, written(type)) if member else (written(type), None)
    check_exhaustive(match, *seen, types(DECLARED), {"T"}, findings)
    messages = [found.message for found in findings.found]
    assert messages == ([] if expected == "-" else [f"Non-exhaustive match on {expected}"])


def test_kinds_of_an_unknown_that_nobody_thought_of() -> None:
    findings = Findings()
    node = expression("1")
    kinds = {"int", "string", "float", "bool", "nil", "list", "dict", "closure", "bytes"}
    unknowns = [("a", {"int", "nil"}), ("b", set()), ("c", kinds)]
    check_coverage("throw", node, unknowns, findings)
    assert [found.message for found in findings.found] == [
        "`throw` reached but `a: unknown` was not fully narrowed — uncovered concrete type(s): "
        "string, float, bool, list, dict, closure, bytes"
    ]
