"""Looks into values that nobody has validated. Spec: 03 §8.5."""

from __future__ import annotations

import pytest

from harnpy.check.findings import Findings
from harnpy.check.strict import check_strict
from harnpy.syntax.parser import parse

PROPERTY = "Accessing property on unvalidated value 'x' from `json_parse`"
INDEX = "Subscript access on unvalidated value 'x' from `json_parse`"
PARSED = "let x = json_parse(t)\n"


def _warnings(body: str) -> list[str]:
    findings = Findings()
    for item in parse(f"fn f(t, S) {{\n{body}\n}}").items:
        check_strict(item, findings, {"mcp_call"})
    assert {found.severity for found in findings.found} <= {"warning"}
    return [found.message for found in findings.found]


TOLD = {
    "println(json_parse(t).a)": ["Direct property access on unvalidated `json_parse()` result"],
    "println(http_get(t)[0])": ["Direct subscript access on unvalidated `http_get()` result"],
    "println(llm_call(t, nil, {model: 1}).text)": [
        "Direct property access on unvalidated `llm_call()` result"
    ],
    PARSED + "println(x.a)": [PROPERTY],
    PARSED + 'println(x?["a"])': [INDEX],
    PARSED + "println(x.a + x.b)": [PROPERTY, PROPERTY],
    "let x: dict = json_parse(t)\nprintln(x.a)": [PROPERTY],
    "let x: any = json_parse(t)\nprintln(x.a)": [PROPERTY],
    "let x: dict | nil = json_parse(t)\nprintln(x.a)": [PROPERTY],
    "let y = json_parse(t)\nlet x = y\nprintln(x.a)": [PROPERTY],
    PARSED + "if schema_is(x, S) { println(x.a) } else { println(x.b) }": [PROPERTY],
    PARSED + "if !schema_is(x, S) { println(x.a) }": [PROPERTY],
    PARSED + "if schema_is(x, S) || t { println(x.a) }": [PROPERTY],
    PARSED + "schema_expect(t, S)\nprintln(x.a)": [PROPERTY],
    PARSED + "let y = schema_expect(x, S)\nprintln(x.a)": [PROPERTY],
    PARSED + "if t { schema_expect(x, S) }\nprintln(x.a)": [PROPERTY],
    PARSED + "t.map({ y -> y + x.a })": [PROPERTY],
    PARSED + "for y in x.items { println(x[0]) }": [PROPERTY, INDEX],
    PARSED + "match x.a { 1 -> { x.b } }": [PROPERTY, PROPERTY],
    PARSED + "return\nprintln(x.a)": [],
    PARSED + "println(x)": [],
    PARSED + "println(x.keys())": [],
    PARSED + "x.a = 1": [],
    PARSED + 'println("${x.a}")': [],
    PARSED + "schema_expect(x, S)\nprintln(x.a)": [],
    PARSED + "if schema_is(x, S) && t { println(x.a) }": [],
    PARSED + "if !schema_is(x, S) { return }\nprintln(x.a)": [],
    PARSED + "guard is_type(x, S) else { return }\nprintln(x.a)": [],
    PARSED + "require schema_is(x, S)\nprintln(x.a)": [],
    PARSED + "let y = schema_is(x, S) ? x.a : nil": [],
    PARSED + "t.map({ x -> x.a })": [],
    PARSED + "for x in t { println(x.a) }": [],
    PARSED + "match t { x -> { x.a } }": [],
    PARSED + "parallel each t { x -> x.a }": [],
    PARSED + "try { 1 } catch (x) { x.a }": [],
    PARSED + "fn g() { return x.a }": [],
    "var x = json_parse(t)\nx = {a: 1}\nprintln(x.a)": [],
    "let x: {a: int} = json_parse(t)\nprintln(x.a)": [],
    "let x: User = json_parse(t)\nprintln(x.a)": [],
    "let x: list<dict> = json_parse(t)\nprintln(x[0])": [],
    "let {a} = json_parse(t)\nprintln(a.b)": [],
    "let x = llm_call(t, nil, {schema: S})\nprintln(x.data)": [],
    "println(llm_completion(t, nil, {output_schema: S}).data)": [],
    "let x = mcp_call(t)\nprintln(x.a)": [],
    "println(t.a)": [],
}


@pytest.mark.parametrize("body", TOLD)
def test_warnings(body: str) -> None:
    assert _warnings(body) == TOLD[body]


def test_helps() -> None:
    findings = Findings()
    (item,) = parse("fn f(t) {\nlet x = json_parse(t)\nreturn x.a + json_parse(t).a\n}").items
    check_strict(item, findings)
    assert [found.help for found in findings.found] == [
        "validate with schema_expect(), schema_is() in an if-condition, or add a shape type annotation",
        "assign to a variable and validate with schema_expect() or a type annotation first",
    ]


def test_a_sum_of_many_terms() -> None:
    assert len(_warnings(PARSED + "return " + " + ".join(["x.a"] * 5_000))) == 5_000
