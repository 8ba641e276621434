"""`harnpy check`: what can be known about programs without running them. Spec: 09 §4.1, 03 §1."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from os import walk
from pathlib import Path

import click

from harnpy import Vm
from harnpy.cli import faults
from harnpy.cli.console import FAILED, OK, complain
from harnpy.cli.later import later
from harnpy.syntax.errors import SourceFault, SyntaxFault
from harnpy.vm.load import compile_program


@click.command("check", short_help="Find the errors of programs without running them.")
@click.argument("targets", nargs=-1, type=click.Path(path_type=Path), metavar="TARGET...")
@later("--workspace", "--strict-types", "--invariants", "--provider-matrix")
@later("--preflight", "--host-capabilities", "--bundle-root", takes_value=True)
@click.pass_context
def command(context: click.Context, targets: tuple[Path, ...]) -> int:
    """Find the errors of programs without running them.

    A TARGET is a file or a directory, which stands for the .harn files below it.
    """
    if not targets:
        raise click.UsageError(
            "`harnpy check` requires at least one target path, or `--workspace` with `[workspace].pipelines`",
            context,
        )
    files = sorted({file for target in targets for file in _files(target)})
    if not files:
        complain("no .harn files found under the given target(s)")
        return FAILED
    status = OK
    for file in files:
        try:
            _check(file)
        except (OSError, SourceFault) as error:
            sys.stderr.write(faults.render(error, sys.stderr))
            status = FAILED
            if isinstance(error, SyntaxFault):
                break
        else:
            print(f"{file}: ok")
    return status


def _files(target: Path) -> Iterator[Path]:
    if not target.is_dir():
        yield target
        return
    for folder, _, names in walk(target):
        yield from (Path(folder, name) for name in names if name.endswith(".harn"))


def _check(file: Path) -> None:
    """Compile the program as `run` would. Raises OSError and SourceFault."""
    source = file.read_text(encoding="utf-8", errors="replace")
    compile_program(source, str(file), None, Vm().builtins)
