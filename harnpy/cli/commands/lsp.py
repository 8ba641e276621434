"""`harnpy lsp`: the language server, for editors. Spec: 12 §1."""

from __future__ import annotations

from importlib.util import find_spec

import click

from harnpy.cli import FAILED
from harnpy.cli.console import complain
from harnpy.version import install_command


@click.command("lsp", short_help="Serve an editor (LSP): diagnostics, completion, rename ….")
def command() -> int:
    """Serve the editor that starts this, over stdin and stdout: the Language Server Protocol.

    Needs the extra `lsp`.
    """
    if find_spec("pygls") is None:
        complain(f"error: `harnpy lsp` needs pygls: {install_command('lsp')}")
        return FAILED
    from harnpy.cli.process import take_streams
    from harnpy.lsp.server import LanguageServer

    return LanguageServer().run(*take_streams())
