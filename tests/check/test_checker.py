"""`Checker`: checks as a library, and from edit to edit. Spec: 03 §1."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.checking import Checker
from tests.support import ROOT

PROGRAMS = sorted((ROOT / "examples").glob("*.harn")) + sorted(
    (ROOT / "conformance" / "check").rglob("*.harn")
)


def said(checker: Checker, sources: dict[str, str], of: str = "main.harn") -> list[tuple[str, int, int, str]]:
    """Code, line, column and message of everything that is said of one of the sources."""
    found = checker.check(sources)[of]
    return [(each.code or "", each.span.line, each.span.column, each.message) for each in found if each.span]


def test_texts_are_checked_without_files() -> None:
    found = said(Checker(), {"main.harn": "let x = 1\n\nprintn(x)\n"})
    hint = "call target `printn` is not defined or imported — did you mean `print`?"
    assert found == [("undefined-call", 3, 1, hint)]


def test_imports_are_looked_for_among_the_texts() -> None:
    main = 'import "lib/shapes"\nlet s: Shape = {side: "x"}\nprintln(area(s))\n'
    misspelt = 'import { aera } from "lib/shapes"\n' + main
    lib = "type Shape = {side: int}\nfn area(s) { return s.side }\n"
    checker = Checker()
    assert [code for code, *_ in said(checker, {"main.harn": misspelt, "lib/shapes.harn": lib})] == [
        "unknown-import",
        "assignment-type",
    ]
    fixed = {"main.harn": main, "lib/shapes.harn": lib.replace("int", "string")}
    assert said(checker, fixed) == []
    assert said(checker, {"main.harn": "gone()"}) == said(Checker(), {"main.harn": "gone()"})


def test_of_an_import_that_is_no_program_nothing_is_said() -> None:
    """What it would bring isn't known, whether it is imported itself or passed on by another module."""
    main = 'import { add, Money } from "lib/a"\nlet m: Money = {cents: 1}\nprintln(m, tax)\n'
    broken = {"main.harn": main, "lib/a.harn": "pub let x = 1\n"}
    passed_on = {"main.harn": main, "lib/a.harn": 'pub import "b"\n', "lib/b.harn": "fn add(a {\n"}
    gone = {"main.harn": main, "lib/a.harn": 'pub import "gone"\n'}
    assert said(Checker(), broken) == said(Checker(), passed_on) == said(Checker(), gone) == []
    whole = {"main.harn": main, "lib/a.harn": "type Money = {cents: int}\nfn add(a, b) { return a }\n"}
    found = said(Checker(), whole)
    # Only functions can be listed: the run refuses the type, too.
    assert [each[0] for each in found] == ["unknown-import", "undefined-name"]
    assert "'Money' is not defined" in found[0][3]


def test_imports_on_disk_are_found_when_asked(tmp_path: Path) -> None:
    (tmp_path / "lib.harn").write_text("fn area(n) { return n }\n")
    path = str(tmp_path / "main.harn")
    source = 'import { area } from "lib"\nprintln(aera(1))\n'
    assert [code for code, *_ in said(Checker(disk=True), {path: source}, path)] == ["undefined-call"]
    assert said(Checker(), {path: source}, path) == []


def test_an_embedders_builtins_are_known() -> None:
    vm = Vm()
    vm.register("word_count(text: string) -> int", lambda text: len(text.split()))
    vm.set_global("limit", 3)
    source = 'println(word_count("a b") < limit)\n'
    assert said(Checker(vm=vm), {"main.harn": source}) == []
    assert [code for code, *_ in said(Checker(), {"main.harn": source})] == [
        "undefined-call",
        "undefined-name",
    ]


def test_a_text_that_is_no_program_says_so_and_comes_back() -> None:
    checker = Checker()
    good = "fn f(a: int) { return a }\nf(1)\n"
    assert said(checker, {"main.harn": good}) == []
    assert said(checker, {"main.harn": good + "let x = (1"})[0][0] == "unclosed-bracket"
    assert said(checker, {"main.harn": "break\ncontinue\n"})[0][0] == "break-outside-loop"
    assert said(checker, {"main.harn": good}) == []


