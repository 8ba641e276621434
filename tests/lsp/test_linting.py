"""What the linter and the preflight say, and what stands of it while a text changes. Spec: 12 §3.1."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types as lsp

from harnpy.lsp.diagnostics import diagnostics
from harnpy.lsp.linting import linted
from harnpy.lsp.text import Text
from tests.lsp.conftest import Open, Opened


def _codes(here: Opened) -> list[str]:
    return [str(each.code) for each in diagnostics(here.workspace, here.document)]


def _linted(here: Opened) -> list[str]:
    linted(here.workspace, here.document)
    return _codes(here)


def _type(here: Opened, old: str, new: str) -> None:
    text = here.document.source.replace(old, new, 1)
    here.workspace.edit(here.document, Text(text, here.workspace.encoding), None)


def test_findings_of_lint_come_with_tags_and_help(opened: Open) -> None:
    here = opened("fn f() {\n  let x = 1\n  return 2\n}\nf()\n")
    assert _linted(here) == ["unused-variable"]
    (shown,) = diagnostics(here.workspace, here.document)
    assert here.text_of(shown.range) == "x"
    assert shown.tags == [lsp.DiagnosticTag.Unnecessary]
    assert shown.severity == lsp.DiagnosticSeverity.Warning
    assert "prefix it with an underscore" in shown.message
    assert shown.data == {"explain": "harnpy explain unused-variable"}


def test_a_deprecated_call_has_its_tag(opened: Open) -> None:
    here = opened('@deprecated(use: "g")\nfn f() {\n  return 1\n}\nf()\n')
    tags = [each.tags for each in diagnostics(here.workspace, here.document) if each.code == "deprecated"]
    assert tags == [[lsp.DiagnosticTag.Deprecated]]


def test_a_rule_of_structure_is_told_once_and_moves_with_its_item(opened: Open) -> None:
    here = opened("fn f() {\n  break\n}\nf()\n")
    assert _linted(here) == ["break-outside-loop"]
    _type(here, "fn f", "let a = 1\n\nfn f")
    (shown,) = (each for each in diagnostics(here.workspace, here.document) if each.code != "unused-variable")
    assert here.text_of(shown.range) == "break"
    assert shown.message == "compile error: break outside of loop"


def test_what_an_edit_leaves_alone_keeps_its_findings(opened: Open) -> None:
    here = opened("fn f() {\n  let x = 1\n}\n\nfn g() {\n  let y = 1\n}\nf()\ng()\n")
    assert _linted(here) == ["unused-variable", "unused-variable"]
    _type(here, "let x = 1", "let x = 12345\n  let z = 1")
    (shown,) = diagnostics(here.workspace, here.document)
    assert here.text_of(shown.range) == "y"


def test_when_nobody_types_the_state_is_that_of_a_fresh_server(opened: Open) -> None:
    here = opened("fn f() {\n  let x = 1\n}\n// a\nf()\n")
    linted(here.workspace, here.document)
    _type(here, "let x = 1", "let x = (")
    linted(here.workspace, here.document)
    fresh = opened("fn f() {\n  let x = (\n}\n// a\nf()\n")
    linted(fresh.workspace, fresh.document)
    assert diagnostics(here.workspace, here.document) == diagnostics(fresh.workspace, fresh.document)


def test_a_name_that_a_broken_piece_mentions_is_in_use(opened: Open) -> None:
    here = opened("fn f() {\n  let x = 1\n}\n\nfn h() {\n  return 1\n}\n\nfn g() {\n  f(\n}\nprintln(1)\n")
    codes = _linted(here)
    assert codes.count("unused-function") == 1
    messages = [each.message for each in diagnostics(here.workspace, here.document)]
    assert not any("`f`" in message for message in messages)
    assert any("`h`" in message for message in messages)


def test_what_others_import_is_in_use(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "user.harn").write_text('import { f } from "main"\nf()\n')
    here = opened({"main.harn": "fn f() {\n  return 1\n}\nprintln(1)\n"}, tmp_path)
    assert _linted(here) == []
    (tmp_path / "user.harn").write_text('import { other } from "main"\n')
    assert _linted(here) == ["unused-function"]


def test_the_settings_are_those_of_the_nearest_manifest(opened: Open, tmp_path: Path) -> None:
    source = {"main.harn": "fn f() {\n  let x = 1\n}\nf()\n"}
    (tmp_path / "harn.toml").write_text('[lint]\ndisabled = ["unused-variable"]\n')
    here = opened(source, tmp_path)
    assert _linted(here) == []
    (tmp_path / "harn.toml").write_text("")
    here.workspace.read_manifests()
    here = here._replace(document=here.file("main.harn"))
    assert _linted(here) == ["unused-variable"]


def test_strict_types_of_the_manifest_hold(opened: Open, tmp_path: Path) -> None:
    source = {"main.harn": 'fn f(t) {\n  let d = json_parse(t)\n  return d.name\n}\nf("{}")\n'}
    assert "unvalidated-access" not in _codes(opened(source, tmp_path))
    (tmp_path / "harn.toml").write_text("[check]\nstrict_types = true\n")
    assert "unvalidated-access" in _codes(opened(source, tmp_path))


def test_an_import_that_leads_nowhere(opened: Open, tmp_path: Path) -> None:
    here = opened({"main.harn": 'import { f } from "nosuch"\nf()\n'}, tmp_path)
    assert _linted(here) == ["unresolved-import"]


def test_what_is_allowed_is_silent_also_beside_a_broken_piece(opened: Open) -> None:
    allowed = "fn f() {\n  let x = 1 // harnpy: allow unused-variable\n}\nf()\n"
    assert _linted(opened(allowed)) == []
    here = opened(f'{allowed}let s = "a\n')
    assert _linted(here) == ["unterminated-string"]


def test_a_comment_above_a_declaration_speaks_of_the_next_piece(opened: Open) -> None:
    here = opened("f()\n\n// harnpy: allow unused-parameter\nfn f(a) {\n  return 1\n}\n\nfn g(\n")
    assert "unused-parameter" not in _linted(here)


def test_related_places_are_in_the_text(opened: Open) -> None:
    here = opened("struct P {\n  name: string\n}\nprintln(P {name: 1, nam: 2})\n")
    shown = next(
        one for one in diagnostics(here.workspace, here.document) if one.code == "unknown-struct-field"
    )
    assert shown.related_information is not None
    (related,) = shown.related_information
    assert related.message == "declared here"
    assert here.text_of(related.location.range).startswith("struct P")
