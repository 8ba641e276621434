"""Safe fixes change nothing that programs do: conformance programs, and generated ones. Spec: 03 §15."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from harnpy import Vm
from harnpy.check.allow import silenced
from harnpy.check.findings import Finding
from harnpy.check.lint.fixing import fix_all
from harnpy.check.lint.rules import lint
from harnpy.check.lint.settings import Settings
from harnpy.cli.testing.conformance import Case, find_cases
from harnpy.cli.testing.sandbox import Outcome, run_program
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse
from tests.clock import simulated_time
from tests.conformance_plugin import ROOT, TIMEOUT_MS, run_directory
from tests.counts import COUNT
from tests.vm.differential.outcomes import Program, outcome
from tests.vm.differential.programs import program_of

#: What may differ: where lines stand, and what a misspelt name is near to, as variables get other names.
_BESIDE = re.compile(r"\bline \d+|:\d+:\d+|^ *\d+ \||did you mean `\w+`", re.MULTILINE)

#: With the rule that most programs have something to fix for.
SETTINGS = Settings(enabled=["blank-line-between-items"])


def _cases() -> list[Case]:
    cases = [case for case in find_cases(ROOT) if case.kind == "expected"]
    return cases[:: COUNT.fixes_share]


def _fixed(file: Path, source: str) -> str:
    vm = Vm()
    knowledge = vm.builtins.knowledge()

    def look(text: str) -> list[Finding]:
        imports = vm.imports_of(text, str(file.parent))
        return silenced(text, lint(text, parse(text), str(file), knowledge, imports, SETTINGS))

    return fix_all(source, look)[0]


def _neighbours(root: Path, original: Path) -> Path:
    """Where a program stands among links to all that stands around it."""
    place = root
    for part in original.relative_to(ROOT).parts:
        for other in (ROOT / place.relative_to(root)).iterdir():
            if other.name != part:
                (place / other.name).symlink_to(other)
        place /= part
        if place.suffix != ".harn":
            place.mkdir()
    return place


def _run(program: Path, source: str) -> Outcome:
    program.write_text(source, encoding="utf-8")
    with run_directory(), simulated_time(), TemporaryDirectory() as scratch:
        return run_program(program, timeout_ms=TIMEOUT_MS, scratch=scratch)


@pytest.fixture(scope="module")
def changed() -> list[tuple[Case, str, str]]:
    """The programs that have something to fix, with their text before and after."""
    found = []
    for case in _cases():
        source = case.path.read_text(encoding="utf-8")
        try:
            fixed = _fixed(case.path, source)
        except SyntaxFault:
            continue
        if fixed != source:
            found.append((case, source, fixed))
    return found


def test_what_programs_print_stays_the_same(changed: list[tuple[Case, str, str]], tmp_path: Path) -> None:
    assert changed
    different = []
    for i, (case, source, fixed) in enumerate(changed):
        root = tmp_path / str(i)
        root.mkdir()
        program = _neighbours(root, case.path)
        before, after = _run(program, source), _run(program, fixed)
        if (_plain(before.output), before.error) != (_plain(after.output), after.error):
            different.append(
                f"{case.name}\n{before.output}{before.error}\n---\n{after.output}{after.error}\n{fixed}"
            )
    assert not different, "\n\n".join(different)


def test_what_is_fixed_needs_no_more_fixes(changed: list[tuple[Case, str, str]]) -> None:
    for case, _, fixed in changed:
        assert _fixed(case.path, fixed) == fixed, case.name


@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.fixed_programs))
def test_generated_programs_do_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNPY_NO_CACHE", "1")
    program = program_of(seed)
    fixed = _fixed(Path("/nowhere/program.harn"), program.text)
    if not program.session:
        before, after = (outcome(Program(text, program.module), "compile") for text in (program.text, fixed))
        assert (before.ending, _headline(before.text)) == (after.ending, _headline(after.text))
        assert _plain(before.output) == _plain(after.output)


def _headline(text: str) -> str:
    return _plain(text.partition("\n")[0])


def _plain(text: str) -> str:
    return _BESIDE.sub("", text)
