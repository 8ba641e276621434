"""`harnpy lint`: habits that programs would be better without, and their cure. Spec: 09 §4.2, 03 §15."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import click

from harnpy import Vm
from harnpy.check.allow import silenced
from harnpy.check.checker import check_program
from harnpy.check.findings import Finding, has_errors
from harnpy.check.lint.fixing import fix_all
from harnpy.check.lint.rules import lint
from harnpy.cli import FAILED, OK
from harnpy.cli.console import complain
from harnpy.cli.reports import Report, report, report_options
from harnpy.cli.source_files import NAMES, LintSettings, consumed_names, program_files, replace_text
from harnpy.formats.suggestions import hint
from harnpy.formats.visible import on_one_line
from harnpy.syntax.diagnostic import Lines, SyntaxFault
from harnpy.syntax.parser import parse


def _known(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in NAMES:
            raise click.UsageError(f"there is no lint rule `{name}`; {hint(name, NAMES)}", context)
    return names


@click.command("lint", short_help="Find bad habits in programs, and fix them.")
@click.argument("targets", nargs=-1, type=click.Path(path_type=Path), metavar="TARGET...")
@click.option("--fix", is_flag=True, help="Apply the fixes that can't change what the program does.")
@click.option("--unsafe-fixes", is_flag=True, help="Apply all fixes; review the result.")
@click.option("--require-file-header", is_flag=True, help="Require a /** */ block at the top of each file.")
@click.option("--select", multiple=True, callback=_known, metavar="RULE", help="Apply only this rule.")
@click.option("--disable", multiple=True, callback=_known, metavar="RULE", help="Skip this rule.")
@report_options
@click.pass_context
def command(
    context: click.Context,
    targets: tuple[Path, ...],
    fix: bool,
    unsafe_fixes: bool,
    require_file_header: bool,
    select: tuple[str, ...],
    disable: tuple[str, ...],
    form: str | None,
) -> int:
    """Find bad habits in programs: unused names, unreachable code, and the like.

    A TARGET is a file, or a directory with .harn files below it. `harnpy explain RULE` gives the reason for
    a rule. `// harnpy: allow RULE` at the end of a line silences it there, `[lint] disabled` of
    harn.toml everywhere.
    """
    if not targets:
        raise click.UsageError("`harnpy lint` requires at least one target path", context)
    files = program_files(targets)
    if not files:
        complain("no .harn files found under the given target(s)")
        return FAILED
    settings = LintSettings(
        enabled=("require-file-header",) if require_file_header else (), selected=select, disabled=disable
    )
    fixing = ("unsafe" if unsafe_fixes else "safe") if fix or unsafe_fixes else None
    told = report(form)
    status = _Linting(settings, fixing, told).run(files)
    told.end()
    return status


class _Linting:
    """One run of the command. ``fixing``: the fixes to apply, ``"safe"`` ones or all with ``"unsafe"``."""

    def __init__(self, settings: LintSettings, fixing: str | None, told: Report) -> None:
        self._settings = settings
        self._fixing = fixing
        self._told = told
        self._vm = Vm()

    def run(self, files: Sequence[Path]) -> int:
        """Lint the files; return the exit status."""
        status = OK
        programs: dict[Path, str] = {}
        for file in files:
            try:
                programs[file] = _text(file)
                parse(programs[file], file=str(file))
            except (OSError, SyntaxFault) as error:
                programs.pop(file, None)
                self._told.fail(error)
                status = FAILED
        consumed = consumed_names(self._vm, programs)
        for file, source in programs.items():
            names = consumed.get(file.resolve(), ())
            status = max(status, (self._mend if self._fixing else self._judge)(file, source, names))
        return status

    def _look(self, file: Path, source: str, consumed: Collection[str], typed: bool = False) -> list[Finding]:
        """The findings of a file; ``typed``: and those of its types (03 §1)."""
        program = parse(source)
        imports = self._vm.imports_of(source, str(file.absolute().parent))
        knowledge = self._vm.builtins.knowledge()
        settings = self._settings.of(file)
        found = lint(source, program, str(file), knowledge, imports, settings, consumed)
        if typed:
            found += check_program(program, source, knowledge, imports)
        return silenced(source, found)

    def _judge(self, file: Path, source: str, consumed: Collection[str]) -> int:
        """Lint a file; return the exit status."""
        found = self._found(file, source, consumed)
        return FAILED if has_errors(found) or (found and self._settings.strict(file)) else OK

    def _found(self, file: Path, source: str, consumed: Collection[str]) -> list[Finding]:
        """Lint a file and show the findings."""
        found = self._look(file, source, consumed)
        self._told.add(str(file), source, [finding.diagnostic(Lines(source)) for finding in found])
        if not found:
            self._told.say(f"{file}: no issues found")
        return found

    def _mend(self, file: Path, source: str, consumed: Collection[str]) -> int:
        """Fix a file, and show what is left; it fails only where nobody may write to the file."""
        unsafe = self._fixing == "unsafe"
        mended, count = fix_all(
            source, lambda text: self._look(file, text, consumed, typed=True), unsafe=unsafe
        )
        if count:
            try:
                replace_text(str(file), mended)
            except OSError as error:
                complain(f"{on_one_line(str(file))}: {error.strerror}")
                self._found(file, source, consumed)
                return FAILED
            self._told.say(f"{file}: applied {count} fix(es)")
        self._found(file, mended, consumed)
        return OK


def _text(file: Path) -> str:
    """The text of a file, its line ends as they are. Raises OSError."""
    with open(file, encoding="utf-8", errors="surrogateescape", newline="") as stream:
        return stream.read()
