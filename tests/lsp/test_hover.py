"""What is shown where the pointer rests. Spec: 12 §3.2."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types as lsp

from harnpy.lsp.hover import hover
from tests.lsp.conftest import Open

_TYPES = """\
// A place. Somewhere.
struct Point {
  // To the east.
  x: int
}
enum Color { Red, Mixed(level: int) }
/**
 * What moves.
 */
fn move(p: Point, by: int = 1) -> Point { return p }
impl Point {
  // Up.
  fn up(self) -> int { return self.x }
}
"""


@pytest.mark.parametrize(
    ("source", "word", "texts"),
    [
        (f"{_TYPES}fn f(p: Point) {{ return p.|x }}", "x", ["Point.x: int", "To the east."]),
        (f"{_TYPES}let p = Point {{ |x: 1 }}", "x", ["Point.x: int"]),
        (f"{_TYPES}let c = Color.Mi|xed(1)", "Mixed", ["Color.Mixed(level: int)"]),
        (f"{_TYPES}let p: Po|int = nil", "Point", ["struct Point", "A place."]),
        (f"{_TYPES}mo|ve(nil)", "move", ["fn move(p: Point, by: int = 1) -> Point", "What moves."]),
        (f"{_TYPES}fn f(p: Point) {{ p.u|p() }}", "up", ["fn up(self) -> int", "Up."]),
        ("let xs = [1]\nfn f() { return x|s }", "xs", ["xs: list<int>"]),
        ("[{id: 1}].map({ x -> |x })", "x", ["x: {id: int}"]),
        ("let d = {one: {two: 1}}\nprintln(d.one.t|wo)", "two", ["two: int"]),
        ('println("a".tr|im())', "trim", ["string.trim() -> string"]),
        ('println("a ${"b".tr|im()}")', "trim", ["string.trim() -> string"]),
        ("prin|tln(1)", "println", ["println"]),
        ('llm_call("x", nil, {bud|get: {}})', "budget", ["budget: dict"]),
        ('llm_call("x", nil, {budget: {|max_cost_usd: 1.0}})', "max_cost_usd", ["What this call may cost."]),
        ('workflow_graph({nodes: {a: {ki|nd: "stage"}}})', "kind", ["kind: string = stage"]),
        ('import { fil|ter_nil } from "std/collections"', "filter_nil", ["filter_nil"]),
        ('import "std/|agents"', "std/agents", ["Agents, workflows and their results"]),
    ],
)  # fmt: skip
def test_shown(opened: Open, source: str, word: str, texts: list[str]) -> None:
    here = opened(source)
    found = hover(here.workspace, here.document, here.params(lsp.HoverParams))
    assert found is not None
    assert found.range is not None
    assert here.text_of(found.range) == word
    assert isinstance(found.contents, lsp.MarkupContent)
    for text in texts:
        assert text in found.contents.value


@pytest.mark.parametrize(
    "source",
    [
        "let x = 1|2",
        'let x = "prin|tln"',
        "l|et x = 1",
        "// prin|tln",
        "let x = 1\n\n|\n\nlet y = 2",
        "f({ke|y: 1})",
    ],
)
def test_nothing_to_show(opened: Open, source: str) -> None:
    here = opened(source)
    assert hover(here.workspace, here.document, here.params(lsp.HoverParams)) is None


def test_a_module_is_described_by_its_first_comment(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "lib.harn").write_text("// Greets people. In many ways.\n\npub fn greet() {}\n")
    here = opened('import { greet } from "l|ib"', tmp_path)
    found = hover(here.workspace, here.document, here.params(lsp.HoverParams))
    assert found is not None
    assert "Greets people." in str(found.contents)