def test_an_edit_of_a_signature_shows_where_it_is_called() -> None:
    checker = Checker()
    source = "fn f(a: int) { return a }\nfn g() { return 1 }\nf(1)\n"
    assert said(checker, {"main.harn": source}) == []
    assert [found[:3] for found in said(checker, {"main.harn": source.replace("int", "string")})] == [
        ("argument-type", 3, 3)
    ]


@pytest.mark.parametrize(
    "after",
    [
        "fn f() { return late }\n\nfn g() { let late = 1 + 1 }\n",
        "fn f() { return late }\n\nfn g() { println(0)\n  let late = 1 }\n",
        "fn f() { return 1 + late }\n\nfn g() { let late = 1 }\n",
        "fn f() { return late }\n\nfn g() { let other = 1 }\n",
    ],
)
def test_a_place_in_another_item_moves_with_it(after: str) -> None:
    checker = Checker()
    shown(checker, "fn f() { return late }\n\nfn g() { let late = 1 }\n")
    assert shown(checker, after) == shown(Checker(), after)


@pytest.mark.parametrize("declared", ["fn f(\n  a: int) { return a }", "fn f(a: int) { return a + 1 }"])
def test_a_place_in_a_signature_moves_with_it(declared: str) -> None:
    between = "fn g() { return 1 }\nfn h() { return 2 }\nfn i() { return 3 }"
    checker = Checker()
    shown(checker, f'let a = 1\n{between}\nfn f(a: int) {{ return a }}\n{between}\nf("x")\n')
    for call in ('f("x")', 'f("other")'):
        edited = f"let a = 1\n{between}\n{declared}\n{between}\n{call}\n"
        assert shown(checker, edited) == shown(Checker(), edited)


def test_a_long_sum_is_checked_and_edited_without_recursion() -> None:
    checker = Checker()
    source = f"let a = 1\nlet sum = {' + '.join(['a'] * 20_000)}\nlet b = 2\nlet c = 3\n"
    assert said(checker, {"main.harn": source}) == []
    # The neighbours of what is edited are read again and compared, too.
    assert said(checker, {"main.harn": source.replace("b = 2", "b = 4")}) == []


def test_what_a_body_shows_outside_shows_after_an_edit() -> None:
    """A body that yields makes a generator of its function; a place that is shown moves or goes."""
    checker = Checker()
    source = "fn g() {\n  let inner = 1\n  return inner\n}\n\nlet x: int = g()\nprintln(inner, x)\n"
    steps = [
        ("return", "yield"),
        ("  let inner", "\n    let inner"),
        ("inner = 1", "outer = 1"),
        ("let x", 'llm_call("a", nil, {provider: "nobody"})\nlet x'),
        ("  yield", '  llm_mock({text: "b"})\n  yield'),
    ]
    codes = []
    for old, new in steps:
        source = source.replace(old, new)
        assert shown(checker, source) == shown(Checker(), source)
        codes.append({code for code, *_ in said(checker, {"main.harn": source})})
    assert ["assignment-type" in each for each in codes] == [True] * 5
    assert ["unknown-provider" in each for each in codes] == [False, False, False, True, False]


@pytest.mark.parametrize("seed", range(3))
def test_edit_for_edit_it_says_what_a_fresh_check_says(seed: int) -> None:
    """Also where findings, their related places and the items around them have moved."""
    dice = random.Random(seed)
    checker = Checker()
    for _ in range(6):
        source = dice.choice(PROGRAMS).read_text(encoding="utf-8")
        for _ in range(5):
            assert shown(checker, source) == shown(Checker(), source)
            lines = source.split("\n")
            at = dice.randrange(len(lines))
            change = dice.choice(["insert", "delete", "double", "rename", "number"])
            if change == "insert":
                lines.insert(
                    at, dice.choice(["", "let fresh = undefined_thing", "fn inner(a: int) { return a }"])
                )
            elif change == "delete":
                del lines[at]
            elif change == "double":
                lines.insert(at, lines[at])
            elif change == "rename":
                lines[at] = lines[at].replace("let ", "var ").replace("(", "(nil, ", 1)
            else:
                lines[at] += " + 1"
            source = "\n".join(lines)


def shown(checker: Checker, source: str) -> list[tuple[object, ...]]:
    found = checker.check({"main.harn": source})["main.harn"]
    return [
        (each.message, each.span, [(place.message, place.span) for place in each.related]) for each in found
    ]
