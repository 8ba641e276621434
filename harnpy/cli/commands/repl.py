"""`harnpy repl`: inputs from a terminal or from a pipe. Spec: 09 §5."""

from __future__ import annotations

import sys
from contextlib import suppress

import click

from harnpy.cli import FAILED
from harnpy.cli.repl.highlight import is_unfinished
from harnpy.cli.repl.shell import Shell
from harnpy.cli.show import error_text
from harnpy.project import ManifestError
from harnpy.version import __version__
from harnpy.vm.errors import ExitRequest


@click.command("repl", short_help="Talk to Harn, one input at a time.")
def command() -> int:
    """Talk to Harn, one input at a time; `:help` shows how.

    When stdin is not a terminal, inputs are read from it to its end, without prompts.
    """
    try:
        shell = Shell()
        if sys.stdin.isatty():
            _converse(shell)
        else:
            _read_pipe(shell)
    except ExitRequest as request:
        return request.code
    except ManifestError as error:
        sys.stderr.write(error_text.render(error, sys.stderr))
        return FAILED
    return 0


def _converse(shell: Shell) -> None:
    from harnpy.cli.repl.terminal import prompter

    print(f"Harn REPL v{__version__}")
    print("Type expressions or statements. Ctrl+C or Ctrl+D to exit.")
    ask = prompter(shell)
    with suppress(EOFError, KeyboardInterrupt):
        while not shell.done:
            shell.feed(ask())
    print("Goodbye!")


def _read_pipe(shell: Shell) -> None:
    """Feed the inputs on stdin; an unfinished one at the end is fed as it is."""
    text = ""
    for line in sys.stdin:
        text += line
        if is_unfinished(text):
            continue
        shell.feed(text)
        text = ""
        if shell.done:
            return
    shell.feed(text)
