"""`harnpy jupyter`: the kernel for notebooks. Spec: 12 §5.1."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from harnpy.cli import FAILED
from harnpy.cli.console import complain, say
from harnpy.cli.usage import Group

_NAME = "harn"


@click.group("jupyter", cls=Group, short_help="Harn in Jupyter notebooks: install its kernel.")
def command() -> None:
    """Harn in Jupyter notebooks.

    Needs the extra: pip install 'harnpy[jupyter]'.
    """


@command.command("install", short_help="Tell Jupyter about the kernel.")
@click.option("--user", "where", flag_value="user", default=True, help="For this user (the default).")
@click.option("--sys-prefix", "where", flag_value="sys-prefix", help="For this Python environment.")
@click.option("--prefix", type=click.Path(path_type=Path), metavar="DIR", help="Below DIR.")
def install(where: str, prefix: Path | None) -> int:
    """Tell Jupyter about the kernel, which runs with this Python: notebooks offer Harn from then on."""
    if not _is_installed():
        return FAILED
    from jupyter_client.kernelspec import KernelSpecManager

    if prefix is None and where == "sys-prefix":
        prefix = Path(sys.prefix)
    spec = {
        "argv": [sys.executable, "-m", "harnpy", "jupyter", "kernel", "{connection_file}"],
        "display_name": "Harn",
        "language": "harn",
        "interrupt_mode": "signal",
        "metadata": {"debugger": False},
    }
    with TemporaryDirectory() as directory:
        (Path(directory) / "kernel.json").write_text(json.dumps(spec, indent=2) + "\n", encoding="utf-8")
        place = KernelSpecManager().install_kernel_spec(
            directory, _NAME, user=prefix is None, prefix=None if prefix is None else os.fspath(prefix)
        )
    say(f"installed the kernel `{_NAME}` in {place}")
    return 0


@command.command("kernel", short_help="Serve one notebook; Jupyter starts this.")
@click.argument("connection_file", type=click.Path(exists=True, dir_okay=False))
def kernel(connection_file: str) -> int:
    """Serve the notebook of CONNECTION_FILE. Jupyter starts this; nobody else needs to."""
    if not _is_installed():
        return FAILED
    from harnpy.cli.jupyter.kernel import serve

    serve(connection_file)
    return 0


def _is_installed() -> bool:
    if find_spec("ipykernel") is not None and find_spec("lsprotocol") is not None:
        return True
    complain("error: `harnpy jupyter` needs ipykernel: pip install 'harnpy[jupyter]'")
    return False
