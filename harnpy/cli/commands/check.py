"""`harnpy check`: what is wrong with programs, without running them. Spec: 09 §4.1, 03 §1."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import click

from harnpy import Vm
from harnpy.check.allow import silenced
from harnpy.check.lint.engine import lint
from harnpy.check.lint.settings import Settings
from harnpy.checking import Checker
from harnpy.cli import FAILED, OK
from harnpy.cli.commands import preflight
from harnpy.cli.commands.unbuilt import unbuilt_options
from harnpy.cli.console import complain
from harnpy.cli.consumed_names import consumed_names
from harnpy.cli.lint_settings import LintSettings
from harnpy.cli.manifest_tables import Manifests, nearest_manifest
from harnpy.cli.project_setup import bind_manifest
from harnpy.cli.show.reports import Report, report, report_options
from harnpy.cli.targets import program_files
from harnpy.project import project_root
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Diagnostic
from harnpy.syntax.errors import SyntaxFault
from harnpy.syntax.parser import parse_cached
from harnpy.syntax.span import Lines
from harnpy.world.files import RealFiles

_NO_TARGET = "`harnpy check` requires at least one target path, or `--workspace` with `[workspace].pipelines`"


@click.command("check", short_help="Find the errors of programs without running them.")
@click.argument("targets", nargs=-1, type=click.Path(path_type=Path), metavar="TARGET...")
@click.option("--workspace", is_flag=True, help="Check also the [workspace] pipelines of harn.toml.")
@click.option("--strict-types", is_flag=True, help="Warn of unvalidated values from outside that are read.")
@click.option(
    "--preflight",
    "severity",
    type=click.Choice(preflight.SEVERITIES),
    help="What to make of imports and templates that won't be found.",
)
@report_options
@unbuilt_options("--invariants", "--provider-matrix")
@unbuilt_options("--host-capabilities", "--bundle-root", takes_value=True)
@click.pass_context
def command(
    context: click.Context,
    targets: tuple[Path, ...],
    workspace: bool,
    strict_types: bool,
    severity: str | None,
    form: str | None,
) -> int:
    """Find the errors of programs without running them.

    Names, types, the options of builtins, workflow graphs and tools are checked; then come the findings of
    `harnpy lint`, and what a run would miss. A TARGET is a file or a directory, which means the .harn files
    below it. `harnpy explain CODE` tells more about a finding, and `// harnpy: allow CODE` at the end of a
    line silences it there.
    """
    if not targets and not workspace:
        raise click.UsageError(_NO_TARGET, context)
    try:
        files = program_files([*targets, *(_workspace(targets) if workspace else ())])
    except _NoWorkspace as error:
        complain(str(error))
        return FAILED
    if not files:
        complain("no .harn files found under the given target(s)")
        return FAILED
    told = report(form)
    status = _Checking(strict_types, severity, told).run(files)
    told.end()
    return status


class _NoWorkspace(Exception):
    """There are no `[workspace]` pipelines; the message says why."""


def _workspace(targets: Sequence[Path]) -> Iterator[Path]:
    """The pipelines of the manifest that is nearest to the first target. Raises _NoWorkspace."""
    start = str(targets[0]) if targets else "."
    manifest = nearest_manifest(start)
    if manifest is None:
        raise _NoWorkspace("--workspace could not find a harn.toml walking up from the target(s)")
    paths = Manifests().table("workspace", start).get("pipelines")
    if not isinstance(paths, list) or not paths:
        raise _NoWorkspace("--workspace requires `[workspace].pipelines` in the nearest harn.toml")
    yield from (Path(manifest).parent / str(path) for path in paths)


class _Checking:
    """One run of the command."""

    def __init__(self, strict_types: bool, severity: str | None, told: Report) -> None:
        self._strict_types = strict_types
        self._severity = severity
        self._told = told
        self._lint_settings = LintSettings()
        self._manifests = Manifests()
        self._vms: dict[str | None, Vm] = {}
        self._checkers: dict[tuple[Vm, bool], Checker] = {}

    def run(self, files: Sequence[Path]) -> int:
        """Check the files; return the exit status. A text that isn't Harn ends the command."""
        status = OK
        sources = {}
        for file in files:
            try:
                sources[file] = file.read_text(encoding="utf-8", errors="replace")
            except OSError as error:
                self._told.fail(error)
                status = FAILED
        consumed = consumed_names(Vm(), sources)
        for file, source in sources.items():
            try:
                found = self._found(file, source, consumed.get(file.resolve(), ()))
            except SyntaxFault as fault:
                self._told.fail(fault)
                return FAILED
            self._told.add(str(file), source, found)
            if not found:
                self._told.say(f"{file}: ok")
            if any(each.severity == "error" for each in found) or (found and self._is_strict(file)):
                status = FAILED
        return status

    def _found(self, file: Path, source: str, consumed: Collection[str]) -> list[Diagnostic]:
        """Everything to say of a file. Raises SyntaxFault."""
        program = parse_cached(source, str(file))
        found = self._checked(file, source)
        # Where the checker has said something, the linter needn't.
        told = {each.span.start for each in found if each.span is not None}
        advice = self._advised(file, source, program, consumed)
        return found + [each for each in advice if each.span is None or each.span.start not in told]

    def _is_strict(self, file: Path) -> bool:
        """Whether warnings are errors."""
        return self._manifests.table("check", str(file)).get("strict") is True

    def _vm(self, file: Path) -> Vm:
        """The Vm of a file's project: the servers of its manifest are globals of its programs."""
        root = project_root(str(file.absolute().parent), RealFiles())
        if root not in self._vms:
            self._vms[root] = Vm()
            bind_manifest(self._vms[root], root)
        return self._vms[root]

    def _checked(self, file: Path, source: str) -> list[Diagnostic]:
        """What the type checker says."""
        table = self._manifests.table("check", str(file))
        strict = self._strict_types or table.get("strict_types") is True
        vm = self._vm(file)
        checker = self._checkers.setdefault((vm, strict), Checker(strict=strict, disk=True, vm=vm))
        return checker.check({str(file): source})[str(file)]

    def _advised(
        self, file: Path, source: str, program: ast.Program, consumed: Collection[str]
    ) -> Iterator[Diagnostic]:
        """What lint and preflight say."""
        vm, directory = self._vm(file), str(file.absolute().parent)
        imports = vm.imports_of(source, directory)
        disabled = self._lint_settings.of(file).disabled
        findings = lint(
            source,
            program,
            str(file),
            vm.builtins.knowledge(),
            imports,
            Settings(disabled=disabled),
            consumed,
        )
        lines = Lines(source)
        yield from (finding.diagnostic(lines) for finding in silenced(source, findings))
        yield from preflight.findings(vm, program, file, source, self._severity)
