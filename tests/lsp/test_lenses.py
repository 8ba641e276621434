"""Lenses stand where something can be run. Spec: 12 §3.5."""

from __future__ import annotations

from lsprotocol import types as lsp

from harnpy.lsp.lenses import code_lenses
from tests.lsp.conftest import Open, Opened


def _lenses(here: Opened) -> list[tuple[int, str, str]]:
    found = code_lenses(here.workspace, here.document, here.params(lsp.CodeLensParams))
    shown = []
    for lens in found:
        assert lens.command is not None
        assert lens.command.arguments is not None
        (argument,) = lens.command.arguments
        assert argument["uri"] == here.document.uri
        shown.append((lens.range.start.line, lens.command.command, argument["name"]))
    return shown


def test_the_entry_runs_and_tests_are_tested(opened: Open) -> None:
    source = (
        "pipeline other(task) {\n  println(1)\n}\n"
        "pipeline default(task) {\n  println(1)\n}\n"
        "@test\npipeline checks(task) {\n  assert(true)\n}\n"
        "pipeline test_more(task) {\n  assert(true)\n}\n"
    )
    assert _lenses(opened(source)) == [
        (3, "harn.run", "default"),
        (3, "harn.debug", "default"),
        (7, "harn.test", "checks"),
        (10, "harn.test", "test_more"),
    ]


def test_a_script_runs_from_its_first_statement(opened: Open) -> None:
    source = 'import "std/text"\nfn f() {\n  return 1\n}\nlet x = f()\nprintln(x)\n'
    assert _lenses(opened(source)) == [(5, "harn.run", ""), (5, "harn.debug", "")]


def test_a_module_has_none(opened: Open) -> None:
    assert _lenses(opened("pub fn f() {\n  return 1\n}\n")) == []
