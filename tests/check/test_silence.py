"""No program that is right has a finding: those of conformance/, examples/, stdlib/ and the documentation.

Some of the many in conformance/ are looked at; all of them in a campaign. Spec: 03 §1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.check.allow import silenced
from harnpy.check.checker import check_program
from harnpy.check.findings import Finding
from harnpy.check.lint.rules import lint
from harnpy.cli.testing.conformance import case_of
from harnpy.syntax.diagnostic import Lines
from harnpy.syntax.parser import parse_cached
from tests.counts import COUNT
from tests.support import ROOT
from tests.test_docs import PROGRAMS as SNIPPETS

CONFORMANCE = ROOT / "conformance"
#: One of so many programs of conformance/.
SHARE = COUNT.silent_share
#: Pages that show what runs and does something else.
_SHOW_TRAPS = ("surprises.md:", "language.md:")


def said(vm: Vm, source: str, place: Path) -> list[str]:
    """What the type checker says of a program, each as `file:line: code: message`."""
    program = parse_cached(source)
    imports = vm.imports_of(source, str(place.parent))
    knowledge = vm.builtins.knowledge()
    return shown(source, place, check_program(program, source, knowledge, imports))


def advised(vm: Vm, source: str, place: Path) -> list[str]:
    """What lint says of it, in the same way."""
    imports = vm.imports_of(source, str(place.parent))
    found = lint(source, parse_cached(source), str(place), vm.builtins.knowledge(), imports)
    return shown(source, place, found)


def shown(source: str, place: Path, found: list[Finding]) -> list[str]:
    lines = Lines(source)
    kept = silenced(source, found)
    return [f"{place}:{lines.line(one.start)}: {one.code}: {one.message}" for one in kept]


@pytest.fixture(scope="module")
def vm() -> Vm:
    """With the servers that the manifest of docs/mcp.md declares."""
    vm = Vm()
    vm.set_global("mcp", {})
    return vm


def files(folder: str) -> Iterator[Path]:
    yield from sorted((ROOT / folder).rglob("*.harn"))


@pytest.mark.parametrize("folder", ["examples", "stdlib"])
def test_what_is_shipped(vm: Vm, folder: str) -> None:
    """It has no bad habits either."""
    for path in files(folder):
        source = path.read_text(encoding="utf-8")
        assert said(vm, source, path) == []
        assert advised(vm, source, path) == []


def test_conformance_programs_without_an_error(vm: Vm) -> None:
    looked = 0
    for path in list(files("conformance"))[::SHARE]:
        case = case_of(CONFORMANCE, path)
        if case is not None and case.kind == "expected":
            looked += 1
            assert said(vm, path.read_text(encoding="utf-8"), path) == []
    assert looked * SHARE > 3000


def test_snippets_of_the_documentation(vm: Vm) -> None:
    """They have no bad habits either; `test_traps` looks at the pages that show traps."""
    for snippet in SNIPPETS:
        code, place = snippet.values[0].code, ROOT / f"{snippet.id}.harn"
        assert said(vm, code, place) == []
        if not place.name.startswith(_SHOW_TRAPS):
            assert advised(vm, code, place) == []
