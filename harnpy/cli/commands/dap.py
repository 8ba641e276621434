"""`harnpy dap`: the debugger for editors. Spec: 09 §15.6."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from typing import BinaryIO


@click.command("dap", short_help="Debug a program from an editor.")
def command() -> None:
    """Speak the Debug Adapter Protocol on stdin and stdout.

    Editors start this command; docs/debugging.md shows how to configure VS Code and others. The debugger for
    people at a terminal is `harnpy debug`.
    """
    from harnpy.cli.debugger.dap.adapter import Adapter
    from harnpy.cli.debugger.dap.wire import Wire

    Adapter(Wire(*_streams())).serve()


def _streams() -> tuple[BinaryIO, BinaryIO]:
    """The client's streams, kept from the program and its child processes.

    These read nothing, and what they write to stdout goes to stderr.
    """
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reader, writer
