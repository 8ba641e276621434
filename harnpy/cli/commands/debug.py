"""`harnpy debug`: a program that stops where you say, at the terminal. Spec: 09 §15.1."""

from __future__ import annotations

import os

import click

from harnpy.cli.debugger.commands import HELP


@click.command(
    "debug",
    short_help="Debug a program at the terminal.",
    epilog="\b\nCommands, while the program is stopped:\n" + HELP.replace("\n\n", "\n\n\b\n"),
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("args", nargs=-1)
@click.option("--skill-dir", "skill_dirs", multiple=True, metavar="DIR", help="Add the skills in DIR.")
@click.option("--llm-mock", metavar="FILE", help="Answer all model calls from FILE, a fixture a line.")
def command(file: str, args: tuple[str, ...], skill_dirs: tuple[str, ...], llm_mock: str | None) -> int:
    """Run FILE, and stop before its first statement.

    ARGS are the program's `argv`; write `--` before those that begin with a dash. The program is walked, not
    compiled (`harnpy run --walk`).
    """
    from harnpy.cli.debugger.program import Launch
    from harnpy.cli.debugger.terminal import Terminal

    return Terminal(Launch(os.fspath(file), args, skill_dirs, llm_mock)).run()
