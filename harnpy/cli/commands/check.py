"""`harnpy check`: the errors of programs without running them. Spec: 09 §4.1, 03 §1."""

from __future__ import annotations

from pathlib import Path

import click

from harnpy import Vm
from harnpy.cli import FAILED, OK
from harnpy.cli.commands import preflight
from harnpy.cli.commands.unbuilt import unbuilt_options
from harnpy.cli.console import complain
from harnpy.cli.show.reports import Report, report, report_options
from harnpy.cli.targets import program_files
from harnpy.syntax.errors import SourceFault, SyntaxFault
from harnpy.vm.compile import compile_program
from harnpy.vm.resolve.resolved import parsed


@click.command("check", short_help="Find the errors of programs without running them.")
@click.argument("targets", nargs=-1, type=click.Path(path_type=Path), metavar="TARGET...")
@unbuilt_options("--workspace", "--strict-types", "--invariants", "--provider-matrix")
@click.option(
    "--preflight",
    "severity",
    type=click.Choice(preflight.SEVERITIES),
    help="What to make of imports and templates that won't be found.",
)
@unbuilt_options("--host-capabilities", "--bundle-root", takes_value=True)
@report_options
@click.pass_context
def command(context: click.Context, targets: tuple[Path, ...], severity: str | None, form: str | None) -> int:
    """Find the errors of programs without running them.

    A TARGET is a file or a directory, which means the .harn files below it.
    """
    if not targets:
        raise click.UsageError(
            "`harnpy check` requires at least one target path, or `--workspace` with `[workspace].pipelines`",
            context,
        )
    files = program_files(targets)
    if not files:
        complain("no .harn files found under the given target(s)")
        return FAILED
    status, told = OK, report(form)
    for file in files:
        try:
            clean = _check(file, severity, told)
        except (OSError, SourceFault) as error:
            told.fail(error)
            status = FAILED
            if isinstance(error, SyntaxFault):
                break
        else:
            status = status if clean else FAILED
    told.end()
    return status


def _check(file: Path, severity: str | None, told: Report) -> bool:
    """Compile the program as `run` would, and check what it needs; False when it would fail.

    Raises OSError and SourceFault.
    """
    source = file.read_text(encoding="utf-8", errors="replace")
    vm, directory = Vm(), str(file.absolute().parent)
    imports = vm.imports_of(source, directory)
    compile_program(source, str(file), None, vm.builtins, checked=True, imports=imports)
    found = list(preflight.findings(vm, parsed(source, str(file)), file, source, severity))
    told.add(str(file), source, found)
    if not found:
        told.say(f"{file}: ok")
    return all(diagnostic.severity != "error" for diagnostic in found)
