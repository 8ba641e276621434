"""`harnpy emit`: the Python that a program becomes. Spec: 09 §6.7."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harnpy import Vm
from harnpy.cli import FAILED, OK
from harnpy.cli.show import error_text
from harnpy.syntax.errors import SourceFault
from harnpy.vm.compile import listing_of


@click.command("emit", short_help="Show the Python that a program becomes.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--module", "as_module", is_flag=True, help="As it is compiled when another file imports it.")
def command(file: Path, as_module: bool) -> int:
    """Show the Python that a program becomes, each line of the program as a comment before it.

    Functions come first, as makers that are called with the values that the function captures; then `main`.
    docs/internals/vm.md explains the rest.
    """
    vm, directory = Vm(), str(file.absolute().parent)
    try:
        source = file.read_text(encoding="utf-8", errors="replace")
        imports = vm.imports_of(source, directory)
        sys.stdout.write(listing_of(source, str(file), vm.builtins, imports, as_module))
    except (OSError, SourceFault) as error:
        sys.stderr.write(error_text.render(error, sys.stderr))
        return FAILED
    return OK
