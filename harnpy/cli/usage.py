"""Usage errors of the command line, in our own words, whatever click says. Spec: 09 §1.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from harnpy.formats.suggestions import nearest_at_run_time


class Group(click.Group):
    """A group of commands that says which one was probably meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(_unknown("command", name, f"'{name}'", self.list_commands(ctx)), ctx)
        return super().resolve_command(ctx, args)


def problem(error: click.UsageError, command: click.Command) -> str:
    """Return what is wrong with the usage of a command."""
    if not _is_of_click(error):
        return error.message if type(error) is click.UsageError else _told(error)
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        known = [option for each in _options(command) for option in (*each.opts, *each.secondary_opts)]
        return _unknown("option", name, f"'{name}'", known)
    if isinstance(error, click.MissingParameter):
        return f"missing {_kind(error.param)} '{_name(error.param)}'"
    if isinstance(error, click.BadOptionUsage):
        is_flag = any(error.option_name in each.opts for each in _options(command) if each.is_flag)
        needs = "does not take a value" if is_flag else "requires an argument"
        return f"option '{error.option_name}' {needs}"
    if isinstance(error, click.BadParameter):
        return f"invalid value for '{_name(error.param)}': {_expected(error.param)}"
    return "missing command" if isinstance(command, Group) else "too many arguments"


def named(command: click.Command, words: Sequence[str]) -> click.Command:
    """Return the command within a command that the words of a command line name."""
    for word in words:
        if not isinstance(command, click.Group):
            break
        command = command.get_command(click.Context(command), word) or command
    return command


def _is_of_click(error: BaseException) -> bool:
    """Return whether click itself raised an error: where it was raised, not what it says, tells."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return str(module).partition(".")[0] == "click"


def _told(error: click.UsageError) -> str:
    """Return what a command of ours says of a value."""
    parameter = getattr(error, "param", None)
    hint = getattr(error, "param_hint", None) or (f"'{_name(parameter)}'" if parameter is not None else "")
    return f"invalid value{f' for {hint}' if hint else ''}: {error.message}"


def _unknown(kind: str, name: str, shown: str, known: list[str]) -> str:
    near = nearest_at_run_time(name, known)
    return f"no such {kind} {shown}" + (f". Did you mean '{near}'?" if near else "")


def _options(command: click.Command) -> list[click.Option]:
    parameters = command.get_params(click.Context(command))
    return [each for each in parameters if isinstance(each, click.Option)]


def _kind(parameter: click.Parameter | None) -> str:
    return "option" if isinstance(parameter, click.Option) else "argument"


def _name(parameter: click.Parameter | None) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return "" if parameter is None else parameter.human_readable_name


def _expected(parameter: click.Parameter | None) -> str:
    type: Any = None if parameter is None else parameter.type
    if isinstance(type, click.Choice):
        return f"expected one of {', '.join(map(str, type.choices))}"
    if isinstance(type, click.Path | click.File):
        needs_directory = isinstance(type, click.Path) and not type.file_okay
        return f"expected a {'directory' if needs_directory else 'file'} that can be read"
    bounds = ""
    if isinstance(type, click.IntRange | click.FloatRange):
        least = "" if type.min is None else f" {'>' if type.min_open else '>='} {type.min}"
        most = "" if type.max is None else f" {'<' if type.max_open else '<='} {type.max}"
        bounds = " and".join(bound for bound in (least, most) if bound)
    name = getattr(type, "name", "")
    what = "a number" if name.startswith("float") else "an int" if name.startswith("int") else "another value"
    return f"expected {what}{bounds}"
