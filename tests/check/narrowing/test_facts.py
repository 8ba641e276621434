"""What conditions say of variables, row by row. Spec: 03 §6."""

from __future__ import annotations

import pytest

from harnpy.check.narrowing import NO_FACTS, Facts, after_if, exits, expected_by, facts_of
from harnpy.check.types.schemas import schema
from harnpy.check.types.type_nodes import INT, shown
from harnpy.syntax import ast
from harnpy.syntax.parser import parse
from tests.check.types.written import expression, types, written

DECLARED = """
type Shape = {kind: "sq", side: int} | {kind: "ci", radius: int} | {kind: "pt"}
type Box<T> = {tag: T, value: int}
type Tags = "a" | "b"
type Maybe = int | nil
type User = {name: string, mail?: string}
"""
SQ, CI, PT = '{kind: "sq", side: int}', '{kind: "ci", radius: int}', '{kind: "pt"}'
USER = "{name: string, mail?: string}"
#: Of x, a condition, and what x is on its true side and on its false side; "=" where it stays as written.
ROWS = """
int | nil           ; x != nil                 ; int            ; nil
int | nil           ; x == nil                 ; nil            ; int
int | nil           ; nil == x                 ; nil            ; int
int | string | nil  ; x != nil                 ; int | string   ; nil
nil                 ; x == nil                 ; =              ; never
int                 ; x == nil                 ; =              ; =
unknown             ; x == nil                 ; =              ; =
any                 ; x == nil                 ; =              ; =
Maybe               ; x != nil                 ; int            ; nil
Maybe | string      ; x != nil                 ; int | string   ; nil
int | nil           ; x                        ; int            ; nil
int | string        ; x                        ; =              ; =
nil                 ; x                        ; =              ; =
int | string | nil  ; type_of(x) == "int"      ; int            ; string | nil
int | string | nil  ; "int" == type_of(x)      ; int            ; string | nil
int | string | nil  ; type_of(x) != "int"      ; string | nil   ; int
int | string        ; type_of(x) == "bool"     ; =              ; =
int | string        ; type_of(x) == "integer"  ; =              ; =
list<int> | nil     ; type_of(x) == "list"     ; list<int>      ; nil
User | nil          ; type_of(x) == "dict"     ; User           ; =
"a" | "b" | int     ; type_of(x) == "string"   ; "a" | "b"      ; int
int                 ; type_of(x) == "int"      ; =              ; never
int                 ; type_of(x) == "string"   ; =              ; =
unknown             ; type_of(x) == "string"   ; string         ; =
Shape               ; x.kind == "sq"           ; SQ             ; CI | PT
Shape               ; x.kind != "sq"           ; CI | PT        ; SQ
Shape               ; "sq" == x.kind           ; SQ             ; CI | PT
Shape               ; x.kind == "none"         ; never          ; =
Shape               ; x.side == 1              ; =              ; =
Box<1> | Box<2>     ; x.tag == 2               ; {tag: 2, value: int} ; {tag: 1, value: int}
Box<Tags>           ; x.tag == "a"             ; {tag: "a", value: int} ; {tag: "b", value: int}
{t: -1} | {t: 1}    ; x.t == -1                ; {t: -1}        ; {t: 1}
{a: int, b?: int}   ; x.has("b")               ; {a: int, b: int} ; =
{a: int, b?: int}   ; x.has("a")               ; =              ; =
User                ; !x.has("mail")           ; =              ; {name: string, mail: string}
unknown             ; schema_is(x, User)       ; =              ; =
dict                ; schema_is(x, User)       ; USER           ; =
User | nil          ; schema_is(x, User)       ; User           ; nil
dict | string       ; is_type(x, schema_of(User)) ; USER        ; string
list | int          ; schema_is(x, {type: "list", items: {type: "int"}}) ; list<int> ; int
int | string        ; schema_is(x, {type: "int"}) ; int         ; string
unknown             ; schema_is(x, {type: "int"}) ; int         ; =
int | nil           ; !(x == nil)              ; int            ; nil
int | string | nil  ; x != nil && type_of(x) != "int" ; string  ; =
int | string | nil  ; x == nil || type_of(x) == "int" ; =       ; string
int | string | nil  ; !(x == nil || !(type_of(x) == "int")) ; int ; =
int | nil           ; x == y                   ; =              ; =
int | nil           ; x.a != nil               ; =              ; =
"""


def _shown(facts: Facts) -> str:
    return shown(facts.types["x"]) if "x" in facts.types else "="


def sides(type: str, cond: str, declarations: str = "") -> tuple[Facts, Facts]:
    """The facts of a condition about `x`, which is of a type."""
    known = types(declarations)
    variables = {"x": written(type)}
    return facts_of(
        expression(cond), variables.get, lambda node: schema(known, node, lambda name: None), known
    )


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_both_sides(row: str) -> None:
    type, cond, *expected = (part.strip() for part in row.split(";"))
    wanted = [
        text.replace("SQ", SQ).replace("CI", CI).replace("PT", PT).replace("USER", USER) for text in expected
    ]
    assert [_shown(side) for side in sides(type, cond, DECLARED)] == wanted


def test_kinds_that_an_unknown_is_not() -> None:
    true, false = sides("unknown", 'type_of(x) == "int" || type_of(x) == "nil"')
    assert (true.types, true.ruled_out) == ({}, {})
    assert (false.types, false.ruled_out) == ({}, {"x": frozenset(["int", "nil"])})


def test_two_variables() -> None:
    known = {"a": written("int | nil"), "b": written("string | nil")}
    true, _ = facts_of(expression("a != nil && b"), known.get, lambda node: None, types())
    assert {name: shown(type) for name, type in true.types.items()} == {"a": "int", "b": "string"}


def test_a_condition_of_many_terms() -> None:
    true, false = sides("int | nil", " && ".join(["x != nil"] * 20_000))
    assert _shown(true) == "int"
    assert not false


def test_what_holds_after_an_if() -> None:
    yes, no = Facts(), Facts()
    assert after_if((yes, no), True, False) is no
    assert after_if((yes, no), False, True) is yes
    assert after_if((yes, no), True, True) is after_if((yes, no), False, False) is NO_FACTS


def test_what_a_statement_expects() -> None:
    statement = expression("schema_expect(x, {})")
    assert expected_by(statement, lambda node: INT).types == {"x": INT}
    assert not expected_by(statement, lambda node: None)


EXITING = ["return 1", "throw 1", "println(1)\nreturn", "if a { return } else { throw 1 }"]
EXITING += ["if a { return } else if b { throw 1 } else { return }"]
STAYING = ["", "println(1)", "if a { return }", "for x in y { return }", "while true { return }"]
STAYING += ["try { return }", "match a { _ -> { return } }", "guard a else { return }"]
STAYING += ["if a { return } else if b { throw 1 }", "if a { return } else { 1 }", "let f = { -> return }"]


@pytest.mark.parametrize("body", EXITING + STAYING)
def test_exits(body: str) -> None:
    (function,) = parse(f"fn f(a, b, y) {{\n{body}\n}}").items
    assert isinstance(function, ast.FnDecl)
    assert exits(function.body) == (body in EXITING)
