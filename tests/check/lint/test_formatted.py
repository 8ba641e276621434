"""What the formatter prints has no finding of the rules about layout. Spec: 01 §12, 03 §15."""

from __future__ import annotations

from hypothesis import given, settings

from harnpy.check.lint.rules import lint
from harnpy.check.lint.settings import Settings
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.formatter import format_source
from harnpy.syntax.parser import parse
from harnpy.syntax.printer import print_program
from tests.counts import COUNT
from tests.strategies import PROGRAMS
from tests.support import ROOT

#: Of the repository's programs one in so many.
SHARE = COUNT.layout_share
LAYOUT = Settings(selected=["blank-line-between-items", "trailing-comma", "import-order"])


def said(text: str) -> list[str]:
    return [
        f"{one.code}: {text[one.start : one.end]}"
        for one in lint(text, parse(text), "a.harn", settings=LAYOUT)
    ]


def test_the_programs_of_the_repository() -> None:
    paths = [
        path for folder in ("conformance", "examples", "stdlib") for path in (ROOT / folder).rglob("*.harn")
    ]
    formatted = 0
    for path in sorted(paths)[::SHARE]:
        try:
            text = format_source(path.read_text(encoding="utf-8", errors="replace"))
        except SyntaxFault:
            continue
        formatted += 1
        assert said(text) == [], path
    assert formatted * SHARE > 4000


@settings(max_examples=COUNT.examples(15), deadline=None)
@given(PROGRAMS)
def test_generated_programs(program: ast.Program) -> None:
    assert said(format_source(print_program(program))) == []
