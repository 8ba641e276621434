"""`harnpy check`: what is wrong with programs, without running them; `harnpy explain`.

Spec: 03 §1, §14, 06 §5-8, 09 §4.1, §4.4.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import click

from harnpy import Vm
from harnpy.check.allow import silenced
from harnpy.check.explanations import Explanation, explanations, families, page
from harnpy.check.lint.requested import LintSettings
from harnpy.check.lint.rules import lint
from harnpy.check.lint.settings import Settings
from harnpy.checking import Checker
from harnpy.cli import FAILED, OK
from harnpy.cli.command_options import trust_option, unbuilt_options
from harnpy.cli.console import complain, say_folded
from harnpy.cli.project_setup import bind_manifest
from harnpy.cli.reports import Report, report, report_options
from harnpy.cli.source_files import consumed_names, manifests, program_files
from harnpy.formats.manifest import nearest_manifest
from harnpy.formats.suggestions import nearest_at_run_time
from harnpy.preflight import SEVERITIES, preflight_findings
from harnpy.project import project_root
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Diagnostic, Lines, SyntaxFault
from harnpy.syntax.parser import parse_cached
from harnpy.vm.modules import Modules
from harnpy.world.files import RealFiles

_NO_TARGET = "`harnpy check` requires at least one target path, or `--workspace` with `[workspace].pipelines`"


@click.command("check", short_help="Find the errors of programs without running them.")
@click.argument("targets", nargs=-1, type=click.Path(path_type=Path), metavar="TARGET...")
@click.option("--workspace", is_flag=True, help="Also check the [workspace] pipelines of harn.toml.")
@click.option("--strict-types", is_flag=True, help="Warn when unvalidated values from outside are read.")
@click.option(
    "--preflight",
    "severity",
    type=click.Choice(SEVERITIES),
    help="The severity of imports and templates that don't exist.",
)
@trust_option
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

    Checks names, types, options of builtins, workflow graphs and tools; then reports the findings of
    `harnpy lint`, and files that a run would miss. A TARGET is a file, or a directory with .harn files
    below it. `harnpy explain CODE` explains a finding, and `// harnpy: allow CODE` at the end of a
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
    manifest = nearest_manifest(RealFiles(), start)
    if manifest is None:
        raise _NoWorkspace("--workspace could not find a harn.toml walking up from the target(s)")
    paths = manifests().table("workspace", start, required=True).get("pipelines")
    if not isinstance(paths, list) or not paths:
        raise _NoWorkspace("--workspace requires `[workspace].pipelines` in the nearest harn.toml")
    yield from (Path(manifest).parent / str(path) for path in paths)


class _Checking:
    """One run of the command."""

    def __init__(self, strict_types: bool, severity: str | None, told: Report) -> None:
        self._strict_types = strict_types
        self._severity = severity
        self._told = told
        self._manifests = manifests()
        self._lint_settings = LintSettings(self._manifests)
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
            if any(each.severity == "error" for each in found) or (
                found and self._lint_settings.strict(str(file))
            ):
                status = FAILED
        return status

    def _found(self, file: Path, source: str, consumed: Collection[str]) -> list[Diagnostic]:
        """Everything to say of a file. Raises SyntaxFault."""
        program = parse_cached(source, str(file))
        found = self._checked(file, source)
        # Where the checker has said something, the linter needn't, unless that isn't all.
        told = {each.span.start: each.code for each in found if each.span is not None}
        advice = self._advised(file, source, program, consumed)
        return found + [each for each in advice if not each.span or _adds(each, told.get(each.span.start))]

    def _vm(self, file: Path) -> Vm:
        """The Vm of a file's project: the servers of its manifest are globals of its programs."""
        root = project_root(str(file.absolute().parent), RealFiles())
        if root not in self._vms:
            self._vms[root] = Vm()
            if root is not None:
                bind_manifest(self._vms[root], root)
        return self._vms[root]

    def _checked(self, file: Path, source: str) -> list[Diagnostic]:
        """Return the findings of the type checker."""
        table = self._manifests.table("check", str(file))
        strict = self._strict_types or table.get("strict_types") is True
        vm = self._vm(file)
        checker = self._checkers.setdefault((vm, strict), Checker(strict=strict, disk=True, vm=vm))
        return checker.check({str(file): source})[str(file)]

    def _advised(
        self, file: Path, source: str, program: ast.Program, consumed: Collection[str]
    ) -> Iterator[Diagnostic]:
        """Return the findings of lint and preflight."""
        vm, directory = self._vm(file), str(file.absolute().parent)
        imports = vm.imports_of(source, directory)
        disabled = self._lint_settings.of(str(file)).disabled
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
        found = preflight_findings(vm, vm.state(Modules), program, str(file), directory, self._severity)
        yield from (finding.diagnostic(lines) for finding in found)


def _adds(advice: Diagnostic, told: str | None) -> bool:
    """Return True if advice of the linter adds to the finding ``told`` at its place."""
    return told is None or (told, advice.code) == ("immutable-assignment", "lost-assignment")


# `harnpy explain`: what the code of a diagnostic means. Spec: 09 §4.4.


@click.command("explain", short_help="Explain the code of a diagnostic, or list all codes.")
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of CODE's explanation, or of all.")
@click.option("--markdown", is_flag=True, help="Print the page of all codes, docs/diagnostics.md.")
@unbuilt_options("--invariant", takes_value=True)
def explain(code: str | None, as_json: bool, markdown: bool) -> None:
    """Explain CODE, the word beside the carets of a diagnostic, with a wrong and a right program.

    Without CODE, list all codes by family.
    """
    found = None if code is None else _find(code)
    if as_json:
        shown = explanations().values() if found is None else [found]
        click.echo(json.dumps([_as_dict(each) for each in shown], indent=1, ensure_ascii=False))
    elif markdown:
        click.echo(page(), nl=False)
    else:
        say_folded("\n".join(_list() if found is None else _text(found)))


def _find(code: str) -> Explanation:
    """The explanation of ``code``, which may be written as in a label: ``lint[CODE]``."""
    name = code.removeprefix("lint[").removesuffix("]")
    found = explanations().get(name)
    if found is None:
        near = nearest_at_run_time(name, explanations())
        hint = f" (did you mean `{near}`?)" if near else "; `harnpy explain` lists all"
        raise click.ClickException(f"no diagnostic has the code `{name}`{hint}")
    return found


def _as_dict(found: Explanation) -> dict[str, str]:
    return {name: getattr(found, name) for name in ("code", "family", "what", "why", "wrong", "right")}


def _text(found: Explanation) -> Iterator[str]:
    yield f"{found.code}  [{found.family}]"
    yield from ("", found.what, "", found.why)
    for title, program in ("Wrong:", found.wrong), ("Right:", found.right):
        yield from ("", title, "")
        yield from (f"  {line}".rstrip() for line in program.splitlines())


def _list() -> Iterator[str]:
    for family in families():
        width = max((len(each.code) for each in family.explanations), default=0)
        yield f"{family.name}:"
        yield from (f"  {each.code:{width}}  {each.summary}" for each in family.explanations)
        yield ""
