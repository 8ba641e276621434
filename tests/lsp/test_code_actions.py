"""Code actions: each edit does what its title says, and no more. Spec: 12 §3.5."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from lsprotocol import types as lsp

from harnpy.check.findings import Finding
from harnpy.lsp.code_actions import FIX_ALL, ORGANIZE_IMPORTS, allowing, code_actions
from harnpy.lsp.document import Document
from harnpy.lsp.linting import linted
from harnpy.lsp.workspace import Workspace
from tests.lsp.conftest import Open, Opened


def _actions(here: Opened, only: Sequence[str] | None = None) -> dict[str, lsp.CodeAction]:
    linted(here.workspace, here.document)
    params = here.params(
        lsp.CodeActionParams,
        range=lsp.Range(here.position, here.position),
        context=lsp.CodeActionContext([], only=only),
    )
    found = code_actions(here.workspace, here.document, params)
    assert len({one.title for one in found}) == len(found)
    return {one.title: one for one in found}


def _applied(document: Document, action: lsp.CodeAction) -> str:
    assert action.edit is not None
    assert action.edit.changes is not None
    (edits,) = action.edit.changes.values()
    source = document.source
    for edit in sorted(edits, key=lambda one: one.range.start, reverse=True):
        start, end = document.text.span(edit.range)
        source = source[:start] + edit.new_text + source[end:]
    return source


def _after(here: Opened, title: str, only: Sequence[str] | None = None) -> str:
    actions = _actions(here, only)
    assert title in actions, list(actions)
    return _applied(here.document, actions[title])


def test_the_fix_of_a_finding_is_preferred_if_it_is_safe(opened: Open) -> None:
    here = opened("prin|tnl(1)\n")
    (found,) = (one for one in _actions(here).values() if not one.title.startswith("Allow"))
    assert not found.is_preferred
    here = opened("fn f() {\n  var |x = 1\n  return x\n}\nf()\n")
    (action,) = (one for one in _actions(here).values() if one.is_preferred)
    assert "let x = 1" in _applied(here.document, action)
    assert action.diagnostics is not None
    assert action.diagnostics[0].code == "mutable-never-reassigned"


@pytest.mark.parametrize(
    ("source", "wrong", "right"),
    [
        ("prin|tnl(1)\n", "printnl", "print"),
        ("let total = 1\nprintln(tot|el)\n", "totel", "total"),
        ("println([1].ma|pp({ x -> x }))\n", "mapp", "map"),
        ("println([1].cou|n)\n", "coun", "count"),
        ("struct P {\n  name: string\n}\nprintln(P {na|m: 1})\n", "nam", "name"),
        ("struct Point {\n  x: int\n}\nprintln(Poin|d {x: 1})\n", "Poind", "Point"),
        ("@tes|t2\npipeline p(task) {\n  println(1)\n}\n", "test2", "test"),
        ("let x = Non|e\nprintln(x)\n", "None", "nil"),
        ("println(1) // harnpy: allow unused-vari|ble\n", "unused-varible", "unused-variable"),
    ],
)
def test_did_you_mean(opened: Open, source: str, wrong: str, right: str) -> None:
    here = opened(source)
    after = _after(here, f"Write `{right}` instead of `{wrong}`")
    assert after == here.document.source[::-1].replace(wrong[::-1], right[::-1], 1)[::-1]


def test_a_method_with_blanks_around_its_name_is_left_alone(opened: Open) -> None:
    here = opened("println([1]\n  .ma|pp({ x -> x }))\n")
    assert not any(title.startswith("Write") for title in _actions(here))


@pytest.mark.parametrize(
    ("source", "title", "after"),
    [
        ("fn f() {\n  return (1 + 2|\n}\n", "Insert `)`", "fn f() {\n  return (1 + 2)\n}\n"),
        (
            "fn f() {\n  let z = g(1, (2|\n  return z\n}\n",
            "Insert `))`",
            "fn f() {\n  let z = g(1, (2))\n  return z\n}\n",
        ),
        ("let x = [1, 2|\n", "Insert `]`", "let x = [1, 2]\n"),
        ("fn f() {\n  return 1\n|", "Insert `}`", "fn f() {\n  return 1\n}\n"),
        ("de|f f() {\n  return 1\n}\n", "Write `fn` instead of `def`", "fn f() {\n  return 1\n}\n"),
        (
            "if a {\n  f()\n} eli|f b {\n  g()\n}\n",
            "Write `else if` instead of `elif`",
            "if a {\n  f()\n} else if b {\n  g()\n}\n",
        ),
        ("let x = a an|d b\n", "Write `&&` instead of `and`", "let x = a && b\n"),
        ("let x = no|t a\n", "Write `!` instead of `not`", "let x = !a\n"),
        ("const| x = 1\n", "Write `let` instead of `const`", "let x = 1\n"),
        ("let x = 'a|b'\n", "Write `\"ab\"` instead of `'ab'`", 'let x = "ab"\n'),
        ("if x |=== 1 {\n  f()\n}\n", "Write `==` instead of `===`", "if x == 1 {\n  f()\n}\n"),
        ("# |hello\nlet x = 1\n", "Write `//` instead of `#`", "// hello\nlet x = 1\n"),
    ],
)
def test_a_syntax_error_with_an_edit_that_mends_it(opened: Open, source: str, title: str, after: str) -> None:
    assert _after(opened(source), title) == after


def test_a_syntax_error_that_nothing_mends_has_no_edit(opened: Open) -> None:
    assert _actions(opened("let x = 1 2 |3 %% (\n")) == {}


def test_import_of_what_another_module_offers(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "text.harn").write_text("pub fn shorten_it(s) {\n  return s\n}\nfn hidden_one() {}\n")
    here = opened({"main.harn": 'println(shorten|_it("a"))\n'}, tmp_path)
    assert _after(here, 'Import `shorten_it` from "lib/text"') == (
        'import { shorten_it } from "lib/text"\n\nprintln(shorten_it("a"))\n'
    )
    here = opened({"main.harn": "println(hidden|_one())\n"}, tmp_path)
    assert not any(title.startswith("Import") for title in _actions(here))


def test_import_goes_where_imports_are(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "lib.harn").write_text("pub fn aa() {}\npub fn bb() {}\n")
    here = opened(
        {"main.harn": "#!/usr/bin/env harnpy\n/** A file. */\n\n/** Says. */\nfn f() {\n  a|a()\n}\nf()\n"},
        tmp_path,
    )
    assert _after(here, 'Import `aa` from "lib"').splitlines()[2:6] == [
        "",
        'import { aa } from "lib"',
        "",
        "/** Says. */",
    ]
    here = opened({"main.harn": 'import { bb } from "lib"\nimport "std/text"\na|a()\nbb()\n'}, tmp_path)
    assert _after(here, 'Import `aa` from "lib"').startswith('import { aa, bb } from "lib"\nimport')
    here = opened({"main.harn": 'import "std/text"\na|a()\n'}, tmp_path)
    assert _after(here, 'Import `aa` from "lib"').startswith('import "std/text"\nimport { aa } from "lib"\na')


def test_import_of_a_bundled_module(opened: Open) -> None:
    here = opened("println(int_to_str|ing(1))\n")
    workspace, document = here.workspace, here.document
    offering = [
        (path, name)
        for path in document.knowledge.modules()
        if (place := workspace.module(document, path)) is not None
        for name in workspace.surface(workspace.text_at(place) or "").public
        if not document.knowledge.is_builtin(name)
    ]
    path, name = offering[0]
    here = opened(f"{name[:1]}|{name[1:]}()\n")
    assert _after(here, f'Import `{name}` from "{path}"').startswith(f'import {{ {name} }} from "{path}"\n')


def test_allow_at_the_line(opened: Open) -> None:
    here = opened("fn f() {\n  let |x = 1\n}\nf()\n")
    assert "  let x = 1  // harnpy: allow unused-variable\n" in _after(here, "Allow `unused-variable` here")
    here = opened('fn f() {\n  let |x = """\na\n"""\n}\nf()\n')
    after = _after(here, "Allow `unused-variable` here")
    assert '  // harnpy: allow unused-variable\n  let x = """\n' in after
    here = opened("fn f() {\n  let |x = 1 // harnpy: allow shadow-variable\n}\nf()\n")
    after = _after(here, "Allow `unused-variable` here")
    assert "// harnpy: allow unused-variable shadow-variable" in after


