"""Names that nothing declares: where that is sure, and what was meant. Spec: 02 §7, §9.3; 03 §9, §16."""

from __future__ import annotations

from typing import ClassVar

import pytest

from harnpy.check.checker import check_item, check_program
from harnpy.check.environment import Environment, Surface
from harnpy.syntax.parser import parse
from tests.check.programs import findings, knowledge, said

UNDEFINED = {
    "println(zqzqzq)": "1 error undefined-name: Undefined variable: zqzqzq",
    "let total = 1\nprintln(totl)": (
        "2 error undefined-name: Undefined variable: totl (did you mean `total`?)"
    ),
    "println(prompt)": (
        "1 error undefined-name: Undefined variable: prompt "
        "(`harnpy serve` gives it to a pipeline that names it: `pipeline main(prompt)`)"
    ),
    "let prompts = 1\nprintln(prompt)": (
        "2 error undefined-name: Undefined variable: prompt (did you mean `prompts`?)"
    ),
    "pipeline main(prompt) { println([prompt, mcp_servers]) }": (
        "1 error undefined-name: Undefined variable: mcp_servers "
        "(`harnpy acp` gives it to a pipeline that names it: `pipeline main(mcp_servers)`)"
    ),
    "println(None)": "1 error undefined-name: Undefined variable: None (did you mean `nil`?)",
    'println("a ${zqzqzq} b")': "1 error undefined-name: Undefined variable: zqzqzq",
    "println([1].map(zqzqzq))": "1 error undefined-name: Undefined variable: zqzqzq",
    "let x = [1] |> zqzqzq": "1 error undefined-name: Undefined variable: zqzqzq",
    "fn f() { return zqzqzq }": "1 error undefined-name: Undefined variable: zqzqzq",
    "zqzqzq = 1": ("1 error undefined-name: Undefined variable: zqzqzq (did you mean `var zqzqzq = …`?)"),
    'zqzqzq.name = "Ada"': (
        "1 error undefined-name: Undefined variable: zqzqzq (did you mean `var zqzqzq = …`?)"
    ),
    "fn n0() { n1 = 1 }": "1 error undefined-name: Undefined variable: n1 (did you mean `var n1 = …`?)",
    "let xs = [1, 2]\nprintln(xs.map({ x -> x + zqzqzq }))": (
        "2 error undefined-name: Undefined variable: zqzqzq"
    ),
    # Declared, but out of reach.
    "if true { let inner = 1 }\nprintln(inner)": ("2 error undefined-name: Undefined variable: inner"),
    "fn f() { println(late); let late = 1 }": "1 error undefined-name: Undefined variable: late",
    "println(later)\nlet later = 1": "1 error undefined-name: Undefined variable: later",
    "let a = b0\nlet b0 = 1\npipeline default() { println(a) }": (
        "1 error undefined-name: Undefined variable: b0"
    ),
    "fn f() { let local_of_f = 1 }\nfn g() { return local_of_f }": (
        "2 error undefined-name: Undefined variable: local_of_f"
    ),
}
UNSURE = [
    # Found by the time the function is called, or perhaps given by the host.
    "fn f() { return later }\nlet later = { -> 1 }",
    "fn f() { let g = { -> later }; let later = 1; return g }",
    "fn f() { return later }\npipeline default() { f() }\nlet later = 1",
    "let r = { -> helper() }\nfn helper() { return r }\npipeline default() { r() }",
    "retry 3 { let kept = 1; println(kept) }\nprintln(kept)",
    "pipeline a(task) { }\nfn f() { return task }",
    # A handler, which the loop around it protects.
    'let reg = tool_define(tool_registry(), "t", "d", {parameters: {}, handler: { a -> zqzqzq }})',
    "_ = 1",
    "let _ = 1",
]


@pytest.mark.parametrize("program", UNDEFINED)
def test_names_that_mean_nothing(program: str) -> None:
    found = said(program)
    assert len(found) == 1
    assert found[0].startswith(UNDEFINED[program])


@pytest.mark.parametrize("program", UNSURE)
def test_names_that_may_mean_something(program: str) -> None:
    assert said(program) == []


def test_a_declaration_out_of_reach_is_shown() -> None:
    program = "if true { let inner = 1 }\nprintln(inner)"
    (place,) = findings(program)[0].places
    assert program[place.start : place.end] == "inner"
    assert place.message == "declared here"


def test_a_call_in_a_pattern_declares_nothing() -> None:
    (found,) = findings("match Ok(1) { Ok(value) -> { println(1) } }")
    assert found.message.startswith("Undefined variable: value")
    assert found.places == ()


class Incomplete:
    """Imports of which one was not found."""

    complete = whole = False
    functions = frozenset(["imported"])
    names = frozenset(["Some"])
    types: ClassVar[dict[str, object]] = {}

    def bound_by(self, node: object) -> tuple[str, ...]:
        return ()

    def missing(self, node: object) -> None:
        return None


def test_with_an_import_that_was_not_found_any_name_may_exist() -> None:
    source = 'import "lib"\nprintln(zqzqzq, other(1), P {x: 1}, 1 + nil)'
    found = check_program(parse(source), source, knowledge(), Incomplete())  # type: ignore[arg-type]
    assert [each.code for each in found] == ["operand-type"]


def test_an_item_is_checked_by_itself() -> None:
    source = 'fn f(n: int) { return n }\nf("a")\nf(true)\nprintln(f)'
    program = parse(source)
    environment = Environment(program.items, knowledge(), None, source)
    each = [[found.message for found in check_item(item, environment)] for item in program.items]
    assert each == [
        [],
        ["Argument 1 ('n'): expected int, got string"],
        ["Argument 1 ('n'): expected int, got bool"],
        [],
    ]


def surface(source: str) -> Surface:
    return Surface(parse(source).items[0])


def test_an_edit_inside_a_function_changes_nothing_for_others() -> None:
    before = surface("fn f(n: int) -> int { let a = 1; return a }")
    assert surface("\n\nfn f(n: int) -> int { let b = 2; return b + 1 }") == before
    assert surface("fn f(n: string) -> int { let a = 1; return a }") != before
    assert surface("fn f(n: int) -> int { fn g() { }; return 1 }") != before
    assert surface("@deprecated\nfn f(n: int) -> int { return 1 }") != before
    assert surface("let f = 1") != surface("var f = 1")
    assert surface("struct P { x: int }") != surface("struct P { x: string }")
    assert surface("pipeline p() { let a = 1 }") != surface("pipeline p() { var a = 1 }")
