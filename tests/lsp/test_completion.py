"""What is offered at the cursor, and what isn't. Spec: 12 §3.3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp

from harnpy.lsp.completion import completion, resolve
from tests.lsp.conftest import Open, Opened

_POINT = "struct Point { x: int, far: Place }\nstruct Place { name: string }\n"
_IMPL = "impl Point {\n  fn moved(self) -> Point { return self }\n}\n"
_COLOR = "enum Color { Red, Mixed(level: int) }\n"


def items(here: Opened) -> dict[str, lsp.CompletionItem]:
    found = completion(here.workspace, here.document, here.params(lsp.CompletionParams))
    return {item.label: item for item in found.items}


def test_offered_and_not(opened: Open, case: tuple[str, str, str]) -> None:
    source, wanted, unwanted = case
    found = items(opened(source)).keys()
    assert set(wanted.split()) <= found, sorted(found)[:40]
    assert not set(unwanted.split()) & found


CASES = [
    # Values of a certain kind.
    ("let s = 1\nlet t = \"a\".|", "trim count", "sort"),
    ("let xs = [1]\nprintln(xs.|)", "map first", "trim"),
    ("let a = [1]\nlet b = a\nprintln(b.|)", "map", "trim"),
    ("let d = {one: {two: {three: 1}}}\nprintln(d.one.two.|)", "three keys", "one two"),
    ("let d = {one: 1}\nprintln(d?.|)", "one", "trim"),
    ('let d = {one: 1}\nprintln("is ${d.|} now")', "one", "trim"),
    ("fn f(v: string | nil) {\n  if v != nil {\n    v.|\n  }\n}", "trim", "map"),
    ("fn f(v: string | list<int>) {\n  v.|\n}", "trim map", ""),
    ("[{id: 1}].map({ x -> x.| })", "id", "trim"),
    ("[[{id: 1}]].each({ xs -> xs.map({ x -> x.| }) })", "id", "trim"),
    ('["a"].reduce(0, { sum, x -> x.| })', "trim", "map"),
    ("for each_ in [{id: 1}] {\n  each_.|\n}", "id", "trim"),
    # Structs, enums, modules of functions.
    (f"{_POINT}{_IMPL}fn f(p: Point) {{\n  p.|\n}}", "x far moved", "name trim"),
    (f"{_POINT}fn f(p: Point) {{\n  p.far.|\n}}", "name", "x"),
    (f"{_POINT}{_IMPL}fn f(p: Point) {{\n  p.moved().|\n}}", "x far", "name"),
    (f"{_POINT}let p = Point {{ x: 1 }}\nfn f() {{\n  p.|\n}}", "x far", "name"),
    (f"{_COLOR}let c = Color.|", "Red Mixed", "trim"),
    ("event_log.|", "emit", "trim"),
    # Keys of literals.
    (f"{_POINT}let p = Point {{ | }}", "x far", "name let"),
    (f"{_POINT}let p = Point {{ x: 1, | }}", "far", "x"),
    ('llm_call("x", nil, {|})', "provider model budget", "let nodes"),
    ('llm_call("x", nil, {provider: "mock", |})', "model", "provider"),
    ('llm_call("x", nil, {budget: {|}})', "max_cost_usd", "provider"),
    ('fn f() {\n  llm_call("x", nil, {\n    |\n  })\n}', "provider", "let"),
    ('fn f() {\n  llm_call("x", nil, {|\n  let y = 1\n  return y\n}', "provider", "let"),
    ("workflow_graph({|})", "nodes edges act entry", "kind"),
    ("workflow_graph({nodes: {a: {|}}})", "kind prompt model_policy retry_policy", "nodes"),
    ("workflow_graph({nodes: {a: {retry_policy: {|}}}})", "max_attempts backoff", "kind"),
    ("workflow_graph({edges: [{|}]})", "from to branch", "kind"),
    ("workflow_graph({act: {|}})", "prompt model", "nodes"),
    ('tool_define(tool_registry(), "t", "does", {|})', "parameters handler returns", "kind"),
    ('tool_define(r, "t", "does", {parameters: {n: {|}}})', "type description required", "handler"),
    ('import { session_create } from "std/session"\nsession_create({|})', "id label seed", "provider"),
    ('import { workflow } from "std/agents"\nworkflow({nodes: {a: {|}}})', "kind prompt", "nodes"),
    ("fn f(o: {deep: {leaf: int}}) {}\nf({deep: {|}})", "leaf", "deep"),
    ("let d: {one: int, two: int} = {one: 1, |}", "two", "one"),
    ("fn agent_loop(a, b, c) {}\nagent_loop(1, 2, {|})", "", "provider"),
    # Words that a text may be.
    ('llm_call("x", nil, {provider: "|"})', "mock anthropic", "let"),
    ('llm_call("x", nil, {output_format: {kind: "|"}})', "text json json_schema", "let"),
    ('workflow_graph({nodes: {a: {kind: "|"}}})', "stage verify map", "agent"),
    ('tool_define(r, "t", "does", {parameters: {n: "|"}})', "int string", "let"),
    ('fn f(s: "open" | "done") {\n  return s == "|"\n}', "open done", "s"),
    ('fn f(s: "open" | "done") {}\nf("|")', "open done", "f"),
    ('fn f(s: "open" | "done") {}\nf(|)', '"open" "done"', ""),
    ('fn f(s: "open" | "done") {\n  match s {\n    "open" -> { 1 }\n    |\n  }\n}', '"done"', '"open"'),
    (f"{_COLOR}fn f(c: Color) {{\n  match c {{\n    |\n  }}\n}}", "Color.Red Color.Mixed", ""),
    (f"{_COLOR}fn f(c: Color) {{\n  match c {{\n    Color.Red -> {{ 1 }}\n    |\n  }}\n}}", "Color.Mixed", "Color.Red"),
    # Words that may stand there.
    ("fn f() {\n  if true { 1 }\n  |\n}", "else let return if", "catch import"),
    ("fn f() {\n  try { 1 }\n  |\n}", "catch finally let", "else"),
    ("fn f() {\n  let x = 1\n  |\n}", "let return while", "else catch finally import"),
    ("let x = |", "if match try fn", "let return import else"),
    ("|", "import let fn pub struct", "else to in"),
    ("pub |", "fn tool struct", "let if"),
    ("for x |", "in", "let if"),
    ("parallel |", "each settle", "let"),
    # Names and types.
    ("tool look(a: string) -> string {\n  return a\n}\nskill s { description \"d\" }\n|", "look s", ""),
    ("fn outer(aaa) {\n  let inner = 1\n  |\n}\nfn other() { let hidden = 2 }", "aaa inner outer other", "hidden"),
    (f"{_POINT}fn f<T>(p: |) {{}}", "Point T int", "let println"),
    (f"{_POINT}fn f(p: Point) {{\n  let {{|}} = p\n}}", "x far", "let"),
    ("fn | ", "", "println let"),
    ("let | ", "", "println let"),
    # Nothing in comments and in texts.
    ("// pri|", "", "println"),
    ("/* pri|\n*/", "", "println"),
    ("let a = \"pri|\"", "", "println"),
    ("let a = r\"pri|\"", "", "println"),
    ('let a = """\npri|\n"""', "", "println"),
    ('let a = "${1}" + pri|', "println", ""),
    ('let a = "a // b" + pri|', "println", ""),
    ('let a = "x ${pri|}"', "println", ""),
]  # fmt: skip


@pytest.fixture(params=CASES, ids=[case[0].replace("\n", "⏎")[-60:] for case in CASES])
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_the_modules_of_an_import_and_their_names(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "lib.harn").write_text("pub fn greet() {}\npub struct Guest { name: string }\n")
    assert {"std/json", "lib"} <= items(opened('import "|"', tmp_path)).keys()
    found = items(opened('import { greet, | } from "lib"', tmp_path)).keys()
    assert "Guest" in found
    assert "greet" not in found


def test_what_other_modules_offer_comes_with_its_import(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "lib.harn").write_text("pub fn greet() {}\nfn hidden_one() {}\n")
    here = opened('import { b } from "std/x"\n\ngre|', tmp_path)
    item = items(here)["greet"]
    assert item.additional_text_edits is not None
    [edit] = item.additional_text_edits
    assert isinstance(edit, lsp.TextEdit)
    assert edit.new_text == 'import { greet } from "lib"\n'
    assert here.text_of(edit.range) == ""
    assert "hidden_one" not in items(opened("hidden|", tmp_path))
    assert "greet" not in items(opened("|", tmp_path))


def test_an_import_that_is_there_is_extended(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "lib.harn").write_text("pub fn alpha() {}\npub fn beta() {}\npub fn gamma() {}\n")
    item = items(opened('import { alpha, gamma } from "lib"\nbet|', tmp_path))["beta"]
    assert item.additional_text_edits is not None
    assert item.additional_text_edits[0].new_text == " alpha, beta, gamma "
    assert (
        items(opened('import { alpha } from "lib"\nalph|', tmp_path))["alpha"].additional_text_edits is None
    )


def test_std_modules_offer_theirs(opened: Open) -> None:
    item = items(opened("session_crea|"))["session_create"]
    assert item.additional_text_edits is not None
    assert item.additional_text_edits[0].new_text.startswith('import { session_create } from "std/session"\n')


def test_deprecated_functions_say_so(opened: Open) -> None:
    found = items(opened('@deprecated(since: "1", use: "b")\nfn aged() {}\nfn fresh() {}\n|'))
    assert found["aged"].tags == [lsp.CompletionItemTag.Deprecated]
    assert not found["fresh"].tags


def test_snippets_are_for_clients_that_know_them(opened: Open) -> None:
    here = opened("|")
    assert not any(item.insert_text_format for item in items(here).values())
    _client(here, snippet_support=True)
    snippet = items(here)["fn …"]
    assert snippet.insert_text_format == lsp.InsertTextFormat.Snippet
    assert "$0" in (snippet.insert_text or "")


def test_in_the_middle_of_a_word_all_of_it_is_replaced(opened: Open) -> None:
    here = opened("let total = 1\nprintln(to|tle)")
    edit = items(here)["total"].text_edit
    assert isinstance(edit, lsp.TextEdit)
    assert here.text_of(edit.range) == "totle"
    _client(here, insert_replace_support=True)
    both = items(here)["total"].text_edit
    assert isinstance(both, lsp.InsertReplaceEdit)
    assert (here.text_of(both.insert), here.text_of(both.replace)) == ("to", "totle")
    assert items(opened("let total = 1\nprintln(to|)"))["total"].text_edit is None


def test_resolving_brings_the_documentation(opened: Open) -> None:
    here = opened("// Adds them. All of them.\nfn plus(a, b) { return a + b }\n|")
    for label, words in (("plus", "Adds them."), ("println", "")):
        item = resolve(here.workspace, items(here)[label])
        assert label in (item.detail or "")
        assert isinstance(item.documentation, lsp.MarkupContent)
        assert words in item.documentation.value


def test_a_key_says_what_it_means(opened: Open) -> None:
    item = items(opened('llm_call("x", nil, {budget: {|}})'))["max_cost_usd"]
    assert (item.detail, item.documentation) == ("float", "what this call may cost")
    assert item.insert_text == "max_cost_usd: "


def _client(here: Opened, **known: Any) -> None:
    completing = lsp.CompletionClientCapabilities(completion_item=lsp.ClientCompletionItemOptions(**known))
    here.workspace.client = lsp.ClientCapabilities(
        text_document=lsp.TextDocumentClientCapabilities(completion=completing)
    )
