"""Where names, their types and implementations are declared, and where they are used. Spec: 12 §3.4."""

from __future__ import annotations

from typing import Any

import pytest
from lsprotocol import types as lsp

from harnpy.lsp import navigation
from harnpy.lsp.diagnostics import diagnostics
from harnpy.lsp.text import Text
from tests.lsp.conftest import Open, Opened

_TYPES = "struct Point { x: int, at: Place }\nstruct Place { name: string }\nenum Color { Red }\n"
_MOVES = "interface Moves { fn up(self) -> int }\n"
_IMPLS = "struct A { x: int }\nimpl A { fn up(self) -> int { return 1 } }\nstruct B { x: int }\nimpl B { fn down(self) {} }\n"


def lines(here: Opened, found: list[lsp.Location] | lsp.Location | None) -> list[str]:
    """Return the lines that locations are in, each with what is there in brackets."""
    places = [] if found is None else found if isinstance(found, list) else [found]
    shown = []
    for place in places:
        document = here.workspace.at(place.uri)
        assert document is not None
        start, end = document.text.span(place.range)
        line = document.source[document.source.rfind("\n", 0, start) + 1 :].partition("\n")[0]
        shown.append(f"{line.split(' ')[0]} [{document.source[start:end]}]")
    return shown


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (f"{_TYPES}fn f(p: Point) {{ return |p }}", ["struct [Point]"]),
        (f"{_TYPES}fn f(p: Point) {{ return p.a|t }}", ["struct [Place]"]),
        (f"{_TYPES}let a|a = Point {{ x: 1 }}", ["struct [Point]"]),
        (f"{_TYPES}fn f(c: Color | Point | nil) {{ return |c }}", ["enum [Color]", "struct [Point]"]),
        (f"{_TYPES}fn f(p: Poi|nt) {{}}", ["struct [Point]"]),
        ("let a = 1\nprintln(|a)", []),
        ("|", []),
    ],
)
def test_type_definition(opened: Open, source: str, wanted: list[str]) -> None:
    here = opened(source)
    params = here.params(lsp.TypeDefinitionParams)
    assert lines(here, navigation.type_definition(here.workspace, here.document, params)) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (f"{_IMPLS}interface Mo|ves {{ fn up(self) -> int }}", ["impl [A]"]),
        (f"{_IMPLS}interface Moves {{ fn u|p(self) -> int }}", ["impl [up]"]),
        (f"{_IMPLS}fn f(b: |B) {{}}", ["impl [B]"]),
        (f"{_IMPLS}fn f(b: B) {{ b.do|wn() }}", ["impl [down]"]),
        ("let a|a = 1", []),
    ],
)
def test_implementation(opened: Open, source: str, wanted: list[str]) -> None:
    here = opened(source)
    params = here.params(lsp.ImplementationParams)
    assert lines(here, navigation.implementation(here.workspace, here.document, params)) == wanted


_LIB = "pub fn greet() {}\npub struct Guest { name: string }\n"


@pytest.mark.parametrize(
    ("main", "wanted"),
    [
        ('import { gre|et } from "lib"', ["pub [greet]"]),
        ('import { greet } from "li|b"', ["pub []"]),
        ('import { Guest } from "lib"\nfn f(g: Gu|est) {}', ["pub [Guest]"]),
        ('import { Guest } from "lib"\nfn f(g: Guest) { g.na|me }', ["pub [name]"]),
        ('import "lib"\ngre|et()', ["pub [greet]"]),
        ("fn f() {}\nf|()", ["fn [f]"]),
        ("prin|tln(1)", []),
    ],
)
def test_definition(opened: Open, main: str, wanted: list[str]) -> None:
    here = opened({"lib.harn": _LIB, "main.harn": main})
    params = here.params(lsp.DefinitionParams)
    assert lines(here, navigation.definition(here.workspace, here.document, params)) == wanted


@pytest.mark.parametrize("declared", [True, False])
def test_references(opened: Open, declared: bool) -> None:
    here = opened(
        {"lib.harn": _LIB.replace("greet", "gre|et"), "main.harn": 'import "lib"\ngreet()\ngreet()\n'}
    )
    context: Any = lsp.ReferenceContext(include_declaration=declared)
    found = navigation.references(
        here.workspace, here.document, here.params(lsp.ReferenceParams, context=context)
    )
    assert sorted(lines(here, found)) == sorted(["greet() [greet]"] * 2 + ["pub [greet]"] * declared)


def test_highlights_say_what_is_written(opened: Open) -> None:
    here = opened("var a|a = 1\naa = 2\nprintln(aa)")
    params = here.params(lsp.DocumentHighlightParams)
    kinds = [each.kind for each in navigation.highlights(here.workspace, here.document, params)]
    write, read = lsp.DocumentHighlightKind.Write, lsp.DocumentHighlightKind.Read
    assert kinds == [write, write, read]


def test_a_document_that_imports_itself_sees_its_own_newest_text(opened: Open) -> None:
    here = opened({"library.harn": 'import { made } from "library"\n'})
    document = here.file("library.harn")
    assert [each.code for each in diagnostics(here.workspace, document)] == ["unknown-import"]
    text = Text(f"{document.source}fn made() {{\n  return 1\n}}\n", document.text.encoding)
    here.workspace.edit(document, text, 2)
    assert diagnostics(here.workspace, document) == []
