"""The commands other than `run`, as a click application. Spec: 09 §1.1–1.2."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import click

from harnpy.cli import FAILED, USAGE, console
from harnpy.cli.commands import run
from harnpy.cli.console import complain, usage_error
from harnpy.cli.usage import Group, named, problem
from harnpy.version import __version__

#: Command name to the module whose `command` it is, or what is named behind a colon.
_MODULES = {
    "init": "harnpy.cli.commands.init",
    "new": "harnpy.cli.commands.init:new",
    "test": "harnpy.cli.commands.test",
    "repl": "harnpy.cli.commands.repl",
    "debug": "harnpy.cli.debugger.commands:debug",
    "dap": "harnpy.cli.debugger.commands:dap",
    "check": "harnpy.cli.commands.check",
    "lint": "harnpy.cli.commands.lint",
    "fmt": "harnpy.cli.commands.fmt",
    "explain": "harnpy.cli.commands.check:explain",
    "viz": "harnpy.cli.commands.viz",
    "bench": "harnpy.cli.commands.profile:bench",
    "profile": "harnpy.cli.commands.profile",
    "emit": "harnpy.cli.commands.profile:emit",
    "runs": "harnpy.cli.commands.runs",
    "replay": "harnpy.cli.commands.tape:replay",
    "branch": "harnpy.cli.commands.tape:branch",
    "compare": "harnpy.cli.commands.tape:compare",
    "watch": "harnpy.cli.commands.tape:watch",
    "worker": "harnpy.cli.commands.worker",
    "eval": "harnpy.cli.commands.eval",
    "sessions": "harnpy.cli.commands.sessions",
    "tokens": "harnpy.cli.commands.event_log:tokens",
    "waitpoint": "harnpy.cli.commands.event_log:waitpoint",
    "bundle": "harnpy.cli.commands.bundle",
    "session": "harnpy.cli.commands.bundle:alias",
    "serve": "harnpy.cli.commands.serve",
    "portal": "harnpy.cli.commands.serve:portal",
    "attach": "harnpy.cli.commands.attach",
    "mcp": "harnpy.cli.commands.mcp",
    "acp": "harnpy.cli.commands.acp",
    "lsp": "harnpy.cli.commands.lsp",
    "jupyter": "harnpy.cli.commands.jupyter",
    "trust": "harnpy.cli.commands.trust",
    "doctor": "harnpy.cli.commands.doctor",
    "builtins": "harnpy.cli.commands.builtins",
}
#: What stands for other commands. Spec: 11 §1.
_ALIASES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("serve", "mcp"): ("mcp", "serve"),
    ("serve", "acp"): ("acp",),
}


@click.command("version", short_help="Show the version as a banner.")
def _version() -> None:
    """Show the version as a banner. `harnpy --version` prints it plain."""
    title, motto = f"harn v{__version__}", "the agent harness language"
    width = max(len(title), len(motto)) + 4
    click.echo(f"╭{'─' * width}╮\n│{title:^{width}}│\n│{motto:^{width}}│\n╰{'─' * width}╯")


class _Commands(Group):
    """Imports a command's module when the command is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["run", *_MODULES, "version"]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name == "run":  # for the list of commands only: `main` has dispatched it already
            return click.Command("run", short_help=run.SUMMARY)
        if name == "version":
            return _version
        if name not in _MODULES:
            return None
        module, _, attribute = _MODULES[name].partition(":")
        command = getattr(import_module(module), attribute or "command")
        assert isinstance(command, click.Command)
        return command


@click.command(cls=_Commands, no_args_is_help=False, invoke_without_command=True)
@click.version_option(__version__, prog_name="harnpy", message="%(prog)s %(version)s")
@click.pass_context
def harnpy(context: click.Context) -> int | None:
    """Run, test and explore Harn programs.

    `harnpy FILE.harn ...` is the same as `harnpy run FILE.harn ...`.
    """
    if context.invoked_subcommand is None:
        complain(context.get_help())
        return USAGE
    return None


def main(argv: Sequence[str]) -> int:
    """Run a command; a command returns its exit status, None meaning 0."""
    argv = [*_ALIASES.get(tuple(argv[:2]), argv[:2]), *argv[2:]]
    try:
        # What `harnpy.main` does, without its ways to end a process.
        with harnpy.make_context("harnpy", list(argv)) as context:
            status = harnpy.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        usage = error.ctx.get_usage().removeprefix("Usage: ") if error.ctx else "harnpy <command> [args]"
        return usage_error(problem(error, named(harnpy, argv)), usage)
    except click.ClickException as error:
        complain(f"error: {error.message}")
        return FAILED
    except OSError as error:
        if not error.filename:
            raise  # maybe of stdout: `harnpy.cli.main` looks
        complain(f"error: {console.error_text(error)}")
        return FAILED
    return status if isinstance(status, int) else 0
