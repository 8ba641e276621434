"""Each code has an explanation: its wrong program has the diagnostic, its right one none. Spec: 09 §4.4."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.check.explanations import AT_RUN_TIME, Explanation, Family, explanations, families, page
from harnpy.check.lint.rules import RULES
from harnpy.cli.commands import check
from harnpy.syntax.diagnostic import Diagnostic
from harnpy.syntax.parser import parse
from tests.check.programs import diagnostics

ROOT = Path(__file__).parents[2]
#: Where codes are given to findings.
_ROOMS = ("harnpy/check", "harnpy/syntax", "harnpy/cli/commands")
_CODE = re.compile(r"[a-z]+(-[a-z0-9]+)*")
EXPLAINED = [pytest.param(each, id=each.code) for each in explanations().values()]


def _trees() -> Iterator[ast.AST]:
    for room in _ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            yield from ast.walk(ast.parse(file.read_text(encoding="utf-8")))


def _given(call: ast.Call) -> Iterator[ast.expr]:
    """What a call has for a code: `findings.error("code", …)`, `Finding("code", …)`, `code="code"`."""
    name = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
    if name in ("error", "warn", "Finding"):
        yield from call.args[:1]
    yield from (word.value for word in call.keywords if word.arg == "code")


@cache
def codes_given() -> set[str]:
    """The codes that stand in the code where a finding is made."""
    given = (each for node in _trees() if isinstance(node, ast.Call) for each in _given(node))
    values = {each.value for each in given if isinstance(each, ast.Constant)}
    return {value for value in values if isinstance(value, str) and _CODE.fullmatch(value)}


def _said(explained: Explanation, program: str, directory: Path) -> list[Diagnostic]:
    """Programs about habits have none; others may, as long as they are right."""
    if explained.family == "preflight":
        return _preflight(program, directory)
    if explained.family == AT_RUN_TIME:
        return _run(program)
    return diagnostics(
        program,
        linted=explained.family.startswith("lint"),
        enabled=[explained.code],
        strict=explained.family == "strict",
    )


def _run(program: str) -> list[Diagnostic]:
    """What a program prints of codes."""
    assert diagnostics(program) == []
    printed: list[str] = []
    vm = Vm()
    vm.write = printed.append
    vm.run_source(program)
    told = (line.partition(": ") for line in "".join(printed).splitlines())
    return [Diagnostic("warning", message, code=code) for code, _, message in told]


def _preflight(program: str, directory: Path) -> list[Diagnostic]:
    """What is said of the last file of a program; a comment begins each file that isn't alone."""
    _, *parts = re.split(r"^// ([\w/]+\.harn)\n", f"// main.harn\n{program}", flags=re.MULTILINE)
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    return list(check.preflight_findings(Vm(), parse(parts[-1]), directory / parts[-2], parts[-1], "error"))


def test_each_code_is_explained() -> None:
    assert codes_given() - set(explanations()) == set()


def test_each_code_in_capitals_is_explained() -> None:
    """Such codes are printed as they stand in the source, wherever in harnpy that is."""
    source = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "harnpy").rglob("*.py"))
    found = set(re.findall(r'"(TOOL_SURFACE_[A-Z_]*)', source))
    assert found == {each for each in explanations() if each.isupper()}
    assert len(found) == 14
    called = re.findall(
        r'_(?:warning|error)\(\s*f?"(\w*)"', (ROOT / "harnpy/agent/toolbox.py").read_text("utf-8")
    )
    assert set(called) == found


def test_each_rule_of_the_linter_is_explained() -> None:
    assert {rule.id for rule in RULES} - set(explanations()) == set()


def test_each_explanation_is_of_a_code() -> None:
    texts = {node.value for node in _trees() if isinstance(node, ast.Constant)}
    assert {code for code in explanations() if not code.isupper()} - texts == set()


def test_no_code_is_explained_twice() -> None:
    found = [each.code for family in families() for each in family.explanations]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("explained", EXPLAINED)
def test_the_wrong_program_has_the_diagnostic(explained: Explanation, tmp_path: Path) -> None:
    assert explained.code in {found.code for found in _said(explained, explained.wrong, tmp_path)}


@pytest.mark.parametrize("explained", EXPLAINED)
def test_the_right_program_has_none(explained: Explanation, tmp_path: Path) -> None:
    assert [(found.code, found.message) for found in _said(explained, explained.right, tmp_path)] == []


def test_the_page_is_what_the_texts_say() -> None:
    text = (ROOT / "docs/diagnostics.md").read_text(encoding="utf-8")
    assert text == page(), "write it anew: harnpy explain --markdown > docs/diagnostics.md"


def test_a_section_in_another_form_is_named() -> None:
    with pytest.raises(ValueError, match=r"types\.md: the section `argument-type` has another form"):
        Family("types", "# Types\n\n## argument-type\n\nNo program.\n")
