"""Formatting is that of `harnpy fmt`, whole or a choice of its edits. Spec: 12 §3.5."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from lsprotocol import types as lsp

from harnpy.lsp import formatting
from harnpy.lsp.document import Document
from harnpy.lsp.formatting import hunks
from harnpy.syntax.formatter import format_source
from tests.lsp.conftest import Open, Opened

ROOT = Path(__file__).parents[2]
_OPTIONS = lsp.FormattingOptions(4, True)
MESSY = """import { b, a } from "std/json"
import "std/text"
fn   f(x){
  let y=x+1
      return   y
}


struct P{ name:string }
fn g(){
    println( f(1) )
    if true { f(2) }
}
"""


def _applied(document: Document, edits: Sequence[lsp.TextEdit]) -> str:
    source = document.source
    for edit in sorted(edits, key=lambda one: one.range.start, reverse=True):
        start, end = document.text.span(edit.range)
        source = source[:start] + edit.new_text + source[end:]
    return source


def _whole(here: Opened) -> list[lsp.TextEdit]:
    params = lsp.DocumentFormattingParams(lsp.TextDocumentIdentifier(here.document.uri), _OPTIONS)
    return formatting.document_formatting(here.workspace, here.document, params)


def _range(here: Opened, first: int, last: int) -> list[lsp.TextEdit]:
    """Format lines, the last one included."""
    params = lsp.DocumentRangeFormattingParams(
        lsp.TextDocumentIdentifier(here.document.uri),
        lsp.Range(lsp.Position(first, 0), lsp.Position(last, 1_000)),
        _OPTIONS,
    )
    return formatting.range_formatting(here.workspace, here.document, params)


def _typed(here: Opened, ch: str) -> str:
    params = here.params(lsp.DocumentOnTypeFormattingParams, ch=ch, options=_OPTIONS)
    return _applied(here.document, formatting.on_type_formatting(here.workspace, here.document, params))


def test_the_whole_is_what_fmt_writes_in_few_edits(opened: Open) -> None:
    here = opened(MESSY)
    edits = _whole(here)
    assert _applied(here.document, edits) == format_source(MESSY)
    touched = {line for edit in edits for line in range(edit.range.start.line, edit.range.end.line)}
    # A blank, a brace: what is right stays.
    assert len(touched) < MESSY.count("\n") - 2
    assert _whole(opened(format_source(MESSY))) == []


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_line_ends(opened: Open, ending: str) -> None:
    source = f"let a=1{ending or chr(10)}let b=a{ending}"
    here = opened(source)
    assert _applied(here.document, _whole(here)) == format_source(source)


def test_the_widths_are_those_of_the_manifest(opened: Open, tmp_path: Path) -> None:
    source = "let names = [first_name, second_name, third_name]\n"
    (tmp_path / "harn.toml").write_text("[fmt]\nline_width = 30\n")
    here = opened({"main.harn": source}, tmp_path)
    assert _applied(here.document, _whole(here)) == format_source(source, line_width=30) != source


def test_a_text_that_does_not_parse_stays(opened: Open, caplog: pytest.LogCaptureFixture) -> None:
    here = opened("let  a = (\n")
    assert _whole(here) == []
    assert "can't be formatted: " in caplog.text


def test_a_range_is_formatted_and_no_line_outside(opened: Open) -> None:
    here = opened(MESSY)
    after = _applied(here.document, _range(here, 3, 4))
    assert after == MESSY.replace("  let y=x+1\n      return   y\n", "  let y = x + 1\n  return y\n")


def test_a_range_of_all_lines_is_the_whole(opened: Open) -> None:
    here = opened(MESSY)
    assert _applied(here.document, _range(here, 0, MESSY.count("\n"))) == format_source(MESSY)


def test_any_range_keeps_the_program_and_the_other_lines(opened: Open) -> None:
    chance = random.Random(36)
    here = opened(MESSY)
    lines = MESSY.split("\n")
    for _ in range(25):
        first, last = sorted(chance.choices(range(len(lines)), k=2))
        edits = _range(here, first, last)
        assert all(first <= edit.range.start.line for edit in edits)
        assert all(edit.range.end <= lsp.Position(last + 1, 0) for edit in edits)
        after = _applied(here.document, edits)
        assert format_source(after) == format_source(MESSY)
        assert after.split("\n")[:first] == lines[:first]


def test_in_a_range_of_a_text_that_does_not_parse_whole_pieces_are_formatted(opened: Open) -> None:
    source = "fn f(){\n  return   1\n}\n\nfn g( {\n  let   x = 1\n}\n"
    here = opened(source)
    after = _applied(here.document, _range(here, 0, 7))
    assert after == "fn f() {\n  return 1\n}\n\nfn g( {\n  let   x = 1\n}\n"


def test_a_closing_brace_formats_its_block(opened: Open) -> None:
    after = _typed(
        opened("let  z = 1\nfn f() {\n  if z == 1 {\n     println( z )\n    }|\n  let  y = 2\n}\n"), "}"
    )
    assert after == "let  z = 1\nfn f() {\n  if z == 1 {\n    println(z)\n  }\n  let  y = 2\n}\n"


def test_a_line_break_formats_the_line_before(opened: Open) -> None:
    here = opened("fn f() {\n  let x=1\n  \n  return   x\n}\n")
    after = _typed(here._replace(offset=here.document.source.index("  return") - 1), "\n")
    assert after == "fn f() {\n  let x = 1\n  \n  return   x\n}\n"
    here = opened("fn f( {\n  let x=1\n  \n}\n")
    assert _typed(here._replace(offset=here.document.source.index("}") - 1), "\n") == here.document.source


def test_hunks_make_one_text_of_the_other() -> None:
    chance = random.Random(36)
    for _ in range(300):
        before, after = (
            "".join(chance.choices(["a\n", "b\n", "c", "\r\n"], k=chance.randrange(9))) for _ in "ab"
        )
        text = before
        for edit in reversed(hunks(before, after)):
            text = text[: edit.start] + edit.text + text[edit.end :]
        assert text == after


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.harn"))[:12], ids=lambda path: path.name)
def test_programs(opened: Open, path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    here = opened("let a = 1\n")
    document = here.workspace.open("file:///project/other.harn", source, 1)
    here = here._replace(document=document)
    assert _applied(document, _whole(here)) == format_source(source)