def test_an_error_of_the_language_cannot_be_allowed(opened: Open) -> None:
    assert not any(title.startswith("Allow `undefined") for title in _actions(opened("nosuch|_thing()\n")))


def test_fix_all_is_what_lint_fix_writes(opened: Open, tmp_path: Path, harnpy) -> None:  # type: ignore[no-untyped-def]
    source = "fn f(x) {\n  var a = 1\n  let b = 2\n  if x == true {\n    return a\n  }\n  return 3\n}\nf(1)\n"
    file = tmp_path / "main.harn"
    file.write_text(source)
    here = opened({"main.harn": source}, tmp_path)
    (action,) = _actions(here, ["source.fixAll"]).values()
    assert action.kind == FIX_ALL
    assert harnpy("lint", "--fix", str(file)).returncode == 0
    assert _applied(here.document, action) == file.read_text() != source


def test_organize_imports(opened: Open) -> None:
    source = 'import "std/text"\nimport { b, a } from "std/json"\nlet   x = a\n'
    here = opened(source)
    (action,) = _actions(here, ["source.organizeImports"]).values()
    assert action.kind == ORGANIZE_IMPORTS
    after = _applied(here.document, action)
    assert after.splitlines() == ['import { a, b } from "std/json"', 'import "std/text"', "let   x = a"]


def test_only_the_kinds_that_are_asked_for(opened: Open) -> None:
    here = opened("fn f() {\n  var |x = 1\n  return x\n}\nf()\n")
    assert {one.kind for one in _actions(here, ["quickfix"]).values()} == {"quickfix"}
    assert {one.kind for one in _actions(here).values()} == {"quickfix"}
    assert {one.kind for one in _actions(here, ["source"]).values()} == {FIX_ALL}
    assert _actions(here, ["refactor"]) == {}
    assert _actions(here, ["source.fix"]) == {}


def test_nothing_is_allowed_in_a_text_without_the_end_of_a_string() -> None:
    document = Workspace().open("file:///project/main.harn", 'let a = "// harnpy: allow b', 1)
    assert allowing(document, Finding("unused-variable", "warning", "unused", 4, 5)) is None
