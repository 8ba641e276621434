"""`harnpy dap`: the debugger for editors. Spec: 09 §15.6."""

from __future__ import annotations

import click


@click.command("dap", short_help="Debug a program from an editor.")
def command() -> None:
    """Speak the Debug Adapter Protocol on stdin and stdout.

    Editors start this command; docs/debugging.md shows how to configure VS Code and others. The debugger for
    people at a terminal is `harnpy debug`.
    """
    from harnpy.cli.client_streams import take_streams
    from harnpy.cli.debugger.dap.adapter import Adapter
    from harnpy.cli.debugger.dap.wire import Wire

    Adapter(Wire(*take_streams())).serve()
