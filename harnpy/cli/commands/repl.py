"""`harnpy repl`: inputs from a terminal or from a pipe. Spec: 09 §5."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from harnpy.cli import FAILED, Stopped, console
from harnpy.cli.command_options import trust_option
from harnpy.cli.repl import Shell, is_unfinished
from harnpy.project import ManifestError
from harnpy.version import __version__
from harnpy.vm.errors import ExitRequest


@click.command("repl", short_help="Run Harn interactively, one input at a time.")
@trust_option
def command() -> int:
    """Run Harn interactively, one input at a time; `:help` lists the commands.

    If stdin is not a terminal, all its inputs are run, without prompts.
    """
    try:
        shell = Shell()
        # Ctrl+C interrupts an input, and not the conversation.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if sys.stdin.isatty():
            _converse(shell)
        else:
            _read_pipe(shell)
            return FAILED if shell.failed else 0
    except ExitRequest as request:
        return request.code
    except ManifestError as error:
        sys.stderr.write(console.rendered_error(error, sys.stderr))
        return FAILED
    return 0


def _converse(shell: Shell) -> None:
    from harnpy.cli.repl_terminal import prompter

    print(f"Harn REPL v{__version__}")
    print("Type expressions or statements, :help for commands. Ctrl+D or :quit to exit.")
    ask = prompter(shell)
    with suppress(EOFError):
        while not shell.done:
            with _uninterrupted():
                shell.feed(ask())
    print("Goodbye!")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """End the block at a Ctrl+C, and nothing else."""
    try:
        yield
    except Stopped:
        raise
    except KeyboardInterrupt:
        pass


def _read_pipe(shell: Shell) -> None:
    """Feed the inputs on stdin; an unfinished one at the end is fed as it is."""
    more = True
    while more and not shell.done:
        with _uninterrupted():
            text, more = _next_piped()
            shell.feed(text)


def _next_piped() -> tuple[str, bool]:
    """One input from stdin, and whether there may be more."""
    text = ""
    for line in iter(sys.stdin.readline, ""):
        text += line
        if not is_unfinished(text):
            return text, True
    return text, False
